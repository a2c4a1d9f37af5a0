"""Long-term memory: facts by key, in a scope of an agent, wherever the code runs."""

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

from temporalio import workflow
from temporalio.exceptions import (
    ActivityError,
    ApplicationError,
    ServerError,
    is_cancelled_exception,
)

from agentmem import contracts
from agentmem.contracts import FactRequest, ScopeRef, ToolSpec
from agentmem.error_text import describe
from agentmem.errors import AgentMemError, ConfigurationError, InvalidFact, ProviderError
from agentmem.facts import Write, checked_name, checked_value, until_end
from agentmem.memory.admin import Upkeep, opened
from agentmem.memory.recalled_facts import recall_details
from agentmem.memory.references import ProviderReference
from agentmem.memory.tools import HINT, memory_tools
from agentmem.policies import MEMORY, PAYLOADS_TOO_LARGE
from agentmem.priorities import of_turn
from agentmem.wire import JSONValue, clip

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


class LongTermMemory(Upkeep):
    """Facts of one scope: a key and a JSON value each, kept until they are forgotten.

    In a workflow each method is a recorded activity: replay gives the same answer without asking
    the store again. Elsewhere (an activity, a script) it asks the store directly. Both give the
    same results. `entries`, `history`, `undo`, `pin`, `unpin`, `erase`, `export` and `restore` are
    for scripts and activities alone.

    Args:
        provider: Where the facts live: `sqlite("research.db")`, `postgresql()`, `in_memory()` or
            `named("...")` for a store of your own.
        agent: Whose facts.
        scope: Which scope of that agent, for example a user.

    Raises:
        ConfigurationError: `provider` is no reference but a URL or a client object.
        InvalidFact: `agent` or `scope` is empty, over 512 bytes or not valid Unicode.
    """

    def __init__(self, provider: ProviderReference, agent: str, scope: str) -> None:
        self._store = ScopeRef(
            provider=_identity(provider),
            agent=checked_name(agent, "agent"),
            scope=checked_name(scope, "scope"),
        )

    @property
    def agent(self) -> str:
        """Whose facts these are."""
        return self._store.agent

    @property
    def scope(self) -> str:
        """Which scope of the agent."""
        return self._store.scope

    @property
    def provider(self) -> str:
        """The provider's identity, like `sqlite:research.db`."""
        return self._store.provider

    @property
    def store(self) -> ScopeRef:
        """Provider, agent and scope, as they travel."""
        return self._store

    async def memorize(self, key: str, value: JSONValue, *, until: str | None = None) -> None:
        """Store a value under a key, in place of what was there.

        Args:
            key: 1 to 512 bytes of UTF-8, compared exactly (after NFC normalisation).
            value: Any JSON value whose JSON takes at most 64 KiB. Tuples become lists, and keys
                of objects text, as JSON has them.
            until: The last day on which the fact is of use, an ISO day (`2026-05-09`), month or
                year, or the instant at which it ends, with its offset. From then on it is not
                recalled, and the next dream removes it. Days are those of UTC. None for no end.

        Raises:
            InvalidFact: The key, the value or `until` cannot be stored; nothing was.
            ProviderError: The store failed, after retries in a workflow.
        """
        key = checked_name(key, "key")
        value = json.loads(checked_value(value, key))
        ends = None if until is None else until_end(_text(until))
        if workflow.in_workflow():
            request = FactRequest(store=self._store, key=key, value=value, until=until or "")
            await called(contracts.memorize, request, f"memorize {key}")
            return
        provider = await opened(self._store)
        if ends is None:
            await provider.memorize(self.agent, self.scope, key, value)
        else:
            write = Write(key=key, value=value, expires_at=ends)
            await provider.write(self.agent, self.scope, [write])

    async def recall(self, key: str | None = None, *, details: bool = False) -> Any:
        """Return a key's value, None if there is none; without a key, all values by key.

        The values of tentative facts are among them; a value that is not confirmed and stands
        beside another is not, nor is an earlier one. With `details` each value is replaced by a
        dict of JSON values with the fields of `Fact`:

        - `value`, `state` (`settled` or `tentative`), `trust` (`user`, `assistant` or `tool`),
          `said_at`, `recorded_at`, `writer`, `author`, `version`, `pinned`, `kind`, `importance`,
          `valid_from`, `valid_to`;
        - `until`: the instant from which on the fact is not recalled, or None;
        - `was`: `value` and `replaced_at` of the value that was replaced in the last 30 days, or
          None;
        - `unconfirmed`: `value`, `trust`, `said_at`, `valid_from`, `valid_to`, `until` and
          `evidence` of a new value that is not confirmed, or None;
        - `evidence`: the messages that it rests on, each with `session`, `memory`, `message`,
          `role`, `said_at`, `quote` and `forgotten`.

        Times are ISO texts in UTC.

        Raises:
            InvalidFact: The key is none that a store could hold.
            ProviderError: The store failed, after retries in a workflow; or all values together
                are more than a workflow can be given (2 MB).
        """
        key = None if key is None else checked_name(key, "key")
        if workflow.in_workflow():
            request = FactRequest(store=self._store, key=key, details=details)
            return await called(contracts.recall, request, f"recall {key or 'all'}")
        provider = await opened(self._store)
        if details:
            return await recall_details(provider, self.agent, self.scope, key, datetime.now(UTC))
        return await provider.recall(self.agent, self.scope, key)

    async def forget(self, key: str | None = None) -> None:
        """Remove a key; no error if it is missing. Without a key, remove the whole scope.

        Raises:
            InvalidFact: The key is none that a store could hold, an empty one for example.
            ProviderError: The store failed, after retries in a workflow.
        """
        key = None if key is None else checked_name(key, "key")
        if workflow.in_workflow():
            request = FactRequest(store=self._store, key=key)
            await called(contracts.forget, request, f"forget {key or 'all'}")
            return
        provider = await opened(self._store)
        await provider.forget(self.agent, self.scope, key)

    async def keys(self) -> list[str]:
        """Return the scope's keys, sorted.

        Raises:
            ProviderError: The store failed, after retries in a workflow.
        """
        if workflow.in_workflow():
            return await called(contracts.keys, FactRequest(store=self._store), "list keys")
        provider = await opened(self._store)
        return await provider.keys(self.agent, self.scope)

    async def scopes(self) -> list[str]:
        """Return the agent's scopes that hold a fact, sorted.

        Raises:
            ProviderError: The store failed, after retries in a workflow.
        """
        if workflow.in_workflow():
            return await called(contracts.scopes, FactRequest(store=self._store), "list scopes")
        provider = await opened(self._store)
        return await provider.scopes(self.agent)

    def as_tools(self) -> list[ToolSpec]:
        """Return the four tools by which a model uses these facts.

        `recall_memory`, `store_memory`, `forget_memory` and `list_memory_keys`. None of them can
        remove more than one fact in a call.
        """
        return memory_tools(self._store)

    def system_prompt_hint(self) -> str:
        """Return the paragraph that tells a model of its memory, for the system prompt."""
        return HINT


def long_term_memory(provider: ProviderReference, agent: str, scope: str) -> LongTermMemory:
    """Return the facts of a scope; all three are required. See `LongTermMemory`.

    Raises:
        ConfigurationError: `provider` is no reference but a URL or a client object.
        InvalidFact: `agent` or `scope` is empty, over 512 bytes or not valid Unicode.
    """
    return LongTermMemory(provider, agent, scope)


def _text(until: object) -> str:
    if isinstance(until, str):
        return until
    raise InvalidFact(f"until must be text like 2026-05-09, got {type(until).__name__}")


def _identity(provider: object) -> str:
    if isinstance(provider, ProviderReference):
        return provider.identity
    raise ConfigurationError(
        f"provider is a {type(provider).__name__}, and workflow code holds neither clients nor "
        'URLs: pass sqlite("research.db"), postgresql() or in_memory(); for a store of your own, '
        'mark what makes it with @provider("name") in the module of AGENTMEM_APP and pass '
        'named("name")'
    )
