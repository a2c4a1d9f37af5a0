"""The deployment in small: what it pins and sets is what there is."""

import re
from pathlib import Path

from agentmem.settings import Settings

COMPOSE = Path("docker-compose.yml").read_text()


def test_every_image_is_pinned() -> None:
    """Each image names an exact version, down to its last number; so does the worker's base."""
    images = re.findall(r"^ +image: (\S+)$", COMPOSE, re.MULTILINE)
    assert len(images) >= 5
    assert [image for image in images if not re.search(r":\d+\.\d+(\.\d+)?$", image)] == []
    assert re.search(r"^FROM python:\d+\.\d+-slim", Path("Dockerfile").read_text(), re.MULTILINE)


def test_the_worker_is_given_settings_that_exist() -> None:
    """A renamed setting shows here, not in somebody's deployment."""
    known = {f"AGENTMEM_{name.upper()}" for name in Settings.model_fields}
    named = set(re.findall(r"AGENTMEM_[A-Z_]+", COMPOSE + Path("Dockerfile").read_text()))
    assert named
    assert named <= known


def test_the_image_holds_what_the_worker_imports() -> None:
    """The worker, its three packages, and pinned requirements with their hashes."""
    text = Path("Dockerfile").read_text()
    for part in ("agentmem", "workflows", "activities", "worker.py"):
        assert f"COPY {part} " in text
    assert "--require-hashes -r requirements/runtime.txt" in text
