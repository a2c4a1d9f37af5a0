"""The examples run as they are, alone, against a model endpoint over HTTP."""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import WorkflowEnvironment

from agentmem.testing import Request, ScriptedModel, call, reply
from tests.e2e.worker_process import READY, ROOT, worker_process

TIMEOUT = 280


async def run_example(name: str, *arguments: str, folder: Path, env: dict[str, str]) -> str:
    """Run an example as a process of its own and return what it writes."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(ROOT / "examples" / name),
        *arguments,
        cwd=folder,
        env={**os.environ, **env},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(TIMEOUT):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return out.decode()


def tool_names(request: Request) -> list[str]:
    """Return the names of the tools that a request offers."""
    return [str(offered["function"]["name"]) for offered in request.body.get("tools", [])]


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_research_assistant_runs_alone_on_ollama(tmp_path: Path) -> None:
    """The example of the first page: native tools on Ollama's wire, an answer, a dream."""

    def script(request: Request) -> Any:
        names = tool_names(request)
        if "submit_findings" in names:
            return reply("nothing to hand in")
        if request.messages[-1]["role"] == "user":
            return reply(calls=[call("recall_memory")])
        return reply("Nothing is known yet.")

    async with ScriptedModel(script) as model:
        env = {**model.env(), "AGENTMEM_MODEL": "ollama/llama3.2", "AGENTMEM_DATA": str(tmp_path)}
        shown = await run_example("research_assistant.py", "Who am I?", folder=tmp_path, env=env)
        assert "Nothing is known yet." in shown
        first = model.requests[0]
        assert first.path == "/api/chat", "native chat with tools, not tools pasted into a prompt"
        assert tool_names(first) == [
            "recall_memory",
            "store_memory",
            "forget_memory",
            "list_memory_keys",
        ]
        assert first.messages[0]["content"].startswith("You are a research assistant.")
        model.assert_strict()
    assert (tmp_path / "research.db").exists()


QUICK = """
import asyncio
from agentmem.client import connect, running_dreams

async def main():
    await running_dreams(await connect())

asyncio.run(main())
"""


async def test_a_program_that_is_done_at_once_ends_well(env: WorkflowEnvironment) -> None:
    """A process that exits right after an answer of the server is not aborted while it exits."""
    settings = {"TEMPORAL_ADDRESS": env.client.service_client.config.target_host}
    started = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", QUICK), cwd=ROOT, env={**os.environ, **settings}
        )
        for _ in range(4)
    ]
    async with asyncio.timeout(60):
        assert [await one.wait() for one in started] == [0] * 4


@pytest.mark.slow
@pytest.mark.timeout(300)
async def test_the_client_example_talks_to_a_worker(
    env: WorkflowEnvironment, tmp_path: Path
) -> None:
    """`examples/client.py` holds a session with the built-in agent of a running worker."""
    settings = {
        "TEMPORAL_ADDRESS": env.client.service_client.config.target_host,
        "AGENTMEM_MODEL": "agentmem/offline",
        "AGENTMEM_DATA": str(tmp_path),
    }
    async with worker_process(tmp_path, settings=settings) as worker:
        await worker.says(READY)
        shown = await run_example("client.py", folder=tmp_path, env=settings)
        assert "Bergen" in shown.splitlines()[-2]
        assert shown.splitlines()[-1] == "ended after 2 turns"
