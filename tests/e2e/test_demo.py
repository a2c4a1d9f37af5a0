"""The demo as people run it: `make demo`, without a terminal."""

import os
import signal
import socket
from pathlib import Path

import pytest

from tests.e2e.worker_process import ROOT, worker_process

DEMO = ROOT / "examples" / "demo.py"

pytestmark = pytest.mark.slow


def files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_the_demo_shows_what_it_promises(tmp_path: Path) -> None:
    """It talks, crashes, dreams and remembers; each of its checks holds, and it ends with 0."""
    async with worker_process(tmp_path, script=DEMO) as demo:
        assert await demo.ended(500) == 0, demo.text
    assert demo.lines[0].startswith("Answers come from agentmem/offline")
    assert "kill -9" in demo.text
    assert "no recorded answer was asked for again" in demo.text
    assert "the call under way was made once more" in demo.text
    phases = ("orient", "gather_signal", "consolidate", "prune")
    dream = demo.text.partition("a dream begins")[2].partition("Long-term memory")[0]
    shown = [line.split()[0] for line in dream.splitlines() if " → " in line]
    assert tuple(shown) == phases
    assert 'replaces "Lives in Bergen"' in demo.text
    assert "the verification stopped what was said as a joke" in demo.text
    second = demo.text.partition("Session two")[2]
    assert "Moved to Oslo" in second
    assert second.count("/namespaces/default/workflows/") == 3
    assert "FAILED" not in demo.text
    assert files(tmp_path) == []


async def test_an_interrupted_demo_leaves_nothing_running(tmp_path: Path) -> None:
    """SIGTERM in the middle ends the demo, its worker and its server."""
    async with worker_process(tmp_path, script=DEMO) as demo:
        server = (await demo.says("Temporal at")).split()[3].rstrip(",")
        worker = int((await demo.says("python worker.py")).split()[-1])
        await demo.says("1 Ada")
        demo.send(signal.SIGTERM)
        assert await demo.ended(60) == 130, demo.text
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)
    host, _, port = server.partition(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), 1)
