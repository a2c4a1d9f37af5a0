"""An agent in a workflow of your own: it remembers between questions, and dreams after each.

Run it alone, `python examples/research_assistant.py "question"`: server and worker start in this
process. Or let a running worker have it: `AGENTMEM_APP=examples/research_assistant.py`.
"""

import asyncio
import sys
from uuid import uuid4

from temporalio import workflow
from temporalio.client import WorkflowFailureError

from agentmem import agent, dream, long_term_memory, sqlite, working_memory


@workflow.defn
class ResearchAssistant:
    """Answers one question, with what earlier questions left in long-term memory."""

    @workflow.run
    async def run(self, question: str) -> str:
        """Answer a question."""
        wm = working_memory(max_tokens=50_000)
        ltm = long_term_memory(
            provider=sqlite("research.db"), agent="research_assistant", scope="default"
        )
        assistant = await agent(
            "You are a research assistant. Check long-term memory first.",
            working_memory=wm,
            long_term_memory=ltm,
            on_complete=[dream(working_memory=wm, long_term_memory=ltm)],
        )
        return await assistant(question)


async def main(question: str) -> None:
    """Start a server and a worker in this process, and ask."""
    from worker import local  # only here: no workflow may import the worker

    async with local(workflows=[ResearchAssistant]) as running:
        try:
            answer = await running.client.execute_workflow(
                ResearchAssistant.run,
                question,
                id=f"research-{uuid4()}",
                task_queue=running.task_queue,
            )
        except WorkflowFailureError as error:  # no answer, and why
            sys.exit(str(error.cause))
        sys.stdout.write(f"{answer}\n")


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What do you remember of me?"))
