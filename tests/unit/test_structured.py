"""Reading answers that should keep a schema."""

import pytest
from pydantic import BaseModel, ConfigDict

from agentmem.errors import ConfigurationError
from agentmem.models.structured import check_schema, in_words, read_structured, request_format
from agentmem.response_format import ResponseFormat
from agentmem.values import JSONObject

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
    """What stands around it is left out."""
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


def test_strict_is_set_only_where_every_object_is_closed() -> None:
    """OpenAI refuses strict for schemas with optional or further fields."""
    schema = ResponseFormat[Closed](Closed).schema
    assert schema is not None
    assert request_format(schema)["json_schema"]["strict"] is True
    assert "strict" not in request_format(SCHEMA)["json_schema"]


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
