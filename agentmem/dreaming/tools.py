"""The seven tools of a dream, the same in every phase, and which phase may use which.

They stand in one fixed order with the same bytes in every request, so that prompt caches hold.
No schema requires what code can supply: weak models leave much out. Agent, scope, versions and
the dream's id are never theirs to name.
"""

from agentmem.contracts import PhaseName
from agentmem.values import JSONObject

SUBMIT: dict[PhaseName, str] = {
    "orient": "submit_orientation",
    "gather_signal": "submit_findings",
    "consolidate": "submit_changes",
    "prune": "submit_changes",
}
"""The tool that a phase hands in with."""

READING = frozenset({"recall_memory", "list_memory_keys"})
WRITING = frozenset({"store_memory", "forget_memory"})
WRITERS: frozenset[PhaseName] = frozenset({"consolidate", "prune"})
"""The phases that may change the draft; those that read the transcript may not."""

MAX_FINDINGS = 40
MAX_CHANGES = 100


def allowed(phase: PhaseName) -> frozenset[str]:
    """Return the tools that a phase may use; any other call is refused, and counts."""
    writing = WRITING if phase in WRITERS else frozenset[str]()
    return READING | writing | {SUBMIT[phase]}


def _text(description: str, *choices: str) -> JSONObject:
    return {"type": "string", "description": description} | (
        {"enum": list(choices)} if choices else {}
    )


def _list(items: JSONObject, description: str, most: int | None = None) -> JSONObject:
    bound: JSONObject = {} if most is None else {"maxItems": most}
    return {"type": "array", "items": items, "description": description} | bound


def _object(required: list[str], **properties: JSONObject) -> JSONObject:
    return {"type": "object", "properties": properties, "required": required}


def _tool(name: str, description: str, parameters: JSONObject) -> JSONObject:
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


# A description stands once, in the submit tools; here names say enough, and bytes are paid for in
# every request.
_PLAIN: JSONObject = {"type": "string"}
_NAMES: JSONObject = {"type": "array", "items": _PLAIN}
_EVIDENCE = _list(_PLAIN, "Ids of the messages that say it, like a12. At most 8.", most=8)
_HAPPENED = _text("When it happened: ISO day, month, year, or interval 2026-05-03/2026-05-09.")
_WORDS = _text("The time words as they were said, like yesterday.")
_IMPORTANCE: JSONObject = {"type": "integer", "description": "1 (trivia) to 5 (vital)."}
_VALUE = _text("The fact in one sentence or a few words.")
_REASONS: JSONObject = _PLAIN | {
    "enum": [
        "new",
        "correction",
        "decision",
        "duplicate",
        "condensed",
        "superseded",
        "expired",
        "retracted",
        "asked_to_forget",
    ]
}
_BY = _text("The key that stays and holds what this one said.")
_SOURCES = _list(_PLAIN, "Keys that the new value takes in; they go. Makes it a merge.")

_FINDING = _object(
    ["statement"],
    kind=_text(
        "What it is. repeated: an entity in three or more messages. stale: a stored fact that is "
        "no longer right, like one that a tool error contradicts.",
        "correction",
        "decision",
        "preference",
        "profile",
        "event",
        "repeated",
        "stale",
        "retraction",
    ),
    statement=_text("It, in one sentence of at most 300 characters, with absolute dates."),
    about=_text("Whom it concerns.", "user", "agent", "project", "other"),
    keys=_list(_PLAIN, "Stored keys that it touches. At most 5.", most=5),
    evidence=_EVIDENCE,
    quote=_text("The words that say it, copied, at most 200 characters."),
    happened=_HAPPENED,
    words=_WORDS,
    importance=_IMPORTANCE,
)
_CHANGE = _object(
    ["op", "key"],
    op=_text("What to do.", "add", "update", "merge", "remove", "confirm"),
    key=_PLAIN,
    value=_VALUE,
    sources=_SOURCES,
    by=_BY,
    reason=_REASONS,
    findings=_list(_PLAIN, "Ids of the findings that it rests on, like f1."),
    evidence=_EVIDENCE,
    happened=_HAPPENED,
    words=_WORDS,
    importance=_IMPORTANCE,
)

TOOLS: list[JSONObject] = [
    _tool(
        "recall_memory",
        "Read facts in full.",
        _object(["keys"], keys=_list(_PLAIN, "At most 50.", most=50)),
    ),
    _tool(
        "list_memory_keys",
        "List the keys of all facts, in order.",
        _object([], after=_text("Begin after this key.")),
    ),
    _tool(
        "store_memory",
        "Add a fact, or change the fact of that key. Fields as in submit_changes.",
        _object(
            ["key", "value"],
            key=_PLAIN,
            value=_PLAIN,
            evidence=_NAMES,
            reason=_REASONS,
            sources=_NAMES,
            happened=_PLAIN,
            words=_PLAIN,
            importance={"type": "integer"},
        ),
    ),
    _tool(
        "forget_memory",
        "Remove a fact. Fields as in submit_changes.",
        _object(["key"], key=_PLAIN, reason=_REASONS, by=_PLAIN, evidence=_NAMES),
    ),
    _tool(
        "submit_orientation",
        "Hand in the phase orient. Empty lists are a good answer.",
        _object(
            [],
            duplicates=_list(_NAMES, "Groups of keys that say the same."),
            contradictions=_list(
                _object(["keys"], keys=_NAMES, why=_PLAIN), "Keys that cannot all be true."
            ),
            stale=_list(
                _object(["key"], key=_PLAIN, why=_PLAIN), "Keys that have passed their time."
            ),
            too_long=_list(_PLAIN, "Keys whose values want condensing."),
            topics=_list(_PLAIN, "What the facts are about. At most 12.", most=12),
        ),
    ),
    _tool(
        "submit_findings",
        "Hand in the phase gather_signal. An empty list is a good answer.",
        _object(["findings"], findings=_list(_FINDING, "At most 40.", most=MAX_FINDINGS)),
    ),
    _tool(
        "submit_changes",
        "Hand in the phases consolidate and prune. An empty list is a good answer.",
        _object(
            ["changes"],
            changes=_list(_CHANGE, "At most 100.", most=MAX_CHANGES),
            summary=_text("What was done, for people, in one or two sentences."),
        ),
    ),
]
