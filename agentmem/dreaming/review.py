"""The decisions that people make: proposals and held changes applied or discarded, the gate opened.

A decision is a record beside the dream's own, under the id `DREAM:DIGEST`, and applies in one
transaction by the same checks as a dream's commit: a key that has moved since is left alone.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from agentmem.dreaming.apply import applied, replaced, stands, steps, touched
from agentmem.dreaming.changes import Change
from agentmem.dreaming.commit import line_of
from agentmem.dreaming.draft import Draft
from agentmem.dreaming.snapshot import Kept
from agentmem.errors import ConfigurationError
from agentmem.facts import Evidence, Fact, Read, Step
from agentmem.memory.quotes import quote_of
from agentmem.records import DreamRecord
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONValue, Wire

_LISTED = 500


class Decision(Wire):
    """The outcome of changes that people decided on.

    Attributes:
        id: The decision's own id; undoing that takes it back.
        applied: Lines like `remove city: expired`.
        conflicts: Lines of those whose keys have moved since; nothing of them was applied.
        discarded: Lines of those that are off the list.
    """

    id: str
    applied: list[str] = []
    conflicts: list[str] = []
    discarded: list[str] = []


class Undecided(Wire):
    """A change that waits for a person.

    Attributes:
        dream: The dream that proposed it.
        change: Its id in that dream, `c3`.
        status: `held`, or `proposed` for the changes of a proposal that were not held.
        line: What it would do, with its reason: `update city: correction`.
        old: The values that it would replace or take away, by key, as the dream saw them.
        new: The value that it would leave under its key; None for a removal.
        stays: For a removal, the key that holds what stays, if there is one.
        quote: The words that it rests on, empty if it rests on stored facts alone.
        speaker: Who said them: `user`, `assistant`, `tool_call` or `tool_result`.
        said_at: When they were said.
        why: Why it waits: what the verification or a rule says of it.
    """

    dream: str
    change: str
    status: str
    line: str
    old: dict[str, JSONValue] = {}
    new: JSONValue = None
    stays: str = ""
    quote: str = ""
    speaker: str = ""
    said_at: datetime | None = None
    why: str = ""


async def undecided(
    provider: TransactionalProvider, agent: str, scope: str, dream: str = ""
) -> list[Undecided]:
    """Return the changes of a scope, or of one of its dreams, that wait for a person."""
    records = await provider.dreams(agent, scope, _LISTED)
    found: list[Undecided] = []
    for record in records:
        waiting = _waiting(record, records) if dream in ("", record.id) else []
        if not waiting:
            continue
        draft = await _draft(provider, agent, scope, record)
        found += [_undecided(record.id, change, draft.before) for change in waiting]
    return found


async def apply(
    provider: TransactionalProvider,
    agent: str,
    scope: str,
    dream: str,
    changes: Sequence[str] = (),
    *,
    now: datetime,
    by: str = "",
) -> Decision:
    """Apply held changes or a proposal, in one transaction; the same again changes nothing.

    Args:
        provider: The store.
        agent: Whose facts.
        scope: Which scope.
        dream: The dream that proposed them.
        changes: Which, by id; without any all of a proposal that its rules let pass.
        now: The time, aware.
        by: The person who decides, for the history.

    Returns:
        What was applied, as settled facts that a person wrote. A change whose keys have moved
        since the dream is a conflict and left. That a person looked after the scope also opens
        its failure gate.

    Raises:
        ConfigurationError: There is no such dream, no such change of it that waits, or they were
            applied and taken back; the message says what to undo then.
    """
    record, chosen = await _chosen(provider, agent, scope, dream, changes)
    if undone := await _taken_back(provider, agent, scope, dream, chosen):
        raise ConfigurationError(
            f"these changes of dream {dream} were applied before and taken back since; to have "
            f"them again undo that: {', '.join(undone)}"
        )
    draft = await _draft(provider, agent, scope, record)
    current = {fact.key: fact for fact in await provider.entries(agent, scope)}
    committed = [change for change in draft.changes if change.id in record.applied]
    # Over what the dream left, so that what a change keeps of a fact is what stands there now.
    left = applied(draft.before, committed, draft.opened_at, draft.zone)
    own = {key for change in committed for key in touched(change)}
    # What a person decides is confirmed.
    rebased = [
        one.replace(reads=_rebased(one.reads, own, left, current), status="accepted")
        for one in chosen
    ]
    made = [_signed(step, by) for step in steps(left, rebased, now, draft.zone)]
    decision = _record("applied", dream, chosen, now, by)
    there = await provider.open_dream(agent, scope, decision)
    if there.status == "running":
        there = await provider.commit(agent, scope, decision.replace(status="applied"), made)
    lines = {change.id: line_of(change) for change in chosen}
    return Decision(
        id=there.id,
        applied=[lines[name] for name in there.applied if name in lines],
        conflicts=[lines[name] for name in there.conflicts if name in lines],
    )


async def discard(
    provider: TransactionalProvider,
    agent: str,
    scope: str,
    dream: str,
    changes: Sequence[str] = (),
    *,
    now: datetime,
    by: str = "",
) -> Decision:
    """Take changes off the list without applying them; without names all that wait.

    Args:
        provider: The store.
        agent: Whose facts.
        scope: Which scope.
        dream: The dream that proposed them.
        changes: Which, by id; without any all that wait.
        now: The time, aware.
        by: The person who decides, kept with the decision.

    Raises:
        ConfigurationError: There is no such dream, or no such change of it that waits.
    """
    record, chosen = await _chosen(provider, agent, scope, dream, changes, every=True)
    decision = _record("discarded", record.id, chosen, now, by)
    await provider.open_dream(agent, scope, decision)
    await provider.end_dream(agent, scope, decision.id, "discarded", "undo")
    return Decision(id=decision.id, discarded=[line_of(change) for change in chosen])


async def reset_gate(
    provider: TransactionalProvider, agent: str, scope: str, *, now: datetime, by: str = ""
) -> int:
    """Open a scope's failure gate; returns how many failures it had counted."""
    failures = (await provider.scope_state(agent, scope)).failures
    reset = DreamRecord(id=f"reset:{now.isoformat()}", opened_at=now, data={"by": by})
    await provider.open_dream(agent, scope, reset)
    await provider.end_dream(agent, scope, reset.id, "reset", "zero")
    return failures


async def _chosen(
    provider: TransactionalProvider,
    agent: str,
    scope: str,
    dream: str,
    names: Sequence[str],
    *,
    every: bool = False,
) -> tuple[DreamRecord, list[Change]]:
    records = await provider.dreams(agent, scope, _LISTED)
    record = next((one for one in records if one.id == dream), None)
    if record is None:
        raise ConfigurationError(f"there is no dream {dream!r} in this scope")
    if names:  # what was decided before is decided so again: a repeat changes nothing
        waiting = {change.id: change for change in _decidable(record)}
    else:
        waiting = {change.id: change for change in _waiting(record, records)}
    wanted = list(dict.fromkeys(names)) or [
        name for name, change in waiting.items() if every or stands(change)
    ]
    missing = [name for name in wanted if name not in waiting]
    if missing or not wanted:
        known = ", ".join(waiting) or "none"
        raise ConfigurationError(
            f"dream {dream} has no change {', '.join(missing) or 'at all'} that can be decided on"
            f" so; these can, by name: {known}"
        )
    return record, [waiting[name] for name in wanted]


async def _taken_back(
    provider: TransactionalProvider,
    agent: str,
    scope: str,
    dream: str,
    chosen: Iterable[Change],
) -> list[str]:
    """Return the versions that took back what decisions wrote, by the names that undo takes.

    Whatever else was decided with a change: it is the change that was taken back.
    """
    records = await provider.dreams(agent, scope, _LISTED)
    made_by: dict[str, set[str]] = {}
    for record in records:
        if record.data.get("of") == dream:
            for name in record.applied:
                made_by.setdefault(name, set()).add(record.id)
    keys = {key: made_by[one.id] for one in chosen if one.id in made_by for key in touched(one)}
    found: list[str] = []
    for key, decisions in sorted(keys.items()):
        versions = await provider.history(agent, scope, key)
        made = [version for version in versions if version.dream in decisions]
        last = versions[-1] if versions else None
        if made and last and last.reason == "undone" and last.value != made[-1].value:
            found.append(last.change)
    return found


def _waiting(record: DreamRecord, records: Iterable[DreamRecord]) -> list[Change]:
    mine = [one for one in records if one.data.get("of") == record.id and one.status != "running"]
    decided = {name for one in mine for name in one.data["changes"]}
    return [change for change in _decidable(record) if change.id not in decided]


def _decidable(record: DreamRecord) -> list[Change]:
    if record.status == "running" or "draft" not in record.data:
        return []
    open_to = ("held", "accepted", "tentative") if record.status == "proposed" else ("held",)
    return [change for change in _changes(record) if change.status in open_to]


def _changes(record: DreamRecord) -> list[Change]:
    kept = Kept.model_validate(record.data)
    return Draft.load(kept.draft, (), {}).changes if kept.draft else []


async def _draft(
    provider: TransactionalProvider, agent: str, scope: str, record: DreamRecord
) -> Draft:
    facts = await provider.facts_at(agent, scope, record.snapshot)
    return Draft.load(Kept.model_validate(record.data).draft, facts, {})


def _rebased(
    reads: Iterable[Read], own: set[str], left: Mapping[str, Fact], current: Mapping[str, Fact]
) -> list[Read]:
    """Return reads with the versions of now, where the dream wrote a key and it is still so."""

    def same(now: Fact | None, then: Fact | None) -> bool:
        return now is then is None or bool(now and then and now.value == then.value)

    return [
        read.replace(version=now.version if (now := current.get(read.key)) else 0)
        if read.key in own and same(current.get(read.key), left.get(read.key))
        else read
        for read in reads
    ]


def _undecided(dream: str, change: Change, facts: Mapping[str, Fact]) -> Undecided:
    none = Evidence(session="", memory="", message="")
    quoted = quote_of(change.quote)
    holding = [one for one in change.witnesses if quoted and one.quote == quoted]
    said = next(iter([*holding, *change.witnesses]), none)
    quote = said.quote if not said.forgotten else ""
    return Undecided(
        dream=dream,
        change=change.id,
        status="held" if change.status == "held" else "proposed",
        line=line_of(change),
        old={fact.key: fact.value for fact in replaced(change, facts)},
        new=None if change.op == "remove" else change.value,
        stays=change.by if change.op == "remove" else "",
        quote=quote,
        speaker=said.role if quote else "",
        said_at=said.said_at if quote else None,
        why=change.message,
    )


def _signed(step: Step, by: str) -> Step:
    """Return a step as a person's."""
    return step.replace(writes=[write.replace(writer="person", author=by) for write in step.writes])


def _record(what: str, dream: str, chosen: Sequence[Change], now: datetime, by: str) -> DreamRecord:
    names = [change.id for change in chosen]
    digest = hashlib.sha256(" ".join([what, *sorted(names)]).encode()).hexdigest()[:8]
    data = {"of": dream, "changes": names, "by": by}
    return DreamRecord(id=f"{dream}:{digest}", opened_at=now, data=data)
