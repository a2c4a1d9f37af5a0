"""The commands on terminals of any encoding: what cannot be shown is replaced, nothing fails."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from agentmem.storage.registry import Providers

ROOT = Path(__file__).parents[2]

SCOPE, KEY, VALUE = "Ада", "stadt 🏙", "Köln, 東京"
AT = ("-a", "friend", "-s", SCOPE)
ENCODINGS = ["ascii", "latin-1", "utf-8", "shift_jis"]


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """Return a folder with a store that has one fact, in letters of several scripts."""
    providers = Providers(tmp_path, None)
    try:
        store = await providers.get("default")
        await store.memorize("friend", SCOPE, KEY, VALUE)
    finally:
        await providers.close()
    return tmp_path


async def run(data: Path, encoding: str, *command: str, **settings: str) -> tuple[int, bytes, str]:
    """Run a command, its three streams in an encoding; return exit code and output."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *command,
        cwd=data,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT),
            "PYTHONIOENCODING": encoding,
            "AGENTMEM_DATA": str(data),
            **settings,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, error = await process.communicate()
    return process.returncode or 0, out, error.decode(encoding)


@pytest.mark.parametrize("encoding", ENCODINGS)
async def test_people_read_what_their_terminal_has(data: Path, encoding: str) -> None:
    """Facts, scopes and a mistake are shown with replacements; the exit codes are as ever."""
    memory = ("-m", "agentmem", "memory")
    code, out, error = await run(data, encoding, *memory, "facts", *AT)
    assert (code, error) == (0, "")
    assert "stadt" in out.decode(encoding)
    code, out, error = await run(data, encoding, *memory, "scopes", "-a", "friend")
    assert (code, error) == (0, "")
    shown = SCOPE.encode(encoding, "replace").decode(encoding)
    assert out.decode(encoding).strip() == shown
    code, _, error = await run(data, encoding, *memory, "history", "нет", *AT)
    assert code == 1
    assert "there is no history of" in error
    assert "Traceback" not in error


@pytest.mark.parametrize("encoding", ["ascii", "utf-8", "shift_jis"])
async def test_what_programs_read_is_utf_8(data: Path, encoding: str) -> None:
    """Exports to a file and to standard output, and lines of JSON, lose no character."""
    memory = ("-m", "agentmem", "memory")
    _, shown, _ = await run(data, encoding, *memory, "facts", *AT, "--json")
    fact = json.loads(shown.decode("utf-8"))
    assert (fact["key"], fact["value"]) == (KEY, VALUE)
    _, exported, _ = await run(data, encoding, *memory, "export", *AT)
    assert VALUE in exported.decode("utf-8")
    code, _, _ = await run(data, encoding, *memory, "export", *AT, "out.jsonl")
    assert code == 0
    assert (data / "out.jsonl").read_bytes() == exported


async def test_the_worker_says_what_is_wrong_on_any_terminal(data: Path) -> None:
    """A mistake in a setting is one line, and no traceback about encodings."""
    worker = str(ROOT / "worker.py")
    code, _, error = await run(data, "ascii", worker, AGENTMEM_APP="нет.py")
    assert code == 1
    assert error.startswith("worker: ")
    assert "Traceback" not in error
