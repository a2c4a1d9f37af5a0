"""Workflows with long conversations, in a light module: the sandbox imports it for each run."""

from typing import Any

from temporalio import workflow

from agentmem import agent, tool, working_memory


@tool(result_bytes=1024 * 1024)
def dump(number: int) -> str:
    """Read a megabyte and more."""
    return f"dump {number} ".ljust(1_100_000, "d")


@tool
def read_page(number: int) -> str:
    """Read a page of 20,000 characters."""
    return f"page {number} ".ljust(20_000, "p")


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
