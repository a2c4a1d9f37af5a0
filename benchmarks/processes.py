"""Linux's data on other processes: processor time, memory, whose children they are."""

import os
import time
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has taken so far (Linux's clock of a process)."""
    return time.clock_gettime(~pid << 3 | 2)  # as clock_getcpuclockid(3) makes it


def resident(pid: int) -> float:
    """Return the megabytes of a process that are in memory (Linux)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def child(name: str) -> int:
    """Return the process id of a child of this process, by its program's name.

    Raises:
        RuntimeError: There is none.
    """
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            head, _, rest = stat.read_text().rpartition(")")
        except OSError:
            continue
        if name in head and int(rest.split()[1]) == os.getpid():
            return int(stat.parent.name)
    raise RuntimeError(f"no child process {name}")
