"""Descriptions of what went wrong, in words for people."""

import asyncio
from typing import cast

from pydantic import ValidationError
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    CancelledError,
    FailureError,
    TimeoutError,
    is_cancelled_exception,
)

from agentmem.contracts.calls import FailedCall
from agentmem.wire import as_mapping, clip

TEXT_BYTES = 4096
"""Encoded bytes of an error's text: it stands in a failure and in its cause, and a workflow whose
failure takes over 2 MB hangs."""


def describe(error: BaseException) -> str:
    """Say in one sentence what failed, without Temporal's wrapping around it, in 4 KiB at most."""
    return clip(_text(error), TEXT_BYTES)


def failed_call(error: BaseException) -> FailedCall:
    """Return what a failed model call says beside its text; nothing where it says nothing."""
    cause = error.cause if isinstance(error, ActivityError) else error
    if isinstance(cause, ApplicationError) and cause.details:
        return _parsed(cause.details[0])
    if isinstance(cause, TimeoutError) and cause.last_heartbeat_details:
        told = as_mapping(cause.last_heartbeat_details[0])
        return _parsed({"paid": told, "waited": told.get("waited", 0.0)})
    return FailedCall()


def _parsed(detail: object) -> FailedCall:
    try:
        return FailedCall.model_validate(detail)
    except ValidationError:  # somebody else's
        return FailedCall()


def raise_cancellation(error: BaseException) -> None:
    """Raise a cancellation on, and do nothing for any other error.

    An activity that was cancelled with its caller fails as an `ActivityError`. It goes on as the
    `asyncio.CancelledError` that it was: `asyncio.timeout` knows no other.
    """
    if not is_cancelled_exception(error):
        return
    task = asyncio.current_task()
    if task is not None and task.cancelling() and not isinstance(error, asyncio.CancelledError):
        raise asyncio.CancelledError from error
    raise error


def _text(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):  # of parallel tool calls: the first says enough
        return _text(cast("BaseExceptionGroup[BaseException]", error).exceptions[0])
    if isinstance(error, ActivityError) and error.cause is not None:
        return _text(error.cause)
    if isinstance(error, ApplicationError):
        return error.message
    if isinstance(error, TimeoutError):
        kind = error.type.name.lower().replace("_", " ") if error.type is not None else "timeout"
        return f"it did not end in time ({kind})"
    if isinstance(error, CancelledError | asyncio.CancelledError):
        return "it was cancelled"
    if isinstance(error, FailureError):
        return error.message
    return f"{type(error).__name__}: {error}"
