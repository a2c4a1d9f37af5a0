"""The contents of the wheel, and the requirements, which name no registry."""

import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_wheel_holds_agentmem_alone(tmp_path: Path) -> None:
    """`workflows` is another project's package too: a wheel with ours would overwrite it."""
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", tmp_path, ROOT],
        check=True,
        capture_output=True,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"agentmem"}
    assert "agentmem/py.typed" in names
    assert any(name.startswith("agentmem/storage/migrations/versions/") for name in names)


def test_requirements_are_pinned_and_hashed_and_name_no_host() -> None:
    """Each line is a pin, a hash, a comment or a continuation; no index is named."""
    for path in (ROOT / "requirements").glob("*.txt"):
        lines = [line.strip() for line in path.read_text().splitlines()]
        for line in filter(None, lines):
            assert line.startswith(("#", "--hash=sha256:")) or "==" in line, (path.name, line)
        pins = sum("==" in line and not line.startswith("#") for line in lines)
        assert pins
        assert sum(line.startswith("--hash") for line in lines) >= pins
