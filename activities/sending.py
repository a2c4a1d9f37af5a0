"""One request to a model through litellm: what goes out, and its reply, whole or in pieces."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator
from typing import Any

from activities.exchange import running_exchange
from activities.litellm_loading import register_offline, register_ollama
from agentmem.contracts import FailedCall
from agentmem.errors import ModelCallError
from agentmem.models.plain import as_list, as_mapping, objects, plain
from agentmem.models.replies import read_usage
from agentmem.models.streams import Assembly
from agentmem.models.structured import in_words
from agentmem.models.vendors import litellm_name
from agentmem.values import JSONObject

_FORMAT_BESIDE_TOOLS = ("openai", "azure", "anthropic")


def prepared(litellm: Any, request: JSONObject) -> JSONObject:
    """Return what litellm is called with: retries are Temporal's, unknown settings are dropped."""
    model = litellm_name(str(request["model"]))
    sent: JSONObject = {**request, "model": model, "num_retries": 0, "max_retries": 0}
    if model.startswith("ollama_chat/"):
        register_ollama(litellm, model)
    if model.startswith("agentmem/"):
        register_offline(litellm)
    elif request.get("tools"):
        known = litellm.get_supported_openai_params(model=model)
        if known is not None and "tools" not in known:
            raise ModelCallError(
                f"the model {request['model']} takes no tools; choose another one by "
                "AGENTMEM_MODEL or the agent's `model`, or an agent without tools",
                non_retryable=True,
            )
        if model.startswith("ollama_chat/") and request.get("tool_choice") == "none":
            # Ollama knows no such choice: a model calls tools as long as it is shown any.
            del sent["tools"], sent["tool_choice"]
    if "response_format" in sent and not _enforces(litellm, sent):
        sent = in_words(sent)
    return {**sent, "drop_params": True}


def _enforces(litellm: Any, sent: JSONObject) -> bool:
    """Tell whether a provider holds its model to a response format, without harm to the rest."""
    model = str(sent["model"])
    if model.startswith("agentmem/"):
        return True
    known = litellm.get_supported_openai_params(model=model)
    if known is None or "response_format" not in known:
        return False
    # With a format most providers forbid calls, and a local model's grammar leaves it no way to
    # make one. These take both.
    return "tools" not in sent or model.partition("/")[0] in _FORMAT_BESIDE_TOOLS


async def whole(litellm: Any, sent: JSONObject, limit: float) -> JSONObject:
    """Return the reply to one request, as plain JSON; `limit` is for all of it, in seconds."""
    try:
        # Not every transport of litellm's keeps its own timeout.
        async with asyncio.timeout(limit):
            reply = await litellm.acompletion(**sent, timeout=limit)
    except TimeoutError:
        raise TimeoutError(f"no reply within {limit:g} seconds") from None
    return _plain_reply(reply)


async def streamed(litellm: Any, sent: JSONObject, limit: float) -> JSONObject:
    """Return the same, read piece by piece; `limit` is for each piece, in seconds.

    Raises:
        ModelCallError: The stream ended before the reply did; a retry may bring all of it.
    """
    assembly = Assembly([tool["function"]["name"] for tool in sent.get("tools", [])])
    options = {"stream": True, "stream_options": {"include_usage": True}, "timeout": limit}
    try:
        async with asyncio.timeout(limit):
            stream = await litellm.acompletion(**sent, **options)
        end = _Watched(stream, sent["model"])
        await _read_pieces(stream, assembly, limit)
    except TimeoutError:
        raise TimeoutError(f"no piece of the reply within {limit:g} seconds") from None
    body = assembly.reply()
    for choice in body["choices"] if end.details else ():
        choice["message"].setdefault("reasoning_details", end.details)
    if end.is_broken or not end.is_known():
        why = "a stream that ended without a finish reason, without usage and without [DONE]"
        why = "finish reason error" if end.is_broken else why
        raise ModelCallError(
            f"the provider of the model {sent['model']} broke its reply off ({why})",
            FailedCall(kind="broken", paid=read_usage(body)),
        )
    if body["usage"]:
        body["usage"]["cost"] = _cost(litellm, sent["model"], body["usage"])
    return body


async def _read_pieces(stream: Any, assembly: Assembly, limit: float) -> None:
    try:
        async with contextlib.aclosing(stream):
            pieces = aiter(stream)
            while True:
                async with asyncio.timeout(limit):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                assembly.add(plain(piece.model_dump()))
    except Exception:
        if (exchange := running_exchange()) is not None:
            exchange.unfinished = assembly.reply()
        raise


# litellm's name for it in a stream, of which it says at each piece that it ends by `stop`.
_GEMINI = "vertex_ai_beta"


class _Watched:
    """What a stream says that litellm does not hand on, and whether its reply is whole.

    In OpenAI's protocol litellm takes only a finish reason for that, and in Ollama's it makes one
    up where none came. Usage, which comes last, and `[DONE]` say it too.

    Attributes:
        is_broken: Whether the provider gave the reply up half-way.
        details: Reasoning details of the pieces, which litellm keeps in whole replies only.
    """

    def __init__(self, stream: Any, model: str) -> None:
        self._stream = stream
        self._model = model
        self._is_done = False
        self.is_broken = False
        self.details: list[Any] = []
        stream._should_fail_on_clean_eof = lambda: False
        inner: Any = getattr(stream, "completion_stream", None)
        if hasattr(inner, "_iter_events"):
            inner._iter_events = self._noting(inner._iter_events)

    def _noting(self, events: Any) -> Any:
        async def noted() -> AsyncGenerator[Any]:
            async for event in events():
                self._is_done = self._is_done or event.data.startswith("[DONE]")
                yield self._read(event)

        return noted

    def _read(self, event: Any) -> Any:
        """Return an event as litellm may have it, with what it would lose taken note of."""
        if not ('"error"' in event.data or '"reasoning_details"' in event.data):
            return event
        try:
            body = as_mapping(json.loads(event.data))
        except ValueError:
            return event
        choices = objects(body.get("choices"))
        for choice in choices[:1]:
            self.details += as_list(as_mapping(choice.get("delta")).get("reasoning_details"))
            if choice.get("finish_reason") == "error":
                # litellm would raise here, before the usage that comes behind it.
                self.is_broken = True
                choice["finish_reason"] = "stop"
                event._data = json.dumps(body)
        return event

    def is_known(self) -> bool:
        """Return whether it did; what litellm ends in other protocols has ended."""
        stream = self._stream
        if stream.custom_llm_provider == _GEMINI:
            exchange = running_exchange()
            return exchange is None or exchange.ended_with(b'"finishReason"') is not False
        if stream.received_finish_reason or stream.intermittent_finish_reason or self._is_done:
            return True
        if stream.custom_llm_provider == "anthropic":
            return False  # its usage begins a stream
        is_openai = stream.uses_openai_chat_stream or self._model.startswith("ollama_chat/")
        has_usage = any(getattr(chunk, "usage", None) for chunk in stream.chunks)
        return bool(not is_openai or has_usage or stream.received_any_finish_reason)


def _cost(litellm: Any, model: str, usage: JSONObject) -> float | None:
    try:
        reply = litellm.ModelResponse(model=model, usage=litellm.Usage(**usage))
        return litellm.completion_cost(completion_response=reply, model=model)
    except Exception:
        return None  # litellm knows no price: it says so by an exception of any kind


def _plain_reply(reply: Any) -> JSONObject:
    body: JSONObject = plain(reply.model_dump())
    cost: Any = getattr(reply, "_hidden_params", {}).get("response_cost")
    if isinstance(body.get("usage"), dict) and isinstance(cost, int | float):
        body["usage"]["cost"] = cost
    return body
