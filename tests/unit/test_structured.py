"""Reading answers that should keep a schema."""

import pytest
from pydantic import BaseModel, ConfigDict

from agentmem.agent.response_format import ResponseFormat
from agentmem.errors import ConfigurationError
from agentmem.llm.structured_output import (
    check_schema,
    in_words,
    read_structured,
    request_format,
    takes_strict,
)
from agentmem.wire import JSONObject

SCHEMA: JSONObject = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


class Closed(BaseModel):
    """A model that OpenAI's strict mode takes."""

    model_config = ConfigDict(extra="forbid")
    a: int
    inner: "list[Inner]"


class Inner(BaseModel):
    """A part of it."""

    model_config = ConfigDict(extra="forbid")
    b: str


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        '\n {"a": 1}\n',
        '```json\n{"a": 1}\n```',
        'Here:\n```\n{"a": 1}\n```\nOk?',
    ],
)
def test_json_is_read_whole_or_from_its_one_fence(text: str) -> None:
    """Text around the JSON is left out."""
    assert read_structured(text, SCHEMA) == ('{"a": 1}', "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "it is empty"),
        ("{", "not valid JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": "1"}', "a: '1' is not of type 'integer'"),
        ("{}", "'a' is a required property"),
        ("[" * 5_000 + "]" * 5_000, "nested too deeply"),
        ("1" * 5_000, "not valid JSON"),
        ('```\n{"a": 1}\n```\n```\n{"a": 2}\n```', "not valid JSON"),
    ],
)
def test_what_is_wrong_is_said_in_words(text: str, words: str) -> None:
    """The model reads it and can do better."""
    assert words in read_structured(text, SCHEMA)[1]


def test_a_long_list_of_problems_is_short() -> None:
    """Five at most, each bounded: the text goes into the next prompt."""
    schema: JSONObject = {"type": "array", "items": {"type": "integer"}}
    text = "[" + ",".join(['"' + "x" * 5_000 + '"'] * 100) + "]"
    assert len(read_structured(text, schema)[1]) < 2_000


def test_a_remote_reference_is_not_fetched() -> None:
    """A schema never makes a worker call somebody; and the model is not asked again for it."""
    with pytest.raises(ConfigurationError, match="127"):
        read_structured("{}", {"$ref": "http://127.0.0.1:9/schema"})


def closed(**fields: JSONObject) -> JSONObject:
    """Return an object that requires these fields and takes no further ones."""
    return {
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def nested(depth: int) -> JSONObject:
    """Return an object in an object, so many times."""
    return closed(a=nested(depth - 1)) if depth else closed(a={"type": "string"})


@pytest.mark.parametrize(
    "schema",
    [
        ResponseFormat[Closed](Closed).schema,
        closed(a={"type": ["string", "null"], "description": "x", "pattern": "^a"}),
        closed(a={"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]}),
        closed(a={"type": "array", "items": {"enum": ["x", "y"]}, "minItems": 1}),
        closed(a={"type": "string", "format": "date"}),
        {**closed(a={"$ref": "#/$defs/A"}), "$defs": {"A": closed(b={"$ref": "#/$defs/A"})}},
        nested(9),
    ],
)
def test_strict_is_set_for_what_openai_takes(schema: JSONObject) -> None:
    """Closed objects, unions, enums, references and bounds of numbers and lists."""
    assert takes_strict(schema)


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        {"type": "array", "items": {"type": "string"}},
        {"anyOf": [closed(a={"type": "string"}), closed(b={"type": "string"})]},
        closed(a={"type": "object", "additionalProperties": {"type": "string"}}),
        closed(a={"type": ["object", "null"]}),
        closed(a={"type": "string", "minLength": 2}),
        closed(a={"type": "string", "default": "x"}),
        closed(a={"type": "string", "format": "uri"}),
        closed(a={"type": "string", "pattern": "^(?!b)"}),
        closed(a={"oneOf": [{"type": "string"}, {"type": "null"}]}),
        closed(a={"allOf": [{"type": "string"}]}),
        closed(a={}),
        closed(a={"type": "array"}),
        closed(a={"type": "array", "prefixItems": [{"type": "string"}], "items": False}),
        closed(a={"$ref": "#/$defs/A", "description": "x"}),
        closed(a={"enum": [str(number) for number in range(1_001)]}),
        nested(12),
    ],
)
def test_strict_is_not_set_for_what_openai_refuses(schema: JSONObject) -> None:
    """With strict each of these would be an error of the provider, and no answer."""
    assert not takes_strict(schema)


def test_without_enforcement_the_system_prompt_says_it() -> None:
    """A request with and one without a system prompt end up with one."""
    talk = [{"role": "user", "content": "hi"}]
    for system in ([], [{"role": "system", "content": "Be brief."}]):
        request = {"messages": [*system, *talk], "response_format": request_format(SCHEMA)}
        written = in_words(request)
        assert "response_format" not in written
        assert [m["role"] for m in written["messages"]] == ["system", "user"]
        assert '"required":["a"]' in written["messages"][0]["content"]


def test_a_wrong_schema_is_named() -> None:
    """Where in it, and what."""
    with pytest.raises(ConfigurationError, match=r"properties\.a\.type"):
        check_schema({"properties": {"a": {"type": "text"}}})
