"""Prompts by reference: which messages a worker must be told of, and which it may have."""

from collections.abc import Mapping, Sequence

from agentmem.contracts.calls import PAGE_BYTES, Prompt
from agentmem.memory.message_log import MessageLog
from agentmem.messages import Message, Role, to_ranges
from agentmem.wire import encoded_size


class PromptReferences:
    """Refers to the messages of one conversation.

    After a change to a new run no message travels along: workers ask for the view once.
    """

    def __init__(self, log: MessageLog) -> None:
        """Refer to the messages of this log."""
        self._log = log
        self._prompts: dict[str, str] = {}
        self._unsent: list[str] = []

    def system_prompt(self, text: str) -> str:
        """Return the id of a system prompt, `s0`, ...; the same text is one message."""
        if text not in self._prompts:
            message = Message(id=f"s{len(self._prompts)}", role=Role.SYSTEM, content=text)
            self._prompts[text] = message.id
            self._log.note(message)
            self.made(message)
        return self._prompts[text]

    def made(self, message: Message) -> None:
        """Take note of a message of workflow code, which no worker can have seen."""
        self._unsent.append(message.id)

    def refer(self, memory: str, ids: Sequence[str], clipped: Mapping[str, int]) -> Prompt:
        """Refer to messages; those that no worker can have seen yet travel along, up to a page."""
        log = self._log  # read once a message: a view may hold thousands
        return Prompt(
            memory=memory,
            view=to_ranges(ids),
            retried={i: attempt for i in ids if (attempt := log[i].attempt) != 1},
            new=self._unseen(set(ids)),
            clipped=dict(clipped),
        )

    def _unseen(self, ids: set[str]) -> list[Message]:
        new: list[Message] = []
        size = 0
        for message in (self._log[i] for i in self._unsent if i in ids):
            size += encoded_size(message.model_dump_json())
            if size > PAGE_BYTES:
                break  # the rest goes by query
            new.append(message)
        self._unsent = [i for i in self._unsent if i not in ids]
        return new
