"""The transcript: messages as dreams read them, and their transfer to a store by reference."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from temporalio import workflow

from agentmem import contracts
from agentmem.contracts import Append, Lacking, Prompt, ScopeRef
from agentmem.errors import InvalidInput
from agentmem.memory.carried_state import CarriedTranscript
from agentmem.memory.long_term import SUMMARY_BYTES
from agentmem.memory.message_log import MessageLog
from agentmem.memory.redaction import Redactor, redacted
from agentmem.messages import Message, Role, from_ranges, in_order, to_ranges
from agentmem.policies import memory_within
from agentmem.priorities import of_turn
from agentmem.records import TranscriptRow
from agentmem.wire import clip, dump_json, encoded_size, printable

ARGUMENTS = 500
"""Characters kept of a tool call's arguments."""
RESULT_HEAD, RESULT_TAIL = 700, 300
"""Characters kept of a tool result's beginning and end."""
SAID_HEAD, SAID_TAIL = 24 * 1024, 8 * 1024
"""Bytes of UTF-8 kept of the beginning and end of what a user or an assistant said.

A dream reads at least one message a round: one that no model can take would stop a scope's dreams.
"""


def transcript_rows(
    messages: Sequence[Message],
    *,
    session: str,
    memory: str,
    first: int,
    forgotten: Collection[str],
    redact: Redactor = redacted,
) -> list[TranscriptRow]:
    """Return the rows of consecutive messages.

    What users and assistants said is kept whole up to 32 KiB, and over that its beginning and end;
    a tool call's arguments and a tool result are shortened; reasoning is left out, and so is the
    text of results that show what long-term memory knows already: a dream would learn it again.

    Args:
        messages: The messages, in order.
        session: The run in which the conversation began.
        memory: The working memory.
        first: The sequence number of the first message.
        forgotten: Ids of messages whose text is left out.
        redact: Takes out what must not be kept.
    """
    return [
        TranscriptRow(
            session=session,
            memory=memory,
            seq=seq,
            message=message.id,
            role=_role(message),
            text="" if message.id in forgotten else kept_text(message, redact),
            at=message.at or datetime.fromtimestamp(0, UTC),
            turn=message.turn,
            name=printable(message.name or ", ".join(call.name for call in message.calls)),
            recalled=message.recalled,
            forgotten=message.id in forgotten,
        )
        for seq, message in enumerate(messages, first)
    ]


def _role(message: Message) -> str:
    return "tool_call" if message.calls else message.role.value


def kept_text(message: Message, redact: Redactor = redacted) -> str:
    """Return what is kept of a message's text: redacted first, then shortened."""
    # In this order: a secret that is cut has no shape any more.
    if message.role is Role.TOOL_RESULT:
        return "" if message.recalled else _kept(_shortened(redact(message.text)))
    calls = [
        f"{call.name} {redact(dump_json(call.arguments))[:ARGUMENTS]}" for call in message.calls
    ]
    return _kept("\n".join(filter(None, [redact(message.text), *calls])))


def _kept(text: str) -> str:
    clean = text.replace("\x00", " ")
    data = clean.encode("utf-8", "replace")
    if len(data) <= SAID_HEAD + SAID_TAIL:
        return clean
    head, tail = (part.decode("utf-8", "ignore") for part in (data[:SAID_HEAD], data[-SAID_TAIL:]))
    return f"{head} [... {len(data)} bytes in full ...] {tail}"


def _shortened(text: str) -> str:
    if len(text) <= RESULT_HEAD + RESULT_TAIL:
        return text
    return f"{text[:RESULT_HEAD]} [... {len(text)} characters in full ...] {text[-RESULT_TAIL:]}"


BATCH = 200
"""Messages in one append: well within the activity's time even on a slow database."""

BATCH_BYTES = 2 * 1024 * 1024
"""Encoded bytes in one append: a worker without the messages reads them from the workflow."""


@dataclass(kw_only=True)
class _Progress:
    """The progress of one scope's transcript through the conversation.

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

    def late(self, log: MessageLog) -> list[str]:
        """Return the messages that were forgotten after the store had them, and it has not heard.

        Some may have left this run.
        """
        known = {*self.numbered, *self.unsaid, *self.blanked}
        return [
            i
            for i in in_order(log.forgotten - known)
            if i not in log or belongs_to_transcript(log[i])
        ]


class Transcripts:
    """The progress of a conversation's transcripts, by scope; most conversations have one."""

    def __init__(self, carried: Sequence[CarriedTranscript] = (), *, seen: int = 0) -> None:
        """Begin anew, or where the run before stopped, with so many messages looked at."""
        self._progress = {
            one.store.model_dump_json(): _Progress(
                acknowledged=one.acknowledged, numbered=list(from_ranges(one.numbered)), seen=seen
            )
            for one in carried
        }
        self._expected: set[str] = set()
        self._resolved: dict[str, str] = {}

    def _key(self, store: ScopeRef) -> str:
        """Return the name under which a scope's progress is noted."""
        name = store.model_dump_json()
        return self._resolved.get(name, name)

    def expect(self, store: ScopeRef) -> None:
        """Take note that everything said is to reach a scope, if need be after the run's end."""
        self._expected.add(store.model_dump_json())

    def lacks(self, store: ScopeRef, log: MessageLog) -> bool:
        """Tell whether there is something that a scope's transcript may lack."""
        progress = self._progress.get(self._key(store), _Progress())
        return bool(progress.numbered or progress.seen < len(log) or progress.late(log))

    def carried(self, log: MessageLog) -> list[CarriedTranscript]:
        """Return how far they are, for the next run, each message that they lack numbered."""
        found: list[CarriedTranscript] = []
        for name, progress in self._progress.items():
            _number(progress, log)
            found.append(
                CarriedTranscript(
                    store=ScopeRef.model_validate_json(name),
                    acknowledged=progress.acknowledged,
                    numbered=to_ranges(progress.numbered),
                    late=to_ranges(progress.late(log)),
                )
            )
        return found

    def number(self, store: ScopeRef, log: MessageLog) -> None:
        """Number what a scope's transcript lacks, so that others can append it too.

        A message keeps its number from then on.
        """
        _number(self._progress.setdefault(self._key(store), _Progress()), log)

    def lacking(self, store: ScopeRef, session: str, log: MessageLog, *, ended: bool) -> Lacking:
        """Return what a scope's transcript may lack, and change nothing.

        Args:
            store: The scope.
            session: The conversation's name there.
            log: The conversation.
            ended: Whether no more will be said, so that what has no number yet may get one.

        Raises:
            InvalidInput: The run has ended, and its words were not to reach that scope.
        """
        if ended and store.model_dump_json() not in self._expected:
            raise InvalidInput(f"nothing was to reach {store.agent}/{store.scope} from here")
        kept = self._progress.get(self._key(store), _Progress())
        progress = replace(kept, numbered=list(kept.numbered), unsaid=list(kept.unsaid))
        if ended:
            _number(progress, log)
        return Lacking(
            session=session,
            acknowledged=progress.acknowledged,
            numbered=to_ranges(progress.numbered),
            forgotten=to_ranges([i for i in progress.numbered if i in log.forgotten]),
            late=to_ranges(progress.late(log)),
        )

    def rename(self, old: ScopeRef, new: ScopeRef) -> None:
        """Go on under the resolved name of a scope with what was noted under `default`."""
        name, resolved = old.model_dump_json(), new.model_dump_json()
        if (progress := self._progress.pop(name, None)) is not None:
            self._progress.setdefault(resolved, progress)
        # Who was told the first name asks by it: a hand-over, a dream that collects.
        self._resolved[name] = resolved

    async def append(
        self,
        store: ScopeRef,
        session: str,
        log: MessageLog,
        reference: Callable[[list[str]], Prompt],
        within: timedelta | None = None,
    ) -> int:
        """Append what a scope's transcript lacks, in batches; advances only on the store's answer.

        Args:
            store: The scope.
            session: The conversation's name there.
            log: The conversation. A message forgotten before its first try is never appended; one
                forgotten since keeps its number and loses its text, in the store too.
            reference: Makes messages travel by reference.
            within: How long it may take in all; None leaves it to the attempts.

        Returns:
            The last sequence number that the store has.

        Raises:
            temporalio.exceptions.ActivityError: The store did not take it; nothing is lost, and
                the next call tries the same again.
        """
        progress = self._progress.setdefault(self._key(store), _Progress())
        _number(progress, log)
        until = None if within is None else workflow.now() + within
        while progress.numbered:
            batch = next_batch(progress.numbered, log.__getitem__)
            forgotten = [i for i in batch if i in log.forgotten]
            held = await _append(progress, store, session, reference(batch), forgotten, until)
            done = min(held - progress.acknowledged, len(batch))
            progress.acknowledged += done
            progress.blanked += [i for i in batch[:done] if i in forgotten]
            del progress.numbered[:done]
        while late := progress.late(log)[:BATCH]:
            await _append(progress, store, session, reference([]), late, until)
            progress.blanked += late
        return progress.acknowledged


def belongs_to_transcript(message: Message) -> bool:
    """Tell whether a message is what was said: system text and summaries are not."""
    return message.role in (Role.USER, Role.ASSISTANT, Role.TOOL_RESULT)


def next_batch(numbered: Sequence[str], message: Callable[[str], Message]) -> list[str]:
    """Return the ids of the next append: at most 200, of about 2 MiB at most, one at least."""
    size = 0
    for number, message_id in enumerate(numbered[:BATCH]):
        size += encoded_size(message(message_id).model_dump_json())
        if number and size > BATCH_BYTES:
            return list(numbered[:number])
    return list(numbered[:BATCH])


def _number(progress: _Progress, log: MessageLog) -> None:
    """Give the messages that came since the last time their sequence numbers."""
    for message in log.all[progress.seen :]:
        if belongs_to_transcript(message):
            known = progress.unsaid if message.id in log.forgotten else progress.numbered
            known.append(message.id)
    progress.seen = len(log)


async def _append(
    progress: _Progress,
    store: ScopeRef,
    session: str,
    prompt: Prompt,
    forgotten: list[str],
    until: datetime | None,
) -> int:
    request = Append(
        store=store,
        session=session,
        first=progress.acknowledged + 1,
        prompt=prompt,
        forgotten=forgotten,
    )
    number = sum(1 for _ in from_ranges(prompt.view))
    what = f"{number} messages to" if number else f"{len(forgotten)} messages forgotten in"
    summary = clip(f"{what} {store.agent}/{store.scope}", SUMMARY_BYTES)
    options = memory_within(None if until is None else until - workflow.now())
    return await workflow.execute_activity(
        contracts.append,
        request,
        summary=summary,
        priority=of_turn(store.agent, store.scope),
        **options,
    )
