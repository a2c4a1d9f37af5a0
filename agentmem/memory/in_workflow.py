"""Calls to a memory store from workflow code: recorded activities, typed errors."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ServerError,
    is_cancelled_exception,
)

from agentmem.contracts import FactRequest
from agentmem.errors import AgentMemError, ConfigurationError, InvalidFact, ProviderError
from agentmem.failures import describe
from agentmem.policies import MEMORY, PAYLOADS_TOO_LARGE
from agentmem.priorities import of_turn
from agentmem.values import clip

Result = TypeVar("Result")

SUMMARY_BYTES = 200
"""The longest summary: the server refuses those over 400 bytes, and the workflow task that sends
one is tried again for ever."""


async def called(
    declared: Callable[[FactRequest], Awaitable[Result]], request: FactRequest, summary: str
) -> Result:
    """Run a memory activity and return its result.

    Args:
        declared: The activity's declaration.
        request: What it takes.
        summary: What the Temporal UI shows: may name a key, must not show a value.

    Raises:
        InvalidFact: The key or the value cannot be stored.
        ConfigurationError: The worker cannot open the provider.
        ProviderError: The store failed, after all attempts.
    """
    try:
        return await workflow.execute_activity(
            declared,
            request,
            summary=clip(summary, SUMMARY_BYTES),
            priority=of_turn(request.store.agent, request.store.scope),
            **MEMORY,
        )
    except ActivityError as error:
        if is_cancelled_exception(error):
            raise
        raise _typed(error, summary) from error


def _typed(error: ActivityError, what: str) -> AgentMemError:
    cause = error.cause
    kind = cause.type if isinstance(cause, ApplicationError) else None
    said = isinstance(cause, ServerError) and "size limit" in cause.message  # by the server
    if said or kind == PAYLOADS_TOO_LARGE:
        return ProviderError(f"{what}: over 2 MB at once; recall the keys one by one")
    if kind == InvalidFact.__name__:
        return InvalidFact(f"{what}: {describe(error)}")
    if kind == ConfigurationError.__name__:
        return ConfigurationError(f"{what}: {describe(error)}")
    return ProviderError(f"{what}: {describe(error)}")
