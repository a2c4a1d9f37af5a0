"""The user's own code on a worker: what `AGENTMEM_APP` brings, and which names are ours."""

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from agentmem.config.agents_file import PROVIDER_KINDS
from agentmem.errors import AgentMemError, ConfigurationError
from agentmem.memory.redaction import REDACT_MARK, Redactor
from agentmem.memory.references import PROVIDER_MARK
from agentmem.memory.tools import MEMORY_TOOLS
from agentmem.tools import TOOL_MARK
from agentmem.tools.asking import ASK_USER

# What Temporal's decorators leave on a class or function.
_WORKFLOW_MARK = "__temporal_workflow_definition"
_ACTIVITY_MARK = "__temporal_activity_definition"

_OUR_WORKFLOWS = {"agent", "agent_dream", "agent_hand_over"}
_OUR_MODULES = ("agentmem.", "workflows.agent", "workflows.dream")
_OUR_TOOLS = {*MEMORY_TOOLS, ASK_USER.name}
_OUR_PREFIXES = ("agentmem.", "memory.", "dream.")


@dataclass(frozen=True, kw_only=True)
class App:
    """The user's tools, providers, workflows and activities, each by its name.

    Attributes:
        origin: The module's file, or where the code came from; empty if there is none.
        tools: `@tool` functions.
        providers: What `@provider` marked: called once, without arguments, it makes a store.
        workflows: `@workflow.defn` classes.
        activities: `@activity.defn` functions.
        redactors: The `@redact` function; at most one.
    """

    origin: str = ""
    tools: dict[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    providers: dict[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    workflows: dict[str, type] = field(default_factory=dict[str, type])
    activities: dict[str, Callable[..., Any]] = field(default_factory=dict[str, Callable[..., Any]])
    redactors: dict[str, Redactor] = field(default_factory=dict[str, Redactor])

    @property
    def redact(self) -> Redactor | None:
        """The `@redact` function, None without one."""
        return next(iter(self.redactors.values()), None)


def load_app(name: str, extra: Iterable[object] = ()) -> App:
    """Import a module and collect what it holds for the worker.

    Args:
        name: A module's dotted name or the path of a .py file; empty for none.
        extra: Tools, providers, workflows and activities besides.

    Raises:
        ConfigurationError: The module cannot be imported, or brings a name that is agentmem's own
            or is there twice.
    """
    module = _import(name) if name else None
    app = App(origin=_origin(module) if module else "")
    seen: set[int] = set()
    for found in [*(vars(module).values() if module else ()), *extra]:
        if id(found) not in seen and not _is_ours(found):
            seen.add(id(found))
            _add(app, found)
    return app


def _add(app: App, found: object) -> None:
    # Only what stands on the object itself: a subclass of a workflow is none, and an object that
    # answers to every attribute is nothing of ours.
    marks = getattr(found, "__dict__", {})
    if TOOL_MARK in marks:
        _put(app, app.tools, marks[TOOL_MARK].name, found)
    if _WORKFLOW_MARK in marks:
        _put(app, app.workflows, marks[_WORKFLOW_MARK].name or "(dynamic)", found)
    if _ACTIVITY_MARK in marks:
        _put(app, app.activities, marks[_ACTIVITY_MARK].name or "(dynamic)", found)
    if REDACT_MARK in marks:
        if app.redactors:
            raise ConfigurationError("AGENTMEM_APP: @redact marks two functions; leave one")
        _put(app, app.redactors, "redact", found)
    if PROVIDER_MARK in marks:
        _put(app, app.providers, marks[PROVIDER_MARK], found)


def _put(app: App, kind: dict[str, Any], name: str, found: object) -> None:
    where = f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', found)}"
    activities = kind is app.tools or kind is app.activities
    ours = (
        (activities and (name in _OUR_TOOLS or name.startswith(_OUR_PREFIXES)))
        or (kind is app.workflows and name in _OUR_WORKFLOWS)
        or (kind is app.providers and name in PROVIDER_KINDS)
    )
    if ours:
        raise ConfigurationError(f"{where}: the name {name!r} is agentmem's own; choose another")
    taken = {**app.tools, **app.activities} if activities else kind
    if name in taken:
        raise ConfigurationError(f"{where}: the name {name!r} is there twice; choose another")
    kind[name] = found


def _is_ours(found: object) -> bool:
    # A module of the user may import our declarations and workflow classes to call them.
    return str(getattr(found, "__module__", "")).startswith(_OUR_MODULES)


def _import(name: str) -> ModuleType:
    path = Path(name).expanduser().resolve() if name.endswith(".py") else None
    if path and not path.is_file():
        raise ConfigurationError(f"AGENTMEM_APP: there is no file {path}")
    # At the end: a folder of the user's must not hide our packages.
    folder = str(path.parent if path else Path.cwd())
    if folder not in sys.path:
        sys.path.append(folder)
    # An app that imports litellm itself: without this that fetches a list of prices first.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    try:
        module = importlib.import_module(path.stem if path else name)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(f"AGENTMEM_APP: cannot import {name}: {_why(error)}") from error
    if path and _origin(module) != str(path):
        raise ConfigurationError(
            f"AGENTMEM_APP: {path} is hidden by {_origin(module)}: rename the file"
        )
    return module


def _origin(module: ModuleType) -> str:
    return str(Path(module.__file__).resolve()) if module.__file__ else module.__name__


def _why(error: BaseException) -> str:
    ours = Path(__file__).parent.parent
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        # What a decorator of ours refuses is told by the line that it stands on.
        if "importlib" not in frame.filename and not Path(frame.filename).is_relative_to(ours)
    ]
    at = f"{frames[-1].filename}:{frames[-1].lineno}: " if frames else ""
    said = error.message if isinstance(error, AgentMemError) else f"{type(error).__name__}: {error}"
    return f"{at}{said}"
