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


def litellm_name(model: str) -> str:
    """Return the model as litellm must be given it.

    Its plain `ollama/` writes tools into the prompt and flips a switch of the whole process;
    `ollama_chat/` uses Ollama's own tool calls.
    """
    provider, slash, name = model.partition("/")
    return f"ollama_chat/{name}" if slash and provider == "ollama" else model
