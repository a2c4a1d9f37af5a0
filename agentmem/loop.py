"""The agent loop: one user message, model calls and tool calls, until there is an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, TimeoutError

from agentmem import contracts
from agentmem.approvals import Approvals
from agentmem.batch import Batch
from agentmem.compact import Compaction
from agentmem.contracts import Answer, Definition, ModelCall, ModelReply, Usage
from agentmem.errors import TurnFailed
from agentmem.failures import describe, raise_cancellation
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Message
from agentmem.policies import model_options
from agentmem.response_format import ResponseFormat
from agentmem.values import JSONObject

REPAIRS = 2
"""How often an answer that does not keep its response format is asked for again."""

TURN_BYTES = 20 * 1024 * 1024
"""Bytes of history at which a turn runs no more tools: at 50 MiB Temporal ends the workflow, and
what one reply asked for may still be under way."""


class Loop:
    """Runs a turn of one agent on one working memory.

    Attributes:
        usage: What the turn took so far.
    """

    def __init__(
        self,
        definition: Definition,
        memory: WorkingMemory,
        *,
        approvals: Approvals,
        on_pause: Callable[[], Awaitable[None]],
        spent: Usage,
        response_format: ResponseFormat[Any],
    ) -> None:
        """Take what the agent's turns share; `spent` is what all turns before took."""
        self._definition = definition
        self._memory = memory
        self._approvals = approvals
        self._on_pause = on_pause
        self._compaction = Compaction(memory, self._spend)
        self._spent = spent
        self._format = response_format
        self._deadline = workflow.now() + timedelta(minutes=definition.turn_minutes)
        self.usage = Usage()

    async def turn(self, content: str | list[JSONObject]) -> Answer:
        """Answer a user's message.

        Whatever happens, the conversation is valid afterwards: a turn that failed before any tool
        ran is forgotten, else each of its calls has a result.

        Raises:
            TurnFailed: There is no answer; the message says why.
            asyncio.CancelledError: The turn was cancelled.
        """
        self._memory.begin_turn(content)
        try:
            reply = await self._answer()
        except (Exception, asyncio.CancelledError) as error:
            self._close()
            raise_cancellation(error)
            if isinstance(error, TurnFailed):
                raise
            why = self._why(error)
            workflow.logger.warning("turn %d failed: %s", self._memory.turn, why)
            raise TurnFailed(why) from error
        text = reply.message.text
        return Answer(
            turn=self._memory.turn,
            text=text,
            finish=reply.finish,
            data=None if reply.finish == "content_filter" else self._format.data(text),
            usage=self.usage,
        )

    def _why(self, error: BaseException) -> str:
        # Our own errors name the model. Temporal's, as where no worker took the call, do not.
        late = isinstance(error, ActivityError) and isinstance(error.cause, TimeoutError)
        agent = self._definition
        where = f"the model {agent.model}, turn_minutes {agent.turn_minutes:g}: " if late else ""
        return f"{where}{describe(error)}"

    def _close(self) -> None:
        if not any(message.calls for message in self._memory.turn_messages()):
            self._memory.log.drop_turn(self._memory.turn)

    async def _answer(self) -> ModelReply:
        """Call the model, run what it asks for, and again, until it answers."""
        limit = self._definition.max_tool_calls
        made = 0
        step = 0
        self._check_budget()
        await self._compaction.run()
        while True:
            step += 1
            reply = await self._ask(step, may_call=made < limit and _has_room())
            calls = reply.message.calls
            if not calls:
                return self._keep(await self._repaired(step, reply))
            self._keep(reply)
            batch = Batch(
                self._definition,
                self._memory,
                calls,
                approvals=self._approvals,
                on_pause=self._on_pause,
            )
            began = workflow.now()
            await batch.run(max(0, limit - made), limit)
            made += len(calls)
            self._deadline += workflow.now() - began  # tools have their own timeouts, people a day

    async def _ask(self, step: int, *, may_call: bool) -> ModelReply:
        """Ask the model; an empty answer is asked for once more."""
        reply = await self._request(step, may_call=may_call)
        if _is_empty(reply):
            reply = await self._request(step, may_call=may_call)
        return reply

    async def _repaired(self, step: int, reply: ModelReply) -> ModelReply:
        """Ask for an answer again that does not keep its response format, without tools.

        What did not keep it is no part of the conversation: nobody said it, and no dream reads it.
        """
        for _ in range(REPAIRS):
            problem = self._problem(reply)
            if not problem:
                return reply
            aside = self._memory.set_aside(reply.message)
            reply = await self._request(step, may_call=False, aside=(aside,), repair=problem)
        problem = self._problem(reply)
        if problem:
            raise TurnFailed(
                f"the answer does not keep its response format, after {REPAIRS} repairs: {problem}"
            )
        return reply

    def _problem(self, reply: ModelReply) -> str:
        if reply.problem or reply.finish == "content_filter":
            return reply.problem
        return self._format.problem(reply.message.text)

    def _keep(self, reply: ModelReply) -> ModelReply:
        # No provider takes an empty message: such a turn ends without one in the conversation.
        if reply.message.calls or reply.message.text.strip():
            self._memory.store(reply.message)
        return reply

    async def _request(self, step: int, *, may_call: bool, **repair: Any) -> ModelReply:
        try:
            reply = await self._execute(self._call(step, may_call=may_call, **repair))
        except ActivityError as error:
            if not await self._compaction.recover(error):
                raise
            reply = await self._execute(self._call(step, may_call=may_call, **repair))
        self._memory.prompt_tokens = reply.usage.prompt
        self._spend(reply.usage)
        return reply if may_call else _without_calls(reply)

    async def _execute(self, call: ModelCall) -> ModelReply:
        self._check_budget()
        left = self._deadline - workflow.now()
        if left <= timedelta():
            minutes = self._definition.turn_minutes
            raise TurnFailed(f"the model calls of this turn took over {minutes:g} minutes")
        return await workflow.execute_activity(contracts.model, call, **model_options(left))

    def _call(
        self, step: int, *, may_call: bool, aside: tuple[str, ...] = (), repair: str = ""
    ) -> ModelCall:
        agent = self._definition
        return ModelCall(
            prompt=self._memory.prompt(self._memory.system_prompt(agent.system_prompt), *aside),
            reply=self._memory.reserve(),
            turn=self._memory.turn,
            step=step,
            model=agent.model,
            tools=[spec.name for spec in agent.tools],
            tool_choice="auto" if may_call else "none",
            max_tokens=agent.max_tokens,
            reasoning_effort=agent.reasoning_effort,
            response_format=agent.response_format,
            seconds=agent.reply_minutes * 60,
            stream=agent.stream,
            repair=repair,
        )

    def _spend(self, usage: Usage) -> None:
        self.usage = self.usage.plus(usage)

    def _check_budget(self) -> None:
        agent = self._definition
        in_all = self._spent.plus(self.usage)
        for budget, used, whose in (
            (agent.budget, in_all, "budget"),
            (agent.turn_budget, self.usage, "budget of a turn"),
        ):
            spent = used.prompt + used.completion
            if budget is not None and spent >= budget:
                raise TurnFailed(f"the {whose}, {budget} tokens, is used up ({spent} spent)")


def _has_room() -> bool:
    return workflow.info().get_current_history_size() < TURN_BYTES


def _is_empty(reply: ModelReply) -> bool:
    said_nothing = not reply.message.calls and not reply.message.text.strip()
    return said_nothing and reply.finish != "content_filter"  # a refusal is an answer


def _without_calls(reply: ModelReply) -> ModelReply:
    """Take away calls that were not allowed any more, keeping the text."""
    if not reply.message.calls:
        return reply
    message: Message = reply.message.replace(calls=[])
    return reply.replace(message=message, finish="tool_limit")
