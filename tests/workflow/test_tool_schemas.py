"""Tool schemas inside what providers take: by kind of type, over HTTP, or refused at the start."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from temporalio.client import Client

from agentmem.errors import ConfigurationError
from agentmem.testing import call, reply
from agentmem.testing.strict import tool_violations
from agentmem.tools import tool
from agentmem.tools.json_schemas import ANYTHING, plain_schema
from agentmem.tools.toolbox import Tool, ToolBox, tool_schema
from agentmem.wire import JSONObject
from tests.kinds_of_tools import Cat, Dog, Place, kinds
from tests.stack import stack, task_failures

pytestmark = pytest.mark.timeout(120)

AGENTS = """
[agents.whole]
tools = ["kinds"]
[agents.streamed]
tools = ["kinds"]
stream = true
"""
ARGUMENTS: JSONObject = {
    "pair": [1, "one"],
    "place": [59.9, 10.7],
    "tags": ["b", "a", "b"],
    "anything": {"x": [1, None]},
    "pets": [{"kind": "dog", "tricks": ["sit"]}, {"kind": "cat"}],
    "numbers": [1, 2],
    "tree": {"a": {"b": 1}, "c": 2},
    "rows": [[1], [2, 3]],
}


@pytest.mark.parametrize("agent", ["whole", "streamed"])
async def test_a_tool_of_every_kind_is_offered_and_called(
    client: Client, tmp_path: Path, agent: str
) -> None:
    """The endpoint refuses what any provider refuses; the values arrive as their types."""
    script = [reply(calls=[call("kinds", **ARGUMENTS)]), reply("done")]
    async with stack(client, tmp_path, script, agents=AGENTS, extra=[kinds]) as s:
        handle = await s.start(agent=agent, message="go")
        assert await handle.result() == "done"
        ran = str(s.model.requests[1].messages[-1]["content"])
        s.model.assert_strict()
    assert ran == (
        "(1, 'one') Place(lat=59.9, lon=10.7) ['a', 'b'] {'x': [1, None]} "
        "[Dog(kind='dog', tricks={'sit'}), Cat(kind='cat', lives=9)] [1, 2] "
        "{'a': Tree(root={'b': 1}), 'c': 2} [(1,), (2, 3)]"
    )
    assert await task_failures(handle) == []


def test_each_kind_has_a_form_that_all_providers_take() -> None:
    """Tuples say their order, unions and `Any` are alternatives, nothing else is left."""
    schema = tool_schema(kinds)
    assert tool_violations([schema]) == []
    shown = schema["function"]["parameters"]["properties"]
    assert shown["pair"] == {
        "type": "array",
        "items": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "minItems": 2,
        "maxItems": 2,
        "description": "A number and its name. In this order: integer, string.",
    }
    assert shown["place"]["description"] == "In this order: Lat, Lon."
    assert shown["place"]["items"] == {"type": "number"}
    assert shown["anything"] == shown["json"] | {"default": None} or shown["anything"] == {
        "anyOf": ANYTHING
    }
    assert shown["tags"] == {"type": "array", "items": {"type": "string"}}
    kinds_of_pets = [pet["properties"]["kind"] for pet in shown["pets"]["items"]["anyOf"]]
    assert kinds_of_pets == [
        {"type": "string", "enum": ["cat"]},
        {"type": "string", "enum": ["dog"]},
    ]
    assert shown["numbers"] == {
        "type": "array",
        "items": {"type": "integer"},
        "description": "Numbers.",
    }
    assert shown["mixed"]["anyOf"] == [
        {"type": "string", "enum": ["a"]},
        {"type": "integer", "enum": [1]},
        {"type": "null"},
    ]
    assert "prefixItems" not in json.dumps(schema)
    bound = Tool(kinds).signature.bind(ARGUMENTS)
    assert (bound["place"], bound["tags"]) == (Place(59.9, 10.7), {"a", "b"})
    assert [type(pet) for pet in bound["pets"]] == [Dog, Cat]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"], "description": "x", "default": None},
        {"allOf": [{"type": "string"}], "minLength": 1},
        {"type": "array", "prefixItems": [], "minItems": 0},
        {"type": "array", "contains": {"type": "integer"}},
        {"properties": {"a": True}},
        {"enum": [{"a": 1}, "b"]},
        {"const": None},
        {"not": {"type": "string"}},
        {"if": {}, "then": {"type": "string"}},
    ],
)
def test_a_schema_of_ones_own_is_brought_into_the_same_form(schema: JSONObject) -> None:
    """`WithJsonSchema` and `json_schema_extra` may hold more than what pydantic writes."""
    parameters = plain_schema({"type": "object", "properties": {"a": schema}})
    assert tool_violations([{"function": {"name": "x", "parameters": parameters}}]) == []


class Job(BaseModel):
    """A job."""

    name: str
    then: Callable[[], None]


def test_a_type_without_any_form_is_refused_by_tool_and_parameter() -> None:
    """The worker does not start, and says which parameter of which tool it is."""

    @tool
    def late(name: str, call_back: Callable[[int], int]) -> None: ...

    @tool
    def nested(count: int, jobs: list[Job]) -> None: ...

    @tool
    def foreign(count: int, item: pytest.Item) -> None: ...

    @tool
    def unread(count: int, what: str) -> None: ...

    unread.__annotations__["what"] = "NoSuchType"
    for function, parameter in (
        (late, "call_back"),
        (nested, "jobs"),
        (foreign, "item"),
        (unread, "what"),
    ):
        words = f"the tool '{function.__name__}' .* the parameter '{parameter}': "
        with pytest.raises(ConfigurationError, match=words):
            ToolBox([function])


def test_the_four_tools_of_memory_and_the_question_are_inside_too() -> None:
    """Ours are offered to every provider."""
    names = ["recall_memory", "store_memory", "forget_memory", "list_memory_keys", "ask_user"]
    schemas: list[Any] = ToolBox().schemas(names)
    assert tool_violations(schemas) == []
