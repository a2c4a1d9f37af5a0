"""The request of a worker's process to its memory allocator."""

import subprocess
import sys

import pytest

KEPT = """
import os
from agentmem.cli.allocator import return_freed_memory

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

return_freed_memory()
before = resident()
for _ in range(2):  # without it the first block, freed, makes glibc keep the second one
    block = bytearray(b"x") * 20_000_000
    del block
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_large_freed_blocks_go_back_to_the_system() -> None:
    """A worker's process keeps no large block that it has freed."""
    done = subprocess.run([sys.executable, "-c", KEPT], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000_000
