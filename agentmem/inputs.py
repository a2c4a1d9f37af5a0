"""Reading what people send to workflows: in code, never by the decoder.

A model as the annotation of an entry point leaves the workflow running with failing tasks when the
input is missing, wrong or has an unknown field. So entry points take `*args` and read them here.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import from_json, to_json
from temporalio import workflow

from agentmem.errors import InvalidInput
from agentmem.wire import Wire, encoded_size, unpack

Model = TypeVar("Model", bound=Wire)
State = TypeVar("State", bound=Wire)

MESSAGE_BYTES = 1024 * 1024
"""The longest user message, in encoded bytes: half of what Temporal takes in one payload."""


def parse_input(model: type[Model], args: Sequence[Any], what: str) -> Model:
    """Read the one argument of an entry point into a model.

    Args:
        model: What it should be.
        args: What came.
        what: What it is, for messages: `the input of agent`.

    Raises:
        InvalidInput: It is missing, surplus, no object, has an unknown or a missing field or one
            of a wrong type; the message names the field and lists what exists.
    """
    known = ", ".join(model.model_fields)
    if not args or args[0] is None:
        raise InvalidInput(f"{what} is missing; give a JSON object with the fields {known}")
    _refuse_surplus(args, what)
    if isinstance(args[0], model):
        return args[0]
    data = args[0]
    if not isinstance(data, dict):
        raise InvalidInput(f"{what} must be a JSON object with the fields {known}")
    unknown = sorted(str(name) for name in data if name not in model.model_fields)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if unknown:
        raise InvalidInput(f"{what} has an unknown field {unknown[0]!r}; the fields are {known}")
    try:
        return model.model_validate_json(to_json(data), strict=True, extra="forbid")
    except ValidationError as error:
        # Without the cause: pydantic's own words would follow on people's screens.
        raise InvalidInput(f"{what}: {_first(error)}; the fields are {known}") from None


def parse_run(
    model: type[Model], state: type[State], args: Sequence[Any], what: str
) -> tuple[Model, State | None]:
    """Read the arguments of a workflow's run: its input, and what the run before handed on.

    Raises:
        InvalidInput: The input is wrong, as in `parse_input`; or the second argument is not what
            a run hands on.
    """
    if len(args) == 2 and isinstance(args[1], bytes):
        return parse_input(model, args[:1], what), unpack(state, args[1], "the second argument")
    return parse_input(model, args, what), None


class NewerVersion(Exception):
    """A run of ours handed on what this version cannot read.

    It is no failure of the workflow, so the task fails and is tried again: a worker of the newer
    version takes it.
    """


def handed_on(error: InvalidInput, *, by_parent: bool = False) -> InvalidInput | NewerVersion:
    """Return what an input that cannot be read means, in workflow code.

    A caller's mistake fails the workflow. What an earlier run of the same workflow handed on, or
    our own code to its child, is no mistake: a newer version wrote it.

    Args:
        error: Why it cannot be read.
        by_parent: Whether the workflow is a child that our own code starts.
    """
    info = workflow.info()
    # A cron schedule and a retry give the caller's own input to their next run.
    is_continued = info.continued_run_id and not info.cron_schedule and info.attempt == 1
    if not is_continued and not (by_parent and info.parent is not None):
        return error
    return NewerVersion(
        f"{error.message}. A newer version of agentmem wrote this; the task is tried again until "
        "a worker of that version takes it"
    )


def parse_text(args: Sequence[Any], what: str) -> str:
    """Read a user's message.

    Raises:
        InvalidInput: It is missing, surplus, no text, blank, or over 1 MiB.
    """
    if not args:
        raise InvalidInput(f"{what} is missing; give the message as a JSON string")
    _refuse_surplus(args, what)
    text = args[0]
    if not isinstance(text, str):
        raise InvalidInput(f"{what} must be a JSON string, got {from_json(to_json(text))!r:.100}")
    if not text.strip():
        raise InvalidInput(f"{what} is blank; write something")
    size = encoded_size(text)
    if size > MESSAGE_BYTES:
        raise InvalidInput(
            f"{what} takes {size} bytes encoded, the limit is {MESSAGE_BYTES}; send less, or put "
            "the document where a tool can read it"
        )
    return text


def _refuse_surplus(args: Sequence[Any], what: str) -> None:
    if len(args) > 1:
        raise InvalidInput(f"{what} is one argument, {len(args)} came")


def _first(error: ValidationError) -> str:
    problem = error.errors(include_url=False)[0]
    field = ".".join(map(str, problem["loc"])) or "input"
    return f"field {field!r}: {problem['msg'][0].lower()}{problem['msg'][1:]}"
