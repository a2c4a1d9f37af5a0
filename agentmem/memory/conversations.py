"""The working memories of one workflow, and the queries by which activities read them."""

from typing import Protocol, cast

from temporalio import workflow

from agentmem.contracts.calls import MESSAGES_QUERY, PAGE_BYTES, Page, ScopeRef
from agentmem.contracts.hand_over import LACKING_QUERY, Lacking
from agentmem.errors import InvalidInput
from agentmem.messages import Message, from_ranges
from agentmem.values import encoded_size


class Readable(Protocol):
    """The messages of a working memory, as the query needs them."""

    def get(self, message_id: str) -> Message | None:
        """Return a message of this run, forgotten ones too; None if there is none."""
        ...


class Answers(Protocol):
    """Says what a scope's transcript may lack of a working memory."""

    def __call__(self, store: ScopeRef, *, ended: bool = False) -> Lacking:
        """Return it, and change nothing."""
        ...


class Conversations:
    """The working memories of one workflow by name, `wm0`, `wm1`, ... in order of creation."""

    def __init__(self) -> None:
        self._memories: dict[str, Readable] = {}
        self._lacking: dict[str, Answers] = {}

    def add(self, memory: Readable) -> str:
        """Take a memory in; returns its name."""
        name = f"wm{len(self._memories)}"
        self._memories[name] = memory
        return name

    def answer_for(self, memory: str, answers: Answers) -> None:
        """Let a memory answer the query `agentmem.lacking`."""
        self._lacking[memory] = answers

    def lacking(self, memory: str, store: ScopeRef, ended: bool) -> Lacking:
        """Answer the query: what a scope's transcript may lack of a working memory.

        Args:
            memory: The working memory's name.
            store: The scope.
            ended: Whether the run has ended, so that everything said is to be stored.

        Raises:
            InvalidInput: There is no such memory in this run.
        """
        if memory not in self._lacking:
            raise InvalidInput(f"this run has no working memory {memory}")
        return self._lacking[memory](store, ended=ended)

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
    """Return the running workflow's, registering its two queries at the first call.

    The registered handler is where it lives: that works in `__init__` as in `run`, and for
    workflow classes that know nothing of it.
    """
    handler = cast(object, workflow.get_query_handler(MESSAGES_QUERY))
    owner = getattr(handler, "__self__", None)
    if isinstance(owner, Conversations):
        return owner
    made = Conversations()
    workflow.set_query_handler(MESSAGES_QUERY, made.page)
    workflow.set_query_handler(LACKING_QUERY, made.lacking)
    return made
