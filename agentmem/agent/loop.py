"""The agent loop: one user message, model calls and tool calls, until there is an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ActivityError, TimeoutError

from agentmem import contracts
from agentmem.agent.approvals import Approvals
from agentmem.agent.response_format import ResponseFormat
from agentmem.agent.tool_batch import Batch
from agentmem.contracts import Answer, Definition, ModelCall, ModelReply, Usage
from agentmem.error_text import describe, failed_call, raise_cancellation
from agentmem.errors import TurnFailed
from agentmem.memory.compaction import Compaction, counted, overhead
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Role
from agentmem.policies import model_options
from agentmem.queues import until_taken
from agentmem.wire import JSONObject, clip

REPAIRS = 2
"""The number of times that an answer that breaks its response format is asked for again."""

SAID_BYTES = 2_048
"""Encoded bytes of what a turn said before it failed, in the text of its error."""

REFUSALS = ("refused", "invalid", "large", "forbidden")
"""Kinds of failed calls that the same prompt would meet again. A firewall before the model may
forbid a text: the account had the right to ask, for the turn was accepted so far."""

LEFT_OUT = "[This result is left out: the model's provider refused the request that held it.]"

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
        priority: Priority = Priority.default,
    ) -> None:
        """Take what the agent's turns share; `spent` is what all turns before took."""
        self._definition = definition
        self._memory = memory
        self._approvals = approvals
        self._on_pause = on_pause
        fixed = sum(overhead(definition).values()) if memory.settings.compact_model else 0
        self._priority = priority
        self._compaction = Compaction(
            memory, self._spend, fixed, priority=priority, wait=self._wait
        )
        self._spent = spent
        self._format = response_format
        self._deadline = workflow.now() + timedelta(minutes=definition.turn_minutes)
        self._taken = 0  # messages of the turn that the provider has been shown and took
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
            left_out = self._leave_out(error)
            self._close()
            raise_cancellation(error)
            if isinstance(error, TurnFailed):
                raise
            reason = f"{self._why(error)}{left_out}"
            workflow.logger.warning("turn %d failed: %s", self._memory.turn, reason)
            raise TurnFailed(reason) from error
        finally:
            self._memory.end_turn()
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
        timed_out = isinstance(error, ActivityError) and isinstance(error.cause, TimeoutError)
        late = timed_out or failed_call(error).kind == "late"
        agent = self._definition
        context = f"the model {agent.model}, turn_minutes {agent.turn_minutes:g}: " if late else ""
        return f"{context}{describe(error)}"

    def _leave_out(self, error: BaseException) -> str:
        """Take out the tool results that a provider refuses, for they would end each later turn.

        The model took the turn so far, and refuses it with the results that came last.

        Returns:
            What was left out, in words for people.
        """
        if failed_call(error).kind not in REFUSALS:
            return ""
        return self._leave_out_newest("refused-results")

    def _leave_out_newest(self, patch: str) -> str:
        messages = self._memory.turn_messages()
        newest = [m for m in messages[self._taken :] if m.role is Role.TOOL_RESULT]
        if not newest or not workflow.patched(patch):
            return ""
        for result in newest:
            self._memory.leave_out(result, LEFT_OUT)
        names = ", ".join(dict.fromkeys(result.name for result in newest))
        return f" The results of {names}, which it refused, are left out from now on."

    def _close(self) -> None:
        if not any(message.calls for message in self._memory.turn_messages()):
            self._memory.log.drop_turn(self._memory.turn)

    async def _answer(self) -> ModelReply:
        """Call the model, run what it asks for, and again, until it answers."""
        limit = self._definition.max_tool_calls
        call_count = 0
        step = 0
        while True:
            self._check_budget()
            await self._compaction.run()
            step += 1
            reply = await self._ask(step, may_call=call_count < limit and _has_room())
            calls = reply.message.calls
            if not calls:
                return self._keep(self._answered(await self._repaired(step, reply)))
            self._keep(reply)
            batch = Batch(
                self._definition,
                self._memory,
                calls,
                approvals=self._approvals,
                on_pause=self._on_pause,
                priority=self._priority,
            )
            start = workflow.now()
            await batch.run(max(0, limit - call_count), limit)
            call_count += len(calls)
            self._deadline += workflow.now() - start  # tools have their own timeouts, people a day

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

    def _answered(self, reply: ModelReply) -> ModelReply:
        """Return a reply that says something.

        Raises:
            TurnFailed: It says nothing, which is no answer.
        """
        if reply.message.text.strip() or not workflow.patched("blank-is-no-answer"):
            return reply
        agent = self._definition
        why = f"{reply.reason or reply.finish}, {reply.usage.completion} tokens written"
        hint = ""
        if reply.finish == "length":
            hint = f"; it may need more than max_tokens {agent.max_tokens}"
        elif reply.finish == "tool_limit":
            hint = f"; it wanted to call more tools than max_tool_calls {agent.max_tool_calls}"
        # Some providers block a prompt by a reply without text; they would block it again.
        left_out = self._leave_out_newest("blocked-results") if _is_blocked(reply) else ""
        raise TurnFailed(
            f"the model {agent.model} gave no answer: its reply has no text (finish reason "
            f"{why}){hint}{self._said_before()}{left_out}"
        )

    def _said_before(self) -> str:
        """Say what the turn said beside its tool calls: it may well be the answer."""
        texts = [m.text for m in self._memory.turn_messages() if m.role is Role.ASSISTANT]
        text = "\n\n".join(filter(str.strip, texts))
        return f". Before that it said: {clip(text, SAID_BYTES)}" if text else ""

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
            try:
                reply = await self._execute(self._call(step, may_call=may_call, **repair))
            except ActivityError:
                self._compaction.failed_again()
                raise
        self._memory.prompt_tokens = reply.usage.prompt
        return reply if may_call else _without_calls(reply)

    async def _execute(self, call: ModelCall) -> ModelReply:
        self._check_budget()
        reply = await until_taken(lambda look: self._execute_once(call, look), self._wait)
        self._wait(timedelta(seconds=reply.waited))
        self._spend(reply.usage.plus(counted(reply.paid)))
        if not _is_blocked(reply):
            self._taken = len(self._memory.turn_messages())
        return reply

    async def _execute_once(self, call: ModelCall, look: timedelta) -> ModelReply:
        left = self._deadline - workflow.now()
        if left <= timedelta():
            minutes = self._definition.turn_minutes
            raise TurnFailed(f"the model calls of this turn took over {minutes:g} minutes")
        try:
            return await workflow.execute_activity(
                contracts.model,
                call,
                schedule_to_start_timeout=look,
                priority=self._priority,
                **model_options(left),
            )
        except ActivityError as error:
            failed = failed_call(error)
            self._wait(timedelta(seconds=failed.waited))
            self._spend(counted(failed.paid))
            raise

    def _wait(self, waited: timedelta) -> None:
        """Do not count the time that a call waited for a worker's free slot."""
        self._deadline += waited

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
            budget=self._left(),
            approve=[spec.name for spec in agent.tools if agent.asks_before(spec)],
        )

    def _spend(self, usage: Usage) -> None:
        self.usage = self.usage.plus(usage)

    def _check_budget(self) -> None:
        for budget, spent, name in self._budgets():
            if spent >= budget:
                raise TurnFailed(f"the {name}, {budget} tokens, is used up ({spent} spent)")

    def _budgets(self) -> list[tuple[int, int, str]]:
        """Return each budget that there is, what is spent of it, and its name."""
        agent = self._definition
        budgets = (
            (agent.budget, self._spent.plus(self.usage), "budget"),
            (agent.turn_budget, self.usage, "budget of a turn"),
        )
        return [(b, usage.prompt + usage.completion, n) for b, usage, n in budgets if b is not None]

    def _left(self) -> int | None:
        """Return the tokens that may still be spent; None without any budget."""
        return min((budget - spent for budget, spent, _ in self._budgets()), default=None)


def _has_room() -> bool:
    return workflow.info().get_current_history_size() < TURN_BYTES


def _says_nothing(reply: ModelReply) -> bool:
    return not reply.message.calls and not reply.message.text.strip()


def _is_empty(reply: ModelReply) -> bool:
    return _says_nothing(reply) and reply.finish != "content_filter"  # a refusal is an answer


def _is_blocked(reply: ModelReply) -> bool:
    return _says_nothing(reply) and reply.finish == "content_filter"


def _without_calls(reply: ModelReply) -> ModelReply:
    """Take away calls that were not allowed any more, keeping the text."""
    if not reply.message.calls:
        return reply
    return reply.replace(message=reply.message.without_calls(), finish="tool_limit")
