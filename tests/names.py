"""The names that stand in histories: frozen here, and read from the code that registers them."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from typing import Any

import activities
from agentmem import contracts, errors
from agentmem.contracts import LACKING_QUERY, MESSAGES_QUERY
from tests.replayer import WORKFLOW_MARK, our_workflows

AGENT_UPDATES = {"send", "ask", "approve", "cancel_turn", "end"}
AGENT_SIGNALS = {"approve", "cancel_turn", "end"}
AGENT_QUERIES = {"messages", "status", "usage", "agentmem.messages", "agentmem.lacking"}
DREAM_SIGNALS = {"more"}
HAND_OVER_SIGNALS = {"more"}
WORKFLOWS = {"agent", "agent_dream", "agent_hand_over"}
ACTIVITIES = {
    "agentmem.model",
    "agentmem.compact",
    "agentmem.resolve",
    "agentmem.append",
    "agentmem.hand_over",
    "memory.recall",
    "memory.memorize",
    "memory.forget",
    "memory.keys",
    "memory.scopes",
    "dream.begin",
    "dream.orient",
    "dream.gather_signal",
    "dream.consolidate",
    "dream.prune",
    "dream.commit",
    "dream.give_up",
}
TOOLS = {"recall_memory", "store_memory", "forget_memory", "list_memory_keys"}
SEARCH_ATTRIBUTES = {"AgentMemAgent", "AgentMemScope", "AgentMemOutcome"}
ERRORS = {
    "AgentMemError",
    "ConfigurationError",
    "ContextOverflow",
    "DreamFailed",
    "InvalidFact",
    "InvalidInput",
    "ModelCallError",
    "ModelUnavailable",
    "ProviderError",
    "SessionBusy",
    "StoreUnavailable",
    "ToolError",
    "TurnFailed",
}

APPROVE = "approve"
"""Registered by the running workflow, not by its class; so is the query for messages."""

_ACTIVITY_MARK = "__temporal_activity_definition"


def workflow_types() -> dict[str, Any]:
    """Return what Temporal knows of our workflow classes, by type."""
    found = [getattr(made, WORKFLOW_MARK) for made in our_workflows()]
    return {definition.name: definition for definition in found}


def handlers(workflow_type: str) -> dict[str, set[str]]:
    """Return the updates, signals and queries that a workflow class registers."""
    definition = workflow_types()[workflow_type]
    return {kind: set(getattr(definition, kind)) for kind in ("updates", "signals", "queries")}


def declared_activities() -> dict[str, Callable[..., Any]]:
    """Return the activities that workflow code calls, by type."""
    return dict(_marked(vars(contracts).values()))


def implemented_activities() -> dict[str, Callable[..., Any]]:
    """Return the activities that the classes of `activities` hold, by type."""
    found: dict[str, Callable[..., Any]] = {}
    for module in pkgutil.iter_modules(activities.__path__, "activities."):
        for value in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(value) and value.__module__ == module.name:
                found.update(_marked(vars(value).values()))
    return found


def error_types() -> dict[str, type[errors.AgentMemError]]:
    """Return our errors by the type that they have in a history."""
    made = [value for value in vars(errors).values() if inspect.isclass(value)]
    ours = [one for one in made if issubclass(one, errors.AgentMemError)]
    return {str(one("said").type): one for one in ours}


def names_in_code() -> set[str]:
    """Return every frozen name, as the code has it."""
    names = set(workflow_types()) | set(declared_activities()) | set(implemented_activities())
    for workflow_type in workflow_types():
        names = names.union(*handlers(workflow_type).values())
    names |= {MESSAGES_QUERY, LACKING_QUERY, *contracts.SEARCH_ATTRIBUTES, *error_types()}
    return names


def _marked(values: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    for value in values:
        definition = vars(value).get(_ACTIVITY_MARK) if inspect.isfunction(value) else None
        if definition is not None:
            yield definition.name, value
