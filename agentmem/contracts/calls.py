"""Model calls, tool calls and compaction: messages travel by reference, results as stored."""

from datetime import timedelta
from typing import Literal

from temporalio import activity

from agentmem.facts import Evidence
from agentmem.messages import Message, ToolCall
from agentmem.wire import JSONObject, Wire

MESSAGES_QUERY = "agentmem.messages"
PAGE_BYTES = 256 * 1024
"""Encoded bytes of messages in one page of the query, and of new messages in one model call."""

RESULT_BYTES = 64 * 1024
"""Encoded bytes of the longest tool result, where the tool sets no other limit."""

MOST_RESULT_BYTES = 1024 * 1024
"""The highest limit that a tool may set: half of what Temporal takes in one payload."""


class Prompt(Wire):
    """Messages by reference: a worker has them in its cache or asks the workflow for them.

    Attributes:
        memory: The working memory, `wm0`, ...
        view: The ids in view, as ranges, in order.
        retried: Ids of messages that a later attempt made, with that attempt.
        new: Messages that workflow code made since the last call: what users said.
        clipped: Ids of messages to be shown shorter, with the encoded bytes that each may take.
        notes: Texts that stand before a message, by its id, in place of what is left out there.
    """

    memory: str
    view: list[str]
    retried: dict[str, int] = {}
    new: list[Message] = []
    clipped: dict[str, int] = {}
    notes: dict[str, str] = {}


class Page(Wire):
    """An answer to the query `agentmem.messages`: as many of the asked messages as fit."""

    messages: list[Message] = []


class Usage(Wire):
    """Tokens and cost of model calls, as the provider reported them.

    Attributes:
        prompt: Tokens of the request.
        completion: Tokens of the reply.
        cached: Tokens of the request that the provider had cached.
        cost: In US dollars, 0 where litellm knows no price.
        requests: Model requests.
    """

    prompt: int = 0
    completion: int = 0
    cached: int = 0
    cost: float = 0.0
    requests: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """Return the sum of both."""
        return Usage(
            prompt=self.prompt + other.prompt,
            completion=self.completion + other.completion,
            cached=self.cached + other.cached,
            cost=self.cost + other.cost,
            requests=self.requests + other.requests,
        )

    def minus(self, other: "Usage") -> "Usage":
        """Return what came on top of another."""
        return Usage(
            prompt=self.prompt - other.prompt,
            completion=self.completion - other.completion,
            cached=self.cached - other.cached,
            cost=self.cost - other.cost,
            requests=self.requests - other.requests,
        )


class ModelCall(Wire):
    """One request to a model.

    Attributes:
        prompt: What it sees.
        reply: The id reserved for the reply.
        turn: The turn that it belongs to.
        step: Which model call of the turn it is, from 1.
        model: The model, as litellm names it.
        tools: Tools offered, by name; the worker builds their schemas.
        tool_choice: `none` when no more calls are allowed in this turn.
        max_tokens: The most tokens that the reply may take.
        reasoning_effort: low, medium, high, or empty for the model's default.
        response_format: A JSON schema that the answer must keep, if any.
        seconds: How long the provider may take for the reply; with `stream`, for each piece.
        stream: Whether the reply is read piece by piece.
        repair: What was wrong with the last message of the prompt, an answer that did not keep it.
        budget: Tokens that are left of the agent's budgets, if it has any: replies that are
            refused count too, and end the retries when they have used it up.
        approve: The offered tools whose calls need a person's approval: the worker checks their
            arguments, so that nobody is asked about a call that cannot run.
    """

    prompt: Prompt
    reply: str
    turn: int
    step: int = 1
    model: str
    tools: list[str] = []
    tool_choice: Literal["auto", "none"] = "auto"
    max_tokens: int = 4096
    reasoning_effort: str = ""
    response_format: JSONObject | None = None
    seconds: float = 540
    stream: bool = False
    repair: str = ""
    budget: int | None = None
    approve: list[str] = []


class ModelReply(Wire):
    """A model's answer, exactly as the workflow stores it.

    Attributes:
        message: The assistant's message under the reserved id.
        finish: stop, tool_calls, length, content_filter, or tool_limit where it wanted to call
            tools that were not allowed any more.
        usage: What it took.
        problem: Why an answer does not keep its response format, in words for the model.
        paid: What earlier attempts took, whose replies were refused.
        reason: Why the reply ended, in the provider's own word, where it is no answer.
        waited: Seconds that the call waited for a worker's free slot, which no turn has to count.
    """

    message: Message
    finish: str = "stop"
    usage: Usage = Usage()
    problem: str = ""
    paid: Usage = Usage()
    reason: str = ""
    waited: float = 0.0


class FailedCall(Wire):
    """The data that a `ModelCallError` carries beside its text, as its first detail.

    Attributes:
        kind: What went wrong: `overflow` (the prompt is too long), `large` (it may be), `refused`
            (by the content policy), `invalid` (the request is not accepted), `limited`, `slow`,
            `unreachable`, `late` (its attempts had no time left), and others for people.
        paid: What replies took that were refused, those of earlier attempts included.
        waited: Seconds that the call waited for a worker's free slot.
    """

    kind: str = ""
    paid: Usage = Usage()
    waited: float = 0.0


class ScopeRef(Wire):
    """The address of facts: a provider by its identity, never by its credentials, agent and scope.

    Attributes:
        provider: `sqlite:<path>`, `postgresql`, `postgresql:env:NAME`, `in_memory:<name>`,
            `named:<name>`, or `default` before it is resolved.
        agent: Whose facts.
        scope: Which scope of that agent.
    """

    provider: str = "default"
    agent: str
    scope: str


class ToolSpec(Wire):
    """The data that workflow code must have of a tool; its schema and code stay on the worker.

    Attributes:
        name: Its name, which is also its activity's.
        approval: Whether a person must agree to each call.
        writes: Whether calls of a batch run alone and in order.
        retries: Attempts after the first; 0 unless the tool is declared idempotent.
        timeout: Of one attempt.
        concurrency: Calls of one reply that run at a time; None for no bound of its own.
        recalled: Whether results show what memory already knows.
        store: Where facts live, for the tools of long-term memory.
        result_bytes: The longest result, in encoded bytes; a longer one is cut.
    """

    name: str
    approval: bool = False
    writes: bool = False
    retries: int = 0
    timeout: timedelta = timedelta(minutes=5)
    concurrency: int | None = None
    recalled: bool = False
    store: ScopeRef | None = None
    result_bytes: int = RESULT_BYTES


class ToolRun(Wire):
    """One tool call to run; the tool's result comes back as the message of it.

    Attributes:
        reply: The id reserved for the result.
        call: The call: its position, name and arguments.
        memory: The working memory that the result goes to.
        turn: The turn that it belongs to.
        store: Where facts live, for the tools of long-term memory.
        evidence: The messages that a change rests on, for `store_memory` and `forget_memory`.
        said: The same messages by reference, to quote them.
    """

    reply: str
    call: ToolCall
    memory: str = ""
    turn: int = 0
    store: ScopeRef | None = None
    evidence: list[Evidence] = []
    said: Prompt | None = None


@activity.defn(name="agentmem.model")
async def model(call: ModelCall) -> ModelReply:
    """Ask a model."""
    raise NotImplementedError


class Compact(Wire):
    """Ask for a summary of messages.

    Attributes:
        prompt: The messages; of a summary among them, the new one takes over what it says.
        reply: The id reserved for the summary.
        model: The model that summarises, as litellm names it.
        words: How long the summary may be; the model is asked for no more.
    """

    prompt: Prompt
    reply: str
    model: str
    words: int


@activity.defn(name="agentmem.compact")
async def compact(request: Compact) -> ModelReply:
    """Summarise messages."""
    raise NotImplementedError
