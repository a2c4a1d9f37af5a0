"""One request to a model through litellm: its loading, the request and the reply."""

import asyncio
import contextlib
import copy
import gc
import importlib
import json
import logging
import os
import re
import warnings
from collections.abc import AsyncGenerator, Sequence
from concurrent.futures import Future
from typing import Any, cast

from activities.http_exchange import running_exchange, watch_clients
from agentmem.contracts import FailedCall
from agentmem.errors import ModelCallError
from agentmem.llm.errors import NO_TOOLS
from agentmem.llm.request import marked
from agentmem.llm.response import read_usage
from agentmem.llm.response_stream import Assembly
from agentmem.llm.structured_output import has_free_fields, in_words, takes_strict, with_strict
from agentmem.llm.vendors import litellm_name
from agentmem.wire import JSONObject, as_list, as_mapping, joined_text, objects, plain


def load(loading: Future[Any]) -> None:
    """Import litellm and put it, or what went wrong, into the future; for a thread."""
    try:
        # pydantic warns of its types, some of which are defined at its first call only, and of
        # replies whose content is a list.
        for text in (".*the `ReadOnly` qualifier", "Pydantic serializer warnings"):
            warnings.filterwarnings("ignore", text, UserWarning)
        # Of each streamed reply, whose attributes it lists to find the price.
        warnings.filterwarnings("ignore", "Accessing the 'model_", DeprecationWarning)
        # Without this the import fetches a list of prices, and waits for the network.
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
        litellm = _imported()
        watch_clients()
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.turn_off_message_logging = True
        # aiohttp warns of every request over 1 MiB; httpx is what vendors' clients are made for.
        if not litellm.disable_aiohttp_transport:
            litellm.disable_aiohttp_transport = True
            # An app's calls may have made clients with aiohttp, which report nothing.
            litellm.in_memory_llm_clients_cache.flush_cache()
        # It logs what it drops and what fails at every call; failures reach the caller anyway.
        if "LITELLM_LOG" not in os.environ:
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        _take_content_lists(litellm)
        _leave_thought_in_text()
        loading.set_result(litellm)
    except BaseException as error:
        loading.set_exception(error)


def _imported() -> Any:
    # Of the million objects that it makes none is garbage: looking for some takes a seventh of the
    # time, and then again each time that the whole heap is looked through, while turns wait.
    enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module("litellm")
    finally:
        gc.freeze()
        if enabled:
            gc.enable()


def register_offline(litellm: Any) -> None:
    """Make litellm know the model `agentmem/offline`; once is enough."""
    if not any(entry["provider"] == "agentmem" for entry in litellm.custom_provider_map):
        offline: Any = importlib.import_module("agentmem.offline.model")
        handler = offline.litellm_provider()
        litellm.custom_provider_map.append({"provider": "agentmem", "custom_handler": handler})


def register_ollama(litellm: Any, model: str) -> None:
    """Make litellm know a model of Ollama's, `ollama_chat/NAME`, without asking Ollama.

    It would ask two to four times a call, by a client that blocks the event loop: with it stop all
    other calls of the worker and their heartbeats, for as long as Ollama is silent.
    """
    known: dict[str, Any] = litellm.model_cost
    name = model.partition("/")[2]
    if model not in known:
        free = {"input_cost_per_token": 0.0, "output_cost_per_token": 0.0}
        told = known.get(f"ollama/{name}", {})
        known[model] = {"mode": "chat", **free, **told, "litellm_provider": "ollama_chat"}


def _take_content_lists(litellm: Any) -> None:
    # Some servers answer with a list of content parts, and litellm's message holds only text:
    # the texts are joined, and what else there was stands among the provider's own fields.
    initialize = litellm.Message.__init__

    def with_parts(message: Any, content: Any = None, *args: Any, **fields: Any) -> None:
        if isinstance(content, list):
            parts = objects(cast("object", content))
            others = [part for part in parts if part.get("type") != "text"]
            own = as_mapping(fields.get("provider_specific_fields"))
            fields["provider_specific_fields"] = {**own, "content": others} if others else own
            content = joined_text(parts)
        initialize(message, content, *args, **fields)

    litellm.Message.__init__ = with_parts


def _leave_thought_in_text() -> None:
    # litellm takes some tags out of whole replies and others out of pieces, and none that is split
    # over two pieces. Left in the text by it, they are read alike in both (`split_thought`).
    base = "litellm.litellm_core_utils.prompt_templates.reasoning_utils"
    utils: Any = importlib.import_module(base)

    def as_it_is(text: str | None) -> tuple[str | None, str | None]:
        return None, text

    utils.parse_content_for_reasoning = as_it_is
    ollama: Any = importlib.import_module("litellm.llms.ollama.chat.transformation")
    iterator: Any = ollama.OllamaChatCompletionResponseIterator
    parse = iterator.chunk_parser
    if parse.__module__ == __name__:
        return  # done already, for another worker of this process

    def parsed(self: Any, chunk: dict[str, Any]) -> Any:
        if "error" in chunk:  # it came after the status, which was 200
            raise ollama.OllamaError(message=json.dumps(chunk), status_code=500, headers={})
        message = as_mapping(chunk.get("message"))
        text = message.get("content")
        if not isinstance(text, str):
            return parse(self, chunk)
        piece = parse(self, {**chunk, "message": {**message, "content": ""}})
        piece.choices[0].delta.content = text
        return piece

    iterator.chunk_parser = parsed


def prepared(
    litellm: Any, request: JSONObject, *, ollama_context: int = 0, continues: bool = False
) -> JSONObject:
    """Return what litellm is called with: retries are Temporal's, unknown settings are dropped.

    Args:
        litellm: The library.
        request: As `Models.complete` takes it.
        ollama_context: Tokens of the context that Ollama is asked for; 0 leaves it to Ollama.
        continues: Whether a later request will begin with this one's messages.
    """
    model = litellm_name(str(request["model"]))
    sent: JSONObject = {**request, "model": model, "num_retries": 0, "max_retries": 0}
    if model.startswith("ollama_chat/"):
        register_ollama(litellm, model)
        if ollama_context:
            sent["num_ctx"] = ollama_context
    if model.startswith("agentmem/"):
        register_offline(litellm)
    elif request.get("tools"):
        _check_tools(litellm, sent, str(request["model"]))
    if "response_format" in sent:
        sent = _with_format(litellm, sent)
    if continues and _caches_by_marks(litellm, model):
        sent["messages"] = marked(objects(sent["messages"]))
    return {**sent, "drop_params": True}


def _check_tools(litellm: Any, sent: JSONObject, named: str) -> None:
    model = str(sent["model"])
    known = litellm.get_supported_openai_params(model=model)
    if known is not None and "tools" not in known:
        raise ModelCallError(
            f"the model {named} takes no tools; choose another one by AGENTMEM_MODEL or the "
            "agent's `model`, or an agent without tools",
            FailedCall(kind=NO_TOOLS),
            non_retryable=True,
        )
    if model.startswith("ollama_chat/") and sent.get("tool_choice") == "none":
        # Ollama knows no such choice: a model calls tools as long as it is shown any.
        del sent["tools"], sent["tool_choice"]


def _with_format(litellm: Any, sent: JSONObject) -> JSONObject:
    """Return a request with its response format as the model takes it: as a field, or in words."""
    model = str(sent["model"])
    if model.startswith("agentmem/"):
        return sent
    form = as_mapping(sent["response_format"])
    schema = as_mapping(as_mapping(form.get("json_schema")).get("schema"))
    provider = _provider(litellm, model)
    is_openai = provider in ("openai", "azure")
    # OpenAI takes an object alone, strict or not.
    if is_openai and schema.get("type") != "object":
        return in_words(sent)
    if not _enforces(litellm, sent, provider, schema):
        return in_words(sent)
    if is_openai and takes_strict(schema):
        return {**sent, "response_format": with_strict(form)}
    return sent


def _enforces(litellm: Any, sent: JSONObject, provider: str, schema: JSONObject) -> bool:
    """Tell whether a provider holds its model to a response format, without harm to the rest.

    What litellm would send decides. For some models it leaves the format out; for others it adds
    a tool of its own, and makes the model call that in place of the agent's tools.
    """
    model = str(sent["model"])
    plain_form, with_form = (
        _mapped(litellm, sent, provider, names)
        for names in (_SHAPING, (*_SHAPING, "response_format"))
    )
    changed = {name for name, value in with_form.items() if plain_form.get(name) != value}
    if changed & {"tools", "tool_choice"} or not changed - {"json_mode", "fake_stream"}:
        return False
    if changed & {"output_format", "outputConfig"} and has_free_fields(schema):
        return False
    if "tools" not in sent or provider in ("azure", "anthropic"):
        return True
    # With a format most providers forbid calls, and the grammar of a server with OpenAI's protocol
    # leaves its model no way to make one. OpenAI's own models take both.
    name = model.removeprefix("openai/")
    return provider == "openai" and bool(litellm.supports_response_schema(name, provider))


_SHAPING = ("tools", "tool_choice", "max_tokens", "reasoning_effort")
"""The fields of a request that change how litellm sends a response format."""


def _mapped(litellm: Any, sent: JSONObject, provider: str, names: Sequence[str]) -> JSONObject:
    model = str(sent["model"]).removeprefix(f"{provider}/")
    options = {name: copy.deepcopy(sent[name]) for name in names if name in sent}
    try:
        return litellm.get_optional_params(
            model=model, custom_llm_provider=provider, drop_params=True, **options
        )
    except Exception:
        return {}  # what it cannot send it refuses by an exception of any kind


def _provider(litellm: Any, model: str) -> str:
    try:
        return str(litellm.get_llm_provider(model)[1])
    except Exception:
        return ""  # the call itself will say that no provider has such a model


def _caches_by_marks(litellm: Any, model: str) -> bool:
    # To Gemini a mark is the wish for a cache that is made, and paid for, beside the request.
    return "claude" in model and bool(litellm.utils.supports_prompt_caching(model=model))


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
    exchange = running_exchange()
    if exchange is not None and (error := exchange.error):
        # litellm reads on where an error is not in the field that it looks for.
        exchange.unfinished = assembly.reply()
        raise RuntimeError(json.dumps(error, ensure_ascii=False))
    if exchange is not None and (reply := exchange.whole):
        return reply
    body = assembly.reply()
    for choice in body["choices"]:
        if end.details:
            choice["message"].setdefault("reasoning_details", end.details)
        choice |= end.reason()
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


# What litellm would lose in a stream, or trip over: Mistral's lists of parts behind another name.
_LOST = re.compile(r'"error"|"reasoning_details"|"content"\s*:\s*\[')


def _thought_in(parts: list[JSONObject]) -> str:
    thoughts = (part.get("thinking") for part in parts if part.get("type") == "thinking")
    return "".join(one if isinstance(one, str) else joined_text(objects(one)) for one in thoughts)


# litellm's name for it in a stream, of which it says at each piece that it ends by `stop`.
_GEMINI = "vertex_ai_beta"


class _Watched:
    """The parts of a stream that litellm does not hand on, and whether its reply is whole.

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
        self._events = -1  # nobody counts them
        self.is_broken = False
        self.details: list[Any] = []
        stream._should_fail_on_clean_eof = lambda: False
        inner: Any = getattr(stream, "completion_stream", None)
        if hasattr(inner, "_iter_events"):
            self._events = 0
            inner._iter_events = self._noting(inner._iter_events)

    def _noting(self, events: Any) -> Any:
        async def noted() -> AsyncGenerator[Any]:
            async for event in events():
                if not event.data:  # a ping, on which OpenAI's client fails
                    continue
                self._events += 1
                self._is_done = self._is_done or event.data.startswith("[DONE]")
                yield self._read(event)

        return noted

    def _read(self, event: Any) -> Any:
        """Return an event as litellm may have it, with what it would lose taken note of."""
        if not _LOST.search(event.data):
            return event
        try:
            body = as_mapping(json.loads(event.data))
        except ValueError:
            return event
        choices = objects(body.get("choices"))
        for choice in choices[:1]:
            delta = as_mapping(choice.get("delta"))
            self.details += as_list(delta.get("reasoning_details"))
            if parts := objects(delta.get("content")):
                delta |= {"content": joined_text(parts), "reasoning_content": _thought_in(parts)}
                choice["delta"] = delta
                event._data = json.dumps(body)
            if choice.get("finish_reason") == "error":
                # litellm would raise here, before the usage that comes behind it.
                self.is_broken = True
                choice["finish_reason"] = "stop"
                event._data = json.dumps(body)
        return event

    def reason(self) -> JSONObject:
        """Return why a reply of Gemini ended, of which litellm says `stop` in a stream."""
        exchange = running_exchange()
        if exchange is None or self._stream.custom_llm_provider != _GEMINI:
            return {}
        if exchange.last_value("blockReason"):
            return {"finish_reason": "content_filter"}
        own = exchange.last_value("finishReason")
        return {"provider_specific_fields": {"native_finish_reason": own}} if own != "STOP" else {}

    def is_known(self) -> bool:
        """Return whether it did; what litellm ends in other protocols has ended."""
        stream, exchange = self._stream, running_exchange()
        if self._events == 0 and not (exchange is not None and exchange.is_done()):
            return False  # what came is no stream, a gateway's page for example
        if stream.custom_llm_provider == _GEMINI:
            ends = (b'"finishReason"', b'"blockReason"')
            return exchange is None or any(exchange.ended_with(e) is not False for e in ends)
        if stream.received_finish_reason or stream.intermittent_finish_reason or self._is_done:
            return True
        if exchange is not None and exchange.is_done():
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
