"""The messages of prompts: from a cache of this worker, or by a query of their workflow."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from cachetools import LRUCache
from temporalio import activity
from temporalio.client import WorkflowHandle, WorkflowQueryFailedError, WorkflowQueryRejectedError
from temporalio.service import RPCError, RPCStatusCode

from agentmem.contracts import LACKING_QUERY, MESSAGES_QUERY, Lacking, Page, Prompt, ScopeRef
from agentmem.errors import AgentMemError
from agentmem.messages import Message, from_ranges, to_ranges
from agentmem.settings import MESSAGE_CACHE_BYTES
from agentmem.wire import Wire

Handle: TypeAlias = WorkflowHandle[Any, Any]
Model = TypeVar("Model", bound=Wire)

READY_WITHIN = 60.0
"""Seconds in which a workflow must come to answer: a worker may have to replay it first."""

_RPC_TIMEOUT = timedelta(seconds=10)

# What the server says while a workflow cannot answer yet, or while another query waits there.
_NOT_READY = {
    RPCStatusCode.CANCELLED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
    RPCStatusCode.FAILED_PRECONDITION,
    RPCStatusCode.UNAVAILABLE,
}


async def fetch_messages(memory: str, ids: Sequence[str]) -> list[Message]:
    """Return messages of the activity's own run, in this order, page by page.

    A query adds nothing to the history. Waiting for an answer is no attempt of the activity; the
    caller heartbeats meanwhile.

    Args:
        memory: The working memory's name.
        ids: Message ids.

    Raises:
        AgentMemError: The workflow does not have them (not retryable), or did not answer within
            60 seconds.
    """
    info = activity.info()
    handle = run_of(info.workflow_id or "", info.workflow_run_id)
    found: list[Message] = []
    while len(found) < len(ids):
        found += await fetch_page(handle, memory, ids[len(found) :])
    return found


def run_of(workflow_id: str, run_id: str | None) -> Handle:
    """Return the handle of a run, pinned: a later run of its id has other messages."""
    return activity.client().get_workflow_handle(workflow_id, run_id=run_id)


async def fetch_page(handle: Handle, memory: str, ids: Sequence[str]) -> list[Message]:
    """Return the first of these messages of a run, as many as fit in a page, one at least.

    Raises:
        AgentMemError: As in `fetch_messages`.
    """
    found = (await _asked(handle, MESSAGES_QUERY, [memory, to_ranges(ids)], Page)).messages
    if not found or [message.id for message in found] != list(ids[: len(found)]):
        raise AgentMemError(f"the workflow gave other messages of {memory} than were asked for")
    return found


async def fetch_lacking(handle: Handle, memory: str, store: ScopeRef, *, ended: bool) -> Lacking:
    """Return what a scope's transcript may lack of a run's working memory.

    Args:
        handle: The run's.
        memory: The working memory's name.
        store: The scope, by the name that the workflow knows it by.
        ended: Whether the run has ended, so that everything said is to be stored.

    Raises:
        AgentMemError: As in `fetch_messages`.
    """
    return await _asked(handle, LACKING_QUERY, [memory, store, ended], Lacking)


async def was_reset(handle: Handle) -> bool:
    """Tell whether a run was given up for another one by `temporal workflow reset`.

    Raises:
        AgentMemError: The server does not say.
    """
    try:
        found = await handle.describe(rpc_timeout=_RPC_TIMEOUT)
    except RPCError as error:
        raise AgentMemError(
            f"the workflow could not be looked at: {error}",
            non_retryable=error.status is RPCStatusCode.NOT_FOUND,
        ) from error
    return bool(found.raw_description.workflow_extended_info.reset_run_id)


def is_gone(error: AgentMemError) -> bool:
    """Tell whether a run could not be read because the server does not have it any more."""
    cause = error.__cause__
    return isinstance(cause, RPCError) and cause.status is RPCStatusCode.NOT_FOUND


async def _asked(handle: Handle, query: str, args: Sequence[Any], kind: type[Model]) -> Model:
    deadline = time.monotonic() + READY_WITHIN
    pause = 0.05
    while True:
        try:
            return await handle.query(query, args=args, result_type=kind, rpc_timeout=_RPC_TIMEOUT)
        except (WorkflowQueryFailedError, WorkflowQueryRejectedError) as error:
            raise AgentMemError(f"the workflow does not give its messages: {error}") from error
        except RPCError as error:
            waits = error.status in _NOT_READY and time.monotonic() + pause < deadline
            if not waits:
                raise AgentMemError(
                    f"messages could not be read from the workflow: {error}",
                    non_retryable=error.status is RPCStatusCode.NOT_FOUND,
                ) from error
        await asyncio.sleep(pause)
        pause = min(pause * 2, 2.0)


OBJECT_BYTES = 2_000
"""The bytes that a message takes in memory besides its text; for short ones they are most of it."""


class _Key(NamedTuple):
    """The key of a message: by run, since a workflow id may be used twice for two conversations."""

    namespace: str
    run: str
    memory: str
    message: str


class MessageCache:
    """Messages that this worker has seen, the least recently used leaving first.

    One for a worker, used from its event loop and within activities. Nothing depends on what it
    holds: what is missing is asked of the workflow.

    Attributes:
        hits: Messages of prompts that were found.
        misses: Messages of prompts that had to be asked for.
    """

    def __init__(self, max_bytes: int = MESSAGE_CACHE_BYTES) -> None:
        """Hold messages of at most so many bytes, counted as `size` does."""
        self._messages: LRUCache[_Key, Message] = LRUCache(max_bytes, getsizeof=_size)
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self.hits = 0
        self.misses = 0

    @property
    def size(self) -> int:
        """Bytes of the messages that it holds: encoded, and `OBJECT_BYTES` for each."""
        return int(self._messages.currsize)

    def remember(self, memory: str, message: Message) -> None:
        """Keep a message of the running activity's workflow for the next prompt.

        Args:
            memory: The working memory that it belongs to.
            message: The message, exactly as the workflow stores it.
        """
        key = _key(memory, message.id)
        self._messages.pop(key, None)  # the old one must not outlive a message that does not fit
        with suppress(ValueError):  # it is larger than the whole cache
            self._messages[key] = message

    async def resolve_prompt(self, prompt: Prompt, *, timed: bool = False) -> list[Message]:
        """Return the messages of a prompt, in order.

        Call it within an `async` activity that heartbeats, of the workflow that made the prompt.

        Args:
            prompt: The messages, by reference.
            timed: Whether each must have its time. A message that an activity made gets it from
                the workflow, so a copy that this worker kept itself does not do then.

        Raises:
            AgentMemError: The workflow does not have the messages, or did not answer.
            ValueError: The prompt is malformed.
        """
        for message in prompt.new:
            self.remember(prompt.memory, message)
        ids = list(from_ranges(prompt.view))
        found = {message.id: message for message in prompt.new}
        old = [i for i in ids if i not in found]
        found |= self.find(prompt, old, timed=timed)
        missing = [i for i in old if i not in found]
        self._count(len(old) - len(missing), len(missing))
        if missing:
            # The server buffers one query a workflow: whoever comes second finds these in the
            # cache, or asks when the first has its answer.
            async with self._lock():
                found |= self.find(prompt, missing, timed=timed)
                missing = [i for i in missing if i not in found]
                for message in await fetch_messages(prompt.memory, missing):
                    self.remember(prompt.memory, message)
                    found[message.id] = message
        return [found[i] for i in ids]

    def find(
        self, prompt: Prompt, ids: Iterable[str], *, timed: bool = False
    ) -> dict[str, Message]:
        """Return those of these messages of a prompt that are here, and are the right ones."""
        found: dict[str, Message] = {}
        namespace, run, memory, _ = _key(prompt.memory, "")
        for message_id in ids:
            key = _Key(namespace, run, memory, message_id)  # not `_replace`, which takes longer
            message = self._messages.get(key)
            if message is None or (timed and message.at is None):
                continue
            # An attempt whose answer was lost may have left another message under this id.
            if message.attempt == prompt.retried.get(message_id, 1):
                found[message_id] = message
        return found

    def _lock(self) -> asyncio.Lock:
        key = _key("", "")
        return self._locks.setdefault((key.namespace, key.run), asyncio.Lock())

    def _count(self, hits: int, misses: int) -> None:
        self.hits += hits
        self.misses += misses
        meter = activity.metric_meter()
        for name, number in (("hits", hits), ("misses", misses)):
            text = f"Messages of prompts: {name} of the worker's cache"
            meter.create_counter(f"agentmem_message_cache_{name}", text).add(number)


def _key(memory: str, message: str) -> _Key:
    info = activity.info()
    return _Key(info.namespace, info.workflow_run_id or "", memory, message)


def _size(message: Message) -> int:
    return OBJECT_BYTES + len(message.model_dump_json().encode())
