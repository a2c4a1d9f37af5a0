"""The messages of one conversation, by id and in the groups in which they move."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from agentmem.memory.compaction import shortened
from agentmem.messages import CODE_CALLS, Group, Message, Role


class MessageLog:
    """The content of a working memory: every message of the run, and which of them still count.

    Attributes:
        forgotten: Ids of the messages that were taken out for good.
        shortened: Ids of the tool results that are shown shortened.
        next: The number of the next id; ids are never given twice.
    """

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._groups: list[list[Message]] = []
        self._said: list[list[Message]] = []  # the same groups, and those that a summary replaced
        self.forgotten: set[str] = set()
        self.shortened: set[str] = set()
        self.next = 0

    def __contains__(self, message_id: object) -> bool:
        return message_id in self._messages

    def __getitem__(self, message_id: str) -> Message:
        return self._messages[message_id]

    def __len__(self) -> int:
        return len(self._messages)

    def get(self, message_id: str) -> Message | None:
        """Return any message of this run, forgotten ones too; None if there is none."""
        return self._messages.get(message_id)

    @property
    def all(self) -> list[Message]:
        """Every message of this run in order of arrival, forgotten ones too."""
        return list(self._messages.values())

    @property
    def groups(self) -> Sequence[Group]:
        """The conversation as a model is shown it: without what was forgotten or summarised."""
        return self._groups

    def reserve(self) -> str:
        """Return an id for a message that is yet to be made."""
        self.next += 1
        return f"m{self.next - 1}"

    def knew(self, message_id: str) -> bool:
        """Tell whether there ever was a message of this id, in a run before maybe."""
        kind, number = message_id[:1], message_id[1:]
        given = kind == "m" and number.isdecimal() and int(number) < self.next
        return message_id in self._messages or given

    def note(self, message: Message) -> None:
        """Hold a message that stands outside of the conversation, like a system prompt."""
        self._messages[message.id] = message

    def keep(self, message: Message) -> bool:
        """Take a message into the conversation; False for a result that answers no call."""
        if message.role is not Role.TOOL_RESULT:
            self._add([message])
        else:
            group = self._calling(message.call)
            if group is None:
                return False
            group.append(message)
        self._messages[message.id] = message
        return True

    def result(self, call_id: str) -> Message | None:
        """Return the result of a call; None if it has none, or none any more."""
        group = self._calling(call_id) or []
        return next((message for message in group[1:] if message.call == call_id), None)

    def has_call(self, call_id: str) -> bool:
        """Tell whether the conversation has a call, so that a result of it can be kept."""
        return self._calling(call_id) is not None

    def waits(self, call_id: str, turn: int) -> bool:
        """Tell whether a call that a turn's model made never had a result."""
        group = self._calling(call_id)
        if group is None or group[0].turn != turn or call_id.startswith(CODE_CALLS):
            return False
        return all(message.call != call_id for message in self._messages.values())

    def forget(self, message_id: str) -> list[str]:
        """Take a message out, an assistant message with the results of its calls.

        It may have left this run: transcripts have it still.

        Returns:
            The ids of all that was taken out with it, itself first; none if it was out already.
        """
        if message_id in self.forgotten:
            return []
        group = next((g for g in reversed(self._said) if any(m.id == message_id for m in g)), None)
        if group is None:
            gone = [message_id]
        elif group[0].id == message_id:
            gone = [message.id for message in group]
            self._remove(group)
        else:
            gone = [message_id]
            group[:] = [message for message in group if message.id != message_id]
        gone = [one for one in gone if one not in self.forgotten]
        self.forgotten.update(gone)
        return gone

    def turn(self, number: int) -> Sequence[Group]:
        """Return the groups of the newest turn, if that is its number, oldest first."""
        recent = takewhile(lambda group: group[0].turn == number, reversed(self._groups))
        return list(recent)[::-1]

    def drop_turn(self, number: int) -> None:
        """Forget the question of the newest turn, if that is its number: nothing came of it.

        What code memorized meanwhile stays.
        """
        for group in self.turn(number)[:1]:
            self.forget(group[0].id)

    def shorten(self, ids: Iterable[str]) -> None:
        """Show these tool results shortened from now on."""
        wanted = set(ids)
        self.shortened |= wanted
        for group in self._groups if wanted else ():
            group[:] = [shortened(m) if m.id in wanted else m for m in group]

    def summarise(self, ids: Iterable[str], summary: Message) -> None:
        """Let a summary stand, first, for the messages of these ids: whole groups."""
        replaced = set(ids)
        self._messages[summary.id] = summary
        rest = [group for group in self._groups if group[0].id not in replaced]
        made = [summary]
        self._groups[:] = [made, *rest]
        self._said.append(made)

    def full(self) -> list[Message]:
        """Return all that was said in this run and is not forgotten, each message whole.

        What a summary replaced is there too; the summary stands where it was made.
        """
        return [self._messages[message.id] for group in self._said for message in group]

    def _calling(self, call_id: str) -> list[Message] | None:
        made = (g for g in reversed(self._groups) if any(c.id == call_id for c in g[0].calls))
        return next(made, None)

    def _add(self, group: list[Message]) -> None:
        self._groups.append(group)
        self._said.append(group)

    def _remove(self, group: list[Message]) -> None:
        for groups in (self._groups, self._said):
            # By identity: comparing messages takes long.
            at = next((at for at, one in enumerate(groups) if one is group), None)
            if at is not None:
                del groups[at]
