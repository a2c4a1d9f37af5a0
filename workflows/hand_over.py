"""The `agent_hand_over` workflow: brings a session's words to a store that was away at its end."""

from typing import Any

from temporalio import workflow
from temporalio.exceptions import ActivityError, is_cancelled_exception

from agentmem import contracts
from agentmem.contracts import Delivered, Delivery, HandOver
from agentmem.dreaming.hook import start_dream
from agentmem.error_text import describe
from agentmem.errors import InvalidInput, ProviderError
from agentmem.inputs import handed_on, parse_input
from agentmem.policies import HAND_OVER
from agentmem.wire import JSONObject


@workflow.defn(name="agent_hand_over", sandboxed=False)  # as `agent` is, and for the same reason
class AgentHandOver:
    """Stores what the run that started it said, once its store is back, and starts the dream.

    It outlives that run and reads it by query. Waiting for the store adds no event.
    """

    def __init__(self) -> None:
        self._more = False

    @workflow.run
    async def run(self, *args: Any) -> JSONObject:
        """Deliver, and deliver again while there is more.

        Args:
            args: One `HandOver` as JSON, checked here.

        Returns:
            `{"messages": n}`: how many messages the session had not seen stored.

        Raises:
            InvalidInput: The input is not that, or no workflow is the parent of this one.
            NewerVersion: A newer version started it; it fails the task and not the run.
            ProviderError: The store did not come back in time, or the run is gone.
        """
        try:
            request = parse_input(HandOver, args, "the input of agent_hand_over")
        except InvalidInput as error:
            raise handed_on(error, by_parent=True) from None
        parent = workflow.info().parent
        if parent is None:
            # Whoever may start workflows must not copy another one's conversation by this one.
            raise InvalidInput(
                "agent_hand_over reads the workflow that started it, and none did: it cannot be "
                "started by hand"
            )
        delivery = Delivery(
            store=request.store,
            memory=request.memory,
            workflow_id=parent.workflow_id,
            run_id=parent.run_id,
        )
        while True:
            self._more = False  # before the run is read: whoever says more later tells by signal
            delivered = await self._deliver(delivery)
            if request.dream is not None:
                await start_dream(
                    request.dream.replace(provider=delivered.store.provider),
                    workflow=request.workflow,
                    task_queue=request.task_queue or None,
                )
            # No await from here on: a signal that comes now makes the server refuse the completion.
            if not self._more:
                workflow.set_current_details(f"Stored: {delivered.messages} messages.")
                return {"messages": delivered.messages}

    @workflow.signal
    def more(self, *args: Any) -> None:
        """Say that the session has said more."""
        self._more = True

    async def _deliver(self, delivery: Delivery) -> Delivered:
        store, since = delivery.store, workflow.now()
        workflow.set_current_details(
            f"Waiting for the store {store.provider} of {store.agent}, {store.scope} since "
            f"{since:%Y-%m-%d %H:%M:%S} UTC. The pending activity says why."
        )
        try:
            return await workflow.execute_activity(contracts.hand_over, delivery, **HAND_OVER)
        except ActivityError as error:
            if is_cancelled_exception(error):
                raise
            why = describe(error)
            workflow.set_current_details(f"Given up: {why}")
            raise ProviderError(why, non_retryable=True) from error
