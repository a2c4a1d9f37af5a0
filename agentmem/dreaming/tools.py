"""The seven tools of a dream, the same in every phase, and which phase may use which.

They come in one fixed order with the same bytes in every request, so that prompt caches work. A
model with a small context gets only those that its phase allows. No schema requires what code can
supply, since weak models leave much out. Models never name agent, scope, versions or the dream.
"""

from agentmem.contracts import PhaseName
from agentmem.wire import JSONObject

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


def offered(phase: PhaseName, *, small: bool) -> list[JSONObject]:
    """Return the tools of a phase's requests: all of them, or for a small context the allowed."""
    if not small:
        return TOOLS
    return [tool for tool in TOOLS if tool["function"]["name"] in allowed(phase)]


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


# A field is described once, in the submit tools; elsewhere its name says enough, and bytes are
# paid for in every request.
_PLAIN: JSONObject = {"type": "string"}
_NAMES: JSONObject = {"type": "array", "items": _PLAIN}
_EVIDENCE = _list(_PLAIN, "Ids of the messages that say it, like a12. At most 8.", most=8)
_QUOTE = _text(
    "The words of one cited message that hold the content, copied exactly, in its language. Leave "
    "gaps with ... if you must."
)
_AGREED = _text("Only if the assistant said it: the id of the user's next message, which agrees.")
_ABOUT = _text(
    "Whom it concerns: the user and their own people, pets and things; agent: a rule for you; "
    "project: what you work on together; other: somebody else.",
    "user",
    "agent",
    "project",
    "other",
)
_HAPPENED = _text(
    "The day of an event, or the day that a plan is for: ISO day, month, year, or interval "
    "2026-05-03/2026-05-09. Empty for what holds in general."
)
_UNTIL = _text(
    "The last day on which the fact is of use, ISO, like the end of an offer. Empty if it has none."
)
_IMPORTANCE: JSONObject = {"type": "integer", "description": "1 (trivia) to 5 (vital)."}
_VALUE = _text("The fact in one sentence or a few words.")
_REASONS: JSONObject = {
    "type": "string",
    "enum": [
        "new",
        "correction",
        "decision",
        "superseded",
        "duplicate",
        "condensed",
        "expired",
        "retracted",
        "asked_to_forget",
    ],
    "description": "correction: the old value was never true. superseded, decision: it was true, "
    "and no longer is.",
}
_BY = _text("For a removal: the key that stays and says the same, or what replaced it.")
_SOURCES = _list(_PLAIN, "The other keys that a merge takes in; they go.")

_FINDING = _object(
    ["statement", "evidence", "quote"],
    kind=_text(
        "repeated: somebody or something named in three or more messages. stale: a stored fact "
        "that is no longer right. retraction: what the user takes back.",
        "correction",
        "decision",
        "preference",
        "profile",
        "event",
        "plan",
        "repeated",
        "stale",
        "retraction",
    ),
    statement=_text("It, in one sentence of at most 300 characters, with absolute dates."),
    about=_ABOUT,
    keys=_list(_PLAIN, "Stored keys that it touches. At most 5.", most=5),
    evidence=_EVIDENCE,
    quote=_QUOTE,
    agreed=_AGREED,
    happened=_HAPPENED,
    until=_UNTIL,
    importance=_IMPORTANCE,
)
_CHANGE = _object(
    ["op", "key"],
    op=_text(
        "add a new fact; update one to a new value; merge facts that say the same into one; "
        "condense one into fewer words; remove one; confirm one that was said again.",
        "add",
        "update",
        "merge",
        "condense",
        "remove",
        "confirm",
    ),
    key=_PLAIN,
    value=_VALUE,
    sources=_SOURCES,
    by=_BY,
    reason=_REASONS,
    findings=_list(_PLAIN, "Ids of the findings that it rests on, like f1: their evidence counts."),
    evidence=_list(_PLAIN, "Only without findings: ids of the messages that say it.", most=8),
    quote=_text("Only without findings: the words that say it, copied exactly."),
    about=_PLAIN,
    happened=_text("As in the finding."),
    until=_text("As in the finding. For a removal: the last day on which the fact was of use."),
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
            findings=_NAMES,
            evidence=_NAMES,
            quote=_PLAIN,
            reason=_PLAIN,
            sources=_NAMES,
            happened=_PLAIN,
            until=_PLAIN,
        ),
    ),
    _tool(
        "forget_memory",
        "Remove a fact. Fields as in submit_changes.",
        _object(
            ["key"],
            key=_PLAIN,
            reason=_PLAIN,
            by=_PLAIN,
            findings=_NAMES,
            evidence=_NAMES,
            quote=_PLAIN,
            until=_PLAIN,
        ),
    ),
    _tool(
        "submit_orientation",
        "Hand in the phase orient. Empty lists are a good answer. Example: "
        '{"duplicates":[["city","home_city"]],"stale":[{"key":"dentist","why":"was in May"}]}',
        _object(
            [],
            duplicates=_list(_NAMES, "Groups of keys that say the same of the same thing."),
            contradictions=_list(
                _object(["keys"], keys=_NAMES, why=_PLAIN), "Keys that cannot all be true."
            ),
            stale=_list(
                _object(["key"], key=_PLAIN, why=_PLAIN), "Keys that are of no use any more."
            ),
            too_long=_list(_PLAIN, "Keys whose values should be condensed."),
            topics=_list(_PLAIN, "What the facts are about. At most 12.", most=12),
        ),
    ),
    _tool(
        "submit_findings",
        "Hand in the phase gather_signal. An empty list is a good answer. Example: "
        '{"findings":[{"kind":"profile","statement":"Moved to Oslo on 2026-03-09","about":"user",'
        '"keys":["home_city"],"evidence":["a4"],"quote":"we moved to Oslo yesterday",'
        '"happened":"2026-03-09"}]}',
        _object(
            ["findings"],
            findings=_list(_FINDING, f"At most {MAX_FINDINGS}.", most=MAX_FINDINGS),
        ),
    ),
    _tool(
        "submit_changes",
        "Hand in the phases consolidate and prune. An empty list is a good answer. Examples: "
        '{"op":"add","key":"dog_name","value":"The dog is called Bo","reason":"new",'
        '"findings":["f1"]} '
        '{"op":"update","key":"home_city","value":"Lives in Oslo since 2026-03-09",'
        '"reason":"superseded","findings":["f2"]} '
        '{"op":"merge","key":"diet","value":"Vegan, no nuts","sources":["food"]} '
        '{"op":"remove","key":"town","by":"home_city","reason":"duplicate"} '
        '{"op":"confirm","key":"job","findings":["f3"]}',
        _object(
            ["changes"],
            changes=_list(_CHANGE, f"At most {MAX_CHANGES}.", most=MAX_CHANGES),
            summary=_text("What was done, for people, in one or two sentences."),
        ),
    ),
]
