"""`worker.py` as people run it: a process with settings, signals and an exit code."""

import asyncio
import signal
import socket
import sqlite3
import time
import urllib.request
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from temporalio.client import Client
from temporalio.testing import WorkflowEnvironment

from agentmem.dreaming.prompts import SYSTEM
from agentmem.testing import Reply, Request, ScriptedModel, call, hang, reply
from tests.dreams import Script, changes, findings, served
from tests.e2e.worker_process import READY, ROOT, execute, temporal, worker_process

# A process imports litellm first, which takes a minute on a busy machine.
pytestmark = pytest.mark.timeout(200)

APP = '''
from temporalio import activity, workflow
from agentmem import provider, tool

@tool
def get_weather(city: str) -> str:
    """Say the weather in a city."""
    return f"Sunny in {city}."

@activity.defn
def count() -> int:
    return 42

@workflow.defn
class Counting:
    @workflow.run
    async def run(self) -> int:
        from datetime import timedelta
        return await workflow.execute_activity(count, start_to_close_timeout=timedelta(seconds=9))
'''

AGENTS = """
[agents.weather]
tools = ["get_weather"]
[agents.weather.long_term_memory]
provider = "in_memory"
"""


def free_ports() -> tuple[int, int]:
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("", 0)) as two:
        return one.getsockname()[1], two.getsockname()[1]


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=10) as page:
        return page.read().decode()


def address(env: WorkflowEnvironment) -> str:
    return env.client.service_client.config.target_host


async def test_dev_runs_everything_and_stops_cleanly(tmp_path: Path) -> None:
    """`--dev` starts server and worker, the CLI gets an answer, SIGTERM ends both with 0.

    Prometheus can read the worker's metrics meanwhile, those of the message cache among them.
    """
    port, ui_port = free_ports()
    metrics = f"127.0.0.1:{free_ports()[0]}"
    server = f"localhost:{port}"
    options = ("--dev", "--port", str(port), "--ui-port", str(ui_port))
    async with (
        ScriptedModel([reply("Good morning.")]) as model,
        worker_process(
            tmp_path,
            *options,
            settings={
                "AGENTMEM_MODEL": "openai/m",
                "AGENTMEM_METRICS": metrics,
                **model.env(),
            },
        ) as worker,
    ):
        await worker.says(READY)
        assert worker.lines[:6] == [
            f"server      {server}, namespace default, queue agentmem",
            "queues      agentmem-dreams (100 slots)",
            f"UI          http://localhost:{ui_port}",
            "model       openai/m",
            "agents      assistant (built in)",
            f"memory      sqlite:memory.db: SQLite {tmp_path}/.agentmem/memory.db",
        ]
        assert await execute(server, "one", scope="user-1", message="Hello") == "Good morning."
        page = await asyncio.to_thread(read, f"http://{metrics}/metrics")
        assert "agentmem_message_cache_hits" in page
        assert "agentmem_message_cache_misses" in page
        attributes = await temporal(server, "operator", "search-attribute", "list")
        assert {"AgentMemAgent", "AgentMemScope", "AgentMemOutcome"} <= set(attributes.split())
        worker.send(signal.SIGTERM)
        assert await worker.ended() == 0
        assert "Traceback" not in worker.text
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("localhost", port), 1)
        model.assert_strict()


@pytest.mark.slow
async def test_dev_says_first_that_the_offline_model_answers(tmp_path: Path) -> None:
    """Without AGENTMEM_MODEL, `--dev` takes the offline model and its first line says so."""
    port, ui_port = free_ports()
    options = ("--dev", "--port", str(port), "--ui-port", str(ui_port))
    async with worker_process(tmp_path, *options) as worker:
        await worker.says(READY)
        assert worker.lines[0].startswith("Answers come from agentmem/offline, because")
        worker.send(signal.SIGINT)
        assert await worker.ended() == 0


@pytest.mark.slow
async def test_the_users_own_code_is_registered_and_listed(
    env: WorkflowEnvironment, client: Client, tmp_path: Path, task_queue: str
) -> None:
    """AGENTMEM_APP and AGENTMEM_AGENTS bring tools, workflows, activities and agents."""
    (tmp_path / "my_app.py").write_text(APP)
    (tmp_path / "agentmem.toml").write_text(AGENTS)
    settings = {
        "TEMPORAL_ADDRESS": address(env),
        "AGENTMEM_TASK_QUEUE": task_queue,
        "AGENTMEM_APP": "my_app.py",
    }
    async with worker_process(tmp_path, settings=settings) as worker:
        await worker.says(READY)
        assert f"tools       get_weather ({tmp_path}/my_app.py)" in worker.lines
        assert f"agents      assistant, weather ({tmp_path}/agentmem.toml)" in worker.lines
        assert "gone with it" in await worker.says("in_memory:default")
        assert await client.execute_workflow("Counting", id=task_queue, task_queue=task_queue) == 42


@pytest.mark.slow
async def test_a_second_interrupt_stops_at_once(
    env: WorkflowEnvironment, client: Client, tmp_path: Path, task_queue: str
) -> None:
    """The first Ctrl-C lets running activities end, the second does not wait for them."""
    settings = {
        "TEMPORAL_ADDRESS": address(env),
        "AGENTMEM_TASK_QUEUE": task_queue,
        "AGENTMEM_MODEL": "openai/m",
    }
    async with (
        ScriptedModel([hang()]) as model,
        worker_process(tmp_path, settings={**settings, **model.env()}) as worker,
    ):
        await worker.says(READY)
        session = await client.start_workflow(
            "agent", {"scope": "s", "message": "Hello"}, id=task_queue, task_queue=task_queue
        )
        async with asyncio.timeout(150):
            await model.received(1)
        worker.send(signal.SIGINT)
        await worker.says("Stopping")
        began = time.monotonic()
        worker.send(signal.SIGINT)
        assert await worker.ended() == 130
        assert time.monotonic() - began < 2
        await session.terminate()


HANGING = '''
import threading
from agentmem import tool

@tool
def hang() -> str:
    """Wait for what never comes."""
    print("hanging", flush=True)
    threading.Event().wait()
    return ""
'''


@pytest.mark.slow
async def test_a_tool_that_hangs_keeps_no_worker_alive(
    env: WorkflowEnvironment, client: Client, tmp_path: Path, task_queue: str
) -> None:
    """After SIGTERM and the grace of ten seconds, the worker leaves a sync tool that hangs."""
    (tmp_path / "my_app.py").write_text(HANGING)
    (tmp_path / "agentmem.toml").write_text('[agents.stuck]\ntools = ["hang"]\n')
    settings = {
        "TEMPORAL_ADDRESS": address(env),
        "AGENTMEM_TASK_QUEUE": task_queue,
        "AGENTMEM_APP": "my_app.py",
        "AGENTMEM_MODEL": "openai/m",
    }
    async with (
        ScriptedModel([reply(calls=[call("hang")])]) as model,
        worker_process(tmp_path, settings={**settings, **model.env()}) as worker,
    ):
        await worker.says(READY)
        request = {"agent": "stuck", "scope": "s", "message": "Hello"}
        session = await client.start_workflow(
            "agent", request, id=task_queue, task_queue=task_queue
        )
        await worker.says("hanging")
        began = time.monotonic()
        worker.send(signal.SIGTERM)
        assert await worker.ended() == 0
        assert time.monotonic() - began < 20
        await session.terminate()


@contextmanager
def taken_port() -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def failure(folder: Path, *arguments: str, **settings: str) -> str:
    """Start a worker that must fail by the caller's mistake; return its one line."""
    async with worker_process(folder, *arguments, settings=settings) as worker:
        assert await worker.ended(150) == 1, worker.text
        [line] = worker.lines
        return line


async def test_no_server_is_one_line(tmp_path: Path) -> None:
    """Where no server answers: its address, how to start one, exit code 1, no traceback."""
    line = await failure(tmp_path, TEMPORAL_ADDRESS="localhost:1")
    assert line.startswith("worker: no Temporal server answers at localhost:1")
    assert "worker.py --dev" in line


async def test_a_taken_port_is_one_line(tmp_path: Path) -> None:
    """A port that is taken names the option to choose another one."""
    with taken_port() as port:
        line = await failure(tmp_path, "--dev", "--port", str(port))
    assert line == f"worker: port {port} is taken: choose another with --port"


async def test_a_port_that_is_none_is_told(tmp_path: Path) -> None:
    """A number that is no port is refused by the option's name."""
    async with worker_process(tmp_path, "--dev", "--port", "70000") as worker:
        assert await worker.ended() == 2
        assert "--port: '70000' is no port" in worker.lines[-1]


@pytest.mark.slow
async def test_foreign_workflows_are_refused(env: WorkflowEnvironment, tmp_path: Path) -> None:
    """Another project's package `workflows` in front of ours stops the worker with its place."""
    (tmp_path / "workflows").mkdir()
    (tmp_path / "workflows" / "__init__.py").touch()
    (tmp_path / "start.py").write_text(
        "import runpy, sys\n"
        "import workflows\n"
        f"sys.argv = ['worker.py']\nrunpy.run_path({str(ROOT / 'worker.py')!r},"
        " run_name='__main__')\n"
    )
    settings = {"TEMPORAL_ADDRESS": address(env)}
    async with worker_process(tmp_path, script=tmp_path / "start.py", settings=settings) as worker:
        assert await worker.ended(150) == 1
        assert f"comes from {tmp_path}/workflows" in worker.text


LOCAL = '''
import asyncio, os, sys
from temporalio import workflow
from agentmem import agent, dream, long_term_memory, sqlite, tool, working_memory

@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number

@workflow.defn
class Mine:
    @workflow.run
    async def run(self, question: str) -> str:
        wm = working_memory()
        ltm = long_term_memory(provider=sqlite("mine.db"), agent="mine", scope="s")
        assistant = await agent("Be brief.", tools=[double], working_memory=wm,
            long_term_memory=ltm, on_complete=[dream(working_memory=wm, long_term_memory=ltm)])
        return await assistant(question)

async def main() -> None:
    import worker
    async with worker.local(workflows=[Mine], tools=[double]) as running:
        print(await running.client.execute_workflow(
            Mine.run, "My cat is named Momo.", id="mine", task_queue=running.task_queue))

if __name__ == "__main__":
    asyncio.run(main())
'''


@pytest.mark.slow
async def test_local_runs_a_script_alone(tmp_path: Path) -> None:
    """A script with a workflow and a tool of its own needs no server, and waits for its dream.

    The dream's model answers only once the script waits.
    """
    script = tmp_path / "mine.py"
    script.write_text(LOCAL)
    waits = asyncio.Event()
    value = "Cat is named Momo"
    serve = served(
        Script(
            gather_signal=findings({"statement": value, "evidence": ["a1"]}),
            consolidate=changes({"op": "add", "key": "cat", "value": value, "findings": ["f1"]}),
        )
    )

    async def ask(request: Request) -> Reply:
        if request.messages[0]["content"] == SYSTEM:
            await waits.wait()
        return await serve(request)

    async with ScriptedModel(ask) as model:
        settings = {"AGENTMEM_MODEL": "openai/m", **model.env()}
        async with worker_process(tmp_path, script=script, settings=settings) as local:
            await local.says("Waiting for 1 dream(s) to end, 60 s at most.")
            waits.set()
            assert await local.ended(150) == 0, local.text
            assert "Noted." in local.lines
            assert "Traceback" not in local.text
            assert "did not end" not in local.text
    with closing(sqlite3.connect(tmp_path / ".agentmem" / "mine.db")) as store:
        assert store.execute("SELECT key, writer FROM agentmem_facts").fetchall() == [
            ("cat", "dream")
        ]
