"""The settings of a working memory that make sense."""

from pydantic import ValidationError

from agentmem.contracts.agents import MemorySettings
from agentmem.errors import ConfigurationError


def checked_settings(**given: object) -> MemorySettings:
    """Return settings that make sense.

    Args:
        given: The fields of `MemorySettings`, as the caller wrote them.

    Raises:
        ConfigurationError: One does not; the message names it.
    """
    try:
        settings = MemorySettings.model_validate(given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        raise ConfigurationError(f"{name} is {given[name]!r:.100}: {first['msg']}") from error
    for name in ("window", "max_tokens"):
        value = getattr(settings, name)
        if value is not None and value < 1:
            raise ConfigurationError(f"{name} is {value}; use at least 1, or None for no bound")
    if not 0 < settings.compact_threshold <= 1:
        raise ConfigurationError(
            f"compact_threshold is {settings.compact_threshold}; use a share above 0, at most 1"
        )
    if settings.compact_preserve < 0:
        raise ConfigurationError(
            f"compact_preserve is {settings.compact_preserve}; use 0 or more messages"
        )
    if settings.compact_model and settings.max_tokens is None:
        raise ConfigurationError("compact_model without max_tokens never runs; set max_tokens")
    return settings
