"""One request to a model through litellm: what goes out, and its reply, whole or in pieces."""

import asyncio
import contextlib
from typing import Any

from activities.litellm_loading import register_offline, register_ollama
from agentmem.errors import ModelCallError
from agentmem.models.failures import NO_TOOLS
from agentmem.models.plain import plain
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
                f"the model {request['model']}{NO_TOOLS}; choose another one by "
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
    """Return the same, read piece by piece; `limit` is for each piece, in seconds."""
    assembly = Assembly()
    options = {"stream": True, "stream_options": {"include_usage": True}, "timeout": limit}
    try:
        async with asyncio.timeout(limit):
            stream = await litellm.acompletion(**sent, **options)
        async with contextlib.aclosing(stream):
            pieces = aiter(stream)
            while True:
                async with asyncio.timeout(limit):
                    piece = await anext(pieces, None)
                if piece is None:
                    break
                assembly.add(plain(piece.model_dump()))
    except TimeoutError:
        raise TimeoutError(f"no piece of the reply within {limit:g} seconds") from None
    body = assembly.reply()
    if body["usage"]:
        body["usage"]["cost"] = _cost(litellm, sent["model"], body["usage"])
    return body


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
