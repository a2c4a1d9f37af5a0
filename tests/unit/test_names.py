"""Names in histories are frozen: a session that was recorded must find them again.

A name that fails here was renamed, added or removed. New ones go into the list; old ones stay.
"""

import typing
from collections.abc import Callable
from typing import Any

import pytest

from agentmem.contracts import LACKING_QUERY, MESSAGES_QUERY, ToolRun
from agentmem.contracts import SEARCH_ATTRIBUTES as REGISTERED_ATTRIBUTES
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.messages import Message
from tests import names


def types_of(activity: Callable[..., Any]) -> tuple[list[Any], Any]:
    """Return the types of an activity's parameters in order, and of its result."""
    hints = typing.get_type_hints(activity)
    result = hints.pop("return")
    return list(hints.values()), result


def test_workflow_types() -> None:
    """The workflows are started by these types."""
    assert set(names.workflow_types()) == names.WORKFLOWS


def test_what_the_agent_workflow_takes() -> None:
    """Its class has all handlers but `approve` and two queries, which it adds at work."""
    found = names.handlers("agent")
    assert found["updates"] == names.AGENT_UPDATES - {names.APPROVE}
    assert found["signals"] == names.AGENT_SIGNALS - {names.APPROVE}
    assert found["queries"] == names.AGENT_QUERIES - {MESSAGES_QUERY, LACKING_QUERY}


def test_what_the_dream_takes() -> None:
    """A dream takes one signal, and neither updates nor queries."""
    assert names.handlers("agent_dream") == {
        "updates": set(),
        "signals": names.DREAM_SIGNALS,
        "queries": set(),
    }


def test_what_the_hand_over_takes() -> None:
    """A hand-over takes one signal, and neither updates nor queries."""
    assert names.handlers("agent_hand_over") == {
        "updates": set(),
        "signals": names.HAND_OVER_SIGNALS,
        "queries": set(),
    }


def test_activity_types() -> None:
    """Workflow code calls these activities, and the worker has them and the four memory tools."""
    assert set(names.declared_activities()) == names.ACTIVITIES
    assert set(names.implemented_activities()) == names.ACTIVITIES | names.TOOLS


@pytest.mark.parametrize("name", sorted(names.ACTIVITIES))
def test_declarations_match_implementations(name: str) -> None:
    """An activity has the same parameters and result in workflow code and in the worker."""
    declared, done = names.declared_activities()[name], names.implemented_activities()[name]
    assert types_of(declared) == types_of(done)


@pytest.mark.parametrize("name", sorted(names.TOOLS))
def test_memory_tools_are_called_as_every_tool(name: str) -> None:
    """The four tools take a tool call and give the message of its result."""
    assert name in MEMORY_TOOLS
    assert types_of(names.implemented_activities()[name]) == ([ToolRun], Message)


def test_search_attributes() -> None:
    """Dreams are found by these."""
    assert set(REGISTERED_ATTRIBUTES) == names.SEARCH_ATTRIBUTES


def test_error_types() -> None:
    """Each error's type in a history is its class's name, and these are all."""
    assert set(names.error_types()) == names.ERRORS
    assert all(name == made.__name__ for name, made in names.error_types().items())
