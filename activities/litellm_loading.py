"""Importing litellm, quiet and off line."""

import importlib
import logging
import os
import warnings
from concurrent.futures import Future
from typing import Any


def load(loading: Future[Any]) -> None:
    """Import litellm and put it, or what went wrong, into the future; for a thread."""
    # Without this the import fetches a list of prices, and waits for the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Its types, some of which it defines at its first call only, are of a kind that pydantic
    # warns of.
    warnings.filterwarnings("ignore", ".*the `ReadOnly` qualifier", UserWarning)
    try:
        litellm: Any = importlib.import_module("litellm")
        litellm.telemetry = False
        litellm.suppress_debug_info = True
        litellm.turn_off_message_logging = True
        # It logs what it drops and what fails at every call; failures reach the caller anyway.
        if "LITELLM_LOG" not in os.environ:
            for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        _take_content_lists(litellm)
        loading.set_result(litellm)
    except BaseException as error:
        loading.set_exception(error)


def register_offline(litellm: Any) -> None:
    """Make litellm know the model `agentmem/offline`; once is enough."""
    if not any(entry["provider"] == "agentmem" for entry in litellm.custom_provider_map):
        offline: Any = importlib.import_module("agentmem.testing.offline")
        handler = offline.litellm_provider()
        litellm.custom_provider_map.append({"provider": "agentmem", "custom_handler": handler})


def _take_content_lists(litellm: Any) -> None:
    # Some servers answer with a list of content parts. litellm's own model refuses them, and
    # warns of what it then holds.
    litellm.Message.model_fields["content"].annotation = Any
    litellm.Message.model_rebuild(force=True)
    warnings.filterwarnings("ignore", "Pydantic serializer warnings", UserWarning)
