"""Dreams over independent cases: by scripts, and by strong readers whose answers were recorded.

    python -m benchmarks.dream_readers plumbing CASES.json
    python -m benchmarks.dream_readers verifier CASES.json [--ask FOLDER]
    python -m benchmarks.dream_readers reader CASES.json [--ask FOLDER]

`plumbing` hands in what each case says, and verifies by a script that is right, says yes to all,
or answers garbage. `verifier` puts the same changes before a reader who sees verify requests only.
`reader` puts a reader in the model's place for whole dreams. Recorded answers are replayed from
`benchmarks/readers`; a request without one counts as not measured. With `--ask` such requests are
written to FOLDER as text, shuffled and without a label, one file each; put the answer beside each,
as JSON with the ending `.answer.json`, and run the same command again to record it. The cases are
not part of this project: each has `at`, `store`, `said`, `findings`, `changes`, `prune`, `orient`,
`cap` and `set` (good, or bad: a misreading that cites the right message).
"""

import argparse
import asyncio
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, cast

from agentmem.contracts import DreamLimits
from agentmem.dreaming.model_replies import Asker
from agentmem.dreaming.prompts import PROMPT_VERSION
from agentmem.dreaming.snapshot import Kept
from agentmem.dreaming.verification import QUESTIONS
from agentmem.dreaming.verification import SUBMIT as VERDICTS
from agentmem.facts import Fact
from agentmem.records import TranscriptRow
from agentmem.wire import JSONObject
from tests.dreams import (
    STORE,
    Answer,
    Scene,
    Script,
    blocks_of,
    calls,
    changes,
    findings,
    orientation,
    phase_of,
    says,
)

READERS = Path(__file__).parent / "readers"
"""Recorded answers, one file per prompt version and run."""

Verifying = Literal["right", "yes", "garbage"]
SENT = ("op", "key", "value", "sources", "by", "reason", "evidence", "quote", "happened", "until")


class Unanswered(Exception):
    """A request that no reader has answered yet."""


@dataclass(kw_only=True)
class Outcome:
    """The result of a dream on one case.

    Attributes:
        case: Its id.
        done: The changes that took place as handed in, settled.
        open: Those that did not, with status and reason.
        tentative: Facts that are there and not confirmed.
        wrong_dates: Settled facts with another date than was handed in.
        lost: Facts of before that are gone although no change removes them.
        facts: The facts afterwards.
        before: The facts before.
        controls: Controls that were shown, and those that passed.
        error: Why the dream failed.
        missing: Whether an answer of a reader is missing.
    """

    case: str
    done: list[str] = field(default_factory=list[str])
    open: list[str] = field(default_factory=list[str])
    tentative: list[str] = field(default_factory=list[str])
    wrong_dates: list[str] = field(default_factory=list[str])
    lost: list[str] = field(default_factory=list[str])
    facts: dict[str, Fact] = field(default_factory=dict[str, Fact])
    before: dict[str, Fact] = field(default_factory=dict[str, Fact])
    controls: Counter[str] = field(default_factory=Counter[str])
    requests: int = 0
    error: str = ""
    missing: bool = False


async def said(scene: Scene, case: JSONObject) -> None:
    """Store a case's facts and its conversation."""
    for one in case["store"]:
        more = {name: value for name, value in one.items() if name not in ("key", "value")}
        await scene.knows(one["key"], one["value"], **more)
    for seq, one in enumerate(case["said"], 1):
        at = datetime.fromisoformat(one["at"] or case["at"]).replace(tzinfo=UTC)
        row = TranscriptRow(
            session="first",
            memory="wm0",
            seq=seq,
            message=f"m{seq}",
            role=one["role"],
            text=one["text"],
            at=at + timedelta(minutes=seq),
            name=one.get("name") or "",
        )
        await scene.provider.append(STORE.agent, STORE.scope, [row])


def handing_in(case: JSONObject, verify: Callable[[JSONObject], Awaitable[Answer]]) -> Script:
    """Return a model that hands in what a case says, and verifies as it is told."""
    texts = {f"a{place}": one["text"] for place, one in enumerate(case["said"], 1)}

    def sent(request: JSONObject, items: Sequence[JSONObject]) -> list[JSONObject]:
        names = {line["statement"]: line["f"] for line in blocks_of(request).get("FINDINGS", [])}
        made: list[JSONObject] = []
        for item in items:
            change = {name: item[name] for name in SENT if item.get(name) not in (None, "", [])}
            meant = [case["findings"][int(name[1:]) - 1] for name in item.get("findings", [])]
            change["findings"] = [
                names[one["statement"]] for one in meant if one["statement"] in names
            ]
            cited = [name for name in change.get("evidence", []) if name in texts]
            if not change["findings"] and cited:
                change.setdefault("quote", texts[cited[0]][:290])
            made.append(change)
        return made

    async def consolidate(request: JSONObject) -> Answer:
        return changes(*sent(request, case["changes"]), summary="Worked in what was said.")

    async def prune(request: JSONObject) -> Answer:
        return changes(*sent(request, case["prune"]))

    groups = [[one["key"], *one["sources"]] for one in case["changes"] if one["op"] == "merge"]
    looked: JSONObject = {"duplicates": groups, **case["orient"]}
    if not case["findings"] and not groups and not case["orient"]:
        looked["stale"] = [{"key": one["key"], "why": "out of date"} for one in case["changes"]]
    return Script(
        orient=orientation(**looked),
        gather_signal=[findings(*case["findings"])] * 2,
        consolidate=[consolidate] * 3,
        prune=[prune] * 3,
        verify=[verify] * 9,
    )


def scripted(case: JSONObject, how: Verifying) -> Script:
    """Return a model with a verifier that is right, says yes to all, or answers garbage."""

    async def verify(request: JSONObject) -> Answer:
        if how == "garbage":
            return says("I think that all is well.")
        made = [
            {"n": line["n"], **dict.fromkeys(QUESTIONS, "yes"), "by": line["trust"]}
            | ({} if how == "yes" or _holds(line, case) else {"said": "no"})
            for line in blocks_of(request)["CHANGES"]
        ]
        return calls((VERDICTS, {"verdicts": made}))

    return handing_in(case, verify)


def _holds(line: JSONObject, case: JSONObject) -> bool:
    """Tell if a line of a verify request is a change of a good case, and not altered."""
    if case["set"] != "good":
        return False
    same = [one for one in [*case["changes"], *case["prune"]] if one["key"] == line["key"]]
    if line["op"] in ("remove", "confirm"):
        stored = {one["key"]: one["value"] for one in case["store"]}
        return bool(same) and line.get("old") == stored.get(line["key"])
    return any(one.get("value") == line.get("new") for one in same)


@dataclass(kw_only=True)
class Reader:
    """Recorded answers of a reader, and the requests that still wait for one.

    Attributes:
        path: Where the answers are stored.
        ask: A folder for requests without an answer, if there is one.
        answers: By a digest of the request.
    """

    path: Path
    ask: Path | None = None
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])

    @classmethod
    def load(cls, run: str, ask: Path | None) -> "Reader":
        """Load what was recorded, and what was answered in the folder since."""
        reader = cls(path=READERS / f"{run}-{PROMPT_VERSION}.json", ask=ask)
        if reader.path.exists():
            reader.answers = json.loads(reader.path.read_text())["answers"]
        for answer in sorted(ask.glob("*.answer.json")) if ask else ():
            reader.answers[answer.name.split(".")[0]] = json.loads(answer.read_text())
        return reader

    def save(self, said: str) -> None:
        """Store the answers with the prompt version and who gave them."""
        self.path.parent.mkdir(exist_ok=True)
        kept = {"prompt_version": PROMPT_VERSION, "reader": said, "answers": self.answers}
        self.path.write_text(json.dumps(kept, ensure_ascii=False, indent=1, sort_keys=True) + "\n")

    async def __call__(self, request: JSONObject) -> Answer:
        """Answer a request from the record.

        Raises:
            Unanswered: There is no answer; the request is written to the folder.
        """
        text = "\n\n".join(str(message["content"]) for message in request["messages"])
        name = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        answer = self.answers.get(name)
        if answer is None:
            if self.ask:
                self.ask.mkdir(parents=True, exist_ok=True)
                (self.ask / f"{name}.txt").write_text(_as_text(request))
            raise Unanswered(name)
        tool, arguments = cast("Any", answer)["tool"], cast("Any", answer)["arguments"]
        return calls((tool, arguments))


def _as_text(request: JSONObject) -> str:
    """Write a request for a person: its system text, its tools and its messages."""
    tools = json.dumps([tool["function"] for tool in request["tools"]], ensure_ascii=False)
    parts = [f"[{message['role']}]\n{message['content']}" for message in request["messages"]]
    return "\n\n".join([*parts, f"[tools]\n{tools}", f"[tool_choice] {request['tool_choice']}"])


async def dreamt(case: JSONObject, ask: Asker, count: Callable[[], int]) -> Outcome:
    """Dream a case and say what came of it."""
    scene = await Scene.make()
    outcome = Outcome(case=case["id"])
    await said(scene, case)
    outcome.before = await known(scene)
    at = datetime.fromisoformat(case["at"]).replace(tzinfo=UTC) + timedelta(hours=1)
    try:
        report = await scene.dream(ask, DreamLimits(keys=case["cap"]), at)
    except Unanswered:
        outcome.missing = True
        return outcome
    except Exception as error:
        outcome.error = f"{type(error).__name__}: {error}"
        return outcome
    finally:
        outcome.facts = await known(scene)
        outcome.requests = count()
    record = await scene.provider.dream(STORE.agent, STORE.scope, report.dream)
    await scene.provider.close()
    kept = Kept.model_validate(record.data if record else {"day": ""})
    outcome.controls = Counter(shown=kept.checked.controls, passed=kept.checked.passed)
    drafted = {one["key"]: one for one in kept.draft.get("changes", [])}
    wanted = [*case["changes"], *case["prune"]]
    for change in wanted:
        last = drafted.get(change["key"], {})
        reason = f"{change['op']} {change['key']}: {last.get('status', 'never handed in')}"
        line = f"{reason} {last.get('code', '')} {last.get('message', '')}".strip()
        (outcome.done if _took_place(change, outcome) else outcome.open).append(line)
        fact = outcome.facts.get(change["key"])
        when = f"{fact.valid_from}/{fact.valid_to}".strip("/") if fact else ""
        meant = change.get("happened", "")
        if fact and fact.value == change.get("value") and meant and when != meant:
            outcome.wrong_dates.append(f"{change['key']}: {when}, not {meant}")
    outcome.tentative = [key for key, fact in outcome.facts.items() if fact.state == "tentative"]
    going = {one["key"] for one in wanted if one["op"] == "remove"}
    going |= {key for one in wanted for key in one.get("sources", [])}
    outcome.lost = [key for key in outcome.before if key not in outcome.facts and key not in going]
    return outcome


async def known(scene: Scene) -> dict[str, Fact]:
    """Return the facts of the scope by key."""
    return {fact.key: fact for fact in await scene.provider.entries(STORE.agent, STORE.scope)}


def _took_place(change: JSONObject, outcome: Outcome) -> bool:
    fact = outcome.facts.get(change["key"])
    if change["op"] == "remove":
        return change["key"] in outcome.before and fact is None
    if fact is None or fact.state != "settled":
        return False
    if change["op"] == "confirm":
        return True
    others = [key for key in change.get("sources", []) if key != change["key"]]
    return fact.value == change["value"] and not any(key in outcome.facts for key in others)


def table(title: str, cases: Sequence[JSONObject], outcomes: Sequence[Outcome]) -> str:
    """Return what came of the cases, as lines: counts first, then each exception."""
    lines = [title]
    by = {outcome.case: outcome for outcome in outcomes}
    for name in ("good", "bad"):
        mine = [by[case["id"]] for case in cases if case["set"] == name]
        there = [one for one in mine if not one.missing]
        whole = sum(not one.open and not one.error for one in there)
        through = sum(bool(one.done) for one in there)
        tentative = sum(bool(one.tentative) for one in there)
        lines.append(
            f"  {name}: {len(there)} of {len(mine)} cases; all applied in {whole}, "
            f"any in {through}; not confirmed in {tentative}; other dates in "
            f"{sum(bool(one.wrong_dates) for one in there)}; lost facts in "
            f"{sum(bool(one.lost) for one in there)}; "
            f"failed {sum(bool(one.error) for one in there)}"
        )
        for one in there:
            told = [*one.open, *one.wrong_dates] if name == "good" else [*one.done, *one.lost]
            lines += [f"    {one.case}: {line}" for line in (*told, *filter(None, [one.error]))]
    controls = sum((one.controls for one in outcomes), Counter[str]())
    lines.append(f"  altered changes: {controls['shown']} shown, {controls['passed']} not noticed")
    return "\n".join(lines)


async def plumbing(cases: Sequence[JSONObject]) -> str:
    """Run the scripted verifiers."""
    tables: list[str] = []
    for how in ("right", "yes", "garbage"):
        made: list[Outcome] = []
        for case in cases:
            script = scripted(case, how)
            made.append(await dreamt(case, script, lambda s=script: len(s.requests)))
        tables.append(table(f"verifier: {how}", cases, made))
    return "\n".join(tables)


async def verifier(cases: Sequence[JSONObject], ask: Path | None) -> str:
    """Put the cases' own changes before a reader who sees verify requests only."""
    reader = Reader.load("verifier", ask)
    made: list[Outcome] = []
    for case in cases:
        script = handing_in(case, reader)
        made.append(await dreamt(case, script, lambda s=script: len(s.requests)))
    if ask and reader.answers:
        reader.save("a strong reader who saw these requests alone")
    return table("verifier: a strong reader", cases, made)


async def reader(cases: Sequence[JSONObject], ask: Path | None) -> str:
    """Put a reader in the model's place for whole dreams."""
    strong = Reader.load("reader", ask)
    made: list[Outcome] = []
    asked: Counter[str] = Counter()

    async def answer(request: JSONObject) -> Answer:
        asked[phase_of(request)] += 1
        return await strong(request)

    for case in cases:
        made.append(await dreamt(case, answer, lambda: 0))
    if ask and strong.answers:
        strong.save("a strong reader in the model's place")
    lines = [table("whole dreams: a strong reader", cases, made), f"  requests: {dict(asked)}"]
    for one in made:
        if not one.missing:
            shown = {
                key: f"{fact.value!r}{' (not confirmed)' if fact.state == 'tentative' else ''}"
                for key, fact in one.facts.items()
            }
            lines.append(f"  {one.case}: {shown}")
    return "\n".join(lines)


def main(arguments: Iterable[str]) -> None:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", choices=["plumbing", "verifier", "reader"])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--ask", type=Path, help="write requests without an answer there")
    parser.add_argument("--only", nargs="*", default=[], help="these cases alone, by id")
    chosen = parser.parse_args(list(arguments))
    cases = [
        case
        for case in json.loads(chosen.cases.read_text())
        if not chosen.only or case["id"] in chosen.only
    ]
    runs: dict[str, Callable[[], Any]] = {
        "plumbing": lambda: plumbing(cases),
        "verifier": lambda: verifier(cases, chosen.ask),
        "reader": lambda: reader(cases, chosen.ask),
    }
    sys.stdout.write(f"{asyncio.run(runs[chosen.run]())}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
