"""A workflow of a user's own for what providers send; apart, for the sandbox imports its module."""

from typing import Any

from temporalio import workflow

from agentmem import agent, working_memory
from agentmem.errors import TurnFailed


@workflow.defn
class Asking:
    """Asks agents in turn, all on one working memory, and says what each gave."""

    @workflow.run
    async def run(self, asked: list[list[str]], options: dict[str, Any]) -> dict[str, Any]:
        """Ask each question of the model that is named with it.

        Args:
            asked: Pairs of a model and a question.
            options: What `agent()` is given.
        """
        memory = working_memory()
        agents = {
            model: await agent("Be brief.", model=model, working_memory=memory, **options)
            for model in dict.fromkeys(model for model, _ in asked)
        }
        answers: list[str] = []
        for model, question in asked:
            try:
                answers.append(await agents[model](question))
            except TurnFailed as error:
                answers.append(f"failed: {error.message}")
        usage = [assistant.usage.full() for assistant in agents.values()]
        return {"answers": answers, "recall": memory.recall(), "usage": usage}
