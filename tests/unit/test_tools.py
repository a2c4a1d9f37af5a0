"""Functions as tools: the mark, the schema that models see, the box that a worker has."""

import enum
import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Annotated, Any, Literal

import pytest
from pydantic import AfterValidator, BaseModel, Field

from agentmem.contracts import ToolSpec
from agentmem.errors import ConfigurationError, ToolError
from agentmem.messages import ToolCall
from agentmem.tools import tool, tool_spec
from agentmem.tools.toolbox import Tool, ToolBox, tool_schema


class Unit(enum.Enum):
    """Celsius or Fahrenheit."""

    CELSIUS = "C"
    FAHRENHEIT = "F"


class Point(BaseModel):
    """A place on earth."""

    lat: float
    lon: float


class Folder(BaseModel):
    """A folder."""

    title: str
    inside: "list[Folder]" = []


@tool
def forecast(  # noqa: D417
    city: str,
    days: int = 1,
    unit: Unit = Unit.CELSIUS,
    near: Point | None = None,
    style: Literal["short", "long"] = "short",
    since: Annotated[date | None, Field(description="First day.")] = None,
) -> str:
    """Say what the weather will be
    in a city.

    It asks a service that is out of the model's sight.

    Args:
        city: The city's name,
            in English.
        days (int): How many days: 1 to 7.
        since: Not shown, the annotation says it.

    Returns:
        The forecast.
    """  # noqa: D205
    return f"{city} {days} {unit} {near} {style} {since}"


def parameters(function: Any) -> dict[str, Any]:
    return tool_schema(function)["function"]["parameters"]


def test_a_marked_function_can_still_be_called() -> None:
    """`@tool` marks a function and changes nothing about it."""
    assert forecast("Oslo") == "Oslo 1 Unit.CELSIUS None short None"
    assert tool_spec(forecast) == ToolSpec(name="forecast")


def test_declarations_become_the_spec() -> None:
    """Workflow code gets to know what `@tool(...)` declares."""

    @tool(
        name="send-mail",
        approval=True,
        writes=True,
        retries=2,
        timeout=timedelta(seconds=9),
        recalled=True,
    )
    async def send(text: str) -> None:
        """Send."""

    assert tool_spec(send) == ToolSpec(
        name="send-mail",
        approval=True,
        writes=True,
        retries=2,
        timeout=timedelta(seconds=9),
        recalled=True,
    )


def test_a_spec_is_its_own_spec_and_a_bare_function_has_none() -> None:
    """A spec is taken as it is; a function without the mark is refused with what to do."""
    spec = ToolSpec(name="x")
    assert tool_spec(spec) is spec
    with pytest.raises(ConfigurationError, match=r"len is not a tool: decorate .* with @tool"):
        tool_spec(len)


@pytest.mark.parametrize("name", ["", "two words", "wétter", "a.b", "x" * 65, "line\n"])
def test_names_that_a_provider_would_refuse_are_refused(name: str) -> None:
    """A name is 1 to 64 letters, digits, `_` or `-`: what every model provider takes."""

    def function() -> None: ...

    function.__name__ = name
    with pytest.raises(ConfigurationError, match="must be 1 to 64"):
        tool(function)


@pytest.mark.parametrize(
    "name", ["recall_memory", "store_memory", "forget_memory", "list_memory_keys"]
)
def test_the_names_of_the_memory_tools_are_taken(name: str) -> None:
    """No user's tool can stand in for a tool of long-term memory."""
    with pytest.raises(ConfigurationError, match="one of agentmem's own"):
        tool(name=name)(lambda: None)


def test_parameters_without_a_name_are_refused() -> None:
    """A model names each argument, so `*args`, `**kwargs` and positional-only are refused."""

    def stars(*args: int) -> None: ...
    def doubles(**kwargs: int) -> None: ...
    def positional(a: int, /) -> None: ...

    for function in (stars, doubles, positional):
        with pytest.raises(ConfigurationError, match="no name that a model could use"):
            tool(function)


def test_only_functions_are_tools() -> None:
    """Generators and classes are refused where they are marked, not when they are called."""

    def stream() -> Iterator[int]:
        yield 1

    for wrong in (stream, Point, len):
        with pytest.raises(ConfigurationError, match="a tool is a function"):
            tool(wrong)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("retries", -1, "retries must be 0 to 100"),
        ("retries", 10**12, "retries must be 0 to 100"),
        ("retries", "x", "retries is 'x'"),
        ("timeout", timedelta(0), "timeout must be above zero, and 7 days at most"),
        ("timeout", timedelta.max, "timeout must be above zero, and 7 days at most"),
        ("timeout", 5, "timeout is 5: Input should be a valid timedelta"),
        ("name", 5, "name is 5"),
    ],
)
def test_what_no_activity_could_be_scheduled_with_is_refused(
    option: str, value: Any, words: str
) -> None:
    """A number that Temporal does not take would fail each turn that calls the tool."""
    options: dict[str, Any] = {"name": "x", option: value}
    with pytest.raises(ConfigurationError, match=words):
        tool(**options)(lambda: None)


@pytest.mark.parametrize("annotation", ["int or (", "date.nothing", "Missing", 5, "Iterator[int]"])
def test_an_annotation_that_says_nothing_is_named_with_its_tool(annotation: Any) -> None:
    """Whatever reading it raises, the worker says which tool it is, in one line."""

    @tool
    def lost(a: int) -> None: ...

    lost.__annotations__["a"] = annotation
    with pytest.raises(ConfigurationError, match="the tool 'lost' cannot be offered") as caught:
        ToolBox([lost])
    assert "\n" not in str(caught.value)


def test_a_parameter_may_have_another_name_for_models() -> None:
    """An alias is what a model is shown, what it sends, and what a mistake is told by."""

    @tool
    def aliased(a: Annotated[int, Field(alias="amount")]) -> None: ...

    signature = Tool(aliased).signature
    assert signature.bind({"amount": "3"}) == {"a": 3}
    with pytest.raises(ToolError, match=r"amount: missing; a: no such.*: amount \(required\)"):
        signature.bind({"a": 3})


def test_the_description_is_the_docstrings_first_paragraph() -> None:
    """The first paragraph goes to the model on one line; no docstring, no description."""
    assert tool_schema(forecast)["function"]["description"] == (
        "Say what the weather will be in a city."
    )

    @tool
    def bare() -> None: ...

    assert tool_schema(bare) == {
        "type": "function",
        "function": {"name": "bare", "parameters": {"type": "object", "properties": {}}},
    }


def test_parameters_are_described_by_the_args_section_or_the_annotation() -> None:
    """Texts come from `Args:`, with continuation lines; an annotation's own text wins."""
    shown = {name: p.get("description") for name, p in parameters(forecast)["properties"].items()}
    assert shown == {
        "city": "The city's name, in English.",
        "days": "How many days: 1 to 7.",
        "unit": "Celsius or Fahrenheit.",
        "near": None,
        "style": None,
        "since": "First day.",
    }


def test_a_line_without_a_colon_costs_no_other_parameter_its_text() -> None:
    """Docstrings are people's texts: free lines and other sections take nothing from a model."""

    @tool
    def loose(city: str, days: int) -> None:
        """Say it.
        Args:
            city: The name.
              Any spelling will do
            days: Two: or more.

        Raises:
            ValueError when the city is unknown
        """  # noqa: D205, D411

    shown = {name: p["description"] for name, p in parameters(loose)["properties"].items()}
    assert shown == {"city": "The name. Any spelling will do", "days": "Two: or more."}
    assert tool_schema(loose)["function"]["description"] == "Say it."


def test_types_become_json_schema() -> None:
    """Defaults, enums, unions, literals and nested models stand in the schema, written out."""
    schema = parameters(forecast)
    properties = schema["properties"]
    assert schema["required"] == ["city"]
    assert properties["days"] | {"description": ""} == {
        "type": "integer",
        "default": 1,
        "description": "",
    }
    assert properties["unit"]["enum"] == ["C", "F"]
    assert properties["unit"]["default"] == "C"
    assert properties["style"]["enum"] == ["short", "long"]
    point, null = properties["near"]["anyOf"]
    assert point["properties"] == {"lat": {"type": "number"}, "lon": {"type": "number"}}
    assert (point["required"], null) == (["lat", "lon"], {"type": "null"})
    assert {"type": "string", "format": "date"} in properties["since"]["anyOf"]
    assert "$ref" not in json.dumps(schema)


def test_a_type_that_contains_itself_keeps_its_reference() -> None:
    """Only a recursive type keeps `$ref`, with its definition; `title` as a name survives."""

    @tool
    def make(folder: Folder) -> None: ...

    schema = parameters(make)
    folder = schema["properties"]["folder"]
    assert folder["properties"]["inside"]["items"] == {"$ref": "#/$defs/Folder"}
    assert folder["properties"]["title"] == {"type": "string"}
    assert schema["$defs"]["Folder"] == folder


def test_a_parameter_may_have_any_name() -> None:
    """Names that pydantic keeps for itself are names like any other."""

    @tool
    def query(schema: str, _id: int, model_config: bool = False) -> None: ...

    assert list(parameters(query)["properties"]) == ["schema", "_id", "model_config"]


def test_a_type_without_a_schema_is_refused_when_the_worker_starts() -> None:
    """A parameter that JSON cannot carry is named when the box is made."""

    @tool
    def bad(callback: Iterator[object] | object, handle: pytest.Item) -> None: ...

    with pytest.raises(ConfigurationError, match="the tool 'bad' cannot be offered to a model"):
        ToolBox([bad])


def test_the_box_knows_the_users_tools_and_the_four_of_memory() -> None:
    """Specs come in the asked order, once each; memory's four need no registration."""
    box = ToolBox([forecast, forecast])
    names = ["store_memory", "forecast", "store_memory", "recall_memory"]
    assert [spec.name for spec in box.specs(names)] == ["store_memory", "forecast", "recall_memory"]
    assert [entry["function"]["name"] for entry in box.schemas(names)] == [
        "store_memory",
        "forecast",
        "recall_memory",
    ]
    assert [made.spec.name for made in box.tools] == ["forecast"]


def test_the_same_names_give_the_same_bytes() -> None:
    """Two workers build the same request from the same names, so that prompt caches hold."""
    names = ["forecast", "recall_memory", "store_memory"]
    one, two = (json.dumps(ToolBox([forecast]).schemas(names)) for _ in range(2))
    assert one == two


def test_an_unknown_tool_is_refused_with_those_that_exist() -> None:
    """A wrong name in a definition says which tools there are."""
    with pytest.raises(ConfigurationError, match=r"no tool is named 'get_wether'.*forecast, "):
        ToolBox([forecast]).specs(["get_wether"])


def test_two_functions_of_one_name_are_refused() -> None:
    """The activity's name must say which function runs."""

    @tool(name="forecast")
    def other() -> None: ...

    with pytest.raises(ConfigurationError, match="two tools are named 'forecast'"):
        ToolBox([forecast, other])


@pytest.mark.parametrize(
    "error", [KeyError("x"), RuntimeError("odd"), TypeError("no"), ZeroDivisionError()]
)
def test_a_check_that_fails_is_told_to_the_model(error: Exception) -> None:
    """Whatever a validator raises: no call runs, and no reply that was paid for is lost."""

    def check(value: str) -> str:
        raise error

    @tool
    def look(city: Annotated[str, AfterValidator(check)]) -> str:
        """Look."""
        return city

    box = ToolBox([look])
    found = box.checked(ToolCall(id="t1.s1.c0", name="look", arguments={"city": "Rome"}))
    assert "could not be checked" in found.problem
    assert type(error).__name__ in found.problem
    with pytest.raises(ToolError, match="could not be checked"):
        box.tools[0].signature.bind({"city": "Rome"})
