"""Parts for tests of agents: a model endpoint that answers by a script, and the strict rules."""

from agentmem.testing.replies import Call, Reply, call, fail, hang, reply, reset
from agentmem.testing.request import Request
from agentmem.testing.scripted import ScriptedModel

__all__ = [
    "Call",
    "Reply",
    "Request",
    "ScriptedModel",
    "call",
    "fail",
    "hang",
    "reply",
    "reset",
]
