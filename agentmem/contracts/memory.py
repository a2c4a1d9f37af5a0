"""Where facts live, and the activities of long-term memory and transcripts."""

from temporalio import activity

from agentmem.contracts.calls import Prompt, ScopeRef
from agentmem.wire import JSONValue, Wire


class FactRequest(Wire):
    """A call of a method of long-term memory, from workflow code.

    Attributes:
        store: The scope.
        key: The key, None for the whole scope.
        value: What to store, for `memorize`.
        until: The last day on which it is of use, for `memorize`; empty for no end.
        details: Whether `recall` gives what is known of facts instead of their values.
    """

    store: ScopeRef
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

    store: ScopeRef
    session: str
    first: int
    prompt: Prompt
    forgotten: list[str] = []


@activity.defn(name="agentmem.append")
async def append(request: Append) -> int:
    """Append messages to the transcript; returns the last sequence number held."""
    raise NotImplementedError


@activity.defn(name="memory.memorize")
async def memorize(request: FactRequest) -> None:
    """Store a value."""
    raise NotImplementedError


@activity.defn(name="memory.recall")
async def recall(request: FactRequest) -> JSONValue:
    """Return a value, or all as an object."""
    raise NotImplementedError


@activity.defn(name="memory.forget")
async def forget(request: FactRequest) -> None:
    """Remove a key or the scope."""
    raise NotImplementedError


@activity.defn(name="memory.keys")
async def keys(request: FactRequest) -> list[str]:
    """Return the scope's keys."""
    raise NotImplementedError


@activity.defn(name="memory.scopes")
async def scopes(request: FactRequest) -> list[str]:
    """Return the agent's scopes."""
    raise NotImplementedError
