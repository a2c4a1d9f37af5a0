"""What differs between vendors of models: the variables of their keys and addresses."""

from collections.abc import Mapping

from agentmem.models.wordings import without_secrets

OLLAMA_ADDRESS = "http://localhost:11434"

_CREDENTIALS = {
    "bedrock": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "sagemaker": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "vertex_ai": "GOOGLE_APPLICATION_CREDENTIALS",
    "huggingface": "HF_TOKEN",
}


def is_ollama(provider: str) -> bool:
    """Tell whether a model's provider is Ollama, by either of litellm's names for it."""
    return provider in ("ollama", "ollama_chat")


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
