"""Workflows with long conversations, in a light module: the sandbox imports it for each run."""

import asyncio
import json
from typing import Any

from temporalio import workflow

from agentmem import WorkingMemory, agent, tool, working_memory
from agentmem.errors import InvalidInput


@tool(result_bytes=1024 * 1024)
def dump(number: int) -> str:
    """Read a megabyte and more."""
    return f"dump {number} ".ljust(1_100_000, "d")


@tool
def read_page(number: int) -> str:
    """Read a page of 20,000 characters."""
    return f"page {number} ".ljust(20_000, "p")


FILE_BYTES = 59_000


@tool
def read_file(number: int) -> str:
    """Read a file of 59 kB."""
    middle = f"line of file {number}\n" * 5_000
    return f"{opening(number)}\n{middle[: FILE_BYTES - 100]}\n{ending(number)}"


def opening(number: int) -> str:
    """Return how a file begins."""
    return f"file {number} begins with code {number}{number}1"


def ending(number: int) -> str:
    """Return how a file ends."""
    return f"file {number} ends with code {number}{number}9"


@workflow.defn
class Meddling:
    """Adds messages of its own to a conversation while a turn runs in it."""

    @workflow.run
    async def run(
        self, question: str, options: dict[str, Any], said: list[list[str]]
    ) -> dict[str, Any]:
        """Return the answer, what is in view, and the ids of what was added."""
        memory = working_memory(**options.pop("memory"))
        assistant = await agent("Be brief.", working_memory=memory, **options)
        answering = asyncio.create_task(assistant(question))
        added: list[str] = []
        for role, content in said:
            results = self._results(memory) + 1
            await workflow.wait_condition(
                lambda results=results: answering.done() or self._results(memory) >= results
            )
            added.append(await memory.memorize(role, content))
        return {"answer": await answering, "recall": memory.recall(), "added": added}

    def _results(self, memory: WorkingMemory) -> int:
        return sum(entry["role"] == "tool_result" for entry in memory.recall())


@workflow.defn
class Memorizing:
    """Takes over a conversation entry by entry, then asks a question in it."""

    @workflow.run
    async def run(self, entries: list[list[str]], question: str) -> dict[str, Any]:
        """Return what was refused, the answer, what is in view, and what forgetting took."""
        memory = working_memory()
        refused: list[str] = []
        for role, content in entries:
            try:
                await memory.memorize(role, content)
            except InvalidInput as error:
                refused.append(error.message)
        answer = await (await agent("Be brief.", working_memory=memory))(question)
        copy = working_memory()
        for entry in memory.recall():
            await copy.memorize(entry["role"], entry["content"])
        ids = copy.keys()
        return {
            "refused": refused,
            "answer": answer,
            "recall": memory.recall(),
            "copy": copy.recall(),
            "forgot": [await copy.forget(one) for one in ids],
        }


@workflow.defn
class LongTalk:
    """Has a long conversation already, and asks one more question."""

    @workflow.run
    async def run(self, messages: int, size: int, memory: dict[str, Any]) -> list[str]:
        """Return the answers to two questions, and the first and last id in view."""
        conversation = working_memory(**memory)
        for number in range(messages):
            role = "assistant" if number % 2 else "user"
            await conversation.memorize(role, f"{number} ".ljust(size, "x"))
            if number % 500 == 499:
                await workflow.sleep(0.001)  # a task of its own for each part
        assistant = await agent("Be brief.", working_memory=conversation)
        answers = [await assistant("first question"), await assistant("second question")]
        keys = conversation.keys()
        return [*answers, keys[0], keys[-1]]


@tool
async def look(number: int) -> str:
    """Look for a while."""
    await asyncio.sleep(0.5)
    return f"seen {number}"


@workflow.defn
class Interfering:
    """Does something to a conversation while tools that a turn called are at work."""

    @workflow.run
    async def run(self, question: str, what: str) -> dict[str, Any]:
        """Return what came of it, the answer, and what is in view.

        Args:
            question: The question, whose answer takes tools.
            what: `answer`: memorize a result of the first call. `forget`: forget the calls.
                `forget all`: and all else that is in view.
        """
        memory = working_memory()
        assistant = await agent("Be brief.", working_memory=memory, tools=["look"])
        answering = asyncio.create_task(assistant(question))
        await workflow.wait_condition(lambda: memory.recall()[-1:] != memory.recall()[:1])
        (said, *_, made) = memory.recall()
        came: Any = None
        if what == "answer":
            called = json.loads(made["content"])["calls"][0]["id"]
            result = {"call_id": called, "output": "mine"}
            try:
                came = await memory.memorize("tool_result", json.dumps(result))
            except InvalidInput as error:
                came = error.message
        else:
            came = await memory.forget(made["id"])
        if what == "forget all":
            came += await memory.forget(said["id"])
            await memory.memorize("user", "never mind, say hello")
        return {"came": came, "answer": await answering, "recall": memory.recall()}


@workflow.defn
class Answering:
    """Calls a tool by code, and has its result when a summary of the call is being made."""

    @workflow.run
    async def run(self, question: str, memory: dict[str, Any]) -> list[dict[str, str]]:
        """Return what is in view when the question is answered."""
        conversation = working_memory(**memory)
        calls = [{"id": "k", "name": "measure", "arguments": {"why": "w" * 4_000}}]
        await conversation.memorize("user", "measure it")
        await conversation.memorize("tool_call", json.dumps({"calls": calls}))
        await conversation.memorize("user", "and tell me")
        assistant = await agent("Be brief.", working_memory=conversation)
        answering = asyncio.create_task(assistant(question))
        await workflow.sleep(0.2)
        result = {"call_id": "k", "output": "it is 4821 long"}
        await conversation.memorize("tool_result", json.dumps(result))
        await answering
        return conversation.recall()
