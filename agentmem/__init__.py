"""Durable memory for LLM agents on Temporal.

Working memory lives in a workflow's history, long-term memory in a database, and dreams carry what
matters from one to the other.
"""

from agentmem.agent.api import Assistant, agent
from agentmem.contracts import (
    AgentInput,
    Answer,
    DreamInput,
    DreamLimits,
    DreamReport,
    PhaseSettings,
)
from agentmem.dreaming.hook import dream
from agentmem.dreaming.workflow import DreamWorkflow
from agentmem.errors import (
    AgentMemError,
    ConfigurationError,
    ContextOverflow,
    DreamFailed,
    InvalidFact,
    InvalidInput,
    ModelCallError,
    ModelUnavailable,
    ProviderError,
    RollingOver,
    SessionBusy,
    StoreUnavailable,
    ToolError,
    TurnFailed,
)
from agentmem.memory.long_term import LongTermMemory, long_term_memory
from agentmem.memory.redaction import redact
from agentmem.memory.references import in_memory, named, postgresql, provider, sqlite
from agentmem.memory.working import WorkingMemory, working_memory
from agentmem.storage.protocol import MemoryProvider, TransactionalProvider
from agentmem.tools import tool

__all__ = [
    "AgentInput",
    "AgentMemError",
    "Answer",
    "Assistant",
    "ConfigurationError",
    "ContextOverflow",
    "DreamFailed",
    "DreamInput",
    "DreamLimits",
    "DreamReport",
    "DreamWorkflow",
    "InvalidFact",
    "InvalidInput",
    "LongTermMemory",
    "MemoryProvider",
    "ModelCallError",
    "ModelUnavailable",
    "PhaseSettings",
    "ProviderError",
    "RollingOver",
    "SessionBusy",
    "StoreUnavailable",
    "ToolError",
    "TransactionalProvider",
    "TurnFailed",
    "WorkingMemory",
    "agent",
    "dream",
    "in_memory",
    "long_term_memory",
    "named",
    "postgresql",
    "provider",
    "redact",
    "sqlite",
    "tool",
    "working_memory",
]
