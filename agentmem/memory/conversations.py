"""The working memories of one workflow, and the query by which activities read them."""

from typing import Protocol, cast

from temporalio import workflow

from agentmem.contracts.calls import MESSAGES_QUERY, PAGE_BYTES, Page
from agentmem.errors import InvalidInput
from agentmem.messages import Message, from_ranges
from agentmem.values import encoded_size


class Readable(Protocol):
    """The messages of a working memory, as the query needs them."""

    def get(self, message_id: str) -> Message | None:
        """Return a message of this run, forgotten ones too; None if there is none."""
        ...


class Conversations:
    """The working memories of one workflow by name, `wm0`, `wm1`, ... in order of creation."""

    def __init__(self) -> None:
        self._memories: dict[str, Readable] = {}

    def add(self, memory: Readable) -> str:
        """Take a memory in; returns its name."""
        name = f"wm{len(self._memories)}"
        self._memories[name] = memory
        return name

    def page(self, memory: str, ids: list[str]) -> Page:
        """Answer the query: the asked messages in order, as many as fit in a page, at least one.

        Args:
            memory: The working memory's name.
            ids: Message ids as ranges, `["s0", "m0-12"]`.

        Raises:
            InvalidInput: A message is not there: the asker has another run in mind.
        """
        found = self._memories.get(memory)
        page: list[Message] = []
        size = 0
        for message_id in from_ranges(ids):
            message = found.get(message_id) if found else None
            if message is None:
                raise InvalidInput(f"message {message_id} of {memory} is not in this run")
            size += encoded_size(message.model_dump_json())
            if page and size > PAGE_BYTES:
                break
            page.append(message)
        return Page(messages=page)


def conversations() -> Conversations:
    """Return the running workflow's, registering the query `agentmem.messages` at the first call.

    The registered handler is where it lives: that works in `__init__` as in `run`, and for
    workflow classes that know nothing of it.
    """
    handler = cast(object, workflow.get_query_handler(MESSAGES_QUERY))
    owner = getattr(handler, "__self__", None)
    if isinstance(owner, Conversations):
        return owner
    made = Conversations()
    workflow.set_query_handler(MESSAGES_QUERY, made.page)
    return made
