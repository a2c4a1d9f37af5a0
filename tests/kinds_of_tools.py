"""A tool with a parameter of each kind whose own JSON schema some provider refuses."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, Field, JsonValue, RootModel

from agentmem import tool


class Place(NamedTuple):
    """A place on earth."""

    lat: float
    lon: float = 0


class Cat(BaseModel):
    """A cat."""

    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    """A dog."""

    kind: Literal["dog"]
    tricks: set[str] = set()


class Numbers(RootModel[list[int]]):
    """Numbers."""


class Tree(RootModel["dict[str, Tree | int]"]):
    """A tree with numbers for leaves."""


@tool
def kinds(  # noqa: D417
    pair: tuple[int, str],
    place: Place,
    tags: frozenset[str],
    anything: Any,
    pets: list[Annotated[Cat | Dog, Field(discriminator="kind")]],
    numbers: Numbers,
    tree: Tree,
    json: JsonValue = None,
    price: Decimal = Decimal(1),
    several: list[Any] = [],  # noqa: B006
    mixed: Literal["a", 1, None] = "a",
    named: dict[Annotated[str, Field(pattern="^a")], int] | None = None,
    rows: Sequence[tuple[int, ...]] = (),
) -> str:
    """Take one of each.

    Args:
        pair: A number and its name.
    """
    return f"{pair} {place} {sorted(tags)} {anything} {pets} {numbers.root} {tree.root} {rows}"
