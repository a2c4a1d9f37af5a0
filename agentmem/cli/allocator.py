"""The request that the worker's process makes of its memory allocator."""

import ctypes
import sys

_M_TRIM_THRESHOLD, _TRIM_THRESHOLD = -1, 128 * 1024
"""The number of glibc's setting in malloc.h, and its default in bytes."""


def return_freed_memory() -> None:
    """Have this process give large freed blocks back to the system, where its C library is glibc.

    glibc begins with a threshold for this and raises it to twice the largest block that was freed;
    what litellm's import and first call let go of then stays, 7 to 10 MB. A threshold that is set,
    here to the default, does not rise (mallopt(3)).
    """
    if sys.platform == "linux":
        mallopt = getattr(ctypes.CDLL(None), "mallopt", None)  # other C libraries have none
        if mallopt is not None:
            mallopt(_M_TRIM_THRESHOLD, _TRIM_THRESHOLD)
