"""`worker.py` whose activities land on any worker: none is preferred for running the workflow."""

from functools import partial
from typing import Any, cast

import worker
from agentmem.cli.worker import command

if __name__ == "__main__":
    cast(Any, worker).Worker = partial(worker.Worker, disable_eager_activity_execution=True)
    command(worker.running)
