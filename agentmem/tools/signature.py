"""A function's signature as the JSON schema that a model sees and as a check on what it sends.

Built on the worker only: workflow code names a tool, and never needs its types.
"""

import inspect
import typing
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.json_schema import GenerateJsonSchema

from agentmem.errors import ConfigurationError, ToolError
from agentmem.tools import docstrings
from agentmem.tools.json_schemas import plain_schema
from agentmem.wire import JSONObject, as_list, as_mapping, dump_json


class _Quiet(GenerateJsonSchema):
    # A default that JSON cannot show is left out of the schema; it still applies.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


class Signature:
    """The arguments with which a tool may be called.

    Arguments are checked by pydantic's lax rules for JSON: `"3"` is taken for an int, `5` for
    text, an ISO text for a date. Fields that the function does not have are ignored. A default
    applies where a field is missing, and where it is null but null is not allowed.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        """Read a function's signature.

        Args:
            function: Any function whose parameters have names.

        Raises:
            ConfigurationError: A parameter's type has no JSON schema, or cannot be found.
        """
        self.names = list(inspect.signature(function).parameters)
        try:
            self._model = _arguments_model(function)
            schema = self._model.model_json_schema(schema_generator=_Quiet)
        except Exception as error:  # whatever reading the user's annotations raises
            where = _unfit_parameter(function)
            raise ConfigurationError(
                f"the tool {function.__name__!r} cannot be offered to a model: {where}"
                f"{_first_line(error)}. Give its parameters types that JSON can carry, defined at "
                "module level"
            ) from error
        self.schema: JSONObject = plain_schema(schema)
        self._shown = list(self.schema.get("properties", {}))  # an alias is another name
        if len(self._shown) < len(self.names):
            shown = ", ".join(self._shown) or "none"
            raise ConfigurationError(
                f"the tool {function.__name__!r} cannot be offered to a model: of its parameters "
                f"{', '.join(self.names)} only {shown} can be shown. Give each a name of its own, "
                "and no ClassVar"
            )

    def bind(self, arguments: JSONObject) -> dict[str, Any]:
        """Return the keyword arguments to call the function with.

        Raises:
            ToolError: They do not fit; the text names each field and what is wrong with it.
        """
        return self._values(self._read(arguments)[0])

    def bind_exactly(self, arguments: JSONObject) -> JSONObject:
        """Return the arguments as the function gets them, as JSON: converted, with every default.

        A value that has no JSON form which binds to the same value again comes back as it was
        sent; a default of that kind is left out.

        Raises:
            ToolError: They do not fit, or hold a field that the function does not take, at any
                depth.
        """
        model, read = self._read(arguments)
        shown = self._shown_form(model, read)
        try:
            self._model.model_validate_json(dump_json(read), extra="forbid")
        except ValidationError as error:
            # A type that takes any field keeps it, and its value is in the form.
            extra = [one["loc"] for one in error.errors() if one["type"] in _EXTRA]
            if not all(_holds(shown, place) for place in extra):
                raise ToolError(self._problems(error, read)) from error
        return shown

    def _read(self, arguments: JSONObject) -> tuple[BaseModel, JSONObject]:
        """Return the checked arguments, and what was sent without nulls that mean a default."""
        try:
            return self._model.model_validate_json(dump_json(arguments)), arguments
        except ValidationError as error:
            rest = self._without_nulls(arguments, error)
            if len(rest) < len(arguments):
                return self._read(rest)
            raise ToolError(self._problems(error, arguments)) from error
        except ValueError as error:
            raise ToolError(f"The tool was not run: its arguments are not JSON: {error}") from error
        except Exception as error:  # whatever a validator of the user's raises
            why = f"{type(error).__name__}: {error}"
            raise ToolError(
                f"The tool was not run, its arguments could not be checked: {why}"
            ) from error

    def _values(self, model: BaseModel) -> dict[str, Any]:
        return {name: getattr(model, f"p{n}") for n, name in enumerate(self.names)}

    def _shown_form(self, model: BaseModel, read: JSONObject) -> JSONObject:
        """Return checked arguments as JSON that binds to the same values."""
        form: JSONObject = {}
        for n, name in enumerate(self._shown):
            try:
                one = model.model_dump(
                    mode="json", by_alias=True, include={f"p{n}"}, warnings=False
                )
                again = self._model.model_validate_json(dump_json(read | one))
                is_same = bool(getattr(again, f"p{n}") == getattr(model, f"p{n}"))
            except Exception:  # whatever the user's types raise when they are written or compared
                is_same, one = False, {}
            if is_same and name in one:
                form |= one
            elif name in read:
                form[name] = read[name]
        return form

    def _without_nulls(self, arguments: JSONObject, error: ValidationError) -> JSONObject:
        wrong = {problem["loc"][0] for problem in error.errors() if problem["loc"]}
        optional = wrong - set(self.schema.get("required", []))
        return {k: v for k, v in arguments.items() if v is not None or k not in optional}

    def _problems(self, error: ValidationError, arguments: JSONObject) -> str:
        problems = [
            f"{'.'.join(map(str, problem['loc']))}: {_reason(problem['type'], problem['msg'])}"
            for problem in error.errors(include_url=False, include_input=False)
        ]
        told = {problem["loc"][:1] for problem in error.errors()}
        unknown = [name for name in arguments if name not in self._shown and (name,) not in told]
        problems += [f"{name}: {_UNKNOWN}" for name in unknown]
        required = self.schema.get("required", [])
        known = [f"{name} (required)" if name in required else name for name in self._shown]
        return (
            f"The tool was not run, its arguments are wrong. {'; '.join(problems)}. "
            f"Its parameters: {', '.join(known)}."
        )


def _unfit_parameter(function: Callable[..., Any]) -> str:
    """Return the first parameter whose type has no JSON schema, in words; empty if none alone."""
    for name in inspect.signature(function).parameters:
        try:
            _arguments_model(function, name).model_json_schema(schema_generator=_Quiet)
        except Exception:  # whatever reading the user's annotations raises
            return f"the parameter {name!r}: "
    return ""


def _first_line(error: Exception) -> str:
    # pydantic's texts go on with a web address and hints for models of one's own
    text = str(error).strip().partition("\n")[0].rstrip(".")
    return text or type(error).__name__


_UNKNOWN = "no such parameter"
_EXTRA = ("extra_forbidden", "unexpected_keyword_argument")
_REASONS = {"missing": "missing", **dict.fromkeys(_EXTRA, _UNKNOWN)}


def _reason(kind: str, message: str) -> str:
    return _REASONS.get(kind) or message[:1].lower() + message[1:]


def _holds(value: object, place: tuple[int | str, ...]) -> bool:
    """Tell whether a JSON value has something at a place as pydantic names it."""
    found = False
    for step in place:
        inside: dict[Any, object] = as_mapping(value) or dict(enumerate(as_list(value)))
        found = step in inside
        value = inside[step] if found else value  # else it is the name of a union's member
    return found


def _arguments_model(function: Callable[..., Any], only: str | None = None) -> type[BaseModel]:
    # Fields are numbered and the names are aliases: a parameter may be called `schema` or `_id`.
    texts = docstrings.parameters(function)
    hints = _hints(function, only)
    fields: dict[str, Any] = {}
    for n, (name, parameter) in enumerate(inspect.signature(function).parameters.items()):
        if only not in (None, name):
            continue
        hint, own = hints.get(name, Any), Field(alias=name, description=texts.get(name))
        if typing.get_origin(hint) is Annotated:  # what the user says there comes last and wins
            hint, *theirs = typing.get_args(hint)
            kind = Annotated[hint, own, *theirs]
        else:
            kind = Annotated[hint, own]
        required = parameter.default is inspect.Parameter.empty
        fields[f"p{n}"] = (kind, ... if required else parameter.default)
    config = ConfigDict(coerce_numbers_to_str=True)
    return create_model(function.__name__, __config__=config, **fields)


def _hints(function: Callable[..., Any], only: str | None) -> dict[str, Any]:
    if only is None:
        return typing.get_type_hints(function, include_extras=True)
    # One at a time: another parameter's annotation may be the one that cannot be read.
    given = {name: hint for name, hint in function.__annotations__.items() if name == only}
    holder = type("_Holder", (), {"__annotations__": given})
    return typing.get_type_hints(holder, function.__globals__, include_extras=True)
