"""Importing litellm, quiet and off line."""

import gc
import importlib
import json
import logging
import os
import warnings
from concurrent.futures import Future
from typing import Any, cast

from activities.exchange import watch_clients
from agentmem.models.plain import as_mapping, joined_text, objects


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
