"""A phase's model calls: each reply is stored before it is used, and never paid for twice.

A reply that was refused is paid for too. What it took is stored in the place of the reply that is
still to come, and stays with that one, so that a phase that is tried again counts it once.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agentmem.contracts import PhaseName, ScopeRef, Usage
from agentmem.error_text import failed_call
from agentmem.errors import ModelCallError, ProviderError
from agentmem.llm.errors import not_accepted
from agentmem.llm.reasoning import read_fields, read_reasoning
from agentmem.llm.request import render
from agentmem.llm.response import read_calls
from agentmem.messages import Message, Role
from agentmem.records import ReplyRecord
from agentmem.storage.protocol import TransactionalProvider
from agentmem.wire import JSONObject, as_mapping, objects

Progress = Callable[[dict[str, int]], None]
"""Told small counters while a phase runs."""


class Asker(Protocol):
    """Asks a model once."""

    async def __call__(self, request: JSONObject) -> JSONObject:
        """Send a request and return the reply as JSON.

        Args:
            request: `model`, `messages`, `tools`, `tool_choice`, `temperature`, `max_tokens`,
                as litellm and OpenAI name them.

        Returns:
            `message`: the assistant's message in OpenAI's shape; `finish`: stop, tool_calls,
            length or content_filter; `usage`: the fields of `Usage`.

        Raises:
            ModelCallError: The call failed; Temporal decides whether the phase is tried again.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class PhaseReply:
    """A model's answer.

    Attributes:
        message: Its message: text, tool calls, and what its provider wants back unchanged.
        finish: Why it ended.
    """

    message: Message
    finish: str


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
        tokens: Of the longest reply.
        tools: What each request offers, unless it says otherwise.
        progress: Told how many requests there were.
        forgets: How often the dream had lost messages when the phase began.
        usage: Of all requests, those of earlier attempts and of refused replies included.
    """

    ask: Asker
    provider: TransactionalProvider
    store: ScopeRef
    dream: str
    phase: PhaseName
    model: str
    tokens: int
    tools: list[JSONObject]
    progress: Progress
    forgets: int = 0
    usage: Usage = field(default_factory=Usage)
    _kept: dict[int, ReplyRecord] | None = field(default=None, init=False)
    _step: int = field(default=0, init=False)

    async def next(
        self,
        messages: Sequence[Message],
        *,
        force: str = "",
        tools: list[JSONObject] | None = None,
        model: str = "",
    ) -> PhaseReply:
        """Return the reply to these messages: the stored one of the same request, or a new one.

        Args:
            messages: What the model reads.
            force: The tool that it must call, where its provider can ask for that.
            tools: The tools on offer, the phase's if None.
            model: The model to ask, the phase's if empty.

        Raises:
            ModelCallError: The call failed.
        """
        forced: JSONObject = {"type": "function", "function": {"name": force}}
        request: JSONObject = {
            "model": model or self.model,
            "messages": render(messages, clipped={}),
            "tools": self.tools if tools is None else tools,
            "tool_choice": forced if force else "auto",
            "temperature": 0,
            "max_tokens": self.tokens,
        }
        data = await self._reply(request, digest(request))
        self.usage = self.usage.plus(_taken(data))
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
        before = Usage() if kept is None else _taken(kept.reply)
        try:
            reply = await asked(self.ask, request)
        except ModelCallError as error:
            if (paid := failed_call(error).paid) != Usage():
                # The model's error says more than the store's, and whether to try again.
                with contextlib.suppress(ProviderError):
                    await self._keep("", _with_paid({}, before.plus(paid)))
            raise
        if before != Usage():
            reply = _with_paid(reply, before)
        await self._keep(fingerprint, reply)
        return reply

    async def _keep(self, fingerprint: str, reply: JSONObject) -> None:
        record = ReplyRecord(
            phase=self.phase,
            step=self._step,
            digest=fingerprint,
            reply=reply,
            forgets=self.forgets,
        )
        agent, scope = self.store.agent, self.store.scope
        await self.provider.save_reply(agent, scope, self.dream, record)
        if self._kept is not None:
            self._kept[self._step] = record


def _with_paid(reply: JSONObject, paid: Usage) -> JSONObject:
    return {**reply, "paid": paid.model_dump(mode="json")}


def _taken(data: JSONObject) -> Usage:
    """Return what a reply took, and what was paid before it came."""
    paid = Usage.model_validate(data.get("paid", {}))
    if "message" not in data:  # nothing but refused replies so far
        return paid
    return Usage.model_validate(data.get("usage", {})).replace(requests=1).plus(paid)


_PLAIN: dict[str, JSONObject] = {}
"""The parameters that models of this process refused, and what is sent to them instead."""

_INSTEAD: tuple[JSONObject, ...] = (
    {"tool_choice": "auto"},
    {"temperature": None},
    {"tool_choice": "auto", "temperature": None},
)


async def asked(ask: Asker, request: JSONObject) -> JSONObject:
    """Ask a model; a parameter that its provider refuses is dropped, once, and remembered.

    Some models take no temperature, others no forced tool.

    Raises:
        ModelCallError: The call failed, with the parameters and without them.
    """
    model = str(request["model"])
    try:
        return await ask(_instead(request, _PLAIN.get(model, {})))
    except ModelCallError as error:
        if not not_accepted(error) or model in _PLAIN:
            raise
        for change in _INSTEAD:
            if all(request.get(name) == value for name, value in change.items()):
                continue
            try:
                reply = await ask(_instead(request, change))
            except ModelCallError as other:
                if not not_accepted(other):
                    raise
            else:
                _PLAIN[model] = change
                return reply
        raise


def _instead(request: JSONObject, change: JSONObject) -> JSONObject:
    sent = {**request, **change}
    return {name: value for name, value in sent.items() if value is not None}


def digest(request: JSONObject) -> str:
    """Return what tells two requests apart: a digest of their bytes."""
    text = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _read(data: JSONObject, step: int) -> PhaseReply:
    said = as_mapping(data.get("message"))
    message = Message(
        id=f"m{step}",
        role=Role.ASSISTANT,
        content=_text(said.get("content")),
        calls=read_calls(said, f"t0.s{step}"),
        reasoning=read_reasoning(said),
        fields=read_fields(said),
    )
    return PhaseReply(message=message, finish=str(data.get("finish") or "stop"))


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text") or "") for part in objects(content))
