"""Measure how much of what is asked later a dream's facts rest on: LoCoMo, without a judge.

    python -m benchmarks.locomo_lines PATH/locomo10.json
    python -m benchmarks.locomo_lines PATH/locomo10.json --model openai/gpt-4o-mini --keys 100

A scope a conversation, a dream a session, in order; both speakers are users. A question of the data
set names the turns that answer it: counted is which share of these the facts cite, of each fact the
first three citations, with so many facts at most. Needs the data set's file (snap-research/LoCoMo,
CC BY-NC 4.0), which is not part of this project. Without `--model` the offline model's rules dream.
"""

import argparse
import asyncio
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from agentmem.contracts import DreamLimits
from agentmem.dreaming.model_replies import Asker
from agentmem.errors import AgentMemError
from agentmem.facts import Fact
from agentmem.records import TranscriptRow
from benchmarks.dream_case import Case
from benchmarks.dream_quality import real, rules
from tests.dreams import STORE, Scene

CITATIONS = 3
Cited = list[list[str]]
"""The turns that each fact cites."""


@dataclass(kw_only=True)
class Talk:
    """A conversation of the data set.

    Attributes:
        sessions: When each was, and its turns: id, speaker, words.
        asked: The turns that questions ask for, each as often as it is asked for.
        days: What happened on which day, by the turn that tells it.
        observed: What a model once wrote down of it, with its citations.
    """

    sessions: list[tuple[datetime, list[tuple[str, str, str]]]]
    asked: list[str]
    days: list[tuple[str, str]]
    observed: Cited


@dataclass(kw_only=True)
class Lines:
    """The counts over all conversations."""

    asked: int = 0
    found: int = 0
    facts: int = 0
    cited: int = 0
    observed: int = 0
    days: int = 0
    told: int = 0
    dated: int = 0
    failed: list[str] = field(default_factory=list[str])

    def add(self, talk: Talk, cited: Cited, days: dict[str, set[str]]) -> None:
        """Count a conversation: what facts cite, and which days they give to what they cite."""
        turns = {turn for one in cited for turn in one[:CITATIONS]}
        known = {turn for one in talk.observed for turn in one}
        self.asked += len(talk.asked)
        self.found += sum(turn in turns for turn in talk.asked)
        self.facts += len(cited)
        self.cited += len(turns)
        self.observed += len(turns & known)
        self.days += len(talk.days)
        self.told += sum(turn in turns for turn, _ in talk.days)
        self.dated += sum(day in days.get(turn, ()) for turn, day in talk.days)

    def line(self, name: str) -> str:
        """Return the counts as one line."""
        share, precise = 100 * self.found / self.asked, 100 * self.observed / max(1, self.cited)
        dates = f"{self.dated:>4} of {self.told:>2} of {self.days}"
        failed = f"  {len(self.failed)} dreams failed" if self.failed else ""
        counts = f"{self.facts:>6}{self.cited:>7}{share:>9.1f}{precise:>11.1f}{dates:>16}"
        return f"{name:<28}{counts}{failed}"


def talks(path: Path) -> Iterator[Talk]:
    """Read the data set."""
    for found in json.loads(path.read_text()):
        talk = found["conversation"]
        names = sorted((n for n in talk if re.fullmatch(r"session_\d+", n)), key=_number)
        sessions = [
            (
                _time(talk[f"{name}_date_time"]),
                [(t["dia_id"], t["speaker"], t["text"]) for t in talk[name]],
            )
            for name in names
        ]
        turns = {turn for _, said in sessions for turn, _, _ in said}
        asked = [(q, [t for t in _ids(q["evidence"]) if t in turns]) for q in found["qa"]]
        days = [(t[0], _day(q)) for q, t in asked if q["category"] == 2 and len(t) == 1]
        yield Talk(
            sessions=sessions,
            asked=[turn for _, evidence in asked for turn in evidence],
            days=[(turn, day) for turn, day in days if day],
            observed=[
                _ids(cites)
                for name in names
                for told in found["observation"].get(f"{name}_observation", {}).values()
                for _, cites in told
            ],
        )


async def dreamt(talk: Talk, ask: Asker, keys: int, lines: Lines) -> None:
    """Dream a conversation, a dream a session, and count what its facts cite."""
    scene = await Scene.make()
    for number, (began, said) in enumerate(talk.sessions, 1):
        rows = [
            TranscriptRow(
                session=f"session_{number}",
                memory="wm0",
                seq=place,
                message=turn,
                role="user",
                text=f"{speaker}: {text}",
                at=began + timedelta(seconds=20 * place),
            )
            for place, (turn, speaker, text) in enumerate(said, 1)
        ]
        await scene.provider.append(STORE.agent, STORE.scope, rows)
        now = began + timedelta(hours=1)
        try:
            await scene.dream(ask, DreamLimits(keys=keys, failures=1_000), now)
        except AgentMemError as error:
            lines.failed.append(f"session {number}: {error}")
    facts = await _facts(scene)
    days: dict[str, set[str]] = {}
    for fact in facts:
        if fact.valid_from and not fact.valid_to:
            for one in fact.evidence[:CITATIONS]:
                days.setdefault(one.message, set()).add(fact.valid_from)
    lines.add(talk, [[one.message for one in fact.evidence] for fact in facts], days)
    await scene.provider.close()


async def _facts(scene: Scene) -> list[Fact]:
    entries = await scene.provider.entries(STORE.agent, STORE.scope)
    versions = {fact.key: fact.version for fact in entries}
    return await scene.provider.facts_at(STORE.agent, STORE.scope, versions)


def reference(found: list[Talk], facts: int, *, newest: bool) -> Lines:
    """Count a model's notes in place of facts: so many of the newest, or drawn by lot."""
    lines, lot = Lines(), random.Random(1)
    for talk in found:
        drawn = lot.sample(talk.observed, min(facts, len(talk.observed)))
        lines.add(talk, talk.observed[-facts:] if newest else drawn, {})
    return lines


def _number(name: str) -> int:
    return int(name.rpartition("_")[2])


def _ids(text: Any) -> list[str]:
    return re.findall(r"D\d+:\d+", str(text))


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def _day(question: dict[str, Any]) -> str:
    """Return the day that a question's answer is, if it is a full date."""
    text = str(question.get("answer", "")).replace(",", "").removeprefix("on ").strip(" .")
    for form in ("%d %B %Y", "%B %d %Y"):
        with suppress(ValueError):
            return datetime.strptime(text, form).replace(tzinfo=UTC).date().isoformat()
    return ""


async def measure(found: list[Talk], ask: Asker, keys: int) -> Lines:
    """Dream all conversations with a cap of so many facts."""
    lines = Lines()
    for talk in found:
        await dreamt(talk, ask, keys, lines)
    return lines


def main(arguments: Iterable[str]) -> None:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path, help="locomo10.json")
    parser.add_argument("--model", default="", help="a litellm model; paid for")
    parser.add_argument("--keys", type=int, nargs="+", default=[25, 50, 100, 200, 1_000])
    chosen = parser.parse_args(list(arguments))
    found = list(talks(chosen.path))
    ask = real(chosen.model)(Case(kind="")) if chosen.model else rules(Case(kind=""))
    head = f"{'':<28}{'facts':>6}{'cited':>7}{'asked %':>9}{'observed %':>11}{'dates':>16}\n"
    sys.stdout.write(head)
    for keys in chosen.keys:
        lines = asyncio.run(measure(found, ask, keys))
        sys.stdout.write(lines.line(f"{chosen.model or 'rules'}, cap {keys}") + "\n")
        sys.stdout.writelines(f"  {one}\n" for one in lines.failed)
    for name, newest in (("notes by lot, 100", False), ("newest notes, 100", True)):
        sys.stdout.write(reference(found, 100, newest=newest).line(name) + "\n")
    sys.stdout.write(reference(found, 10**6, newest=True).line("all notes") + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
