"""The records of a store beside facts: what was said, how far dreams have read, and dreams."""

from datetime import datetime

from agentmem.wire import JSONObject, Wire

BRANCH_MARK = "~"
"""Stands between a session's name and the number of a branch that a reset left: in no run's id."""


class TranscriptRow(Wire):
    """One message of a conversation, as long-term memory keeps it for the next dream.

    Attributes:
        session: The run in which the conversation began.
        memory: The working memory within the session, `wm0`, ...
        seq: Its place in that memory, from 1, without gaps.
        message: The message's id, `m7`.
        role: `user`, `assistant`, `tool_call` or `tool_result`.
        text: What was said; tool calls and results shortened.
        at: When it was said, aware.
        turn: The turn that it belongs to.
        name: The tool, for calls and results.
        recalled: Whether it shows what long-term memory already knew: never learned again.
        forgotten: Whether its text was taken away on request.
    """

    session: str
    memory: str
    seq: int
    message: str
    role: str
    text: str
    at: datetime
    turn: int = 0
    name: str = ""
    recalled: bool = False
    forgotten: bool = False


class Range(Wire):
    """Consecutive rows of one session's transcript: `first` to `last`, both included."""

    session: str
    memory: str
    first: int
    last: int


class MessageId(Wire):
    """Which message: of which session, of which of its working memories."""

    session: str
    memory: str = "wm0"
    message: str


class ScopeState(Wire):
    """The failure gate's state for a scope; it lives outside the user's facts.

    Attributes:
        failures: Attempts since the last dream that went well, the running one included.
        last_attempt: When the last attempt began.
    """

    failures: int = 0
    last_attempt: datetime | None = None


class DreamRecord(Wire):
    """A store's record of one dream: its frozen view, its draft and how it ended.

    Attributes:
        id: The dream's run id.
        status: `running`, or how it ended.
        opened_at: When it began.
        ranges: The evidence that it reads, and that its commit consumes.
        snapshot: The facts that it sees, key to version.
        data: What its phases keep from each other: settings, aliases, reports, the draft. The
            store counts in `forgets` how often a message was forgotten while it ran.
        applied: Changes that its commit applied, by id.
        conflicts: Changes that its commit dropped because the store had moved on.
    """

    id: str
    status: str = "running"
    opened_at: datetime
    ranges: list[Range] = []
    snapshot: dict[str, int] = {}
    data: JSONObject = {}
    applied: list[str] = []
    conflicts: list[str] = []


class ReplyRecord(Wire):
    """A paid model reply of a dream, kept before it is used.

    Attributes:
        phase: The phase that asked.
        step: Which of the phase's requests it answers, from 0.
        digest: Of the request's bytes; a reply is reused only for the very same request. Empty as
            long as all replies to it were refused.
        reply: The reply; in `paid`, what earlier ones took that were refused or replaced.
        forgets: How often the dream had lost messages when it asked; not kept.
    """

    phase: str
    step: int
    digest: str
    reply: JSONObject
    forgets: int = 0
