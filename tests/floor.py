"""Bare Temporal: what a turn costs at least."""

from datetime import timedelta

from temporalio import activity, workflow


@activity.defn(name="floor.reply")
async def floor_reply(text: str) -> str:
    """Answer without a model."""
    return text


@workflow.defn(name="floor")
class Floor:
    """Bare Temporal: an update and an activity a turn, carrying only the new message."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._ended = False

    @workflow.run
    async def run(self) -> None:
        """Wait for the end."""
        await workflow.wait_condition(lambda: self._ended)

    @workflow.update
    async def send(self, text: str) -> str:
        """Answer a message."""
        answer = await workflow.execute_activity(
            floor_reply, text, start_to_close_timeout=timedelta(seconds=10)
        )
        self._said += [text, answer]
        return answer

    @workflow.signal
    def end(self) -> None:
        """End it."""
        self._ended = True
