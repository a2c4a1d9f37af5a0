"""Where facts live, and the activities of long-term memory and transcripts."""

from temporalio import activity

from agentmem.contracts.calls import Prompt, Store
from agentmem.values import JSONValue, Wire


class Fetch(Wire):
    """A method of long-term memory, called from workflow code.

    Attributes:
        store: The scope.
        key: The key, None for the whole scope.
        value: What to store, for `memorize`.
        until: The last day on which it is of use, for `memorize`; empty for no end.
        details: Whether `recall` gives what is known of facts instead of their values.
    """

    store: Store
    key: str | None = None
    value: JSONValue = None
    until: str = ""
    details: bool = False


class Append(Wire):
    """Append messages to the transcript of a scope, by reference.

    Attributes:
        store: The scope; its name is empty for a session without long-term memory.
        session: The run in which the conversation began.
        first: The sequence number of the first message of the view.
        prompt: The messages.
        forgotten: Ids of the view whose text is not to be stored.
    """

    store: Store
    session: str
    first: int
    prompt: Prompt
    forgotten: list[str] = []


@activity.defn(name="agentmem.append")
async def append(request: Append) -> int:
    """Append messages to the transcript; returns the last sequence number held."""
    raise NotImplementedError


@activity.defn(name="memory.memorize")
async def memorize(request: Fetch) -> None:
    """Store a value."""
    raise NotImplementedError


@activity.defn(name="memory.recall")
async def recall(request: Fetch) -> JSONValue:
    """Return a value, or all as an object."""
    raise NotImplementedError


@activity.defn(name="memory.forget")
async def forget(request: Fetch) -> None:
    """Remove a key or the scope."""
    raise NotImplementedError


@activity.defn(name="memory.keys")
async def keys(request: Fetch) -> list[str]:
    """Return the scope's keys."""
    raise NotImplementedError


@activity.defn(name="memory.scopes")
async def scopes(request: Fetch) -> list[str]:
    """Return the agent's scopes."""
    raise NotImplementedError
