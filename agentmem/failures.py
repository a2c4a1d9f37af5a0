"""What went wrong, in words for people."""

from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TimeoutError,
)


def describe(error: BaseException) -> str:
    """Say in one sentence what failed, without Temporal's wrapping around it."""
    if isinstance(error, ActivityError) and error.cause is not None:
        return describe(error.cause)
    if isinstance(error, ApplicationError):
        return error.message
    if isinstance(error, TimeoutError):
        kind = error.type.name.lower().replace("_", " ") if error.type is not None else "timeout"
        return f"it did not end in time ({kind})"
    if isinstance(error, CancelledError):
        return "it was cancelled"
    if isinstance(error, FailureError):
        return error.message
    return f"{type(error).__name__}: {error}"
