"""What the offline model says where a summary is asked for: none, but what the user said."""

from collections.abc import Sequence

from agentmem.models.summaries import INSTRUCTIONS

OPENING = "By fixed rules, no summary of a model's. The user said:"

_ASKED = INSTRUCTIONS.partition("{words}")[0]
_SAID = "User: "
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
    for line in messages[-1][1].splitlines():
        if line.startswith(OPENING):
            said += line.removeprefix(OPENING).strip().split(" | ")
        elif line.startswith(_SAID):
            said.append(line.removeprefix(_SAID)[:_LINE].rstrip(" ."))
    return f"{OPENING} {' | '.join(said[-_LINES:])}"
