"""`worker.py` with a cache of fewer workflows: by itself it has the SDK's 1,000."""

import os
from typing import Any
from unittest.mock import patch

from temporalio.worker import Worker

import worker


class _CachedWorker(Worker):
    def __init__(self, *args: Any, **options: Any) -> None:
        cached = int(os.environ["CACHED_WORKFLOWS"])
        super().__init__(*args, max_cached_workflows=cached, **options)


if __name__ == "__main__":
    with patch.object(worker, "Worker", _CachedWorker):
        worker.command(worker.running)
