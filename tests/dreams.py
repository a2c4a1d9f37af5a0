"""A scope to dream in, a scripted model for its phases, and a dream run without a server."""

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, cast

from agentmem.contracts import (
    PHASES,
    Begun,
    DreamInput,
    DreamLimits,
    DreamReport,
    Mode,
    PhaseName,
    PhaseResult,
    PhaseRun,
    ScopeRef,
)
from agentmem.dreaming.begin import Opening, open_dream
from agentmem.dreaming.commit import commit_dream
from agentmem.dreaming.model_replies import Asker
from agentmem.dreaming.phases import run_phase
from agentmem.dreaming.prompts import SYSTEM, read_blocks
from agentmem.dreaming.submissions import objects_in
from agentmem.dreaming.tools import SUBMIT
from agentmem.dreaming.verification import QUESTIONS, VERIFY
from agentmem.dreaming.verification import SUBMIT as VERDICTS
from agentmem.facts import Evidence, Write
from agentmem.records import TranscriptRow
from agentmem.storage.sql.provider import SqlProvider
from agentmem.storage.sqlite import SqliteDatabase
from agentmem.testing import Call, Reply, Request, reply
from agentmem.wire import JSONObject, JSONValue

STORE = ScopeRef(provider="in_memory:tests", agent="assistant", scope="user-1")
NOON = datetime(2026, 3, 25, 12, tzinfo=UTC)

Answer = JSONObject
Line = Callable[[JSONObject], Awaitable[Answer]]


def calls(*made: tuple[str, JSONObject]) -> Answer:
    """A reply that makes these tool calls."""
    tool_calls = [
        {
            "id": f"x{number}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for number, (name, arguments) in enumerate(made)
    ]
    return _answer({"role": "assistant", "content": None, "tool_calls": tool_calls}, "tool_calls")


def verdicts(request: JSONObject, **answers: str) -> Answer:
    """Verdicts on all changes of a verify request: yes to all questions but for `answers`."""
    made = [
        {"n": line["n"], **dict.fromkeys(QUESTIONS, "yes"), "by": "user"} | answers
        for line in blocks_of(request)["CHANGES"]
    ]
    return calls((VERDICTS, {"verdicts": made}))


def says(text: str, finish: str = "stop") -> Answer:
    """A reply of text alone."""
    return _answer({"role": "assistant", "content": text}, finish)


def orientation(**found: Any) -> Answer:
    """A hand-in of orient."""
    return calls(("submit_orientation", found))


def findings(*found: JSONObject) -> Answer:
    """A hand-in of gather signal."""
    return calls(("submit_findings", {"findings": list(found)}))


def changes(*made: JSONObject, summary: str = "") -> Answer:
    """A hand-in of consolidate or prune."""
    return calls(("submit_changes", {"changes": list(made), "summary": summary}))


def _answer(message: JSONObject, finish: str) -> Answer:
    usage = {"prompt": 1000, "completion": 100, "cached": 500, "cost": 0.01}
    return {"message": message, "finish": finish, "usage": usage}


def served(script: "Script", answer: str = "Noted.") -> Callable[[Request], Awaitable[Reply]]:
    """Serve dreams by a script over HTTP, and any other request by one answer.

    An answer of the script may also be a `Reply`, an error for example.
    """

    async def serve(request: Request) -> Reply:
        if request.messages[0]["content"] not in (SYSTEM, VERIFY):
            return reply(answer)
        data: Any = await script(request.body)
        if isinstance(data, Reply):
            return data
        made = [
            Call(call["function"]["name"], call["function"]["arguments"])
            for call in data["message"].get("tool_calls", [])
        ]
        return reply(data["message"]["content"], calls=made, finish=data["finish"])

    return serve


def phase_of(request: JSONObject) -> PhaseName | Literal["verify"]:
    """Tell which phase a request belongs to, or that it verifies changes."""
    messages = request["messages"]
    place = 1 if messages[0]["content"] == VERIFY else 2
    return cast("PhaseName", messages[place]["content"].split()[1])


def blocks_of(request: JSONObject) -> dict[str, list[JSONObject]]:
    """Read the blocks of data of a request, the shared ones too."""
    messages = request["messages"]
    first = read_blocks(messages[1]["content"])
    return (
        first if messages[0]["content"] == VERIFY else first | read_blocks(messages[2]["content"])
    )


class Script:
    """Answers each phase from a list; where it has none, the phase hands in nothing new.

    Verify requests without an answer of their own get the right one: yes to what this script
    handed in, and no to what it did not, which is the control. What cites a message without a
    quote quotes the whole message.

    Attributes:
        answers: What it will answer, by phase.
        requests: What it was asked, oldest first.
    """

    def __init__(self, **answers: Sequence[Answer | Line | Reply] | Answer | Line) -> None:
        self.answers: dict[str, list[Any]] = {
            name: list(cast("list[Any]", found)) if isinstance(found, list) else [found]
            for name, found in answers.items()
        }
        self.requests: list[JSONObject] = []
        self._true = set[tuple[str, str]]()
        self._said = dict[str, str]()
        self._ends = set[tuple[str, str]]()

    async def __call__(self, request: JSONObject) -> JSONObject:
        """Answer a request."""
        # As it would travel: a later change of the lists must not change what was asked.
        self.requests.append(json.loads(json.dumps(request)))
        phase = phase_of(request)
        left = self.answers.get(phase)
        if phase != "verify":
            blocks = blocks_of(request)
            facts = [*blocks.get("FACTS", []), *blocks.get("VALUES", [])]
            told = [*blocks.get("TRANSCRIPT", []), *blocks.get("MESSAGES", [])]
            self._said |= {line["id"]: line["text"] for line in told if "text" in line}
            self._true.update((line["k"], _as_text(line["v"])) for line in facts if "v" in line)
        elif not left:
            return self._verdicts(request)
        if not left:
            empty: JSONObject = {"findings": [], "changes": []}
            return calls((SUBMIT[cast("PhaseName", phase)], empty))
        given: Answer | Line | Reply = left.pop(0)
        if callable(given):
            given = await given(request)
        if isinstance(given, Reply):
            return cast("JSONObject", given)
        answer: Answer = json.loads(json.dumps(given))
        self._quote(answer)
        self._note(answer)
        return answer

    def _quote(self, answer: Answer) -> None:
        """Copy the cited message where the script leaves its quote out."""
        for call in answer["message"].get("tool_calls") or ():
            try:
                arguments = json.loads(call["function"]["arguments"])
            except ValueError:
                continue
            if not isinstance(arguments, dict):
                continue
            lines = cast("JSONObject", arguments)
            items: list[Any] = [lines]
            for name in ("findings", "changes"):
                found = lines.get(name)
                items += cast("list[Any]", found) if isinstance(found, list) else []
            for item in items:
                if not isinstance(item, dict) or "quote" in item or item.get("findings"):
                    continue
                line = cast("JSONObject", item)
                cited = line.get("evidence")
                names = cast("list[Any]", cited) if isinstance(cited, list) else []
                said = [self._said[name] for name in names if name in self._said]
                if said:
                    line["quote"] = said[0][:120]
            call["function"]["arguments"] = json.dumps(lines)

    def _note(self, answer: Answer) -> None:
        """Note what was handed in: it is true in this script's world."""
        texts = [
            call["function"]["arguments"] for call in answer["message"].get("tool_calls") or ()
        ]
        handed = [one for text in texts for one in objects_in(text)]
        for arguments in handed or objects_in(answer["message"]["content"] or ""):
            made = arguments.get("changes")
            for change in [*(cast("list[Any]", made) if isinstance(made, list) else ()), arguments]:
                if isinstance(change, dict):
                    line = cast("JSONObject", change)
                    self._true.add((str(line.get("key")), _as_text(line.get("value"))))
                    self._ends.add((str(line.get("key")), str(line.get("until") or "")))

    def _verdicts(self, request: JSONObject) -> Answer:
        lines = blocks_of(request)["CHANGES"]
        made = [
            {"n": line["n"], **dict.fromkeys(QUESTIONS, "yes"), "by": "user"}
            | ({} if self._is_true(line) else {"exact": "no", "why": "nobody said so"})
            | ({"by": line["trust"]})
            for line in lines
        ]
        return calls((VERDICTS, {"verdicts": made}))

    def _is_true(self, line: JSONObject) -> bool:
        if line["op"] == "remove":
            stays = all(
                (key, _as_text(value)) in self._true for key, value in line.get("stays", {}).items()
            )
            return stays and (line["key"], line.get("until", "")) in self._ends
        return (line["key"], _as_text(line.get("new", line.get("old")))) in self._true

    def before(self, phase: PhaseName | Literal["verify"], *answers: Answer | Line | Reply) -> None:
        """Answer so first in that phase."""
        self.answers[phase] = [*answers, *self.answers.get(phase, [])]

    def of(self, phase: PhaseName | Literal["verify"]) -> list[JSONObject]:
        """Return the requests of a phase."""
        return [request for request in self.requests if phase_of(request) == phase]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass
class Scene:
    """A scope with facts and a conversation, on a real SQLite database in memory.

    Attributes:
        provider: The store.
        results: What the phases of the last dream reported.
    """

    provider: SqlProvider
    results: dict[str, PhaseResult] = field(default_factory=dict[str, PhaseResult])
    _said: int = 0
    _dreams: int = 0

    @classmethod
    async def make(cls) -> "Scene":
        """Open an empty store."""
        provider = SqlProvider(SqliteDatabase(None))
        await provider.open()
        return cls(provider)

    async def knows(self, key: str, value: JSONValue, **fields: Any) -> None:
        """Store a fact that was said long ago."""
        long_ago = NOON - timedelta(days=90)
        witness = Evidence(session="old", memory="wm0", message="m0", said_at=long_ago)
        known: JSONObject = {"writer": "dream", "said_at": long_ago, "evidence": [witness]}
        write = Write(key=key, value=value, **(known | fields))
        await self.provider.write(STORE.agent, STORE.scope, [write])

    async def said(
        self,
        text: str,
        role: str = "user",
        at: datetime = NOON - timedelta(hours=2),
        session: str = "run-1",
        **fields: Any,
    ) -> None:
        """Append a message to the transcript."""
        self._said += 1
        row = TranscriptRow(
            session=session,
            memory="wm0",
            seq=self._said,
            message=f"m{self._said}",
            role=role,
            text=text,
            at=at + timedelta(seconds=self._said),
            **fields,
        )
        await self.provider.append(STORE.agent, STORE.scope, [row])

    async def facts(self) -> dict[str, JSONValue]:
        """Return all facts."""
        return await self.provider.recall(STORE.agent, STORE.scope)

    async def begin(
        self,
        limits: DreamLimits | None = None,
        now: datetime = NOON,
        dream: str = "",
        mode: Mode = "commit",
    ) -> Begun:
        """Open a dream."""
        self._dreams += 1
        request = DreamInput(
            agent=STORE.agent, scope=STORE.scope, limits=limits or DreamLimits(), mode=mode
        )
        opening = Opening(
            dream=dream or f"dream-{self._dreams}",
            store=STORE,
            model="scripted",
            zone="UTC",
            now=now,
        )
        return await open_dream(self.provider, request, opening)

    async def phase(
        self,
        name: PhaseName,
        begun: Begun,
        script: Asker,
        limits: DreamLimits | None = None,
        verifier: str = "",
    ) -> PhaseResult:
        """Run one phase."""
        limits = limits or DreamLimits()
        phase = PhaseRun(
            dream=begun.dream,
            store=STORE,
            model=begun.model,
            limit=getattr(limits, name),
            keys=limits.keys,
            verifier=verifier,
        )
        self.results[name] = await run_phase(name, phase, self.provider, script)
        return self.results[name]

    async def dream(
        self,
        script: Asker,
        limits: DreamLimits | None = None,
        now: datetime = NOON,
        mode: Mode = "commit",
    ) -> DreamReport:
        """Dream: open, four phases, commit."""
        begun = await self.begin(limits, now, mode=mode)
        if begun.status != "ready":
            return DreamReport(status=begun.status, reason=begun.reason)
        for name in PHASES:
            await self.phase(name, begun, script, limits)
        return await self.commit(begun, limits)

    async def commit(self, begun: Begun, limits: DreamLimits | None = None) -> DreamReport:
        """Commit a dream."""
        keys = (limits or DreamLimits()).keys
        phase = PhaseRun(dream=begun.dream, store=STORE, model=begun.model, limit=1, keys=keys)
        return await commit_dream(self.provider, phase)
