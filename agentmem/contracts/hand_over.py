"""Hand-overs: a conversation that its transcript's store did not take in time, and who brings it.

A session that ends does not wait for a store that is away. It starts the workflow
`agent_hand_over`, which reads the session and stores its words as soon as the store takes them.
"""

from temporalio import activity

from agentmem.contracts.calls import ScopeRef
from agentmem.contracts.dreams import DreamInput
from agentmem.wire import Wire

LACKING_QUERY = "agentmem.lacking"
"""Asks a workflow which of its messages a scope's transcript may lack."""


class Lacking(Wire):
    """The answer to the query `agentmem.lacking`: what a scope's transcript may lack.

    Attributes:
        session: The run in which the conversation began, by which transcripts know it.
        acknowledged: The last sequence number that the store has confirmed.
        numbered: Ids of the messages with the numbers after it, as ranges.
        forgotten: Those of `numbered` whose text is not to be stored, as ranges.
        late: Ids of messages that the store has and was not yet told to forget, as ranges.
    """

    session: str
    acknowledged: int = 0
    numbered: list[str] = []
    forgotten: list[str] = []
    late: list[str] = []


class HandOver(Wire):
    """The input of the `agent_hand_over` workflow: one for each run, working memory and scope.

    It names no session: the workflow reads the run that started it, and no other.

    Attributes:
        store: The scope; its provider may still be `default`.
        memory: The working memory, `wm0`, ...
        dream: The dream to start when everything is stored; None starts none.
        workflow: The dream's workflow type.
        task_queue: Where the dream runs; the hand-over's own task queue if empty.
    """

    store: ScopeRef
    memory: str
    dream: DreamInput | None = None
    workflow: str = "agent_dream"
    task_queue: str = ""


class Delivery(Wire):
    """Ask the worker to store what a transcript lacks of a run's conversation.

    Attributes:
        store: The scope; its provider may still be `default`.
        memory: The working memory.
        workflow_id: The workflow whose conversation it is.
        run_id: Its run.
    """

    store: ScopeRef
    memory: str
    workflow_id: str
    run_id: str


class Delivered(Wire):
    """The result of a delivery.

    Attributes:
        store: The scope, its provider resolved.
        messages: How many messages the store took now.
    """

    store: ScopeRef
    messages: int = 0


@activity.defn(name="agentmem.hand_over")
async def hand_over(request: Delivery) -> Delivered:
    """Store what a transcript lacks, as soon as its store takes it."""
    raise NotImplementedError
