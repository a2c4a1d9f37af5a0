"""The offline model's reply where a summary is asked for: no summary, but what the user said."""

import json
from collections.abc import Sequence

from agentmem.models.plain import as_mapping
from agentmem.models.summaries import INSTRUCTIONS

OPENING = "By fixed rules, no summary of a model's. The user said:"

_ASKED = INSTRUCTIONS.partition("{words}")[0]
_LINE = 100
_LINES = 20


def summarised(messages: Sequence[tuple[str, str]]) -> str:
    """Return what stands for a summary; empty if these messages do not ask for one.

    Args:
        messages: Roles and texts of a request.
    """
    if not messages or messages[0][0] != "system" or not messages[0][1].startswith(_ASKED):
        return ""
    said: list[str] = []
    for line in messages[-1][1].split("\n")[1:-1]:
        message = as_mapping(json.loads(line))
        text = str(message.get("text", ""))
        if text.startswith(OPENING):
            said += text.removeprefix(OPENING).strip().split(" | ")
        elif message.get("from") == "user":
            said.append(" ".join(text.split())[:_LINE].rstrip(" ."))
    return f"{OPENING} {' | '.join(said[-_LINES:])}"
