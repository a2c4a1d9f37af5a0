"""The offline model: fixed rules in a model's place, and never more than that.

It follows the chat protocol with its tools, so that agents can be tried, tested and measured
without a model. `docs/offline-model.md` says what it understands and what it does not.
"""

from __future__ import annotations

import json
from typing import Any, cast

from agentmem.testing.offline.calling import Call
from agentmem.testing.offline.dreaming import dream
from agentmem.testing.offline.talking import talk, text_of
from agentmem.values import JSONObject, dump_json

__all__ = ["MODEL", "answer", "litellm_provider"]

MODEL = "agentmem/offline"
"""Its name, as litellm names models: provider and model."""


def answer(request: JSONObject) -> JSONObject:
    """Return the chat completion that answers an OpenAI-style request; the same for the same.

    Args:
        request: `messages`, and if given `tools`, `tool_choice`, `parallel_tool_calls`, `model`.
    """
    messages: list[JSONObject] = request["messages"]
    tools = _offered(request)
    if any(name.startswith("submit_") for name in tools):
        asked = [text_of(message) for message in messages if message["role"] == "user"]
        again = any(message["role"] == "assistant" for message in messages)
        return _completion(request, "", [Call(*dream(asked, again=again))])
    text, calls = talk(messages, tools)
    if request.get("parallel_tool_calls") is False:
        calls = calls[:1]  # the others are asked for again once this one is answered
    return _completion(request, text, calls)


def litellm_provider() -> Any:
    """Return a handler for `litellm.custom_provider_map`, where it answers as `agentmem/offline`.

    litellm is imported here, which takes seconds.
    """
    from litellm import ModelResponse
    from litellm.llms.custom_llm import CustomLLM

    class OfflineModel(CustomLLM):
        def completion(self, *args: Any, **kwargs: Any) -> Any:
            request = {"model": MODEL, "messages": kwargs["messages"], **kwargs["optional_params"]}
            return ModelResponse(**answer(request))

        async def acompletion(self, *args: Any, **kwargs: Any) -> Any:
            return self.completion(*args, **kwargs)

    return OfflineModel()


def _offered(request: JSONObject) -> dict[str, JSONObject]:
    """Return the tools that may be called now, by name."""
    tools = {tool["function"]["name"]: tool["function"] for tool in request.get("tools") or ()}
    choice = request.get("tool_choice") or "auto"
    if isinstance(choice, dict):
        only = cast("JSONObject", choice)["function"]["name"]
        return {name: tool for name, tool in tools.items() if name == only}
    return {} if choice == "none" else tools


def _completion(request: JSONObject, text: str, calls: list[Call]) -> JSONObject:
    place = len(request["messages"])  # makes the ids unique in the conversation
    message: JSONObject = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": f"call_{place}_{number}",
                "type": "function",
                "function": {"name": call.name, "arguments": dump_json(call.arguments)},
            }
            for number, call in enumerate(calls)
        ]
    asked, given = _tokens([request["messages"], request.get("tools")]), _tokens(message)
    return {
        "id": f"chatcmpl-offline-{place}",
        "object": "chat.completion",
        "created": 0,
        "model": request.get("model", MODEL),
        "choices": [
            {"index": 0, "finish_reason": "tool_calls" if calls else "stop", "message": message}
        ],
        "usage": {
            "prompt_tokens": asked,
            "completion_tokens": given,
            "total_tokens": asked + given,
        },
    }


def _tokens(value: Any) -> int:
    return max(1, len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")) // 4)
