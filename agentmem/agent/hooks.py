"""Hooks: what runs after an answer or when a turn waits for a person."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from temporalio import workflow

from agentmem.deadline import within
from agentmem.error_text import describe

Hook: TypeAlias = Callable[[str, Any], Awaitable[None] | None]
"""A sync or async callable `hook(agent_name, value)`; `value` is None on a pause."""

HOOK_TIMEOUT = timedelta(seconds=30)
"""The time that one hook may take before it is given up with a warning."""


async def run_hooks(hooks: Sequence[Hook], agent: str, value: Any) -> None:
    """Run hooks in order; one that fails or takes too long is a warning, and the next still runs.

    A hook is workflow code: what it does outside goes through activities.
    """
    for number, hook in enumerate(hooks):
        try:
            outcome = hook(agent, value)
            if inspect.isawaitable(outcome) and _bounds_itself(hook):
                await outcome
            elif inspect.isawaitable(outcome):
                await within(HOOK_TIMEOUT, outcome)
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                await _leave(hooks[number:], agent)
                raise  # the workflow is cancelled, not something in the hook alone
            workflow.logger.warning("hook %s failed: %s", _name(hook), describe(error))
        except TimeoutError:
            workflow.logger.warning("hook %s took over %s", _name(hook), HOOK_TIMEOUT)
        except Exception as error:
            workflow.logger.warning("hook %s failed: %s", _name(hook), describe(error))


async def _leave(hooks: Sequence[Hook], agent: str) -> None:
    """Let hooks that know how leave their work to others, as nobody waits for it any more."""
    for hook in hooks:
        leave: Callable[[str], Awaitable[None]] | None = getattr(hook, "leave", None)
        if leave is not None:
            await leave(agent)


def _bounds_itself(hook: Hook) -> bool:
    """Tell whether a hook keeps its own time: what it starts must not be given up half-way."""
    says: Callable[[], bool] | None = getattr(hook, "bounds_itself", None)
    return says is not None and says()


def _name(hook: Hook) -> str:
    return getattr(hook, "__qualname__", type(hook).__name__)
