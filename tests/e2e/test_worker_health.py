"""A worker that is broken ends, and says before how it is."""

import asyncio
import signal
import socket
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.service import RPCError, RPCStatusCode
from temporalio.testing import WorkflowEnvironment

from agentmem.cli import worker as cli
from tests.conftest import temporal_binary
from tests.e2e.worker_process import READY, ROOT, worker_process

pytestmark = pytest.mark.timeout(200)

HANGING = """
import time
from temporalio import activity, workflow

@activity.defn
def hang() -> None:
    time.sleep(10_000)

@workflow.defn
class Hanging:
    @workflow.run
    async def run(self) -> None:
        from datetime import timedelta
        await workflow.execute_activity(hang, start_to_close_timeout=timedelta(hours=3))
"""


def free_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as one:
        return one.getsockname()[1]


def probe(url: str) -> tuple[int, str]:
    """Ask a probe, as what runs a worker does."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, answer.read().decode().strip()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode().strip()


async def until(url: str, expected: tuple[int, str], seconds: float = 60) -> None:
    """Wait until a probe answers so."""
    async with asyncio.timeout(seconds):
        while await asyncio.to_thread(probe, url) != expected:  # noqa: ASYNC110 - a process's state
            await asyncio.sleep(0.2)


async def test_probes_tell_of_a_server_that_is_away(tmp_path: Path) -> None:
    """`/ready` says whether the worker takes work, `/live` whether it must be replaced."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    server = await WorkflowEnvironment.start_local(
        dev_server_existing_path=temporal_binary(), data_converter=pydantic_data_converter
    )
    settings = {
        "TEMPORAL_ADDRESS": server.client.service_client.config.target_host,
        "AGENTMEM_HEALTH": f"127.0.0.1:{port}",
    }
    async with worker_process(tmp_path, settings=settings) as worker:
        await worker.says(READY)
        await until(f"{url}/ready", (200, "OK"))
        assert await asyncio.to_thread(probe, f"{url}/live") == (200, "OK")
        assert await asyncio.to_thread(probe, f"{url}/") == (404, "Not Found")
        await server.shutdown()
        await until(f"{url}/ready", (503, "Temporal does not answer"))
        assert await asyncio.to_thread(probe, f"{url}/live") == (200, "OK")
        worker.send(signal.SIGTERM)
        assert await worker.ended() == 0


async def test_an_address_that_cannot_be_served_is_a_mistake(tmp_path: Path) -> None:
    """The worker says which setting is wrong, and exits with 1."""
    for address in ("nowhere", "127.0.0.1:http"):
        async with worker_process(tmp_path, settings={"AGENTMEM_HEALTH": address}) as worker:
            assert await worker.ended() == 1
            assert "AGENTMEM_HEALTH: " in worker.text


@pytest.mark.slow
async def test_a_stop_that_hangs_ends_in_time(env: WorkflowEnvironment, tmp_path: Path) -> None:
    """SIGTERM with an activity that never ends: exit code 1 before Docker would kill it."""
    (tmp_path / "app.py").write_text(HANGING)
    settings = {
        "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
        "AGENTMEM_APP": str(tmp_path / "app.py"),
        "AGENTMEM_TASK_QUEUE": "hanging",
    }
    async with worker_process(tmp_path, settings=settings) as worker:
        await worker.says(READY)
        handle = await env.client.start_workflow("Hanging", id="hanging", task_queue="hanging")
        async with asyncio.timeout(30):
            while not (await handle.describe()).raw_description.pending_activities:  # noqa: ASYNC110
                await asyncio.sleep(0.1)
        await asyncio.sleep(1)
        began = time.monotonic()
        worker.send(signal.SIGTERM)
        assert await worker.ended() == 1
        assert time.monotonic() - began < 30
        assert "in hang" in worker.text  # the traceback says where it was
    await handle.terminate()


@pytest.mark.slow
async def test_a_worker_whose_sdk_failed_ends(env: WorkflowEnvironment, tmp_path: Path) -> None:
    """Without any signal, with exit code 1, and its probe says so until then."""
    port = free_port()
    settings = {
        "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
        "AGENTMEM_HEALTH": f"127.0.0.1:{port}",
        "AGENTMEM_TASK_QUEUE": "broken",
    }
    broken = ROOT / "tests" / "e2e" / "broken_worker.py"
    async with worker_process(tmp_path, script=broken, settings=settings) as worker:
        await worker.says("The worker failed and ends: RuntimeError: Activity worker failed")
        began = time.monotonic()
        told = (503, "the worker failed: RuntimeError")
        assert await asyncio.to_thread(probe, f"http://127.0.0.1:{port}/live") == told
        assert await worker.ended() == 1
        assert time.monotonic() - began < 30


@pytest.mark.slow
async def test_a_worker_whose_interpreter_stands_still_ends(
    env: WorkflowEnvironment, tmp_path: Path
) -> None:
    """No handler of a signal runs any more, and no probe is answered: it ends all the same."""
    settings = {
        "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
        "AGENTMEM_TASK_QUEUE": "standing",
    }
    standing = ROOT / "tests" / "e2e" / "standing_worker.py"
    async with worker_process(tmp_path, script=standing, settings=settings) as worker:
        assert await worker.ended(180) == 1
        assert "Timeout (0:00:05)!" in worker.text


async def test_an_sdk_that_does_not_even_time_out_is_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that is away, which makes requests fail, is no reason to end; silence is."""
    monkeypatch.setattr(cli, "CHECK_SECONDS", 0.05)
    asked = 0

    async def check_health(**_: object) -> bool:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise RPCError("away", RPCStatusCode.UNAVAILABLE, b"")
        await asyncio.Event().wait()
        return True

    service = SimpleNamespace(check_health=check_health)
    client: Any = SimpleNamespace(service_client=service)
    async with asyncio.timeout(5):
        assert isinstance(await cli.sdk_hangs(client), cli.SdkHangs)
    assert asked == 3
