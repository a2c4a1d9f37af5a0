"""A conversation as the agent loop drives it: turns, messages, prompts, and its queries."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Protocol, cast

from temporalio import workflow

from agentmem.contracts.agents import MemorySettings
from agentmem.contracts.calls import MESSAGES_QUERY, PAGE_BYTES, Page, Prompt, ScopeRef
from agentmem.contracts.hand_over import LACKING_QUERY, Lacking
from agentmem.errors import InvalidInput
from agentmem.memory.carried_state import CarriedMemory, restored
from agentmem.memory.compaction import tokens
from agentmem.memory.prompt_reference import PromptReferences
from agentmem.memory.selection import SHORTENED_BYTES, TokenEstimates, View, select, shown_tokens
from agentmem.messages import Message, Role, from_ranges
from agentmem.wire import JSONObject, encoded_size


class Readable(Protocol):
    """The messages of a working memory, as the query needs them."""

    def get(self, message_id: str) -> Message | None:
        """Return a message of this run, forgotten ones too; None if there is none."""
        ...


class Answers(Protocol):
    """Says what a scope's transcript may lack of a working memory."""

    def __call__(self, store: ScopeRef, *, ended: bool = False) -> Lacking:
        """Return it, and change nothing."""
        ...


class Conversations:
    """The working memories of one workflow by name, `wm0`, `wm1`, ... in order of creation."""

    def __init__(self) -> None:
        self._memories: dict[str, Readable] = {}
        self._lacking: dict[str, Answers] = {}

    def add(self, memory: Readable) -> str:
        """Take a memory in; returns its name."""
        name = f"wm{len(self._memories)}"
        self._memories[name] = memory
        return name

    def answer_for(self, memory: str, answers: Answers) -> None:
        """Let a memory answer the query `agentmem.lacking`."""
        self._lacking[memory] = answers

    def lacking(self, memory: str, store: ScopeRef, ended: bool) -> Lacking:
        """Answer the query: what a scope's transcript may lack of a working memory.

        Args:
            memory: The working memory's name.
            store: The scope.
            ended: Whether the run has ended, so that everything said is to be stored.

        Raises:
            InvalidInput: There is no such memory in this run.
        """
        if memory not in self._lacking:
            raise InvalidInput(f"this run has no working memory {memory}")
        return self._lacking[memory](store, ended=ended)

    def page(self, memory: str, ids: list[str]) -> Page:
        """Answer the query: the asked messages in order, as many as fit in a page, at least one.

        Args:
            memory: The working memory's name.
            ids: Message ids as ranges, `["s0", "m0-12"]`.

        Raises:
            InvalidInput: A message is not there: the asker has another run in mind.
        """
        found = self._memories.get(memory)
        page: list[Message] = []
        size = 0
        for message_id in from_ranges(ids):
            message = found.get(message_id) if found else None
            if message is None:
                raise InvalidInput(f"message {message_id} of {memory} is not in this run")
            size += encoded_size(message.model_dump_json())
            if page and size > PAGE_BYTES:
                break
            page.append(message)
        return Page(messages=page)


def conversations() -> Conversations:
    """Return the running workflow's, registering its two queries at the first call.

    The registered handler is where it lives: that works in `__init__` as in `run`, and for
    workflow classes that know nothing of it.
    """
    handler = cast(object, workflow.get_query_handler(MESSAGES_QUERY))
    owner = getattr(handler, "__self__", None)
    if isinstance(owner, Conversations):
        return owner
    made = Conversations()
    workflow.set_query_handler(MESSAGES_QUERY, made.page)
    workflow.set_query_handler(LACKING_QUERY, made.lacking)
    return made


LEAST_VIEW = 256
"""Tokens of messages that a turn begins with after any number of overflows: where so little is too
long, it is something else, such as the tools."""


class Conversation:
    """The messages of one conversation and what a model is shown of them.

    Attributes:
        settings: What bounds it.
        lock: Held for a whole turn, so that turns of one conversation never mix.
        log: The messages.
        name: `wm0`, `wm1`, ... in order of creation within a workflow.
        turn: The number of the last turn.
        running: Whether that turn is under way.
        prompt_tokens: Of the last request, as the provider counted them; 0 if unknown.
        summaries: How many were made.
        sizes: Says how many tokens a message has, by the estimate.
    """

    def __init__(self, settings: MemorySettings, carried: CarriedMemory) -> None:
        """Begin, or go on with what the run before handed on."""
        self.settings = settings
        self.lock = asyncio.Lock()
        self.log = restored(carried)
        self.turn = carried.turn
        self.running = False
        self.prompt_tokens = carried.prompt_tokens
        self.summaries = carried.summaries
        self._cap = carried.cap
        self._held: Message | None = None  # reasoning that waits for its reply
        self.sizes = TokenEstimates()
        self._references = PromptReferences(self.log)
        self.name = conversations().add(self.log) if workflow.in_workflow() else "wm0"

    def view(self) -> View:
        """Return the messages in view, by the window and the token budget."""
        budget = self.settings.max_tokens
        if self._cap is not None:
            budget = min(budget or self._cap, self._cap)
        return select(
            self.log.groups,
            turn=self.turn if self.running else None,
            window=self.settings.window,
            max_tokens=budget,
            size=self.sizes,
        )

    def messages(self) -> list[Message]:
        """Return all that was said in this run, oldest first, without what was forgotten.

        What a summary replaced is part of it, whole; the summary stands where it was made.
        """
        return self.log.full()

    def begin_turn(self, content: str | list[JSONObject]) -> Message:
        """Open a turn with the user's message, so that a crash inside the turn loses nothing."""
        self.turn += 1
        self._grow()
        self.running = True
        return self.add(role=Role.USER, content=content)

    def end_turn(self) -> None:
        """Close the running turn: its work is older talk from now on."""
        self.running = False

    def system_prompt(self, text: str) -> str:
        """Return the id of a system prompt, `s0`, ...; the same text is one message."""
        return self._references.system_prompt(text)

    def reserve(self) -> str:
        """Return an id for a message that an activity will make; it is never given again."""
        return self.log.reserve()

    def add(self, *, role: Role, **fields: object) -> Message:
        """Add a message that workflow code made."""
        given = {"role": role, "at": _now(), "turn": self.turn, **fields}
        made = Message.model_validate({"id": given.get("id") or self.reserve(), **given})
        self._references.made(made)
        self._keep(made)
        return made

    def hold(self, **fields: object) -> Message:
        """Keep reasoning for the reply that comes next; without one it stands alone."""
        given = {"id": self._held.id if self._held else self.reserve(), "at": _now(), **fields}
        self._held = Message.model_validate({**given, "turn": self.turn})
        return self._held

    def store(self, message: Message) -> Message:
        """Add a message that an activity made under a reserved id."""
        stored = message.replace(at=_now())
        self._keep(stored)
        return stored

    def set_aside(self, message: Message) -> str:
        """Keep a reply that is no part of the conversation, for a model call to refer to."""
        self.log.note(message)
        self.log.forgotten.add(message.id)
        return message.id

    def leave_out(self, result: Message, note: str) -> None:
        """Take a tool result out of the conversation for good, and let a note answer its call."""
        self.log.forget(result.id)
        self.add(
            role=Role.TOOL_RESULT, content=note, call=result.call, name=result.name, failed=True
        )

    def turn_messages(self) -> list[Message]:
        """Return the messages of the running turn, oldest first."""
        return [message for group in self.log.turn(self.turn) for message in group]

    def summarise(self, ids: Sequence[str], summary: Message) -> None:
        """Let a summary stand, first, for the messages of these ids: whole groups."""
        self.log.summarise(ids, summary.replace(at=_now()))
        self.summaries += 1
        self.prompt_tokens = 0

    @property
    def bound(self) -> int | None:
        """The most tokens of messages that a view takes after an overflow; None without one."""
        return self._cap

    def halve(self) -> bool:
        """Show about half of the messages that were sent; later turns show more again.

        The system prompt and the tools, which no view can make smaller, are not counted.

        Returns:
            Whether that makes the next prompt any smaller.
        """
        before = self.view()
        self._cap = max(1, shown_tokens(before) // 2)
        return self.view() != before

    def restore_bound(self, bound: int | None) -> None:
        """Take an earlier `bound` back: a smaller view was of no use."""
        self._cap = bound

    def _grow(self) -> None:
        """Show half as much again as the turn before, until nothing is left out any more."""
        if self._cap is not None:
            grown = max(LEAST_VIEW, self._cap + self._cap // 2)
            self._cap = grown if grown < tokens(self.log.groups) else None

    def prompt(self, system: str, *aside: str) -> Prompt:
        """Describe what a model call sees, by reference.

        Args:
            system: The id of the system prompt.
            aside: Ids of messages set aside, which come last.
        """
        view = self.view()
        ids = [*(message.id for message in view.messages), *aside]
        shortened = self.log.shortened
        short = {i: SHORTENED_BYTES for i in ids if i in shortened} if shortened else {}
        prompt = self._references.refer(self.name, [system, *ids], short | view.clipped)
        return prompt.replace(notes=view.notes) if view.notes else prompt

    def reference(self, ids: Sequence[str]) -> Prompt:
        """Refer to messages; those that no worker can have seen yet travel along, up to a page."""
        return self._references.refer(self.name, ids, {})

    def _keep(self, message: Message) -> None:
        held, self._held = self._held, None
        if held is not None and held.id != message.id:
            self._references.made(held)
            self.log.keep(held)
        if not self.log.keep(message):
            raise InvalidInput(f"no call {message.call!r} in {self.name} that this result answers")


def _now() -> datetime:
    return workflow.now() if workflow.in_workflow() else datetime.now(UTC)
