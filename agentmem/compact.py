"""Keeping prompts within bounds: compaction when it is due, and what follows an overflow."""

from collections.abc import Callable

from temporalio import workflow
from temporalio.exceptions import ActivityError, ApplicationError

from agentmem import contracts
from agentmem.contracts import Compact, Usage
from agentmem.failures import describe, failed_call, raise_cancellation
from agentmem.memory.compaction import fits, plan
from agentmem.memory.working import WorkingMemory
from agentmem.policies import COMPACT

LARGE = "large"
"""The kind of a failed call whose prompt may be too long, by its size alone."""

LONGEST = 1_000
"""The most words that a summary is asked to have."""


def counted(paid: Usage) -> Usage:
    """Return what refused replies took; nothing in runs that began before that was counted."""
    return paid if paid != Usage() and workflow.patched("paid-attempts") else Usage()


class Compaction:
    """Of a conversation: at most one summary a turn, and one answer to an overflow."""

    def __init__(self, memory: WorkingMemory, spend: Callable[[Usage], None]) -> None:
        """Keep this conversation within bounds.

        Args:
            memory: The conversation.
            spend: Told what summaries took.
        """
        self._memory = memory
        self._spend = spend
        self._asked_in = 0  # turns count from 1
        self._recovered_in = 0
        self._is_guess = False
        self._before: int | None = None

    async def run(self, *, overflow: bool = False) -> bool:
        """Compact the conversation if it is due; returns whether that changed anything.

        A summariser that fails or says nothing of use changes nothing but a line in the log.

        Args:
            overflow: The provider refused the prompt: it is due, whatever the estimate says.
        """
        memory = self._memory
        todo = plan(
            memory.log.groups,
            memory.settings,
            prompt_tokens=memory.prompt_tokens,
            overflow=overflow,
        )
        if todo is None:
            return False
        memory.log.shorten(todo.shorten)
        summarised = bool(todo.replace) and await self._summarise(todo.replace)
        return summarised or bool(todo.shorten)

    async def recover(self, error: ActivityError) -> bool:
        """After a failed model call: make the prompt smaller if it was too long, once a turn.

        Returns:
            Whether the call is worth another try.
        """
        cause = error.cause
        is_overflow = isinstance(cause, ApplicationError) and cause.type == "ContextOverflow"
        if not is_overflow or self._recovered_in == self._memory.turn:
            return False
        self._recovered_in = self._memory.turn
        if failed_call(error).kind == LARGE and workflow.patched("guessed-overflow"):
            # No reason to pay for a summary, which would stay.
            self._before = self._memory.bound
            self._is_guess = True
            return self._memory.halve()
        if not await self.run(overflow=True):
            self._memory.halve()
        return True

    def failed_again(self) -> None:
        """After a recovery that was of no use: where the overflow was a guess, take it back."""
        if self._is_guess:
            self._memory.restore_bound(self._before)

    async def _summarise(self, ids: list[str]) -> bool:
        memory = self._memory
        if self._asked_in == memory.turn:
            return False
        self._asked_in = memory.turn
        try:
            made = await workflow.execute_activity(
                contracts.compact,
                Compact(
                    prompt=memory.reference(ids),
                    reply=memory.reserve(),
                    model=memory.settings.compact_model or "",
                    words=min(LONGEST, (memory.settings.max_tokens or 0) // 5 + 1),
                ),
                summary=f"{len(ids)} messages of {memory.name}",
                **COMPACT,
            )
        except ActivityError as error:
            raise_cancellation(error)
            self._spend(counted(failed_call(error).paid))
            workflow.logger.warning("%s is not summarised: %s", memory.name, describe(error))
            return False
        self._spend(made.usage.plus(counted(made.paid)))
        replaced = [message for group in memory.log.groups for message in group][: len(ids)]
        # Other code of the workflow may have forgotten some of them meanwhile.
        is_same = [message.id for message in replaced] == ids
        if not is_same or not fits(made.message, replaced, memory.settings):
            why = "the summary is no smaller" if is_same else "messages were forgotten meanwhile"
            workflow.logger.warning("%s is not summarised: %s", memory.name, why)
            return False
        memory.summarise(ids, made.message)
        return True
