"""Working memory: the conversation, held in a workflow's state and rebuilt by its history."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import takewhile

from temporalio import workflow

from agentmem.contracts.calls import PAGE_BYTES, Prompt, Store
from agentmem.errors import InvalidInput
from agentmem.memory.compaction import SHORTENED_BYTES, shortened, tokens
from agentmem.memory.conversations import conversations
from agentmem.memory.entries import Entry, entries, parse_entry
from agentmem.memory.settings import checked_settings
from agentmem.memory.transcript import Carried, carry
from agentmem.memory.view import View, select
from agentmem.messages import Group, Message, Role, to_ranges
from agentmem.values import JSONObject, encoded_size


class WorkingMemory:
    """A conversation of one workflow; make it with `working_memory()`.

    Nothing here adds an event of its own to the history: contents come from recorded inputs and
    activity results, and replay rebuilds them.

    Attributes:
        lock: Held for a whole turn, so that turns of one conversation never mix.
    """

    def __init__(
        self,
        window: int | None = None,
        max_tokens: int | None = None,
        compact_model: str | None = None,
        compact_threshold: float = 0.70,
        compact_preserve: int = 4,
    ) -> None:
        self.settings = checked_settings(
            window=window,
            max_tokens=max_tokens,
            compact_model=compact_model,
            compact_threshold=compact_threshold,
            compact_preserve=compact_preserve,
        )
        self.lock = asyncio.Lock()
        self._messages: dict[str, Message] = {}
        self._forgotten: set[str] = set()
        self._groups: list[list[Message]] = []
        self._prompts: dict[str, str] = {}
        self._given: dict[str, str] = {}
        self._unsent: list[str] = []
        self._carried: dict[str, Carried] = {}
        self._shortened: set[str] = set()
        self._cap: int | None = None
        self.prompt_tokens = 0
        self._next = 0
        self.turn = 0
        self.name = conversations().add(self) if workflow.in_workflow() else "wm0"

    async def memorize(self, role: str, content: str) -> str:
        """Add a message.

        Args:
            role: `user`, `assistant`, `tool_call` or `tool_result`.
            content: The text; for the last two JSON, as `recall` shows it.

        Returns:
            The message's id.

        Raises:
            InvalidInput: The role is none of these, the content is no text, empty or over 1 MiB,
                or the JSON is not such.
        """
        return self.add(**parse_entry(role, content, self._next, self._given)).id

    def recall(self) -> list[Entry]:
        """Return what is in view, oldest first, as `{"id", "role", "content"}`.

        A model's reply shows as up to three entries of one id: reasoning, assistant, tool_call.
        """
        return [entry for message in self.view().messages for entry in entries(message)]

    async def forget(self, message_id: str) -> None:
        """Take a message out of the conversation for good; one that is gone already is no error.

        Its text and every quote of it leave long-term memory's transcript too, with the next
        append: after the next turn, or by `append_transcript`.

        An assistant message goes with the results of its calls. Of a single tool result only the
        text goes: its call is then answered by a note. A message that a summary stands for goes
        from the transcript; what the summary says of it stays until that is forgotten too.

        Raises:
            InvalidInput: There never was a message of this id.
        """
        if message_id not in self._messages:
            raise InvalidInput(f"no message {message_id!r} in {self.name}; keys() lists them")
        self._forgotten.add(message_id)
        for group in self._groups:
            if group[0].id == message_id:
                self._forgotten.update(message.id for message in group)
                self._groups.remove(group)
                return
            for message in group[1:]:
                if message.id == message_id:
                    group.remove(message)
                    return

    def keys(self) -> list[str]:
        """Return the ids of the messages in view, oldest first."""
        return [message.id for message in self.view().messages]

    def view(self) -> View:
        """Return the messages in view, by the window and the token budget."""
        budget = self.settings.max_tokens
        if self._cap is not None:
            budget = min(budget or self._cap, self._cap)
        return select(self._groups, window=self.settings.window, max_tokens=budget)

    def message(self, message_id: str) -> Message | None:
        """Return any message of this run, forgotten ones too: a retry may still need it."""
        return self._messages.get(message_id)

    async def append_transcript(self, store: Store) -> int:
        """Carry what is new over to a scope's transcript, for its next dream.

        Returns:
            The last sequence number that the store holds of this memory.

        Raises:
            temporalio.exceptions.ActivityError: The store did not take it; nothing is lost, and
                the next call tries the same again.
        """
        return await carry(
            self._carried.setdefault(store.model_dump_json(), Carried()),
            list(self._messages.values()),
            store,
            is_forgotten=self._forgotten.__contains__,
            reference=self.reference,
        )

    def is_ahead_of(self, store: Store) -> bool:
        """Tell whether the conversation has something that a scope's transcript may lack."""
        carried = self._carried.get(store.model_dump_json(), Carried())
        if carried.numbered or carried.seen < len(self._messages):
            return True
        said = list(self._messages.values())
        return bool(carried.late(said, self._forgotten.__contains__))

    def messages(self) -> list[Message]:
        """Return the conversation, oldest first, without what was forgotten or summarised."""
        return [self._messages[message.id] for group in self._groups for message in group]

    # What the agent loop does with it.

    def begin_turn(self, content: str | list[JSONObject]) -> Message:
        """Open a turn with the user's message, so that a crash inside the turn loses nothing."""
        self.turn += 1
        return self.add(role=Role.USER, content=content)

    def system_prompt(self, text: str) -> str:
        """Return the id of a system prompt, `s0`, ...; the same text is one message."""
        if text not in self._prompts:
            message = Message(id=f"s{len(self._prompts)}", role=Role.SYSTEM, content=text)
            self._prompts[text] = message.id
            self._messages[message.id] = message
            self._unsent.append(message.id)
        return self._prompts[text]

    def reserve(self) -> str:
        """Return an id for a message that an activity will make; it is never given again."""
        self._next += 1
        return f"m{self._next - 1}"

    def add(self, *, role: Role, **fields: object) -> Message:
        """Add a message that workflow code made."""
        given = {"role": role, "at": _now(), "turn": self.turn, **fields}
        made = Message.model_validate({"id": given.get("id") or self.reserve(), **given})
        self._unsent.append(made.id)
        self._keep(made)
        return made

    def store(self, message: Message) -> Message:
        """Add a message that an activity made under a reserved id."""
        stored = message.replace(at=_now())
        self._keep(stored)
        return stored

    def set_aside(self, message: Message) -> str:
        """Keep a reply that is no part of the conversation, for a model call to refer to."""
        self._messages[message.id] = message
        self._forgotten.add(message.id)
        return message.id

    def turn_messages(self) -> list[Message]:
        """Return the messages of the running turn, oldest first."""
        recent = takewhile(lambda group: group[0].turn == self.turn, reversed(self._groups))
        return [message for group in reversed(list(recent)) for message in group]

    def drop_turn(self) -> None:
        """Forget the messages of the running turn, as if it had not been asked."""
        while self._groups and self._groups[-1][0].turn == self.turn:
            self._forgotten.update(message.id for message in self._groups.pop())

    def shown(self) -> Sequence[Group]:
        """Return the conversation as a model is shown it, what the window hides included."""
        return self._groups

    def shorten(self, ids: Sequence[str]) -> None:
        """Show these tool results shortened from now on."""
        self._shortened.update(ids)
        for group in self._groups if ids else ():
            group[:] = [shortened(m) if m.id in ids else m for m in group]

    def summarise(self, ids: Sequence[str], summary: Message) -> None:
        """Let a summary stand for the messages of these ids, which are the first."""
        stored = summary.replace(at=_now())
        self._messages[stored.id] = stored
        rest = [group for group in self._groups if group[0].id not in ids]
        self._groups[:] = [[stored], *rest]
        self.prompt_tokens = 0

    def halve(self) -> None:
        """Show at most half of what is in view from now on: the model takes no more."""
        size = tokens([self.view().messages])
        budget = self._cap or self.settings.max_tokens or size
        self._cap = max(1, min(size, budget) // 2)

    def prompt(self, system: str, *aside: str) -> Prompt:
        """Describe what a model call sees, by reference.

        Args:
            system: The id of the system prompt.
            aside: Ids of messages set aside, which come last.
        """
        view = self.view()
        ids = [*(message.id for message in view.messages), *aside]
        short = {i: SHORTENED_BYTES for i in ids if i in self._shortened}
        return self.reference([system, *ids], short | view.clipped)

    def reference(self, ids: Sequence[str], clipped: dict[str, int] | None = None) -> Prompt:
        """Refer to messages; those that no worker can have seen yet travel along, up to a page."""
        new = self._unseen(set(ids))
        retried = {i: self._messages[i].attempt for i in ids if self._messages[i].attempt != 1}
        return Prompt(
            memory=self.name,
            view=to_ranges(ids),
            retried=retried,
            new=new,
            clipped=clipped or {},
        )

    def _unseen(self, ids: set[str]) -> list[Message]:
        new: list[Message] = []
        size = 0
        for message in (self._messages[i] for i in self._unsent if i in ids):
            size += encoded_size(message.model_dump_json())
            if size > PAGE_BYTES:
                break  # the rest goes by query
            new.append(message)
        self._unsent = [i for i in self._unsent if i not in ids]
        return new

    def _keep(self, message: Message) -> None:
        self._messages[message.id] = message
        if message.role is not Role.TOOL_RESULT:
            self._groups.append([message])
            return
        for group in reversed(self._groups):
            if any(call.id == message.call for call in group[0].calls):
                group.append(message)
                return
        raise InvalidInput(f"no call {message.call!r} in {self.name} that this result answers")


def working_memory(
    window: int | None = None,
    max_tokens: int | None = None,
    compact_model: str | None = None,
    compact_threshold: float = 0.70,
    compact_preserve: int = 4,
) -> WorkingMemory:
    """Make the working memory of an agent, in workflow code.

    Args:
        window: The most messages that a model is shown; None for no bound. Groups (an assistant
            message, its tool calls and their results) are never split.
        max_tokens: The most tokens (estimated: bytes of UTF-8 / 4) that a model is shown, the
            system prompt not counted; None for no bound.
        compact_model: The model that summarises what gets too old, as litellm names it; needs
            `max_tokens`. None: nothing is summarised, and what does not fit is not shown.
        compact_threshold: The share of `max_tokens` over which a turn begins by compaction: old
            tool results are shown shortened, and if that is not enough, old messages are
            summarised.
        compact_preserve: The newest messages that compaction leaves as they are.

    Raises:
        ConfigurationError: A setting makes no sense; the message names it.
    """
    return WorkingMemory(window, max_tokens, compact_model, compact_threshold, compact_preserve)


def _now() -> datetime:
    return workflow.now() if workflow.in_workflow() else datetime.now(UTC)
