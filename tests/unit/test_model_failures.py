"""From an exception of a model call to ours: retry posture and words for people."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from agentmem.contracts import FailedCall
from agentmem.errors import ContextOverflow, ModelCallError
from agentmem.llm.context_size import Contexts, request_tokens
from agentmem.llm.error_evidence import SHOWN_BYTES, Sent, without_secrets
from agentmem.llm.errors import LONGEST_WAIT, SETTING, asked_wait, is_outage, model_call_error

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
    error: BaseException,
    model: str = "openai/gpt-4o",
    environ: Mapping[str, str] | None = None,
    sent: Sent | None = None,
) -> ModelCallError:
    return model_call_error(error, model=model, environ=environ or {}, now=NOW, sent=sent)


def kind(error: ModelCallError) -> str:
    [failed] = error.details
    assert isinstance(failed, FailedCall)
    return failed.kind


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
    """A plain 400 in a provider's own words means the same as the class for it."""
    for error in (APIError(text, 400), APIError(f'{{"error": "{text}"}}', 400)):
        found = mapped(error)
        assert isinstance(found, ContextOverflow)
        assert found.type == "ContextOverflow"
        assert found.non_retryable


def test_a_prompt_that_does_not_fit_is_told_by_its_class() -> None:
    """Litellm has a class of its own for what it recognizes."""
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
    """One attempt, and the provider's words reach the caller."""
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
    """One attempt; the message names what to set, and holds no key."""
    found = mapped(error, model)
    assert found.non_retryable
    assert "needs a valid key" in found.message
    assert variable in found.message
    assert KEY not in found.message


def test_the_provider_of_a_bare_model_name_is_the_one_that_litellm_found() -> None:
    """`gpt-4o` alone is OpenAI's, and so is its key."""
    error = AuthenticationError("no", 401)
    error.llm_provider = "openai"  # pyright: ignore[reportAttributeAccessIssue]
    assert "OPENAI_API_KEY" in mapped(error, "gpt-4o").message


@pytest.mark.parametrize(
    "error",
    [
        RateLimitError("x", 429, body={"code": "insufficient_quota"}),
        RateLimitError("x", 429, body={"error": {"type": "insufficient_quota"}}),
        RateLimitError('{"error": {"code": "1113", "message": "余额不足"}}', 429),
        RateLimitError('{"error": {"type": "exceeded_current_quota_error"}}', 429),
        APIError("x", 400, body={"error": {"type": "billing_error"}}),
        APIError('{"code": "Arrearage", "message": "denied"}', 400),
        APIError("Insufficient credits", 402),
    ],
)
def test_a_used_up_quota_is_final(error: Exception) -> None:
    """402, or a structured code at whatever depth; it is called what it is."""
    found = mapped(error)
    assert found.non_retryable
    assert "quota or credit" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "usage limit of 3 concurrent requests, slow down",
        "monthly usage limit reached for this billing cycle",
        "You exceeded your current quota",
        "You exceeded your current quota. Please retry in 34.07s",
        "Quota exceeded for requests per minute",
        "tokens per min (TPM): Limit 30000",
        "insufficient credits for burst capacity",
        "Too many tokens, please wait before trying again",
        "您的账户已达到速率限制",
    ],
)
def test_a_bare_429_is_a_rate_limit_whatever_its_words(text: str) -> None:
    """Words about usage, billing and quotas stand in rate limits too."""
    for error in (RateLimitError(text, 429), APIError(text, 429, body={"code": None})):
        found = mapped(error)
        assert not found.non_retryable
        assert "limits the rate" in found.message


def test_words_about_money_in_another_status_are_a_refused_request() -> None:
    """One attempt, with the provider's words."""
    found = mapped(APIError("Your credit balance is too low to access the API", 400))
    assert found.non_retryable
    assert "Your credit balance is too low" in found.message


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
    """Waiting does not make one request smaller than the limit of a minute."""
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
    """Overload, silence and broken connections are retried by Temporal."""
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
    """A missing package, a refused prompt and a name without a provider stay so."""
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
    """404 from Ollama means that nobody pulled the model."""
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
    """Keys by their shape, and the values of the worker's own secrets."""
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
    """Seconds, an HTTP date or words; never more than five minutes."""
    wait = asked_wait(headers, text, NOW)
    assert wait == (None if seconds is None else timedelta(seconds=seconds))


def test_the_wait_becomes_the_delay_of_the_next_attempt() -> None:
    """Temporal waits as long as the provider asked for, by header of any case."""
    assert mapped(RateLimitError("x", 429, {"Retry-After": "7"})).next_retry_delay == timedelta(
        seconds=7
    )
    assert mapped(APIError("Overloaded", 529, {"retry-after": "3"})).next_retry_delay == (
        timedelta(seconds=3)
    )
    assert mapped(APIError("no", 400, {"retry-after": "3"})).next_retry_delay is None


LARGE = Sent(went_out=True, status=400, tokens=5_000, context=8_192)


@pytest.mark.parametrize(
    "text",
    [
        "Prompt 超长",
        "输入内容过多",
        "The gadget cannot swallow that much",
        "le texte déborde",
        "",
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_a_large_request_that_is_refused_may_be_too_long(text: str, status: int) -> None:
    """Above half of the context, no word is needed; below it, it is another mistake."""
    sent = Sent(went_out=True, status=status, tokens=5_000, context=8_192)
    found = mapped(APIError(text, status), sent=sent)
    assert isinstance(found, ContextOverflow)
    assert (found.non_retryable, kind(found)) == (True, "large")
    small = Sent(went_out=True, status=status, tokens=4_000, context=8_192)
    assert kind(mapped(APIError(text, status), sent=small)) == "invalid"


def test_a_request_of_413_is_too_long_whatever_its_size() -> None:
    """The status says it; a proxy may have a limit of its own."""
    for text in ("Payload Too Large", "<html>nginx</html>", "太大"):
        found = mapped(APIError(text, 413), sent=Sent(went_out=True, status=413, tokens=10))
        assert kind(found) == "overflow"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error": {"code": "invalid_function_parameters"}}, "invalid"),
        ({"error": {"code": "unsupported_value", "param": "reasoning_effort"}}, "invalid"),
        ({"error": {"code": None, "param": "tools[0].function.name"}}, "invalid"),
        ({"error": {"code": "content_filter"}}, "refused"),
        ({"error": {"code": "insufficient_quota"}}, "quota"),
        ({"error": {"code": None, "param": "messages"}}, "large"),
        ({"error": {"type": "invalid_request_error", "param": None}}, "large"),
        ({"error": {"code": "1261"}}, "overflow"),
        ({"error": {"code": "context_length_exceeded"}}, "overflow"),
        ({"error": {"code": 400, "metadata": {"raw": '{"error": {"code": "1261"}}'}}}, "overflow"),
    ],
)
def test_a_structured_code_names_the_cause(body: dict[str, object], expected: str) -> None:
    """It goes before the size, at whatever depth a router hands it on."""
    sent = Sent(went_out=True, status=400, body=body, tokens=5_000, context=8_192)
    assert kind(mapped(APIError("no", 400), sent=sent)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Prompt exceeds max length",
        "The decoder prompt (length 9000) is longer than the maximum model length of 8192",
        "the number of input tokens 9000 cannot exceed the total tokens limit 8192",
        "`inputs` must have less than 4096 tokens. Given: 5000",
        "Invalid request: Your request exceeded model token limit: 8192",
        "The input token count is 1200000 but the model only supports up to 1048576",
        "Input length 9000 exceeds the model's limit",
        "The prompt has more tokens than this model was trained for",
    ],
)
def test_vendors_wordings_of_an_overflow_need_not_be_known(text: str) -> None:
    """GLM, vLLM, watsonx, TGI, Moonshot, Vertex, SambaNova, AI21: the size decides."""
    assert isinstance(mapped(APIError(text, 400), sent=LARGE), ContextOverflow)


def test_what_a_model_takes_is_learned() -> None:
    """From what passed and what was refused; an estimate that was too low is forgotten."""
    contexts = Contexts()
    assert contexts.of("a/b", 0) == 4_096
    assert contexts.of("a/b", 128_000) == 128_000
    contexts.passed("a/b", 20_000)
    assert contexts.of("a/b", 0) == 20_000
    contexts.refused("a/b", 12)  # by mistake
    contexts.refused("a/b", 30_000)
    assert contexts.of("a/b", 128_000) == 30_000
    contexts.passed("a/b", 31_000)
    assert contexts.of("a/b", 128_000) == 128_000


def test_an_image_counts_little_whatever_its_bytes() -> None:
    """A data URI is no text."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 100_000}}
    request = {"messages": [{"role": "user", "content": [image]}], "max_tokens": 5}
    assert 1_000 <= request_tokens(request) < 1_100


@pytest.mark.parametrize(
    "text",
    [
        "APIConnectionError upstream",
        "the connector service rejected it",
        "litellm.APIConnectionError: disconnected worker",
        "ServerDisconnectedError NetworkError",
    ],
)
def test_class_names_in_a_text_are_no_broken_line(text: str) -> None:
    """The provider answered, so it was reached."""
    sent = Sent(went_out=True, status=503)
    found = mapped(APIError(text, 503), sent=sent)
    assert (kind(found), found.non_retryable) == ("down", False)
    found = mapped(APIConnectionError(text, 400), sent=Sent(went_out=True, status=400))
    assert (kind(found), found.non_retryable) == ("invalid", True)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ValueError("vertex_project is required"), "unsent"),
        (APIConnectionError("'NoneType' has no 'region'\nTraceback (most", 500), "unsent"),
        (ImportError("No module named 'boto3'"), "library"),
        (FileNotFoundError(2, "No such file", "/etc/key.json"), "unsent"),
        (KeyError("AZURE_API_BASE"), "unsent"),
    ],
)
def test_an_error_before_any_request_is_told_at_once(error: Exception, expected: str) -> None:
    """No retry sends what cannot be made; where nobody watched, it may have gone out."""
    found = mapped(error, "bedrock/x", sent=Sent(went_out=False))
    assert (kind(found), found.non_retryable) == (expected, True)
    assert kind(mapped(RuntimeError("odd"), sent=Sent(went_out=True))) == "failing"


def test_a_library_that_is_missing_is_found_inside_of_what_litellm_makes_of_it() -> None:
    """It wraps the ImportError into a broken connection with a traceback."""
    try:
        try:
            raise ImportError("Missing boto3 to call bedrock. Run 'pip install boto3'.")
        except ImportError as error:
            raise APIConnectionError(f"{error}\nTraceback (most recent", 500) from error
    except APIConnectionError as error:
        found = mapped(error, "bedrock/x", sent=Sent(went_out=False))
    assert (kind(found), found.non_retryable) == ("library", True)
    assert "boto3" in found.message


def test_a_network_that_fails_while_credentials_are_fetched_is_no_mistake() -> None:
    """Nothing went out to the model, but a retry may help."""
    found = mapped(ConnectionResetError("reset"), sent=Sent(went_out=False))
    assert (kind(found), found.non_retryable) == ("unreachable", False)


@pytest.mark.parametrize(
    ("body", "expected", "final"),
    [
        ({"message": "slow", "code": 429}, "limited", False),
        ({"message": "slow", "type": "rate_limit_error"}, "limited", False),
        ({"message": "x", "code": "insufficient_quota"}, "quota", True),
        ({"message": "x", "type": "invalid_request_error"}, "invalid", True),
        ({"message": "x", "type": "authentication_error"}, "key", True),
        ({"message": "x", "type": "overloaded_error"}, "down", False),
        ({"message": "x", "code": "502"}, "down", False),
        ({"message": "Connection to the engine lost"}, "failing", False),
        ({"message": "x", "code": "context_length_exceeded"}, "overflow", True),
        ({"message": "x", "status": "RESOURCE_EXHAUSTED", "code": 429}, "limited", False),
    ],
)
def test_an_error_inside_a_stream_is_told_by_its_codes(
    body: dict[str, object], expected: str, *, final: bool
) -> None:
    """The status was 200, and the one that litellm puts in its place is no evidence."""
    inner = APIError(str(body["message"]), None, body=body)
    outer = APIConnectionError(f"{body['message']} Original exception: x", 500)
    outer.__context__ = inner
    found = mapped(outer, sent=Sent(went_out=True, status=200))
    assert (kind(found), found.non_retryable) == (expected, final)


@pytest.mark.parametrize(
    ("body", "expected", "words"),
    [
        ({"error": "CUDA out of memory"}, "failing", "CUDA out of memory"),
        ({"error": {"message": "prompt is too long"}}, "overflow", "prompt is too long"),
        ({"error": {"message": "忙", "code": "rate_limit_exceeded"}}, "limited", "忙"),
    ],
)
def test_the_words_of_an_error_inside_a_stream_are_the_providers(
    body: dict[str, object], expected: str, words: str
) -> None:
    """OpenAI's client says only that an error occurred where the error is no object of its form."""
    error = APIConnectionError("An error occurred during streaming", 500)
    found = mapped(error, sent=Sent(went_out=True, status=200, body=body))
    assert kind(found) == expected
    assert words in found.message
    assert "{" not in found.message


def test_a_library_that_nobody_watches_may_have_sent() -> None:
    """An error of the service's, as its own client raises it, is tried again."""

    class ClientError(Exception):
        __module__ = "botocore.exceptions"

    outer = APIError("InternalServerException", 500)
    outer.__context__ = ClientError("InternalServerException")
    found = mapped(outer, "sagemaker/x", sent=Sent(went_out=False))
    assert (kind(found), found.non_retryable) == ("down", False)
