"""Compaction: older messages in, by reference, and a summary of them out."""

from temporalio import activity

from agentmem.contracts.calls import ModelReply, Prompt
from agentmem.values import Wire


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
