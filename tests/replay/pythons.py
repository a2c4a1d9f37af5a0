"""Replay the recorded histories on every supported Python of this machine: `make replay`.

The supported versions are the classifiers of pyproject.toml. Interpreters are looked for by uv (on
PATH, and those that it manages) and in pyenv; a version that is not there is named. Each gets an
environment that holds what replay needs, at the versions that the project pins.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
NEEDED = ("temporalio", "pydantic")
_CLASSIFIER = "Programming Language :: Python :: 3."


def supported() -> list[str]:
    """Return the supported versions, like `3.11`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = [text for text in project["classifiers"] if text.startswith(_CLASSIFIER)]
    return [text.rpartition(" ")[2] for text in found]


def interpreters() -> dict[str, Path]:
    """Return an interpreter of this machine for each version that there is one of."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": Path(sys.executable)}
    for path in (*_of_uv(), *_of_pyenv()):
        version = _version(path)
        if version is not None:
            found.setdefault(version, path)
    return found


async def replay(python: Path) -> tuple[int, str]:
    """Replay all histories on an interpreter, in a new environment.

    Returns:
        The exit code, and what was said.
    """
    with tempfile.TemporaryDirectory() as folder:
        own = Path(folder, "bin", "python")
        for command in (
            [*_uv(), "venv", "--quiet", "--python", python, folder],
            [*_uv(), "pip", "install", "--quiet", "--python", own, *_constraints(), *NEEDED],
            [own, "-m", "tests.replay.recorded"],
        ):
            code, said = await _run(*map(str, command))
            if code:
                break
        return code, said


def _uv() -> list[str]:
    return [sys.executable, "-m", "uv"]


def _constraints() -> list[str]:
    return ["--constraint", str(ROOT / "requirements" / "runtime.txt")]


def _of_uv() -> list[Path]:
    # No download: what is not there is named.
    listed = subprocess.run(
        [*_uv(), "python", "list", "--only-installed", "--offline", "--output-format", "json"],
        capture_output=True,
        check=True,
    )
    return [Path(one["path"]) for one in json.loads(listed.stdout)]


def _of_pyenv() -> list[Path]:
    # Its shims are on PATH for the versions that are switched on, and fail for the others.
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    return sorted(root.glob("versions/3.*/bin/python"), reverse=True)


def _version(path: Path) -> str | None:
    """Return the version of an interpreter that runs, None for what is none."""
    asked = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        said = subprocess.run([path, "-c", asked], capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.decode().strip()


async def _run(*command: str) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=ROOT,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    return process.returncode or 0, said.decode(errors="replace")


async def main() -> int:
    """Replay on each interpreter in turn, say how it went, and return the exit code."""
    failed = False
    there = interpreters()
    for version in supported():
        if version not in there:
            sys.stdout.write(f"Python {version}: not on this machine\n")
            continue
        code, said = await replay(there[version])
        failed |= bool(code)
        sys.stdout.write(f"Python {version}: {said}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
