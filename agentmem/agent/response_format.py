"""Typed answers: what `response_format` takes, and an answer's text as the value it stands for."""

import json
from typing import Any, Generic, TypeAlias, cast

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError
from typing_extensions import TypeVar

from agentmem.errors import ConfigurationError
from agentmem.tools.json_schemas import plain_schema
from agentmem.wire import JSONObject, JSONValue, clip

T = TypeVar("T", default=str)

Given: TypeAlias = type[BaseModel] | JSONObject | None
"""The forms of `response_format`: a pydantic model, a JSON schema, or None for plain text."""

_PROBLEM_BYTES = 1024


class ResponseFormat(Generic[T]):
    """The format by which an agent's answers are read.

    The worker checks an answer against the schema, and asks for it again where it does not fit. A
    pydantic model's own validators are asked here, in the workflow: they must be deterministic.

    Attributes:
        schema: The JSON schema; None for plain text.
    """

    def __init__(self, given: object) -> None:
        """Take a format.

        Raises:
            ConfigurationError: It is neither a pydantic model, nor a JSON schema, nor None; or
                the model has no JSON schema.
        """
        self._model: type[BaseModel] | None = None
        self.schema: JSONObject | None = None
        if isinstance(given, type) and issubclass(given, BaseModel):
            self._model = given
            self.schema = _schema(given)
        elif isinstance(given, dict):
            self.schema = cast("JSONObject", given)
        elif given is not None:
            raise ConfigurationError(
                f"response_format is {given!r:.100}; use a pydantic model or a JSON schema"
            )

    def problem(self, text: str) -> str:
        """Say what the model's own validators find wrong with an answer; empty for nothing."""
        if self._model is None:
            return ""
        try:
            self._model.model_validate_json(text)
        except ValidationError as error:
            found = [
                f"{'.'.join(map(str, one['loc'])) or 'the whole'}: {one['msg']}"
                for one in error.errors(include_url=False, include_input=False)
            ]
            return clip("; ".join(found), _PROBLEM_BYTES)
        return ""

    def data(self, text: str) -> JSONValue:
        """Return an answer as JSON; None for plain text."""
        return None if self.schema is None else json.loads(text)

    def value(self, text: str) -> T:
        """Return what `await assistant(...)` gives: text, JSON, or the model's instance."""
        value: Any = text
        if self._model is not None:
            value = self._model.model_validate_json(text)
        elif self.schema is not None:
            value = json.loads(text)
        return value


def _schema(model: type[BaseModel]) -> JSONObject:
    try:
        return plain_schema(model.model_json_schema())
    except (PydanticUserError, TypeError) as error:
        raise ConfigurationError(
            f"response_format: {model.__name__} has no JSON schema: {error}"
        ) from error
