"""Every error that agentmem raises.

AgentMemError (a temporalio ApplicationError: raised in workflow code it fails the workflow
│              or the update, and never leaves a workflow task failing again and again)
├── ConfigurationError (also ValueError)   the caller's mistake: wrong settings or arguments
│   ├── InvalidInput                       what came to a workflow, update or signal is wrong
│   └── InvalidFact                        a key or value that no store may hold
├── ProviderError                          a memory store failed; the driver's error is __cause__
│   └── StoreUnavailable                   the store is away for now: a later try may find it back
├── ModelCallError                         a model call failed; says whether a retry can help
│   ├── ContextOverflow                    the model says that the prompt is too long for it
│   └── ModelUnavailable                   the model is away for now: a dream waits for it
├── ToolError                              a tool failed, with a text that the model may read
├── DreamFailed                            a dream ended without a commit; the store is unchanged
├── TurnFailed                             a turn ended without an answer; the session goes on
└── SessionBusy                            too many messages are waiting; send again later
"""

from typing import Any

from temporalio.exceptions import ApplicationError


class AgentMemError(ApplicationError):
    """The root of agentmem's errors: its Temporal error type is the class's name."""

    retryable = False

    def __init__(self, message: str, *details: Any, **options: Any) -> None:
        options.setdefault("non_retryable", not self.retryable)
        super().__init__(message, *details, type=type(self).__name__, **options)


class ConfigurationError(AgentMemError, ValueError):
    """Settings or arguments are wrong; the message names the field and says what to do."""


class InvalidInput(ConfigurationError):
    """A start, update or signal came with an input that the workflow cannot take."""


class InvalidFact(ConfigurationError):
    """A key or a value cannot be stored: empty, too long, or not JSON."""


class ProviderError(AgentMemError):
    """A memory store could not do its work; the driver's error is `__cause__`."""

    retryable = True


class StoreUnavailable(ProviderError):
    """A store cannot be reached or is overloaded for now; a dream waits until it is back."""


class ModelCallError(AgentMemError):
    """A model call failed; the message names the model and what to do about it."""

    retryable = True


class ContextOverflow(ModelCallError):
    """The provider says that the prompt does not fit the model's context."""

    retryable = False


class ModelUnavailable(ModelCallError):
    """A model cannot be reached, is rate limited or overloaded; a dream waits until it is back.

    `next_retry_delay` is the wait that the provider asked for, None if it did not say.
    """


class ToolError(AgentMemError):
    """A tool failed; raise it in a tool to choose the text that the model reads."""


class DreamFailed(AgentMemError):
    """A dream ended without a commit: the store is unchanged, its messages wait for the next."""


class TurnFailed(AgentMemError):
    """A turn ended without an answer; the conversation is valid and the session goes on."""


class SessionBusy(AgentMemError):
    """Too many messages are waiting in this session; send again when one is answered."""


RollingOver = SessionBusy
"""The former name of a refusal that no session gives any more; goes with the next release."""
