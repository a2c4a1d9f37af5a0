"""Running the tool calls of one reply: together or in order, each with one result."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from temporalio import workflow
from temporalio.common import Priority
from temporalio.exceptions import ActivityError, ApplicationError, is_cancelled_exception

from agentmem.agent.approvals import Approval, Approvals
from agentmem.contracts import Definition, ToolRun, ToolSpec
from agentmem.error_text import describe
from agentmem.facts import Evidence
from agentmem.memory.tools import CITING
from agentmem.memory.working import WorkingMemory
from agentmem.messages import Message, Role, ToolCall
from agentmem.policies import tool_options
from agentmem.tools.asking import ASK_USER, NO_ANSWER, NO_QUESTION, is_question

LIMIT_REACHED = (
    "Not run: this turn may make {limit} tool calls and has made them. Answer now with what you "
    "have."
)
NOT_APPROVED = "Not run: a person did not approve it"
UNKNOWN = "Not run: the tool {name} is not available any more."
NOT_BEGUN = "Not run: the turn was cancelled before it began."
INTERRUPTED = "Interrupted before it ended; it may have taken effect. It was not run again."

EVIDENCE = 8
"""The most messages that a stored fact rests on: what the user said, and the newest of the turn."""

WAITING_BYTES = 1_500_000
"""Encoded bytes of results that may come at a time: Temporal fails a workflow task under way when
more than 2 MB wait for it. Of the default 64 KiB these are 22 results, of 1 MiB it is one."""


@dataclass(frozen=True)
class LocalResult:
    """A result that no activity gave."""

    text: str
    failed: bool = True


class Batch:
    """The calls of one assistant message.

    Reads run together; a tool that writes runs alone, in order, after the calls before it. Results
    are stored in call order, whatever order they came in.
    """

    def __init__(
        self,
        definition: Definition,
        memory: WorkingMemory,
        calls: Sequence[ToolCall],
        *,
        approvals: Approvals,
        on_pause: Callable[[], Awaitable[None]],
        priority: Priority = Priority.default,
    ) -> None:
        self._priority = priority
        self._definition = definition
        self._specs = {spec.name: spec for spec in definition.tools}
        self._memory = memory
        self._calls = calls
        self._approvals = approvals
        self._on_pause = on_pause
        self._started: set[str] = set()
        self._results: dict[str, Message | LocalResult] = {}
        self._ids = {call.id: memory.reserve() for call in calls}
        most = definition.max_concurrent_tools or len(calls) or 1
        self._slots = asyncio.Semaphore(min(most, self._fitting()))
        self._own_slots = {
            spec.name: asyncio.Semaphore(spec.concurrency)
            for spec in definition.tools
            if spec.concurrency is not None
        }

    def _fitting(self) -> int:
        """Return how many of the calls may run at a time so that their results fit, 1 at least."""
        called = [self._specs[call.name] for call in self._calls if call.name in self._specs]
        longest = max((spec.result_bytes for spec in called), default=1)
        return max(1, WAITING_BYTES // longest)

    async def run(self, allowed: int, limit: int) -> None:
        """Run the first `allowed` calls; the others get a result that says why they did not run.

        The memory holds a result for every call afterwards, also when this is cancelled.
        """
        for call in self._calls[allowed:]:
            self._results[call.id] = LocalResult(LIMIT_REACHED.format(limit=limit))
        decisions = self._ask(self._calls[:allowed])
        pause = asyncio.ensure_future(self._on_pause()) if decisions else None
        try:
            await self._run_segments(self._calls[:allowed], decisions)
            if pause is not None:
                await pause
        except GeneratorExit:
            raise  # evicted: there is no workflow here any more, or another one
        except BaseException:
            self._close(decisions)
            raise
        self._close(decisions)

    async def _run_segments(
        self, calls: Sequence[ToolCall], decisions: Mapping[str, asyncio.Task[Approval]]
    ) -> None:
        for segment in self._segments(calls):
            async with asyncio.TaskGroup() as group:
                for call in segment:
                    group.create_task(self._one(call, decisions.get(call.id)))

    def _close(self, decisions: Mapping[str, asyncio.Task[Approval]]) -> None:
        for decision in decisions.values():
            decision.cancel()
        for call in self._calls:
            missing = LocalResult(INTERRUPTED if call.id in self._started else NOT_BEGUN)
            self._keep(call, self._results.get(call.id, missing))

    def _segments(self, calls: Sequence[ToolCall]) -> list[list[ToolCall]]:
        segments: list[list[ToolCall]] = [[]]
        for call in calls:
            spec = self._specs.get(call.name)
            if spec is not None and spec.writes:
                segments += [[call], []]
            else:
                segments[-1].append(call)
        return [segment for segment in segments if segment]

    def _ask(self, calls: Sequence[ToolCall]) -> dict[str, asyncio.Task[Approval]]:
        """Ask for all approvals at once, so that a person sees them together."""
        timeout = timedelta(minutes=self._definition.approval_minutes)
        return {
            call.id: asyncio.create_task(self._approvals.ask(call, self._memory.name, timeout))
            for call in calls
            if self._needs_person(call)
        }

    def _needs_person(self, call: ToolCall) -> bool:
        spec = self._specs.get(call.name)
        if spec is None or call.problem:
            return False
        if spec.name == ASK_USER.name:
            return is_question(call.name, call.arguments)
        return self._definition.asks_before(spec)

    async def _one(self, call: ToolCall, decision: asyncio.Task[Approval] | None) -> None:
        self._results[call.id] = await self._result(call, decision)

    async def _result(
        self, call: ToolCall, decision: asyncio.Task[Approval] | None
    ) -> Message | LocalResult:
        spec = self._specs.get(call.name)
        if call.problem:
            return LocalResult(f"Not run: {call.problem}")
        if spec is None:
            names = ", ".join(self._specs) or "none"
            return LocalResult(f"Not run: there is no tool {call.name!r}. Tools: {names}.")
        asks = spec.name == ASK_USER.name
        if decision is not None and not (answer := await decision).ok:
            reason = f": {answer.reason}" if answer.reason else "."
            return LocalResult(f"{NO_ANSWER if asks else NOT_APPROVED}{reason}")
        if asks:
            return LocalResult(NO_QUESTION) if decision is None else _answered(decision.result())
        async with self._own_slots.get(spec.name, contextlib.nullcontext()), self._slots:
            return await self._execute(call, spec)

    async def _execute(self, call: ToolCall, spec: ToolSpec) -> Message | LocalResult:
        cited = self._said() if spec.name in CITING else []
        run = ToolRun(
            reply=self._ids[call.id],
            call=call,
            memory=self._memory.name,
            turn=self._memory.turn,
            store=spec.store,
            evidence=[self._evidence(message) for message in cited],
            said=self._memory.reference([message.id for message in cited]) if cited else None,
        )
        self._started.add(call.id)
        try:
            return await workflow.execute_activity(
                spec.name,
                run,
                result_type=Message,
                priority=self._priority,
                **tool_options(spec),
            )
        except ActivityError as error:
            if is_cancelled_exception(error):
                return LocalResult(INTERRUPTED)
            if _is_unknown(error) and workflow.patched("tool-that-no-worker-knows"):
                return LocalResult(UNKNOWN.format(name=spec.name))
            reason = describe(error)
            return LocalResult(f"Error: {spec.name} failed: {reason}. It may have taken effect.")

    def _said(self) -> list[Message]:
        """Return the turn's messages: what the agent stores or forgets now rests on them."""
        candidates = [
            m for m in self._memory.turn_messages() if m.text and not (m.recalled or m.failed)
        ]
        question = [m for m in candidates if m.role is Role.USER][-1:]
        later = [m for m in candidates if m.role in (Role.ASSISTANT, Role.TOOL_RESULT)]
        return question + later[len(question) - EVIDENCE :]

    def _evidence(self, message: Message) -> Evidence:
        return Evidence(
            session=self._memory.session,
            memory=self._memory.name,
            message=message.id,
            role=message.role.value,
            said_at=message.at,
        )

    def _keep(self, call: ToolCall, result: Message | LocalResult) -> None:
        if not self._memory.log.has_call(call.id) and workflow.patched("forgotten-calls"):
            return  # code forgot the call while its tool was at work, and its result with it
        if isinstance(result, Message):
            self._memory.store(result)
            return
        self._memory.add(
            id=self._ids[call.id],
            role=Role.TOOL_RESULT,
            content=result.text,
            call=call.id,
            name=call.name,
            failed=result.failed,
            # The activity may have left another result of this id in a worker's cache.
            attempt=0,
        )


def _is_unknown(error: ActivityError) -> bool:
    """Tell whether the worker that took a call does not have the tool; the SDK's word for that."""
    return isinstance(error.cause, ApplicationError) and error.cause.type == "NotFoundError"


def _answered(answer: Approval) -> LocalResult:
    text = answer.answer or answer.reason
    return LocalResult(text, failed=False) if text.strip() else LocalResult(f"{NO_ANSWER}.")
