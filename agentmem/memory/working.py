"""Working memory: the conversation, held in a workflow's state and rebuilt from its history."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from pydantic import ValidationError
from temporalio import workflow

from agentmem.contracts.agents import MemorySettings
from agentmem.contracts.calls import ScopeRef
from agentmem.contracts.hand_over import Lacking
from agentmem.errors import AgentMemError, ConfigurationError, InvalidInput
from agentmem.memory.carried_state import LEFT, CarriedMemory, checked_dump, pack_within, take
from agentmem.memory.conversation import Conversation, conversations
from agentmem.memory.entries import Entry, entries, parse_entry, refuse_unkeepable
from agentmem.memory.transcript import Transcripts
from agentmem.messages import Group, Message, Role
from agentmem.wire import pack


def checked_settings(**given: object) -> MemorySettings:
    """Return settings that make sense.

    Args:
        given: The fields of `MemorySettings`, as the caller wrote them.

    Raises:
        ConfigurationError: One does not; the message names it.
    """
    try:
        settings = MemorySettings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise ConfigurationError(f"{name} is {given[name]!r:.100}: {first['msg']}") from error
    for name in ("window", "max_tokens"):
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ConfigurationError(f"{name} is {value}; use at least 1, or None for no bound")
    if not 0 < settings.compact_threshold <= 1:
        raise ConfigurationError(
            f"compact_threshold is {settings.compact_threshold}; use a share above 0, at most 1"
        )
    if settings.compact_preserve < 0:
        raise ConfigurationError(
            f"compact_preserve is {settings.compact_preserve}; use 0 or more messages"
        )
    if settings.compact_model and settings.max_tokens is None:
        raise ConfigurationError("compact_model without max_tokens never runs; set max_tokens")
    return settings


class WorkingMemory(Conversation):
    """A conversation of one workflow; make it with `working_memory()`.

    Nothing here adds an event of its own to the history: contents come from recorded inputs and
    activity results, and replay rebuilds them.

    Attributes:
        session: The run in which the conversation began, by which transcripts know it.
    """

    def __init__(
        self,
        window: int | None = None,
        max_tokens: int | None = None,
        compact_model: str | None = None,
        compact_threshold: float = 0.70,
        compact_preserve: int = 4,
        restore: bytes | CarriedMemory | None = None,
    ) -> None:
        settings = checked_settings(
            window=window,
            max_tokens=max_tokens,
            compact_model=compact_model,
            compact_threshold=compact_threshold,
            compact_preserve=compact_preserve,
        )
        carried = CarriedMemory() if restore is None else checked_dump(restore)
        super().__init__(settings, carried)
        self._given = dict(carried.given)
        self._transcripts = Transcripts(carried.transcripts, seen=len(self.log))
        self.session = _began_in() if restore is None else carried.session or _first_run()
        if workflow.in_workflow():
            conversations().answer_for(self.name, self.lacking)

    async def memorize(self, role: str, content: str) -> str:
        """Add a message; what `recall` shows can be given back, in another memory too.

        Reasoning belongs to the reply that comes next: the `assistant` or `tool_call` entry that
        follows it becomes one message with it, under one id.

        Args:
            role: `user`, `assistant`, `tool_call`, `tool_result`, `reasoning` or `summary`.
            content: The text; JSON as `recall` shows it for tool calls, their results and
                reasoning.

        Returns:
            The message's id.

        Raises:
            InvalidInput: The role is none of these, or the content is nothing that a model, a
                store or a history takes: no text, empty, over 1 MiB, no JSON, a number that is
                not finite, half of a surrogate pair, calls without an id of their own, a result
                that answers no call, one that is answered or one of the running turn whose tool
                is at work. The message names the place and says what to do.
        """
        held = self._held
        number = self.log.next if held is None else int(held.id[1:])
        fields, names = parse_entry(role, content, number, self._given)
        if fields["role"] is Role.ASSISTANT and held is not None:
            reasoning = [*held.reasoning, *fields.get("reasoning", [])]
            fields |= {"id": held.id, "reasoning": reasoning}
        refuse_unkeepable(fields, role)
        if role == "reasoning":
            return self.hold(**fields).id
        if role == "tool_result" and not self.log.has_call(fields["call"]):
            raise InvalidInput(
                f"no call {fields['call']!r:.100} in {self.name} that this result answers; "
                "memorize the tool_call before it, and give the id that the call has there"
            )
        if role == "tool_result" and (known := self.log.result(fields["call"])):
            raise InvalidInput(
                f"the call {fields['call']!r:.100} has a result already, {known.id}; forget that "
                "before"
            )
        if role == "tool_result" and self._is_at_work(fields["call"]):
            raise InvalidInput(
                f"the call {fields['call']!r:.100} is the running turn's, and its tool gives its "
                "result; forget that when it is there, and give yours"
            )
        made = self.add(**fields)
        self._given |= names
        return made.id

    def _is_at_work(self, call_id: str) -> bool:
        """Tell whether a call is one that the running turn waits for."""
        if not self.running or not self.log.waits(call_id, self.turn):
            return False
        # Asked only where it matters: a marker takes an event of the history.
        return not workflow.in_workflow() or workflow.patched("calls-at-work")

    def recall(self) -> list[Entry]:
        """Return what is in view, oldest first, as `{"id", "role", "content"}`.

        A model's reply shows as up to three entries of one id: reasoning, assistant, tool_call.
        """
        return [entry for message in self._in_view() for entry in entries(message)]

    async def forget(self, message_id: str) -> list[str]:
        """Take a message out of the conversation for good; one that is gone already is no error.

        Its text and every quote of it leave long-term memory's transcript too, with the next
        append: after the next turn, or by `append_transcript`.

        An assistant message goes with the results of its calls, those to come included. Of a
        single tool result only the text goes: its call is then answered by a note. A message that
        a summary stands for goes from the transcript; what the summary says of it stays until that
        is forgotten too.

        Returns:
            The ids of all messages that went, this one first; none if it was gone already.

        Raises:
            InvalidInput: There never was a message of this id.
        """
        if not self.log.knew(message_id):
            raise InvalidInput(f"no message {message_id!r} in {self.name}; keys() lists them")
        if self._held is not None and self._held.id == message_id:
            self._held = None
        return self.log.forget(message_id)

    def keys(self) -> list[str]:
        """Return the ids of the messages in view, oldest first."""
        return [message.id for message in self._in_view()]

    def _in_view(self) -> list[Message]:
        return [*self.view().messages, *([self._held] if self._held else [])]

    async def append_transcript(self, store: ScopeRef, *, within: timedelta | None = None) -> int:
        """Carry what is new over to a scope's transcript, for its next dream.

        Args:
            store: The scope.
            within: How long it may take in all; by default five attempts of ten seconds for each
                200 messages.

        Returns:
            The last sequence number that the store holds of this memory.

        Raises:
            temporalio.exceptions.ActivityError: The store did not take it; nothing is lost, and
                the next call tries the same again.
        """
        return await self._transcripts.append(store, self.session, self.log, self.reference, within)

    def number_transcript(self, store: ScopeRef) -> None:
        """Number what a scope's transcript lacks, so that a hand-over can append it."""
        self._transcripts.number(store, self.log)

    def expect_transcript(self, store: ScopeRef) -> None:
        """Let everything said reach a scope, by a later dream if the workflow is terminated."""
        self._transcripts.expect(store)

    def rename_transcript(self, old: ScopeRef, new: ScopeRef) -> None:
        """Go on under the resolved name of a scope with what was noted under `default`."""
        self._transcripts.rename(old, new)

    def lacking(self, store: ScopeRef, *, ended: bool = False) -> Lacking:
        """Return what a scope's transcript may lack, for the query `agentmem.lacking`."""
        return self._transcripts.lacking(store, self.session, self.log, ended=ended)

    def is_ahead_of(self, store: ScopeRef) -> bool:
        """Tell whether the conversation has something that a scope's transcript may lack."""
        return self._transcripts.lacks(store, self.log)

    def dump(self) -> bytes:
        """Return the conversation for a new run of the workflow, as at most 1 MiB.

        Give it to `workflow.continue_as_new` as an argument of its own, and to `working_memory`
        as `restore` there. Ids, the turn's number and what transcripts lack go on with it. Handed
        on is what is in view, with a `compact_model` everything that is not summarised yet. What
        does not fit leaves from the oldest on, and a line says so in its place.

        Raises:
            AgentMemError: What a transcript lacks is too much by itself; `append_transcript` has
                to come first.
        """
        packed = self.pack(pack)
        if packed is None:
            raise AgentMemError(
                f"{self.name} cannot go on in a new run: its transcript lacks more than fits; "
                "await append_transcript(store) before"
            )
        return packed

    def pack(self, wrap: Callable[[CarriedMemory], bytes]) -> bytes | None:
        """Return what `dump` does, with whatever else goes along.

        Args:
            wrap: Packs the memory, with what goes along.

        Returns:
            At most 1 MiB; None if what must go along is too large by itself.
        """
        transcripts = self._transcripts.carried(self.log)
        marker = Message(id=f"m{self.log.next}", role=Role.SUMMARY, content=LEFT)
        fields = {
            "session": self.session,
            "turn": self.turn,
            "summaries": self.summaries,
            "cap": self._cap,
            "prompt_tokens": self.prompt_tokens,
        }

        def packed(shown: Sequence[Group]) -> bytes:
            carried = take(self.log, shown, transcripts)
            calls = {call.id for group in shown for call in group[0].calls}
            given = {name: own for name, own in self._given.items() if own in calls}
            # Counted in the next run only: packing changes nothing of this one.
            number = self.log.next + (shown[:1] == [[marker]])
            return wrap(carried.replace(given=given, next=number, **fields))

        return pack_within(self._lasting(), packed, marker)

    def _lasting(self) -> Sequence[Group]:
        """Return the groups that a later turn may need."""
        held = [[self._held]] if self._held else []
        return [*self._conversation(), *held]

    def _conversation(self) -> Sequence[Group]:
        if self.settings.compact_model:
            return self.log.groups
        groups, view = self.log.groups, set(self.keys())
        front = [group for group in groups[:1] if group[0].role is Role.SUMMARY]
        rest = groups[len(front) :]
        # Before the first user message all goes along: a later view opens with the whole or not.
        begun = any(group[0].role is Role.USER for group in groups)
        shown = (i for i, group in enumerate(rest) if group[0].id in view)
        first = next(shown, len(rest)) if begun else 0
        # What stands out of view between a long turn's question and its end goes along: without
        # it, a question would come back into view that the next turn had left behind.
        return [*front, *rest[first:]]


def working_memory(
    window: int | None = None,
    max_tokens: int | None = None,
    compact_model: str | None = None,
    compact_threshold: float = 0.70,
    compact_preserve: int = 4,
    *,
    restore: bytes | None = None,
) -> WorkingMemory:
    """Make the working memory of an agent, in workflow code.

    Args:
        window: The most messages that a model is shown, the running turn always; None for no
            bound. Groups (an assistant message, its tool calls and their results) are never split.
        max_tokens: The most tokens (estimated: bytes of UTF-8 / 4) that a model is shown, the
            system prompt not counted; None for no bound. A running turn over it is shown
            shortened, with notes that say so.
        compact_model: The model that summarises what gets too old, as litellm names it; needs
            `max_tokens`. None: nothing is summarised, and what does not fit before the running
            turn is not shown.
        compact_threshold: The share of `max_tokens` over which a conversation is compacted before
            a model call: old tool results are shown shortened, and if that is not enough, old
            messages are summarised.
        compact_preserve: The newest messages that compaction leaves as they are.
        restore: What `dump()` gave in the run before, to go on with that conversation.

    Raises:
        ConfigurationError: A setting makes no sense, or `restore` is no dump; the message names
            it.
    """
    return WorkingMemory(
        window, max_tokens, compact_model, compact_threshold, compact_preserve, restore
    )


def _began_in() -> str:
    # Runs that follow, by cron or a retry, may begin a conversation anew: theirs is another one.
    return workflow.info().original_execution_run_id if workflow.in_workflow() else ""


def _first_run() -> str:
    return workflow.info().first_execution_run_id if workflow.in_workflow() else ""
