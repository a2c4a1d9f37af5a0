"""Summarising what gets too old for a conversation: the activity `agentmem.compact`."""

from temporalio import activity

from activities.attempts import SUMMARY_FAILURES, FailureCount
from activities.llm import Models
from activities.messages import MessageCache
from activities.paid import Paid
from agentmem.contracts import Compact, ModelReply, Usage
from agentmem.errors import ModelCallError
from agentmem.messages import Message, Role
from agentmem.models.summaries import parts, read_summary, request


class CompactActivity:
    """The activity `agentmem.compact`."""

    def __init__(self, models: Models, cache: MessageCache) -> None:
        """Summarise with these models the worker's messages."""
        self._models = models
        self._cache = cache

    @activity.defn(name="agentmem.compact")
    async def compact(self, asked: Compact) -> ModelReply:
        """Summarise messages part by part, each with the summary of those before it.

        Raises:
            ModelCallError: A call failed, or what came is no summary.
            AgentMemError: The workflow did not give its messages.
        """
        spent, failures = Usage(), FailureCount(SUMMARY_FAILURES)
        paid = Paid(failures.counters)
        async with failures.counting():
            summary, texts = parts(await self._cache.resolve_prompt(asked.prompt))
            for text in texts:
                try:
                    answer = await self._models.complete(request(asked, summary, text))
                    summary, used = read_summary(answer, asked, summary, text)
                except ModelCallError as error:
                    paid.add(spent)
                    raise paid.told(error) from None
                spent = spent.plus(used)
        message = Message(
            id=asked.reply,
            role=Role.SUMMARY,
            content=summary,
            attempt=activity.info().attempt,
        )
        self._cache.remember(asked.prompt.memory, message)
        return ModelReply(message=message, usage=spent, paid=paid.usage)
