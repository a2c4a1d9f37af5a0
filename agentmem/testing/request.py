"""The record that a scripted model keeps of each request."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

from agentmem.testing import ollama, strict
from agentmem.wire import JSONObject


@dataclass(kw_only=True, eq=False)
class Request:
    """One chat request as the endpoint received it.

    Attributes:
        number: 1 for the first request.
        path: `/v1/chat/completions` or `/api/chat`.
        raw: The body, byte for byte.
        headers: HTTP headers.
        at: Seconds of `time.monotonic()` when it arrived.
        body: The parsed body; empty if it is no JSON object.
        violations: The strict rules that it breaks, one line each.
        disconnected: Whether the client closed the connection before it had its answer.
    """

    number: int
    path: str
    raw: bytes
    headers: Mapping[str, str]
    at: float = field(default_factory=time.monotonic)
    body: JSONObject = field(init=False)
    violations: list[str] = field(default_factory=list[str])
    disconnected: bool = False

    def __post_init__(self) -> None:
        self.body = _parsed(self.raw)

    @property
    def model(self) -> str:
        """The model that the client asked for."""
        return str(self.body.get("model", ""))

    @property
    def messages(self) -> list[JSONObject]:
        """The messages, in the shape that the client sent them."""
        return _objects(self.body.get("messages"))

    @property
    def tools(self) -> list[JSONObject]:
        """The declared tools; empty without any."""
        return _objects(self.body.get("tools"))

    def check(self, system_prompt: str | None, given: Sequence[JSONObject]) -> None:
        """Fill `violations`; the arguments are those of `strict.violations`."""
        if not self.body:
            self.violations.append("JSON: the body is no JSON object in UTF-8")
            return
        messages = self.messages
        if self.path == ollama.PATH:
            messages = ollama.as_openai(messages)
        rest = {name: value for name, value in self.body.items() if name != "messages"}
        self.violations += strict.violations(messages, system_prompt, given=given)
        self.violations += strict.encoding_violations(rest)
        self.violations += strict.tool_violations(self.tools)


def _parsed(raw: bytes) -> JSONObject:
    try:
        body: object = json.loads(raw)
    except ValueError:
        return {}
    return cast("JSONObject", body) if isinstance(body, dict) else {}


def _objects(value: object) -> list[JSONObject]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("JSONObject", item) for item in items if isinstance(item, dict)]
