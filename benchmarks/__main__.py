"""Run all benchmarks, one after another, each in a process of its own: `make bench`.

The figures are kept in benchmarks/figures, with those that the run before is compared by. The
generated parts of docs/performance.md, its plot and docs/performance-tables.md are made from them.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime

from rich.console import Console

from benchmarks import agreement, goals, plot, summary
from benchmarks.report import COMMIT, FIGURES, PAGE, ROOT, RUN, TABLES, benchmark

NAMES = ("turn", "throughput", "resume", "memory", "dreams", "start")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="All benchmarks, and the pages of their figures.")
    parser.add_argument("--full", action="store_true", help="more rounds")
    parser.add_argument("--only", action="append", choices=NAMES, help="one of them (repeatable)")
    page = "measure nothing: write the pages from the figures that are kept"
    parser.add_argument("--page", action="store_true", help=page)
    options = parser.parse_args()
    began = time.monotonic()
    if not options.page and not options.only:
        agreement.keep_earlier(NAMES)
    run = {RUN: f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", COMMIT: _commit()}
    for name in options.only or NAMES:
        if not options.page:
            size = ["--full"] if options.full else []
            command = [sys.executable, "-m", f"benchmarks.{name}", *size]
            subprocess.run(command, check=True, env=os.environ | run)
        benchmark(name).write()
    goals.write(NAMES)
    summary.write(NAMES)
    plot.write()
    try:
        agreement.write(NAMES)
    except ValueError as error:  # as after `--only`: the tables are new, the comparison is not
        sys.exit(f"{TABLES.name} has no new comparison of two runs: {error}.")
    Console().print(f"In all {(time.monotonic() - began) / 60:.1f} minutes.")


def _commit() -> str:
    """Return the commit's short name, with a + if files differ from it; empty without git.

    What a run itself writes makes no difference.
    """
    git = shutil.which("git")
    if git is None:
        return ""

    def said(*words: str) -> str:
        command = [git, "-C", str(ROOT), *words]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    own = [f":!{path.relative_to(ROOT)}" for path in (FIGURES, PAGE, TABLES, plot.FILE)]
    changed = said("status", "--porcelain", "--untracked-files=no", "--", ".", *own)
    return said("rev-parse", "--short", "HEAD") + ("+" if changed else "")


if __name__ == "__main__":
    main()
