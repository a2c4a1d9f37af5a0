"""Summarising what gets too old for a conversation: the activity `agentmem.compact`."""

from temporalio import activity

from activities.attempts import SUMMARY_FAILURES, FailureCount, Paid
from activities.llm import Models
from activities.messages import MessageCache
from agentmem.contracts import Compact, ModelReply, Usage
from agentmem.errors import ModelCallError
from agentmem.llm.errors import lies_with_tools
from agentmem.llm.summaries import parts, read_summary, request
from agentmem.messages import Message, Role
from agentmem.policies import COMPACT_WORK


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
        spent, failures = Usage(), FailureCount(SUMMARY_FAILURES, COMPACT_WORK)
        paid = Paid(failures.counters)
        async with failures.counting():
            messages = await self._cache.resolve_prompt(asked.prompt)
            summary, texts = parts(messages, asked.prompt.clipped)
            for text in texts:
                try:
                    summary, used = await self._part(asked, summary, text, paid)
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
        return ModelReply(message=message, usage=spent, paid=paid.usage, waited=failures.waited)

    async def _part(self, asked: Compact, before: str, text: str, paid: Paid) -> tuple[str, Usage]:
        """Summarise a part: by a call, and by a text if the model or its provider makes none."""
        spent = Usage()
        try:
            answer = await self._models.complete(request(asked, before, text))
        except ModelCallError as error:
            if not lies_with_tools(error):
                raise
        else:
            summary, spent = read_summary(answer, asked, before, text)
            if summary:
                return summary, spent
        try:
            answer = await self._models.complete(request(asked, before, text, by_call=False))
            summary, used = read_summary(answer, asked, before, text, by_call=False)
        except ModelCallError:
            paid.add(spent)
            raise
        return summary, spent.plus(used)
