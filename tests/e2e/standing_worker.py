"""`worker.py` whose interpreter stands still two seconds after its start: no Python code runs.

So it was seen after a panic in the SDK for lack of memory. Here a thread sleeps and never lets go
of the interpreter. It ends after 5 seconds in place of 90.
"""

import ctypes
import sys
from pathlib import Path
from threading import Timer

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from agentmem.cli import signals
from agentmem.cli.worker import command
from worker import running

if __name__ == "__main__":
    signals.HANG_SECONDS, signals.BEAT_SECONDS = 5, 1
    Timer(2, lambda: ctypes.PyDLL(None).sleep(1_000)).start()
    command(running)
