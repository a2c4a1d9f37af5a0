"""Measure a worker's memory: over imports, and with sessions. Needs Linux (/proc)."""

import os
import statistics
import subprocess
import sys

from benchmarks.processes import resident
from benchmarks.stage import FLOOR, OURS, Contender, Stage
from benchmarks.talk import take_turns

LONG = 200
"""Turns of the session after which a worker's memory is read."""

SAMPLES = 3
"""The number of samples of a process's memory, each from a process of its own."""

CACHED, EVICTED = 300, 300
"""Sessions by which memory a session is measured: those that a cache takes, those after them."""

AT_ONCE, EACH = 50, 3
"""The number of those that talk at a time, and the number of turns that each takes."""

BOTH = "temporalio, litellm"
OWN = f"{BOTH}, sqlalchemy"
"""Processes that have only imported: what both contenders do, what ours does."""

IMPORTS = {
    BOTH: "temporalio.client, temporalio.worker, temporalio.contrib.pydantic, litellm",
    OWN: "temporalio.client, temporalio.worker, temporalio.contrib.pydantic, litellm, "
    "sqlalchemy.ext.asyncio",
}

IMPORTED = """
import os
import {modules}
print(int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
"""


async def processes_mb(stage: Stage) -> dict[str, list[float]]:
    """Return the megabytes of processes: of imports alone, and of workers after a long session."""
    found: dict[str, list[float]] = {name: [] for name in (*IMPORTS, FLOOR, OURS)}
    for _ in range(SAMPLES):
        for name, modules in IMPORTS.items():
            found[name].append(_imported(modules))
        for kind in (FLOOR, OURS):
            async with stage.contender(kind) as contender:
                await take_turns([await contender.open()], LONG)
                found[kind].append(resident(*contender.pids))
    return found


def _imported(modules: str) -> float:
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    code = IMPORTED.format(modules=modules)
    return float(subprocess.check_output([sys.executable, "-c", code], env=environment))


async def sessions_kb(stage: Stage, kind: str) -> dict[str, float]:
    """Return what a worker grows by with each session that lives on, in kilobytes.

    The cache of workflows has room for the sessions that warm the worker up and for as many as are
    measured. Each one after them pushes another out: what the worker grows by then is what an
    evicted session leaves behind.
    """
    async with stage.contender(kind, cached=AT_ONCE + CACHED) as contender:
        await _grown(contender, AT_ONCE)
        return {
            "cached": await _grown(contender, CACHED),
            "evicted": await _grown(contender, EVICTED),
        }


async def _grown(contender: Contender, sessions: int) -> float:
    """Hold sessions that live on; returns the slope, as each reading is off by megabytes."""
    (pid,) = contender.pids
    held = range(0, sessions + 1, AT_ONCE)
    megabytes = [resident(pid)]
    for _ in held[1:]:
        await take_turns([await contender.open() for _ in range(AT_ONCE)], EACH)
        megabytes.append(resident(pid))
    return 1000 * statistics.linear_regression(held, megabytes).slope
