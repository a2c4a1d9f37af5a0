"""The demo's facts: as they are stored, as a table, and what must have come of the dream."""

from datetime import timedelta

from demo_crash import Messages
from demo_screen import Screen
from demo_script import AGENT, JOKE, KNOWN, LEARNED, REPLACED, SCOPE

from agentmem import TransactionalProvider
from agentmem.facts import Fact

COLUMNS = {"": 0, "key": 0, "value": 1, "evidence": 1, "said on": 0}


async def plant(store: TransactionalProvider) -> None:
    """Store the facts that are there before the first session."""
    for key, value in KNOWN.items():
        await store.memorize(AGENT, SCOPE, key, value)


async def read(store: TransactionalProvider, messages: Messages) -> list[Fact]:
    """Return the current facts with their evidence, ordered by key.

    Args:
        store: Where they are.
        messages: What was said: the agent's own facts cite a message, and quote nothing of it.
    """
    current = await store.entries(AGENT, SCOPE)
    facts = await store.facts_at(AGENT, SCOPE, {fact.key: fact.version for fact in current})
    said = {message["id"]: message["content"] for message in messages}
    return [
        fact.replace(
            evidence=[
                one.replace(quote=one.quote or said.get(one.message, "")) for one in fact.evidence
            ]
        )
        for fact in facts
    ]


def show(title: str, facts: list[Fact], screen: Screen, before: list[Fact] | None = None) -> None:
    """Show facts as a table; what is not as it was before stands out, if that is given."""
    old = {fact.key: fact.version for fact in before or facts}
    rows = [_row(fact, old.get(fact.key, 0)) for fact in facts]
    screen.table(title, COLUMNS, rows)
    if gone := [key for key in old if key not in {fact.key for fact in facts}]:
        screen.row("gone", ", ".join(gone), style="yellow")


def show_verified(facts: list[Fact], screen: Screen) -> None:
    """Show what a verified update replaced, with the words that it rests on."""
    for fact in facts:
        if fact.was and fact.evidence:
            quote = fact.evidence[-1].quote
            told = f'{fact.key}: "{fact.value}" replaces "{fact.was.value}", by "{quote}"'
            screen.row("verified", told)


def check(facts: list[Fact], screen: Screen) -> None:
    """Check what the offline model's dream must have made of the conversation."""
    values = {fact.key: str(fact.value) for fact in facts}
    for key, text in LEARNED.items():
        if text not in values.get(key, ""):
            screen.check(False, f"the fact {key} should tell of {text!r}")
    screen.check(
        not any(old in value for old in REPLACED for value in values.values()),
        f"no fact says {' or '.join(REPLACED)} any more",
    )
    screen.check(not any(JOKE in value for value in values.values()), "no fact rests on the joke")
    coffee = [key for key in ("breakfast_drink", "coffee_order") if key in values]
    screen.check(len(coffee) == 1, "two facts that said the same are one")
    screen.check(_dated(facts), '"yesterday" has become a date')
    learned = [fact for fact in facts if fact.writer == "dream" and fact.key in LEARNED]
    screen.check(
        all(fact.evidence for fact in learned), "each learned fact cites who said it, and when"
    )


def _dated(facts: list[Fact]) -> bool:
    """Whether the move of the day before is told with its date."""
    home = next((fact for fact in facts if fact.key == "home_city"), None)
    if home is None or not home.evidence or home.evidence[-1].said_at is None:
        return False
    day = home.evidence[-1].said_at.date() - timedelta(days=1)
    return day.isoformat() in str(home.value)


def _row(fact: Fact, version: int) -> tuple[str, list[str]]:
    """Return a fact's style and cells, by the version that was there before (0: none)."""
    mark, style = ("~", "yellow") if version else ("+", "green")
    if version == fact.version:
        mark, style = "", ""
    evidence, day = f"(written by {fact.writer})", ""
    if fact.evidence:
        spoken = [one for one in fact.evidence if one.role == "user"]
        newest = (spoken or fact.evidence)[-1]
        evidence = f'{newest.role}: "{newest.quote}"'
        day = newest.said_at.date().isoformat() if newest.said_at else ""
    return style, [mark, fact.key, str(fact.value), evidence, day]
