"""What travels between workflows and activities, and the activities' declarations.

The functions here declare an activity's name and types for workflow code; `activities/` holds
what they do. Names are frozen: they stand in the histories of running sessions.
"""

from agentmem.contracts.agents import (
    AgentInput,
    Answer,
    Definition,
    MemorySettings,
    Resolve,
    RunLimits,
    resolve,
)
from agentmem.contracts.calls import (
    MESSAGES_QUERY,
    PAGE_BYTES,
    ModelCall,
    ModelReply,
    Page,
    Prompt,
    Store,
    ToolRun,
    ToolSpec,
    Usage,
    model,
)
from agentmem.contracts.compaction import Compact, compact
from agentmem.contracts.dream_settings import (
    PHASES,
    DreamLimits,
    DreamSettings,
    Mode,
    PhaseName,
    Phases,
    PhaseSettings,
)
from agentmem.contracts.dreams import (
    Begun,
    DreamInput,
    DreamReport,
    Phase,
    PhaseResult,
    Trace,
    begin,
    commit,
    consolidate,
    gather_signal,
    orient,
    prune,
)
from agentmem.contracts.hand_over import (
    LACKING_QUERY,
    Delivered,
    Delivery,
    HandOver,
    Lacking,
    hand_over,
)
from agentmem.contracts.memory import (
    Append,
    Fetch,
    append,
    forget,
    keys,
    memorize,
    recall,
    scopes,
)

TASK_QUEUE = "agentmem"

SEARCH_ATTRIBUTES = ("AgentMemAgent", "AgentMemScope", "AgentMemOutcome")
"""Keywords that dreams carry where the server knows them."""

__all__ = [
    "LACKING_QUERY",
    "MESSAGES_QUERY",
    "PAGE_BYTES",
    "PHASES",
    "SEARCH_ATTRIBUTES",
    "TASK_QUEUE",
    "AgentInput",
    "Answer",
    "Append",
    "Begun",
    "Compact",
    "Definition",
    "Delivered",
    "Delivery",
    "DreamInput",
    "DreamLimits",
    "DreamReport",
    "DreamSettings",
    "Fetch",
    "HandOver",
    "Lacking",
    "MemorySettings",
    "Mode",
    "ModelCall",
    "ModelReply",
    "Page",
    "Phase",
    "PhaseName",
    "PhaseResult",
    "PhaseSettings",
    "Phases",
    "Prompt",
    "Resolve",
    "RunLimits",
    "Store",
    "ToolRun",
    "ToolSpec",
    "Trace",
    "Usage",
    "append",
    "begin",
    "commit",
    "compact",
    "consolidate",
    "forget",
    "gather_signal",
    "hand_over",
    "keys",
    "memorize",
    "model",
    "orient",
    "prune",
    "recall",
    "resolve",
    "scopes",
]
