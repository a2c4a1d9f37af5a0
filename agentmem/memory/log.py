"""The messages of one conversation, by id and in the groups in which they move."""

from collections.abc import Iterable, Sequence
from itertools import takewhile

from agentmem.memory.compaction import shortened
from agentmem.messages import Group, Message, Role


class MessageLog:
    """What a working memory holds: every message of the run, and which of them still count.

    Attributes:
        forgotten: Ids of the messages that were taken out for good.
        shortened: Ids of the tool results that are shown shortened.
        next: The number of the next id; ids are never given twice.
    """

    def __init__(self) -> None:
        self._messages: dict[str, Message] = {}
        self._groups: list[list[Message]] = []
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
            self._groups.append([message])
        else:
            group = next((g for g in reversed(self._groups) if _makes(g[0], message.call)), None)
            if group is None:
                return False
            group.append(message)
        self._messages[message.id] = message
        return True

    def forget(self, message_id: str) -> None:
        """Take a message out, an assistant message with the results of its calls.

        It may have left this run: transcripts have it still.
        """
        self.forgotten.add(message_id)
        for at, group in enumerate(self._groups):
            if group[0].id == message_id:
                self.forgotten.update(message.id for message in group)
                del self._groups[at]  # by place: comparing messages takes long
                return
            for message in group[1:]:
                if message.id == message_id:
                    group.remove(message)
                    return

    def turn(self, number: int) -> Sequence[Group]:
        """Return the groups of the newest turn, if that is its number, oldest first."""
        recent = takewhile(lambda group: group[0].turn == number, reversed(self._groups))
        return list(recent)[::-1]

    def drop_turn(self, number: int) -> None:
        """Forget the messages of the newest turn, if that is its number."""
        for group in self.turn(number):
            self.forgotten.update(message.id for message in group)
            self._groups.pop()

    def shorten(self, ids: Iterable[str]) -> None:
        """Show these tool results shortened from now on."""
        wanted = set(ids)
        self.shortened |= wanted
        for group in self._groups if wanted else ():
            group[:] = [shortened(m) if m.id in wanted else m for m in group]

    def summarise(self, ids: Iterable[str], summary: Message) -> None:
        """Let a summary stand for the messages of these ids, which are the first."""
        replaced = set(ids)
        self._messages[summary.id] = summary
        rest = [group for group in self._groups if group[0].id not in replaced]
        self._groups[:] = [[summary], *rest]

    def full(self) -> list[Message]:
        """Return the conversation in order, each message at its full length."""
        return [self._messages[message.id] for group in self._groups for message in group]


def _makes(message: Message, call_id: str) -> bool:
    return any(call.id == call_id for call in message.calls)
