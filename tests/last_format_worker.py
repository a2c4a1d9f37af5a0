"""`worker.py` with the reader of the format before: bzip2 is not known to it yet."""

import runpy
from pathlib import Path

from agentmem import wire as packing

setattr(packing, "_BZIP2", b"no such beginning")  # noqa: B010 - a constant, on purpose
runpy.run_path(str(Path(__file__).parents[1] / "worker.py"), run_name="__main__")
