"""The example of a dream of one's own, on a worker."""

import re
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from temporalio import activity
from temporalio.client import Client
from temporalio.common import RawValue
from temporalio.worker import Worker

from agentmem.config.app import load_app
from agentmem.contracts import PHASES, Begun, DreamInput, ScopeRef
from agentmem.dreaming.hook import dream_id
from agentmem.testing import Reply, Request, reply
from examples.custom_dream import Diary, MyDream
from tests.dreams import Script, changes, findings, served
from tests.stack import stack, task_failures
from workflows.dream import AgentDream

PAGE = Path(__file__).parents[2] / "docs/how-to/dreams.md"


class Asked:
    """The activities that were asked for, each answered as in a dream that learns nothing."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []

    @activity.defn(dynamic=True)
    async def answer(self, args: Sequence[RawValue]) -> Any:
        """Answer any activity of a dream."""
        kind = activity.info().activity_type.removeprefix("dream.")
        request = activity.payload_converter().from_payload(args[0].payload)
        self.calls.append((kind, request))
        if kind == "begin":
            store = {"provider": "sqlite:x.db", "agent": "diary", "scope": request["scope"]}
            return {"store": store, "model": "plain", "dream": "d"}
        return {"status": "completed", "summary": "done"}


async def dreamt(client: Client, workflow: type, **options: Any) -> Asked:
    """Run a dream over answers of no store and no model."""
    asked, queue = Asked(), f"queue-{uuid.uuid4()}"
    request = {"agent": "diary", "scope": "ada", **options}
    activities = [asked.answer]
    async with Worker(client, task_queue=queue, workflows=[workflow], activities=activities):
        kind = workflow_type(workflow)
        report: Any = await client.execute_workflow(
            kind, request, id=f"dream-{uuid.uuid4()}", task_queue=queue
        )
    assert report["status"] == "completed"
    return asked


def workflow_type(workflow: Any) -> str:
    """Return the type under which a class is registered."""
    return workflow.__temporal_workflow_definition.name


async def test_ten_lines_are_a_dream_of_ones_own(client: Client, tmp_path: Path) -> None:
    """The class on the page leaves two phases out, and has limits of its own."""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    [text] = [block for block in blocks if "(DreamWorkflow)" in block]
    body = text[text.index("@workflow.defn") :]
    assert len([line for line in body.splitlines() if line.strip()]) <= 10
    module = tmp_path / f"page_{uuid.uuid4().hex}.py"
    module.write_text(text)
    short = load_app(str(module)).workflows["short_dream"]
    asked = await dreamt(client, short)
    assert [kind for kind, _ in asked.calls] == ["begin", "gather_signal", "consolidate", "commit"]
    assert asked.calls[0][1]["limits"] == {"keys": 50}
    assert {request["keys"] for kind, request in asked.calls if kind != "begin"} == {50}


async def test_each_phase_is_told_of_the_verifier(client: Client) -> None:
    """The model that `phases` names for `verify` reaches every phase; without one it is empty."""
    for models, verifier in (({}, None), ({"verify": {"model": "judge"}}, "judge")):
        asked = await dreamt(client, AgentDream, phases=models)
        told = {kind: request.get("verifier") for kind, request in asked.calls}
        assert told == {"begin": None} | dict.fromkeys([*PHASES, "commit"], verifier)


async def test_a_dream_of_ones_own_has_limits_and_a_phase_more(
    client: Client, tmp_path: Path
) -> None:
    """`dream(workflow="my_dream")` starts it with the scope's id; its portrait is stored."""
    learned = Script(
        gather_signal=findings({"statement": "Cat is named Momo", "evidence": ["a1"]}),
        consolidate=changes(
            {"op": "add", "key": "cat", "value": "Cat is named Momo", "findings": ["f1"]}
        ),
    )
    dreams = served(learned, "I see.")

    async def serve(request: Request) -> Reply:
        if "two sentences" in str(request.messages[0]["content"]):
            assert "Cat is named Momo" in str(request.messages)
            return reply("Keeps a cat. It is named Momo.")
        return await dreams(request)

    async with stack(client, tmp_path, serve, extra=[MyDream, Diary]) as s:
        scope = f"user-{uuid.uuid4()}"
        answer = await s.run("diary", scope, "My cat is named Momo.")
        assert answer == "I see."
        name = dream_id(ScopeRef(provider="sqlite:diary.db", agent="diary", scope=scope))
        handle = client.get_workflow_handle(name)
        report: Any = await handle.result()
        assert (report["status"], report["applied"]) == ("completed", ["add cat"])
        assert (await handle.describe()).workflow_type == "my_dream"
        store = await s.configuration.providers.get("sqlite:diary.db")
        assert await store.recall("diary", scope) == {"cat": "Cat is named Momo"}
        assert await store.recall("portraits", scope) == {
            "portrait": "Keeps a cat. It is named Momo."
        }
        assert await task_failures(handle) == []


async def test_a_dream_of_ones_own_that_finds_nothing_leaves_no_late_message(
    client: Client,
) -> None:
    """Told of more between its look and its end, it looks again: nobody else is told."""
    name, queue = f"dream-{uuid.uuid4()}", f"queue-{uuid.uuid4()}"
    looks: list[str] = []

    @activity.defn(name="dream.begin")
    async def begin(request: DreamInput) -> Begun:
        looks.append(request.scope)
        if len(looks) == 1:  # somebody appends behind the look, and says so
            await client.get_workflow_handle(name).signal("more")
        store = ScopeRef(provider="sqlite:x.db", agent="diary", scope=request.scope)
        return Begun(status="nothing_new", store=store)

    async with Worker(client, task_queue=queue, workflows=[MyDream], activities=[begin]):
        request = DreamInput(agent="diary", scope="ada")
        report = await client.execute_workflow(MyDream.run, request, id=name, task_queue=queue)
    assert (report.status, looks) == ("nothing_new", ["ada", "ada"])


async def test_a_dream_of_ones_own_goes_round_five_times_at_most(client: Client) -> None:
    """Where people never stop talking, what is left waits for the next trigger."""
    name, queue = f"dream-{uuid.uuid4()}", f"queue-{uuid.uuid4()}"
    rounds: list[int] = []

    @activity.defn(name="dream.begin")
    async def begin(request: DreamInput) -> Begun:
        rounds.append(request.rounds)
        store = ScopeRef(provider="sqlite:x.db", agent="diary", scope=request.scope)
        return Begun(status="nothing_new", store=store, more_evidence=True)

    async with Worker(client, task_queue=queue, workflows=[MyDream], activities=[begin]):
        request = DreamInput(agent="diary", scope="ada")
        await client.execute_workflow(MyDream.run, request, id=name, task_queue=queue)
    assert rounds == [0, 1, 2, 3, 4]
