"""The messages of prompts: from a cache of this worker, else from their workflow."""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

from cachetools import LRUCache
from temporalio import activity

from activities.queries import fetch_messages
from agentmem.contracts import Prompt
from agentmem.messages import Message, from_ranges
from agentmem.settings import MESSAGE_CACHE_BYTES

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
