"""From an exception of a model call to ours: retry posture and words for people."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from agentmem.errors import ContextOverflow, ModelCallError
from agentmem.models.failures import SETTING, is_outage, model_call_error
from agentmem.models.waits import LONGEST_WAIT, asked_wait
from agentmem.models.wordings import SHOWN_BYTES, without_secrets

NOW = datetime(2026, 3, 10, 12, 0, 0, tzinfo=UTC)
KEY = "sk-proj-1234567890abcdef"


class Response:
    """The answer that an exception was made from."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = dict(headers)


class APIError(Exception):
    """An exception as litellm makes them: a class, a status, headers, a body, wrapped words."""

    def __init__(
        self,
        text: str,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        body: object = None,
    ) -> None:
        super().__init__(f"litellm.{type(self).__name__}: OpenAIException - {text}")
        self.status_code = status
        self.response = Response(headers or {})
        self.body = body


class APIConnectionError(APIError):
    """litellm's for a broken connection, and for what it did not foresee."""


class Timeout(APIConnectionError):
    """litellm's for silence; a connection error too, as in litellm."""


class RateLimitError(APIError):
    """litellm's for 429."""


class AuthenticationError(APIError):
    """litellm's for 401."""


class ContentPolicyViolationError(APIError):
    """litellm's for a prompt that a filter stopped."""


class ContextWindowExceededError(APIError):
    """litellm's for the wordings of an overflow that it knows."""


def mapped(
    error: BaseException, model: str = "openai/gpt-4o", environ: Mapping[str, str] | None = None
) -> ModelCallError:
    return model_call_error(error, model=model, environ=environ or {}, now=NOW)


@pytest.mark.parametrize(
    "text",
    [
        "input tokens exceed the configured limit of 8000",
        "maximum context length is 8192",
        "prompt is too long: 9000 tokens > 8000",
        "input token count exceeds the maximum",
        "The input token count (1200) exceeds the maximum number of tokens allowed (1000).",
        "prompt token count of 128999 exceeds the limit of 128000",
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
        "Please reduce the length of the messages or completion.",
        "the request exceeds the available context size",
        "Input is too long for requested model.",
        "Range of input length should be [1, 30720]",
        "too many tokens: total number of tokens in the prompt cannot exceed 4081",
        "context window exceeds limit (2013)",
        "Your request exceeded model token limit: 8192",
        "`inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5000 `inputs` tokens",
        "Invalid 'messages[1].content': string too long (string_above_max_length)",
    ],
)
def test_a_prompt_that_does_not_fit_is_told_by_any_wording(text: str) -> None:
    """E-03: a plain 400 in a provider's own words means the same as the class for it."""
    for error in (APIError(text, 400), APIError(f'{{"error": "{text}"}}', 400)):
        found = mapped(error)
        assert isinstance(found, ContextOverflow)
        assert found.type == "ContextOverflow"
        assert found.non_retryable


def test_a_prompt_that_does_not_fit_is_told_by_its_class() -> None:
    """E-03: litellm has a class of its own for what it recognizes."""
    assert isinstance(mapped(ContextWindowExceededError("no", 400)), ContextOverflow)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("tools.0.name: invalid", 400),
        (
            "max_tokens is too large: 100000. This model supports at most 16384 completion tokens",
            400,
        ),
        ("This account is not allowed", 403),
        ("The model `gpt-9` does not exist", 404),
        ("messages: Input should be a valid list", 422),
        ("Method Not Allowed", 405),
    ],
)
def test_a_refused_request_is_not_tried_again(text: str, status: int) -> None:
    """E-05: one attempt, and the provider's words reach the caller."""
    found = mapped(APIError(text, status))
    assert not isinstance(found, ContextOverflow)
    assert found.non_retryable
    assert text.split(".")[0] in found.message
    assert "openai/gpt-4o" in found.message
    assert found.message.endswith(SETTING)


@pytest.mark.parametrize(
    ("error", "model", "variable"),
    [
        (
            AuthenticationError(f"Incorrect API key provided: {KEY}", 401),
            "openai/x",
            "OPENAI_API_KEY",
        ),
        (APIError("Missing credentials. Please pass an `api_key`", 500), "gpt-4o", "GPT_4O"),
        (
            APIConnectionError("Missing Gemini API key. Set the ...", 500),
            "gemini/x",
            "GEMINI_API_KEY",
        ),
        (
            APIError("API key not valid. Please pass a valid API key.", 400),
            "gemini/x",
            "GEMINI",
        ),
        (AuthenticationError("no", 401), "bedrock/x", "AWS_ACCESS_KEY_ID"),
    ],
)
def test_a_wrong_or_missing_key_names_its_variable(
    error: Exception, model: str, variable: str
) -> None:
    """E-02: one attempt; the message names what to set, and holds no key."""
    found = mapped(error, model)
    assert found.non_retryable
    assert "needs a valid key" in found.message
    assert variable in found.message
    assert KEY not in found.message


def test_the_provider_of_a_bare_model_name_is_the_one_that_litellm_found() -> None:
    """E-02: `gpt-4o` alone is OpenAI's, and so is its key."""
    error = AuthenticationError("no", 401)
    error.llm_provider = "openai"  # pyright: ignore[reportAttributeAccessIssue]
    assert "OPENAI_API_KEY" in mapped(error, "gpt-4o").message


@pytest.mark.parametrize(
    ("error", "is_quota"),
    [
        (RateLimitError("x", 429, body={"code": "insufficient_quota"}), True),
        (RateLimitError("monthly usage limit reached for this billing cycle", 429), True),
        (APIError("Your credit balance is too low to access the API", 400), True),
        (APIError("Insufficient credits", 402), True),
        (RateLimitError("You exceeded your current quota", 429), True),
        (RateLimitError("You exceeded your current quota. Please retry in 34.07s", 429), False),
        (RateLimitError("Quota exceeded for requests per minute", 429), False),
        (RateLimitError("tokens per min (TPM): Limit 30000", 429), False),
    ],
)
def test_a_used_up_quota_is_told_from_a_rate_limit(error: Exception, *, is_quota: bool) -> None:
    """E-07: a quota is final and is called so; a rate limit passes."""
    found = mapped(error)
    assert found.non_retryable is is_quota
    assert ("quota or credit" in found.message) is is_quota


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (RateLimitError("slow down", 429), True),
        (APIError("Overloaded", 529), True),
        (APIError("internal error", 500), True),
        (APIError("bad gateway", 502), True),
        (APIConnectionError("Connection reset by peer", 500), True),
        (ConnectionRefusedError(111, "Connect call failed"), True),
        (RateLimitError("x", 429, body={"code": "insufficient_quota"}), False),
        (RateLimitError("Request too large for gpt-4o: Limit 30000", 429), False),
        (APIError("tools.0.name: cannot be reached", 400), False),
        (APIError("again", 409), False),
        (Timeout("Request timed out", 408), False),
        (APIConnectionError("'str' has no 'get'\nTraceback (most", 500), False),
        (RuntimeError("odd"), False),
    ],
)
def test_an_outage_is_told_from_a_failure(error: Exception, *, passes: bool) -> None:
    """A dream waits for hours for what says nothing about its request, and for nothing else."""
    assert is_outage(mapped(error)) is passes


def test_a_request_over_the_whole_rate_limit_is_an_overflow() -> None:
    """E-03: waiting does not make one request smaller than the limit of a minute."""
    text = "Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000"
    assert isinstance(mapped(RateLimitError(text, 429)), ContextOverflow)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (RateLimitError("slow down", 429), "limits the rate"),
        (APIError("Overloaded", 529), "failed: Overloaded"),
        (APIError("bad gateway", 502), "failed: bad gateway"),
        (APIError("again", 409), "failed: again"),
        (Timeout("Request timed out", 408), "did not answer in time"),
        (TimeoutError(), "did not answer in time"),
        (APIConnectionError("Connection reset by peer", 500), "cannot be reached"),
        (APIError("Connection error.", 500), "cannot be reached"),
        (ConnectionRefusedError(111, "Connect call failed"), "cannot be reached"),
        (OSError("[Errno -2] Name or service not known"), "cannot be reached"),
        (APIConnectionError("Response payload is not completed", 500), "cannot be reached"),
        (APIConnectionError("'str' has no 'get'\nTraceback (most", 500), "no reply"),
        (RuntimeError("odd"), "failed: odd"),
    ],
)
def test_what_may_pass_is_tried_again(error: Exception, words: str) -> None:
    """E-04, E-06, E-08: overload, silence and broken connections are retried by Temporal."""
    found = mapped(error)
    assert not found.non_retryable
    assert words in found.message
    assert "Traceback" not in found.message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ImportError("No module named 'boto3'"), "needs a package"),
        (ContentPolicyViolationError("flagged", 400), "content policy"),
        (APIError("LLM Provider NOT provided. Pass in", 400), "ollama/llama3.2"),
    ],
)
def test_what_no_retry_can_change_is_final(error: Exception, words: str) -> None:
    """E-05: a missing package, a refused prompt and a name without a provider stay so."""
    found = mapped(error)
    assert found.non_retryable
    assert words in found.message


def test_an_ollama_that_does_not_run_is_named_with_its_address() -> None:
    """The default model on a machine without Ollama: the message says what to do."""
    refused = APIConnectionError("Cannot connect to host localhost:11434 ssl:<x> [...]", 500)
    found = mapped(refused, "ollama/llama3.2")
    assert "is Ollama running at http://localhost:11434?" in found.message
    environ = {"OLLAMA_API_BASE": "http://me:hunter22@gpu:11434"}
    found = mapped(refused, "ollama/llama3.2", environ)
    assert "http://[hidden]@gpu:11434" in found.message


def test_a_model_that_ollama_lacks_is_named_with_the_command_that_fetches_it() -> None:
    """E-05: 404 from Ollama means that nobody pulled the model."""
    found = mapped(APIError("model 'x' not found", 404), "ollama/x")
    assert "`ollama pull x`" in found.message


def test_an_address_of_another_vendor_is_named() -> None:
    """A proxy that is down is seen by its variable."""
    environ = {"OPENAI_API_BASE": "http://proxy:8000/v1"}
    found = mapped(APIError("Connection error.", 500), environ=environ)
    assert "OPENAI_API_BASE, which is http://proxy:8000/v1" in found.message


@pytest.mark.parametrize(
    ("text", "environ"),
    [
        (f"bad header {KEY} given", {}),
        ("url https://x/?key=AIzaSyD4567890abcdef&alt=1", {}),
        ("Bearer abcdef123456", {}),
        ("value hunter2hunter2 is wrong", {"ACME_API_KEY": "hunter2hunter2"}),
    ],
)
def test_no_key_is_ever_shown(text: str, environ: Mapping[str, str]) -> None:
    """E-02: keys by their shape, and the values of the worker's own secrets."""
    shown = without_secrets(text, environ)
    assert "[hidden]" in shown
    for secret in (KEY, "AIzaSyD4567890abcdef", "abcdef123456", "hunter2hunter2"):
        assert secret not in mapped(APIError(text, 400), environ=environ).message


def test_short_values_of_variables_are_no_secrets() -> None:
    """A key in a test or for a local server may be a word that the message needs."""
    environ = {"OPENAI_API_KEY": "scripted"}
    found = mapped(APIError("no model scripted", 404), "openai/scripted", environ)
    assert "there is no model openai/scripted: no model scripted" in found.message


def test_long_words_of_a_provider_are_cut() -> None:
    """An error is stored in the history for every attempt, so it stays short."""
    found = mapped(APIError("x" * 100_000, 400))
    assert len(found.message) < SHOWN_BYTES + 200


@pytest.mark.parametrize(
    ("headers", "text", "seconds"),
    [
        ({"retry-after": "7"}, "", 7),
        ({"retry-after": "0.5"}, "", 0.5),
        ({"retry-after": "7", "retry-after-ms": "1500"}, "", 1.5),
        ({"retry-after": "Tue, 10 Mar 2026 12:00:30 GMT"}, "", 30),
        ({"retry-after": "Tue, 10 Mar 2026 11:00:00 GMT"}, "", 0),
        ({"retry-after": "86400"}, "", LONGEST_WAIT.total_seconds()),
        ({"retry-after": "inf"}, "", LONGEST_WAIT.total_seconds()),
        ({"retry-after": "soon"}, "", None),
        ({"retry-after": "nan"}, "", None),
        ({"retry-after": "-3"}, "", None),
        ({}, "Please retry in 34.07s.", 34.07),
        ({}, "Please try again in 20s. Visit", 20),
        ({}, "try again in 1m2.5s", 62.5),
        ({}, "try again in 120ms", 0.12),
        ({}, '"retryDelay": "7s"', 7),
        ({}, "try again in a moment", None),
        ({}, "", None),
    ],
)
def test_the_wait_that_a_provider_asks_for(
    headers: dict[str, str], text: str, seconds: float | None
) -> None:
    """E-01: seconds, an HTTP date or words; never more than five minutes."""
    wait = asked_wait(headers, text, NOW)
    assert wait == (None if seconds is None else timedelta(seconds=seconds))


def test_the_wait_becomes_the_delay_of_the_next_attempt() -> None:
    """E-01: Temporal waits as long as the provider asked for, by header of any case."""
    assert mapped(RateLimitError("x", 429, {"Retry-After": "7"})).next_retry_delay == timedelta(
        seconds=7
    )
    assert mapped(APIError("Overloaded", 529, {"retry-after": "3"})).next_retry_delay == (
        timedelta(seconds=3)
    )
    assert mapped(APIError("no", 400, {"retry-after": "3"})).next_retry_delay is None
