"""A phase's model calls: each reply is stored before it is used, and never paid for twice."""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from agentmem.contracts import Store, Usage
from agentmem.dreaming.tools import TOOLS, PhaseName
from agentmem.memory.providers.protocol import ReplyRecord, TransactionalProvider
from agentmem.values import JSONObject

REPLY_TOKENS = 8_192
"""The longest reply that is asked for: forty findings take about half of it."""

Progress = Callable[[dict[str, int]], None]
"""Told small counters while a phase runs."""


class Asker(Protocol):
    """Asks a model once."""

    async def __call__(self, request: JSONObject) -> JSONObject:
        """Send a request and return the reply as JSON.

        Args:
            request: `model`, `messages`, `tools`, `tool_choice`, `max_tokens`, as litellm and
                OpenAI name them.

        Returns:
            `message`: the assistant's message in OpenAI's shape; `finish`: stop, tool_calls,
            length or content_filter; `usage`: the fields of `Usage`.

        Raises:
            ModelCallError: The call failed; Temporal decides whether the phase is tried again.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Made:
    """A tool call of a reply: its id in the conversation, its tool, its arguments as text."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What a model answered.

    Attributes:
        text: Its text.
        calls: Its tool calls.
        finish: Why it ended.
        message: The message as it is sent back, valid for the most demanding provider.
    """

    text: str
    calls: list[Made]
    finish: str
    message: JSONObject


@dataclass(kw_only=True)
class Replies:
    """The model calls of one phase, in order.

    Attributes:
        ask: Asks the model.
        provider: Where replies are kept.
        store: The scope.
        dream: The dream's id.
        phase: The phase.
        model: The model.
        progress: Told how many requests there were.
        usage: Of all requests, those of earlier attempts included.
    """

    ask: Asker
    provider: TransactionalProvider
    store: Store
    dream: str
    phase: PhaseName
    model: str
    progress: Progress
    usage: Usage = field(default_factory=lambda: Usage(requests=0))
    _kept: dict[int, ReplyRecord] | None = field(default=None, init=False)
    _step: int = field(default=0, init=False)

    async def next(self, messages: Sequence[JSONObject]) -> Reply:
        """Return the reply to these messages: the stored one of the same request, or a new one."""
        request: JSONObject = {
            "model": self.model,
            "messages": list(messages),
            "tools": TOOLS,
            "tool_choice": "auto",
            "max_tokens": REPLY_TOKENS,
        }
        data = await self._reply(request, digest(request))
        self.usage = self.usage.plus(Usage.model_validate(data.get("usage", {})))
        self._step += 1
        self.progress({"requests": self._step})
        return _read(data, self._step)

    async def _reply(self, request: JSONObject, fingerprint: str) -> JSONObject:
        agent, scope = self.store.agent, self.store.scope
        if self._kept is None:
            found = await self.provider.replies(agent, scope, self.dream)
            self._kept = {record.step: record for record in found if record.phase == self.phase}
        kept = self._kept.get(self._step)
        if kept is not None and kept.digest == fingerprint:
            return kept.reply
        reply = cast("JSONObject", _storable(await self.ask(request)))
        record = ReplyRecord(phase=self.phase, step=self._step, digest=fingerprint, reply=reply)
        await self.provider.save_reply(agent, scope, self.dream, record)
        return reply


def digest(request: JSONObject) -> str:
    """Return what tells two requests apart: a digest of their bytes."""
    text = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _storable(value: Any) -> Any:
    """Return JSON without the characters that a store or a provider refuses."""
    if isinstance(value, str):
        return value.replace("\x00", "").encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_storable(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        items = cast("JSONObject", value).items()
        return {_storable(name): _storable(item) for name, item in items}
    return value


def _read(data: JSONObject, step: int) -> Reply:
    message = cast("JSONObject", data.get("message") or {})
    calls = [
        _made(cast("JSONObject", call), f"d{step}c{place}")
        for place, call in enumerate(cast("list[Any]", message.get("tool_calls") or []))
        if isinstance(call, dict)
    ]
    text = _text(message.get("content"))
    sent: JSONObject = {**message, "role": "assistant", "content": text or None}
    sent.pop("tool_calls", None)
    if calls:
        sent["tool_calls"] = [_sent(call) for call in calls]
    finish = str(data.get("finish") or "stop")
    return Reply(text=text, calls=calls, finish=finish, message=sent)


def _made(call: JSONObject, name: str) -> Made:
    # Ids by position: a model's own may be empty or stand twice.
    function = cast("JSONObject", call.get("function") or {})
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    return Made(id=name, name=str(function.get("name") or ""), arguments=text)


def _sent(call: Made) -> JSONObject:
    try:
        whole = isinstance(json.loads(call.arguments, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        whole = False
    # What no provider takes back goes as an empty object; its result says what was wrong.
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "unnamed"
    function = {"name": name, "arguments": call.arguments if whole else "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return "".join(
        str(cast("JSONObject", part).get("text") or "") for part in parts if isinstance(part, dict)
    )
