"""Looking after a scope's facts from scripts and activities: history, undo, pins, erasing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from temporalio import workflow

from agentmem.contracts import ScopeRef
from agentmem.errors import ConfigurationError, InvalidFact
from agentmem.facts import EarlierValue, Fact, FactVersion, Trust, Undone, Write, checked_name
from agentmem.wire import JSONObject

if TYPE_CHECKING:
    from agentmem.storage.protocol import TransactionalProvider


class Upkeep:
    """The part of `LongTermMemory` that is for people and the programs that serve them.

    Not for workflow code: what these methods return would stand in the workflow's history, also
    after it was erased here. Call them in an activity or a script, or use `agentmem memory`.

    All raise `ProviderError` when the store fails, and `ConfigurationError` in workflow code.
    """

    _store: ScopeRef

    async def entries(self, keys: Sequence[str] | None = None) -> list[Fact]:
        """Return the facts with all that is known of them, ordered by key; only `keys` if given.

        A fact that holds null is in the list, a missing one is not. Expired facts are in it until
        a dream removes them.

        Raises:
            InvalidFact: A key is none that a store could hold.
        """
        provider = await self._outside("entries")
        return await provider.entries(self._store.agent, self._store.scope, keys)

    async def history(self, key: str) -> list[FactVersion]:
        """Return every version that a key ever had, oldest first, removals too.

        Each says who wrote it and why, and quotes the messages that it rests on. Empty for a key
        that never was, and on a store with the five methods only.

        Raises:
            InvalidFact: The key is none that a store could hold.
        """
        provider = await self._outside("history")
        return await provider.history(self._store.agent, self._store.scope, key)

    async def undo(self, change: str, *, by: str = "") -> Undone:
        """Take back a dream, one of its changes, or one version of a key.

        Each change is taken back whole or not at all: what was written since stays, and is
        reported as a conflict. Older messages cannot bring back what was undone. What was undone
        before stays so; an undo is a version too, and can itself be undone.

        Args:
            change: A dream's id (its run id), `<dream>/<change>` or `<key>@<version>`, as
                `FactVersion.change` has it.
            by: The person who does it, for the history; empty for code.

        Raises:
            ConfigurationError: There is no such change, or the store keeps no history.
        """
        provider = await self._outside("undo")
        return await provider.undo(self._store.agent, self._store.scope, change, by)

    async def confirm(self, key: str, *, by: str = "") -> None:
        """Settle a tentative fact; one with an unconfirmed value beside it takes that value.

        The old value is then its earlier value, shown for 30 days.

        Args:
            key: The key.
            by: The person who confirms it, for the history.

        Raises:
            InvalidFact: There is no such fact, or nothing of it waits to be confirmed.
        """
        provider = await self._outside("confirm")
        place = (self._store.agent, self._store.scope)
        write = await confirmation(provider, *place, key, by, datetime.now(UTC))
        await provider.write(*place, [write])

    async def pin(self, key: str, *, by: str = "") -> None:
        """Pin a fact: no dream changes or removes it, and the cap spares it; code still may.

        Args:
            key: The key.
            by: The person who does it, for the history; empty for code.

        Raises:
            InvalidFact: There is no such fact.
            ConfigurationError: The store cannot pin.
        """
        await self._pin(key, by, pinned=True)

    async def unpin(self, key: str, *, by: str = "") -> None:
        """Take a fact's pin off; one that has none is no error.

        Args:
            key: The key.
            by: The person who does it, for the history; empty for code.

        Raises:
            InvalidFact: There is no such fact.
            ConfigurationError: The store cannot pin.
        """
        await self._pin(key, by, pinned=False)

    async def erase(self) -> dict[str, int]:
        """Delete everything of the scope: facts, history, evidence, transcripts, dreams.

        Nothing brings it back. End the scope's sessions first: a running one goes on, and what it
        says from then on is kept again. Temporal keeps the histories of sessions and dreams until
        the retention time of its namespace is over (72 hours unless it was set otherwise).

        Returns:
            How many rows of what went.
        """
        provider = await self._outside("erase")
        return await provider.erase(self._store.agent, self._store.scope)

    async def export(self) -> list[JSONObject]:
        """Return everything of the scope as JSON objects, for `restore`."""
        provider = await self._outside("export")
        return await provider.export(self._store.agent, self._store.scope)

    async def restore(self, rows: Sequence[JSONObject]) -> int:
        """Put what `export` returned into this scope, exactly as it was; return how many rows.

        Raises:
            ConfigurationError: The scope is not empty, or a row is none that an export gives.
            InvalidFact: A name or a value cannot be stored.
        """
        provider = await self._outside("restore")
        return await provider.restore(self._store.agent, self._store.scope, rows)

    async def _pin(self, key: str, by: str, *, pinned: bool) -> None:
        provider = await self._outside("pin" if pinned else "unpin")
        agent, scope = self._store.agent, self._store.scope
        if not await provider.pin(agent, scope, key, pinned, by):
            raise missing(checked_name(key, "key"))

    async def _outside(self, method: str) -> "TransactionalProvider":
        if workflow.in_workflow():
            raise ConfigurationError(
                f"{method}() is not for workflow code: what it returns would stand in the "
                "workflow's history; call it in an activity or a script"
            )
        return await opened(self._store)


async def confirmation(
    provider: "TransactionalProvider", agent: str, scope: str, key: str, by: str, now: datetime
) -> Write:
    """Return the write by which a person confirms what is known of a key.

    Raises:
        InvalidFact: There is no such fact, or nothing of it waits to be confirmed.
    """
    name = checked_name(key, "key")
    found = await provider.entries(agent, scope, [name])
    if not found:
        raise missing(name)
    [fact] = await provider.facts_at(agent, scope, {name: found[0].version}) or found
    if fact.state == "settled" and fact.unconfirmed is None:
        raise InvalidFact(f"{name!r} is confirmed already; there is nothing to decide")
    said = {field: getattr(fact, field) for field in Fact.model_fields}
    write = Write.model_validate(said).replace(
        reason="confirmed",
        writer="person",
        author=by,
        state="settled",
        trust=Trust.USER,
        unconfirmed=None,
    )
    new = fact.unconfirmed
    if new is None:
        return write
    was = EarlierValue(value=fact.value, replaced_at=now) if fact.state == "settled" else fact.was
    return write.replace(
        value=new.value,
        said_at=new.said_at,
        valid_from=new.valid_from,
        valid_to=new.valid_to,
        expires_at=new.expires_at,
        evidence=new.evidence,
        was=was,
    )


def missing(key: str) -> InvalidFact:
    """Return the error of a key that is not there."""
    return InvalidFact(f"there is no fact {key!r}; keys() lists what there is")


async def opened(store: ScopeRef) -> "TransactionalProvider":
    """Return the store of a script, opened."""
    # Imported here: the stores load SQLAlchemy, which no workflow may.
    from agentmem.storage.registry import default_providers

    return await default_providers().get(store.provider)
