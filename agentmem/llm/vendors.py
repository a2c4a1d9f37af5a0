"""The differences between vendors of models: their keys, addresses, names, and Ollama's context."""

from collections.abc import Mapping

from agentmem.llm.error_evidence import without_secrets

OLLAMA_ADDRESS = "http://localhost:11434"

OLLAMA_CONTEXT = 32_768
"""Tokens of the context that Ollama is asked for. By its documentation it gives a model 4,096 on a
machine with less than 24 GiB of video memory, and it cuts what is longer without a word. Memory for
the whole context is taken when a model is loaded, so more is not always better."""

_ESTIMATE_SHARE = 0.75
"""The share of a context that the estimate of tokens may fill: it may be too low by a quarter."""

_CREDENTIALS = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sagemaker": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "huggingface": "HF_TOKEN",
}


def is_ollama(provider: str) -> bool:
    """Tell whether a model's provider is Ollama, by either of litellm's names for it."""
    return provider in ("ollama", "ollama_chat")


def fitting_tokens(context: int, fixed: int) -> int:
    """Return how many estimated tokens of conversation fit into a context.

    Args:
        context: Tokens of the context.
        fixed: Tokens of what else must fit: the reply, the system prompt, the tools.
    """
    return max(int((context - fixed) * _ESTIMATE_SHARE), context // 4)


def key_hint(provider: str) -> str:
    """Say which variable holds the key of a provider."""
    if is_ollama(provider):
        return "set OLLAMA_API_KEY where the worker runs, if your Ollama wants one"
    variable = _CREDENTIALS.get(provider, f"{_prefix(provider)}_API_KEY")
    return f"set {variable} where the worker runs"


def unreachable_hint(provider: str, environ: Mapping[str, str]) -> str:
    """Say where a provider was looked for, and what to do."""
    if is_ollama(provider):
        address = without_secrets(environ.get("OLLAMA_API_BASE") or OLLAMA_ADDRESS, environ)
        return f"is Ollama running at {address}? OLLAMA_API_BASE names another address"
    variable = f"{_prefix(provider)}_API_BASE"
    address = environ.get(variable)
    if address:
        return f"check {variable}, which is {without_secrets(address, environ)}"
    return f"check the network, or set {variable} to another address"


def cut_hint(model: str, ollama_context: int) -> str:
    """Say what to do where a provider cuts prompts without saying so."""
    less = "give the agent a lower working_memory.max_tokens"
    if not is_ollama(model.partition("/")[0]):
        return f"Raise the context that the provider gives the model, or {less}."
    return f"Raise AGENTMEM_OLLAMA_CONTEXT (now {ollama_context}), or {less}."


def _prefix(provider: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in provider).upper()


# They host models of several vendors under one name; what a model signed says whose it is.
_HOSTS = {
    "azure_ai",
    "bedrock",
    "bedrock_converse",
    "databricks",
    "github",
    "litellm_proxy",
    "sagemaker",
    "sagemaker_chat",
    "vertex_ai",
    "vertex_ai_beta",
    "watsonx",
}


def vendor_of(model: str) -> str:
    """Return whose a model is: what one vendor signed, no other one takes.

    Usually that is litellm's provider. Where one provider hands requests on to several vendors, it
    is also the path before the model's name, as in `openrouter/anthropic`, or the name's first
    word, as in `bedrock/anthropic.claude` and `vertex_ai/gemini`.
    """
    *path, name = model.split("/")
    family = name.partition("-")[0].partition(":")[0]
    if not path or path[0] in _HOSTS:
        return "/".join([*path, family])
    if path[0] == "ollama_chat":
        return "ollama"
    return "/".join(path)


def litellm_name(model: str) -> str:
    """Return the model as litellm must be given it.

    Its plain `ollama/` writes tools into the prompt and flips a switch of the whole process;
    `ollama_chat/` uses Ollama's own tool calls.
    """
    provider, slash, name = model.partition("/")
    return f"ollama_chat/{name}" if slash and provider == "ollama" else model
