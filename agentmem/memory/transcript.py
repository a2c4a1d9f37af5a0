"""Carrying a conversation over to long-term memory's transcript, by reference."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from temporalio import workflow

from agentmem import contracts
from agentmem.contracts import Append, Prompt, Store
from agentmem.memory.in_workflow import SUMMARY_BYTES
from agentmem.messages import Message, Role, from_ranges
from agentmem.policies import MEMORY
from agentmem.values import clip, encoded_size

BATCH = 200
"""Messages in one append: well within the activity's time even on a slow database."""

BATCH_BYTES = 2 * 1024 * 1024
"""Encoded bytes in one append: a worker without the messages reads them from the workflow."""


@dataclass(kw_only=True)
class Carried:
    """How far one scope's transcript has the conversation.

    Attributes:
        acknowledged: The last sequence number that the store has confirmed.
        numbered: Ids of the messages with the numbers after it: once tried, a message keeps its
            number, since an append whose answer was lost may have stored it.
        seen: How many messages of the conversation have been looked at.
        unsaid: Ids of messages that were never appended, forgotten before their first try.
        blanked: Ids of messages whose text the store has been told to let go of.
    """

    acknowledged: int = 0
    numbered: list[str] = field(default_factory=list[str])
    seen: int = 0
    unsaid: list[str] = field(default_factory=list[str])
    blanked: list[str] = field(default_factory=list[str])

    def late(self, said: Sequence[Message], is_forgotten: Callable[[str], bool]) -> list[str]:
        """Return the messages that were forgotten after the store had them, and it has not heard.

        Args:
            said: Every message of the conversation in order, forgotten ones too.
            is_forgotten: Whether one is.
        """
        known = {*self.numbered, *self.unsaid, *self.blanked}
        return [
            message.id
            for message in said[: self.seen]
            if is_forgotten(message.id)
            and message.id not in known
            and belongs_to_transcript(message)
        ]


def belongs_to_transcript(message: Message) -> bool:
    """Tell whether a message is what was said: system text and summaries are not."""
    return message.role in (Role.USER, Role.ASSISTANT, Role.TOOL_RESULT)


def next_batch(numbered: Sequence[str], messages: Mapping[str, Message]) -> list[str]:
    """Return the ids of the next append: at most 200, of about 2 MiB at most, one at least."""
    size = 0
    for number, message_id in enumerate(numbered[:BATCH]):
        size += encoded_size(messages[message_id].model_dump_json())
        if number and size > BATCH_BYTES:
            return list(numbered[:number])
    return list(numbered[:BATCH])


async def carry(
    carried: Carried,
    said: list[Message],
    store: Store,
    *,
    is_forgotten: Callable[[str], bool],
    reference: Callable[[list[str]], Prompt],
) -> int:
    """Append what the transcript lacks, in batches; advances only on the store's answer.

    Args:
        carried: How far it is; brought forward.
        said: Every message of the conversation in order, forgotten ones too.
        store: The scope.
        is_forgotten: A message forgotten before its first try is never appended; one forgotten
            since keeps its number and loses its text, in the store too.
        reference: Makes messages travel by reference.

    Returns:
        The last sequence number that the store has.

    Raises:
        temporalio.exceptions.ActivityError: The store did not take it; nothing is lost, and the
            next call tries the same again.
    """
    for message in said[carried.seen :]:
        if belongs_to_transcript(message):
            known = carried.unsaid if is_forgotten(message.id) else carried.numbered
            known.append(message.id)
    carried.seen = len(said)
    messages = {message.id: message for message in said}
    while carried.numbered:
        batch = next_batch(carried.numbered, messages)
        forgotten = [i for i in batch if is_forgotten(i)]
        held = await _append(carried, store, reference(batch), forgotten)
        done = min(held - carried.acknowledged, len(batch))
        carried.acknowledged += done
        carried.blanked += [i for i in batch[:done] if i in forgotten]
        del carried.numbered[:done]
    while late := carried.late(said, is_forgotten)[:BATCH]:
        await _append(carried, store, reference([]), late)
        carried.blanked += late
    return carried.acknowledged


async def _append(carried: Carried, store: Store, prompt: Prompt, forgotten: list[str]) -> int:
    request = Append(
        store=store,
        session=workflow.info().first_execution_run_id,
        first=carried.acknowledged + 1,
        prompt=prompt,
        forgotten=forgotten,
    )
    number = sum(1 for _ in from_ranges(prompt.view))
    what = f"{number} messages to" if number else f"{len(forgotten)} messages forgotten in"
    summary = clip(f"{what} {store.agent}/{store.scope}", SUMMARY_BYTES)
    return await workflow.execute_activity(contracts.append, request, summary=summary, **MEMORY)
