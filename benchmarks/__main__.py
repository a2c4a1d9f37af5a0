"""Run all benchmarks, one after another, each in a process of its own: `make bench`.

The figures are kept in benchmarks/figures, those of the run before in a folder below, and
docs/performance.md is made from them.
"""

import argparse
import importlib
import subprocess
import sys
import time

from rich.console import Console

from benchmarks import agreement
from benchmarks.report import Benchmark

NAMES = ("turn", "throughput", "resume", "memory", "dreams", "start")


def main() -> None:
    """Read the command line and run."""
    parser = argparse.ArgumentParser(description="All benchmarks, and the page of their figures.")
    parser.add_argument("--full", action="store_true", help="more rounds")
    parser.add_argument("--only", action="append", choices=NAMES, help="one of them (repeatable)")
    page = "measure nothing: write the page from the figures that are kept"
    parser.add_argument("--page", action="store_true", help=page)
    options = parser.parse_args()
    began = time.monotonic()
    if not options.page and not options.only:
        agreement.keep_earlier()
    for name in options.only or NAMES:
        if not options.page:
            size = ["--full"] if options.full else []
            subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *size], check=True)
        benchmark: Benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
        benchmark.write()
    agreement.write(NAMES)
    Console().print(f"In all {(time.monotonic() - began) / 60:.1f} minutes.")


if __name__ == "__main__":
    main()
