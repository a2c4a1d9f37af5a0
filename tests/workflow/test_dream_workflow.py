"""The `agent_dream` workflow on the real server, over a real store and a scripted model."""

import asyncio
import json
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from temporalio.client import (
    Client,
    WorkflowExecutionStatus,
    WorkflowFailureError,
    WorkflowHandle,
    WorkflowHistory,
)
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.dream import DreamActivities
from agentmem.contracts import PHASES, DreamInput, DreamReport, ScopeRef
from agentmem.dreaming.budgets import ContextBudgets, sizes
from agentmem.dreaming.hook import dream_id
from agentmem.facts import Write
from agentmem.policies import DREAM_ROUNDS
from agentmem.records import TranscriptRow
from agentmem.storage.protocol import TransactionalProvider
from agentmem.testing import fail, hang
from tests.dreams import Answer, Script, calls, changes, findings, orientation, phase_of, served
from tests.replayer import replayer
from tests.stack import Stack, stack, task_failures
from workflows.dream import AgentDream


class Scope:
    """A scope of its own in a worker's store.

    Args:
        stack: The worker.
        provider: Its store.
    """

    def __init__(self, stack: Stack, provider: TransactionalProvider) -> None:
        self.provider = provider
        self.stack = stack
        self.store = ScopeRef(
            provider="sqlite:memory.db", agent="assistant", scope=f"u-{uuid.uuid4()}"
        )
        self._said = 0

    @classmethod
    async def make(cls, stack: Stack) -> "Scope":
        """Open the store."""
        return cls(stack, await stack.configuration.providers.get("sqlite:memory.db"))

    @property
    def input(self) -> dict[str, Any]:
        """The input that starts its dream."""
        return {"agent": self.store.agent, "scope": self.store.scope}

    async def said(self, text: str) -> None:
        """Append a user's message."""
        self._said += 1
        row = TranscriptRow(
            session="run-1",
            memory="wm0",
            seq=self._said,
            message=f"m{self._said}",
            role="user",
            text=text,
            at=datetime.now(UTC),
        )
        await self.provider.append(self.store.agent, self.store.scope, [row])

    async def knows(self, key: str, value: str) -> None:
        """Store a fact."""
        write = Write(key=key, value=value, writer="dream")
        await self.provider.write(self.store.agent, self.store.scope, [write])

    async def facts(self) -> Any:
        """Return all facts."""
        return await self.provider.recall(self.store.agent, self.store.scope)

    async def failures(self) -> int:
        """Return what the gate counts."""
        state = await self.provider.scope_state(self.store.agent, self.store.scope)
        return state.failures

    async def start(self, *args: Any, name: str = "") -> WorkflowHandle[Any, Any]:
        """Start its dream, under its own id unless another is given."""
        return await self.stack.client.start_workflow(
            "agent_dream",
            args=args or [self.input],
            id=name or dream_id(self.store),
            task_queue=self.stack.task_queue,
        )

    async def dream(self) -> DreamReport:
        """Dream to the end."""
        return await ended(await self.start())


async def ended(handle: WorkflowHandle[Any, Any]) -> DreamReport:
    """Return a dream's report."""
    return DreamReport.model_validate(await handle.result())


def learned() -> Script:
    """Script a dream that learns of a cat, however often it is asked."""
    return Script(
        gather_signal=[findings({"statement": "Cat is named Momo", "evidence": ["a1"]})] * 5,
        consolidate=[
            changes({"op": "add", "key": "pet", "value": "Cat is named Momo", "findings": ["f1"]})
        ]
        * 5,
    )


def requests_of(script: Script) -> list[str]:
    """Return the phases that asked the model, in order."""
    return [phase_of(request) for request in script.requests]


async def test_a_dream_turns_messages_into_facts(client: Client, tmp_path: Path) -> None:
    """The result reports the dream, the store has the fact, requests pass the strict rules."""
    script = learned()
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        report = await ended(handle)
        assert (report.status, report.summary) == ("completed", "1 added.")
        assert (report.keys_before, report.keys_after, report.rounds) == (0, 1, 1)
        assert report.dream == handle.first_execution_run_id
        assert report.usage.requests == 3
        assert report.usage.prompt > 0
        assert await scope.facts() == {"pet": "Cat is named Momo"}
        s.model.assert_strict()


async def test_a_dream_reads_like_a_story_in_the_ui(client: Client, tmp_path: Path) -> None:
    """Summaries, current details, memo and search attributes say what happened, without values."""
    async with stack(client, tmp_path, served(learned())) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        await ended(handle)
        history = await handle.fetch_history()
        summaries = [
            event.user_metadata.summary.data.decode().strip('"')
            for event in history.events
            if event.HasField("activity_task_scheduled_event_attributes")
        ]
        assert summaries == [
            "",
            "orient: 0 facts",
            "gather_signal: 1 new message",
            "consolidate: 1 finding",
            "prune: 1 change, 1 fact",
            "commit: 1 change, 1 fact",
        ]
        metadata: Any = await handle.query("__temporal_workflow_metadata")
        assert metadata.current_details.splitlines() == [
            "- orient: done: 0 facts, no model call",
            "- gather_signal: done: 1 finding",
            "- consolidate: done: 1 change",
            "- prune: done: nothing to prune, no model call",
        ]
        described = await handle.describe()
        assert (await described.memo())["outcome"] == "completed"
        pairs: list[Any] = list(described.typed_search_attributes)
        found = {pair.key.name: pair.value for pair in pairs}
        assert found["AgentMemAgent"] == "assistant"
        assert found["AgentMemScope"] == scope.store.scope
        assert found["AgentMemOutcome"] == "completed"


async def test_nothing_new_asks_no_model(client: Client, tmp_path: Path) -> None:
    """A scope without new messages is left alone."""
    async with stack(client, tmp_path, served(Script())) as s:
        scope = await Scope.make(s)
        await scope.knows("home", "Lives in Oslo")
        report = await scope.dream()
        assert (report.status, report.keys_after) == ("nothing_new", 1)
        assert s.model.requests == []
        assert await scope.failures() == 0


async def test_a_failing_model_fails_the_dream_and_nothing_else(
    client: Client, tmp_path: Path
) -> None:
    """The workflow fails with words for people, the store is unchanged, the gate counts."""
    script = learned()
    script.before("consolidate", fail(401, "no such key"))
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        cause = caught.value.cause
        assert isinstance(cause, ApplicationError)
        assert cause.type == "DreamFailed"
        assert cause.message.startswith("consolidate failed, the store is unchanged: the model ")
        assert (await (await handle.describe()).memo())["outcome"] == "failed"
        assert await scope.facts() == {}
        assert await scope.failures() == 1
        report = await scope.dream()
        assert report.status == "completed"
        assert await scope.facts() == {"pet": "Cat is named Momo"}
        assert await scope.failures() == 0


async def test_a_retried_phase_pays_only_for_the_call_in_flight(
    client: Client, tmp_path: Path
) -> None:
    """Temporal tries a phase again; what the model has answered is not asked again."""
    script = learned()
    unknown = {"op": "remove", "key": "nowhere", "reason": "expired"}
    script.before("consolidate", changes(unknown), fail(409, "again"))
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        await scope.dream()
        assert requests_of(script) == ["gather_signal", *["consolidate"] * 3, "verify"]
        second, third = script.of("consolidate")[1:]
        assert second == third
        assert await scope.facts() == {"pet": "Cat is named Momo"}


async def test_each_phase_asks_its_own_model(client: Client, tmp_path: Path) -> None:
    """Its own, else the dream's; all begin with the same bytes, and usage is that of all."""
    script = learned()
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.knows("home", "Lives in Oslo")
        await scope.knows("home_town", "Lives in Oslo")
        await scope.said("My cat is named Momo.")
        phases = {"orient": {"model": "openai/small"}, "gather_signal": {"model": "openai/large"}}
        request = {**scope.input, "model": "openai/plain", "phases": phases}
        report = await ended(await scope.start(request))
        asked = {phase_of(request): request["model"] for request in script.requests}
        assert asked == {
            "orient": "small",
            "gather_signal": "large",
            "consolidate": "plain",
            "verify": "plain",
            "prune": "plain",
        }
        reading = [one for one in script.requests if phase_of(one) != "verify"]
        assert len({json.dumps(one["messages"][:2]) for one in reading}) == 1
        assert report.usage.requests == len(script.requests)


async def test_the_smallest_context_of_the_phases_models_bounds_all(
    client: Client, tmp_path: Path
) -> None:
    """All phases read the same facts, so those must fit the smallest model; unknown is no bound."""
    contexts = {"plain": 100_000, "small": 8_000}
    async with stack(client, tmp_path, served(Script())) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        worker = DreamActivities(
            s.configuration.providers, Script(), model="plain", context=lambda m: contexts.get(m, 0)
        )
        opened: list[Any] = []
        unknown = dict.fromkeys(PHASES, "unknown")
        cases = [{}, {"orient": "small"}, {"verify": "small"}, unknown]
        for run, models in enumerate(cases):
            environment = ActivityEnvironment(client=client)
            environment.info = replace(
                environment.info, workflow_id=dream_id(scope.store), workflow_run_id=f"r{run}"
            )
            phases = {name: {"model": model} for name, model in models.items()}
            begun = {**scope.input, "phases": phases, "limits": {"failures": 9}}
            request = DreamInput.model_validate(begun)
            await environment.run(worker.begin, request)
            record = await scope.provider.dream("assistant", scope.store.scope, f"r{run}")
            assert record is not None
            opened.append(ContextBudgets.model_validate(record.data.get("sizes", {})))
        assert opened == [sizes(100_000), sizes(8_000), sizes(8_000), sizes(0)]


async def test_a_phase_is_tried_as_often_as_it_is_set(client: Client, tmp_path: Path) -> None:
    """With one attempt, what a second one would mend fails the dream at once."""
    script = learned()
    script.before("gather_signal", fail(409, "again"))
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        phases = {"gather_signal": {"attempts": 1}}
        handle = await scope.start({**scope.input, "phases": phases})
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert "gather_signal failed" in str(caught.value.cause)
        assert requests_of(script) == ["gather_signal"]
        assert (await scope.dream()).status == "completed"


async def test_a_phase_takes_as_long_as_it_is_set(client: Client, tmp_path: Path) -> None:
    """A model that says nothing is left after the phase's time, and asked once more."""
    script = Script(gather_signal=[hang(), hang()])
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        phases = {"gather_signal": {"attempts": 2, "minutes": 0.02}}
        handle = await scope.start({**scope.input, "phases": phases})
        async with asyncio.timeout(20):
            with pytest.raises(WorkflowFailureError) as caught:
                await handle.result()
        assert "gather_signal failed" in str(caught.value.cause)
        assert 1 <= len(script.requests) <= 2
        await s.model.disconnected(1)


async def test_a_message_of_meanwhile_is_read_in_another_round(
    client: Client, tmp_path: Path
) -> None:
    """A dream that is told of more goes round again as a new run, and reports both."""
    script = learned()
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)

        async def meanwhile(request: Any) -> Answer:
            await scope.said("My dog is named Rex.")
            await client.get_workflow_handle(dream_id(scope.store)).signal("more", ["any", 1])
            return orientation()

        script.before("orient", meanwhile)
        script.answers["consolidate"][1] = changes(
            {"op": "add", "key": "dog", "value": "Dog is named Rex", "findings": ["f1"]}
        )
        script.answers["gather_signal"][1] = findings(
            {"statement": "Dog is named Rex", "evidence": ["a1"]}
        )
        await scope.knows("a", "Likes tea")
        await scope.knows("b", "Likes milk")
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        report = await ended(handle)
        assert (report.status, report.rounds) == ("completed", 2)
        assert report.dream != handle.first_execution_run_id
        assert (report.keys_before, report.keys_after) == (2, 4)
        assert report.changes == {"accepted": 2}
        assert report.applied == ["add pet", "add dog"]
        assert report.usage.requests == len(script.requests)
        assert set(await scope.facts()) == {"a", "b", "pet", "dog"}


async def test_a_round_that_finds_nothing_new_does_not_hide_the_one_before(
    client: Client, tmp_path: Path
) -> None:
    """Told of messages that it has read already, a dream still reports what it learned."""
    script = learned()
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)

        async def meanwhile(request: Any) -> Answer:
            await client.get_workflow_handle(dream_id(scope.store)).signal("more")
            return orientation()

        script.before("orient", meanwhile)
        await scope.knows("a", "Likes tea")
        await scope.knows("b", "Likes milk")
        await scope.said("My cat is named Momo.")
        report = await scope.dream()
        assert (report.status, report.rounds, report.summary) == ("completed", 2, "1 added.")


async def test_a_dream_goes_round_five_times_at_most(client: Client, tmp_path: Path) -> None:
    """Under a stream of messages the rest waits for the next trigger."""
    script = Script()
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)

        async def meanwhile(request: Any) -> Answer:
            await scope.said("Hello again.")
            await client.get_workflow_handle(dream_id(scope.store)).signal("more")
            return findings()

        script.answers["gather_signal"] = [meanwhile] * 10
        await scope.said("Hello.")
        report = await scope.dream()
        assert report.rounds == DREAM_ROUNDS
        assert len(script.requests) == DREAM_ROUNDS
        assert len(await scope.provider.unread(scope.store.agent, scope.store.scope, 1_000)) == 1


async def test_a_start_by_hand_is_handed_to_the_scopes_dream(
    client: Client, tmp_path: Path
) -> None:
    """Under any other id the dream of the scope is started, and its id returned."""
    async with stack(client, tmp_path, served(learned())) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start(name=f"by-hand-{uuid.uuid4()}")
        name = dream_id(scope.store)
        assert await handle.result() == {"status": "delegated", "dream": name}
        report = await ended(client.get_workflow_handle(name))
        assert report.status == "completed"
        assert await scope.facts() == {"pet": "Cat is named Momo"}


async def test_a_dream_without_patience_is_skipped_after_three_failures(
    client: Client, tmp_path: Path
) -> None:
    """A scope whose dreams fail is skipped, with the reason; the messages wait."""
    script = Script(gather_signal=[fail(401, "no such key")] * 9)
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        for _ in range(3):
            with pytest.raises(WorkflowFailureError):
                await scope.dream()
        limits = {"patience_hours": 0.5}  # the gate is shut for an hour
        report = await ended(await scope.start({**scope.input, "limits": limits}))
        assert report.status == "skipped"
        assert report.reason.startswith("3 dreams of this scope failed in a row")
        assert len(script.requests) == 3


WRONG: list[tuple[list[Any], str]] = [
    ([], "the input of agent_dream is missing"),
    (["x"], "must be a JSON object"),
    ([{}], "field 'agent'"),
    ([{"agent": "a", "scope": "s"}, {}], "is one argument, 2 came"),
    ([{"agent": "a", "scope": "s", "color": 1}], "unknown field 'color'"),
    ([{"agent": "a", "scope": 7}], "field 'scope'"),
    ([{"agent": "a", "scope": "  "}], "scope is empty"),
    ([{"agent": "a", "scope": "s", "limits": {"keys": 0}}], "field 'limits.keys'"),
    ([{"agent": "a", "scope": "s", "limits": {"orientt": 3}}], "orientt"),
    ([{"agent": "a", "scope": "s", "phases": {"gather": {}}}], "'orient', 'gather_signal'"),
    ([{"agent": "a", "scope": "s", "phases": {"prune": {"attempts": 9}}}], "take 90 minutes"),
    ([{"agent": "a", "scope": "s", "rounds": -1}], "field 'rounds'"),
    ([{"agent": "a", "scope": "s" * 1_500_000}], "field 'scope'"),
    ([{"agent": "a", "scope": "s", "provider": "p" * 1_500_000}], "field 'provider'"),
    ([{"agent": "a", "scope": "s", "model": "m" * 1_500_000}], "field 'model'"),
]


@pytest.mark.parametrize(
    ("args", "says"),
    WRONG,
    ids=[
        *["none", "text", "empty", "surplus", "unknown", "type", "blank", "limit"],
        *["nested", "phase", "time", "rounds", "long scope", "long provider", "long model"],
    ],
)
async def test_a_wrong_input_fails_at_once(
    client: Client, tmp_path: Path, args: list[Any], says: str
) -> None:
    """Whatever comes from outside, a dream never stays running on it."""
    async with stack(client, tmp_path, served(Script())) as s:
        handle = await client.start_workflow(
            "agent_dream", args=args, id=f"wrong-{uuid.uuid4()}", task_queue=s.task_queue
        )
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert isinstance(caught.value.cause, ApplicationError)
        assert says in caught.value.cause.message
        assert await task_failures(handle) == []


async def test_an_unknown_provider_fails_at_once(client: Client, tmp_path: Path) -> None:
    """A provider that the worker lacks is named, with those that exist; nothing is retried."""
    async with stack(client, tmp_path, served(Script())) as s:
        scope = await Scope.make(s)
        handle = await scope.start({**scope.input, "provider": "named:redis"})
        with pytest.raises(WorkflowFailureError) as caught:
            await handle.result()
        assert "'redis'" in str(caught.value.cause)


async def test_a_phase_shows_how_far_it_is_and_can_be_cancelled(
    client: Client, tmp_path: Path
) -> None:
    """Heartbeats carry counters while the model thinks, and a cancellation reaches it."""
    script = Script(gather_signal=[calls(("list_memory_keys", {})), hang()])
    async with stack(client, tmp_path, served(script)) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        async with asyncio.timeout(30):
            await s.model.received(2)
            while await heartbeat(handle) != {"requests": 1}:  # noqa: ASYNC110 - the server's
                await asyncio.sleep(0.1)
        await handle.cancel()
        async with asyncio.timeout(10):
            await s.model.disconnected(2)
        with pytest.raises(WorkflowFailureError):
            await handle.result()
        assert (await handle.describe()).status is WorkflowExecutionStatus.CANCELED


async def test_a_dream_replays(client: Client, tmp_path: Path) -> None:
    """Replaying a dream's history makes the same commands."""
    async with stack(client, tmp_path, served(learned())) as s:
        scope = await Scope.make(s)
        await scope.said("My cat is named Momo.")
        handle = await scope.start()
        await ended(handle)
        history = await handle.fetch_history()
    recorded = WorkflowHistory.from_json(handle.id, history.to_json())
    await replayer(AgentDream).replay_workflow(recorded)


async def heartbeat(handle: WorkflowHandle[Any, Any]) -> Any:
    """Return what the running activity said last, None before it says anything."""
    described = await handle.describe()
    (pending,) = described.raw_description.pending_activities
    found = await pydantic_data_converter.decode(pending.heartbeat_details.payloads)
    return found[0] if found else None
