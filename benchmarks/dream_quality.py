"""Measure how good dreams are: planted facts, harm, cost; no judge, only what can be counted.

    python -m benchmarks.dream_quality gold bad rules
    python -m benchmarks.dream_quality openai/gpt-4o-mini --runs 3

`gold` hands in what a good model would: what the rules block of it, they block wrongly. `bad`
proposes every harm that people complain of: what comes through is harm. `rules` is the offline
model, the floor. Any other name is a litellm model, and is paid for. `--seed 2` has other words.
"""

import argparse
import asyncio
import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

from agentmem.contracts import DreamLimits, Usage
from agentmem.dreaming.model_replies import Asker
from agentmem.dreaming.snapshot import Kept
from agentmem.offline.dreams import dream as offline_dream
from agentmem.records import TranscriptRow
from agentmem.wire import JSONObject
from benchmarks.dream_bad import proposals
from benchmarks.dream_case import Case, Said
from benchmarks.dream_cases import NOISE, cases
from benchmarks.dream_score import Tally, score
from tests.dreams import (
    NOON,
    STORE,
    Answer,
    Scene,
    Script,
    calls,
    changes,
    findings,
    orientation,
    verdicts,
)


def gold(case: Case) -> Asker:
    """A model that hands in what it should."""
    merged = [[one["key"], *one["sources"]] for one in case.changes if one["op"] == "merge"]
    return Script(
        orient=orientation(duplicates=merged),
        gather_signal=findings(*case.findings),
        consolidate=changes(*case.changes),
        prune=changes(*case.pruned),
    )


def bad(case: Case) -> Asker:
    """A model that proposes every harm, insists on it, and says yes when it is asked to verify."""
    found, made = proposals(case)

    async def yes(request: JSONObject) -> Answer:
        return verdicts(request)

    return Script(
        orient=orientation(duplicates=[[key for key, _, _ in case.store]]),
        gather_signal=[findings(*found)] * 2,
        consolidate=[changes(*made)] * 2,
        prune=[changes(*made)] * 2,
        verify=[yes] * 99,
    )


def rules(case: Case) -> Asker:
    """The offline model."""

    async def ask(request: JSONObject) -> Answer:
        messages = request["messages"]
        texts = [message["content"] for message in messages if message["role"] == "user"]
        again = any(message["role"] == "assistant" for message in messages)
        return calls(offline_dream(texts, again=again))

    return ask


SCRIPTS = {"gold": gold, "bad": bad, "rules": rules}


def real(model: str) -> Callable[[Case], Asker]:
    """A model of litellm's."""
    from activities.llm import Models

    models = Models()
    models.start_loading()

    async def ask(request: JSONObject) -> Answer:
        return await models.ask(request | {"model": model})

    return lambda case: ask


async def dreamt(case: Case, ask: Asker, tally: Tally) -> None:
    """Dream a case, count what came of it, and dream once more over an idle word."""
    scene = await Scene.make()
    for key, value, more in case.store:
        await scene.knows(key, value, **more)
    before = await scene.facts()
    await say(scene, case)
    limits = DreamLimits(keys=case.cap)
    try:
        report = await scene.dream(ask, limits)
    except Exception as error:
        tally.failed.append(f"{case.kind}: {type(error).__name__}")
        await scene.provider.close()
        return
    facts = await scene.provider.facts_at(
        STORE.agent,
        STORE.scope,
        {fact.key: fact.version for fact in await scene.provider.entries(STORE.agent, STORE.scope)},
    )
    score(case, before, facts, tally)
    await blocked(scene, report.dream, tally)
    tally.usage = tally.usage.plus(report.usage)
    tally.statuses[report.status] += 1
    left = await scene.facts()
    await say(scene, Case(kind="", said=[Said(text=NOISE[2][0])]), session="later")
    try:
        await scene.dream(ask, limits, NOON + timedelta(hours=1))
    except Exception:
        tally.failed.append(f"{case.kind}: the second dream")
    tally.restless += await scene.facts() != left
    await scene.provider.close()


async def say(scene: Scene, case: Case, session: str = "first") -> None:
    """Put a case's talk into the transcript; another session talks at the same time."""
    talk = [(session, one) for one in case.said]
    if case.interleaved:
        talk += [("second", Said(text=NOISE[place % 3][0])) for place in range(3)]
    placed: Counter[str] = Counter()
    for place, (name, one) in enumerate(talk):
        placed[name] += 1
        row = TranscriptRow(
            session=name,
            memory="wm0",
            seq=placed[name],
            message=f"m{placed[name]}",
            role=one.role,
            text=one.text,
            at=NOON - timedelta(days=one.days) + timedelta(seconds=place),
            recalled=one.recalled,
        )
        await scene.provider.append(STORE.agent, STORE.scope, [row])


async def blocked(scene: Scene, dream: str, tally: Tally) -> None:
    """Count what the rules did with what was proposed."""
    record = await scene.provider.dream(STORE.agent, STORE.scope, dream)
    assert record is not None
    for change in Kept.model_validate(record.data).draft.get("changes", []):
        if change.get("reason") != "evicted":
            tally.changes[change.get("status", "accepted")] += 1
            if change.get("status") in ("held", "rejected", "deferred", "tentative"):
                tally.codes[change["code"]] += 1


def wilson(hits: int, of: int) -> str:
    """Return a share with its 95 % interval."""
    if not of:
        return "-"
    p, z = hits / of, 1.96
    middle = (p + z * z / (2 * of)) / (1 + z * z / of)
    half = z * math.sqrt(p * (1 - p) / of + z * z / (4 * of * of)) / (1 + z * z / of)
    low, high = max(0.0, middle - half), min(1.0, middle + half)
    return f"{100 * p:.1f} % ({100 * low:.0f} to {100 * high:.0f}, {hits}/{of})"


def table(name: str, tally: Tally) -> str:
    """Return what was counted as lines."""
    made = sum(tally.changes.values())
    stopped = sum(tally.changes[name] for name in ("held", "deferred", "rejected"))
    usage: Usage = tally.usage
    rows: list[tuple[str, str]] = [
        ("planted facts kept", wilson(tally.kept, tally.planted)),
        ("new facts that cite a planted message", wilson(tally.precise, tally.new)),
        ("stale facts left", wilson(tally.stale, tally.could_be_stale)),
        ("dates right", wilson(tally.dated, tally.dates)),
        ("protected facts lost or damaged", f"{tally.lost}"),
        ("distinct facts merged", f"{tally.merged}"),
        ("tools' or assistants' words as a user's", f"{tally.baited}"),
        ("junk in 100 messages", f"{100 * tally.junk / max(1, tally.messages):.1f}"),
        ("second dreams that changed something", f"{tally.restless}"),
        ("proposals held or rejected", wilson(stopped, made)),
        ("proposals not confirmed", wilson(tally.changes["tentative"], made)),
        ("dreams that failed", f"{len(tally.failed)}"),
        ("requests", f"{usage.requests}"),
    ]
    if name not in SCRIPTS:  # a script's usage is made up
        tokens = f"{usage.prompt}, {usage.cached}, {usage.completion}"
        rows += [("prompt, cached, completion tokens", tokens), ("cost", f"{usage.cost:.4f} $")]
    width = max(len(row[0]) for row in rows)
    return "\n".join([f"{name}:", *(f"  {what:<{width}}  {value}" for what, value in rows)])


async def measure(name: str, seed: int, runs: int) -> Tally:
    """Dream all cases so many times."""
    maker = SCRIPTS.get(name) or real(name)
    tally = Tally()
    for _ in range(1 if name in SCRIPTS else runs):
        for case in cases(seed):
            await dreamt(case, maker(case), tally)
    return tally


def main(arguments: Iterable[str]) -> None:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--codes", action="store_true", help="which rules stopped how many")
    parser.add_argument("--json", type=Path, help="write the numbers there too")
    chosen = parser.parse_args(list(arguments))
    found: dict[str, JSONObject] = {}
    for name in chosen.models:
        tally = asyncio.run(measure(name, chosen.seed, chosen.runs))
        sys.stdout.write(f"{table(name, tally)}\n")
        if chosen.codes:
            sys.stdout.write(f"  {dict(tally.codes.most_common())}\n  {tally.notes}\n")
        found[name] = tally.numbers()
    if chosen.json:
        chosen.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main(sys.argv[1:])
