"""The offline model's answers in a form: they keep the schema, and say that they are none."""

import datetime
import enum
import json
import uuid
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field

from agentmem.agent.response_format import ResponseFormat
from agentmem.llm.structured_output import read_structured, request_format
from agentmem.offline.model import STAND_IN, answer
from agentmem.wire import JSONObject


class Color(enum.Enum):
    """Two colours."""

    RED = "red"
    BLUE = "blue"


class Tree(BaseModel):
    """A type that contains itself."""

    name: str
    parent: "Tree | None" = None
    children: list["Tree"]


class Form(BaseModel):
    """Every kind of field that a form may have."""

    model_config = ConfigDict(extra="forbid")

    title: str = Field(min_length=40, max_length=50)
    short: str = Field(max_length=5)
    color: Color
    kind: Literal["a"]
    several: str | int
    maybe: int | None
    at: datetime.datetime
    day: datetime.date
    id: uuid.UUID
    size: int = Field(gt=3, multiple_of=5)
    share: float = Field(gt=0, lt=1)
    below: float = Field(lt=-2)
    some: list[Tree] = Field(min_length=2)
    named: dict[str, int]
    yes: bool
    left_out: str = "x"


SCHEMAS: list[JSONObject] = [
    {},
    {"type": "object"},
    {"required": ["a"], "properties": {"a": True}},
    {"type": ["integer", "null"], "maximum": -7},
    {"allOf": [{"required": ["a"]}, {"properties": {"a": {"$ref": "#/$defs/x~1y"}}}]}
    | {"type": "object", "$defs": {"x/y": {"const": None}}},
    {"oneOf": [{"type": "array", "items": {"type": "number"}, "minItems": 3}, {"type": "null"}]},
    {"type": "object", "required": ["n"], "additionalProperties": {"type": "integer"}},
    {"type": "string", "pattern": r"^\d{3}$", "examples": ["123"]},
]


def formed(schema: JSONObject) -> str:
    """Return what the offline model answers to a question in a form."""
    asked = {"role": "user", "content": "What is the capital of Norway?"}
    request = {"messages": [asked], "response_format": request_format(schema)}
    text: Any = answer(request)["choices"][0]["message"]["content"]
    return text


def test_a_models_form_is_kept_and_says_that_it_is_no_answer() -> None:
    """The pydantic model takes it; free text says where it comes from."""
    form: ResponseFormat[Form] = ResponseFormat(Form)
    assert form.schema is not None
    text = formed(form.schema)
    assert read_structured(text, form.schema) == (text, "")
    value = form.value(text)
    assert value.title.startswith(STAND_IN)
    assert value.several == STAND_IN
    assert "left_out" not in json.loads(text)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_schema_is_kept(schema: JSONObject) -> None:
    """Schemas by hand: without types, with references and choices."""
    assert read_structured(formed(schema), schema)[1] == ""


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"required": ["a"], "properties": {"a": {"$ref": "#"}}},
        {"anyOf": [{"$ref": "#"}]},
        {"$ref": "#/nowhere/at/all"},
    ],
)
def test_a_schema_that_has_no_end_is_answered_too(schema: JSONObject) -> None:
    """Nothing keeps it, and nothing hangs on it."""
    json.loads(formed(schema))


def test_the_page_says_so() -> None:
    """docs/offline-model.md quotes what stands in free texts."""
    assert STAND_IN in (Path(__file__).parents[2] / "docs" / "offline-model.md").read_text()
