"""Facts as they are recalled: those that are not over, with what is known of them."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from agentmem.facts import EarlierValue, Fact
from agentmem.values import JSONObject

if TYPE_CHECKING:
    from agentmem.memory.providers.protocol import TransactionalProvider

EARLIER = timedelta(days=30)
"""For how long a value that was replaced is shown beside the new one."""


def expired(fact: Fact, now: datetime) -> bool:
    """Tell if a fact has expired and is not recalled any more, though nobody has removed it yet."""
    return fact.expires_at is not None and fact.expires_at <= now


def earlier_value(fact: Fact, now: datetime) -> EarlierValue | None:
    """Return the value that a fact had before, if it was replaced in the last 30 days."""
    return fact.was if fact.was and now - fact.was.replaced_at < EARLIER else None


async def recalled_facts(
    provider: "TransactionalProvider",
    agent: str,
    scope: str,
    keys: Sequence[str] | None,
    now: datetime,
    *,
    quoting: Callable[[Fact], bool] = lambda fact: True,
) -> list[Fact]:
    """Return the facts that are not over, ordered by key.

    Args:
        provider: The store.
        agent: Whose facts.
        scope: Which scope.
        keys: Only these; None for all.
        now: The time.
        quoting: Of which facts the messages that they rest on are wanted too.
    """
    found = await provider.entries(agent, scope, keys)
    live = {fact.key: fact for fact in found if not expired(fact, now)}
    versions = {key: fact.version for key, fact in live.items() if quoting(fact)}
    if not versions:
        return list(live.values())
    whole = {fact.key: fact for fact in await provider.facts_at(agent, scope, versions)}
    # A fact that was written in between is as it was a moment ago, without its evidence.
    return [fact.replace(evidence=whole.get(key, fact).evidence) for key, fact in live.items()]


def details(fact: Fact, now: datetime) -> JSONObject:
    """Return what is known of a fact, as `recall(details=True)` gives it: JSON, every field."""
    was = earlier_value(fact, now)
    known = fact.replace(was=was).full()
    del known["key"]
    for told in filter(None, (known, known["unconfirmed"])):
        told["until"] = told.pop("expires_at")
    return known


async def recall_details(
    provider: "TransactionalProvider", agent: str, scope: str, key: str | None, now: datetime
) -> JSONObject | None:
    """Return what is known of a key's fact, None if there is none; without a key, all by key."""
    found = await recalled_facts(provider, agent, scope, None if key is None else [key], now)
    if key is not None:
        return details(found[0], now) if found else None
    return {fact.key: details(fact, now) for fact in found}
