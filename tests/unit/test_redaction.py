"""Text that must not be kept is taken out before it is stored; when in doubt, nothing is kept."""

import logging
from datetime import UTC, datetime
from typing import Any

import pytest

from agentmem import redact
from agentmem.config.app import load_app
from agentmem.errors import ConfigurationError
from agentmem.memory.redaction import FAILED, redactor
from agentmem.memory.transcript import kept_text
from agentmem.messages import Message, Role, ToolCall

KEY = "sk-proj-" + "Ab3" * 12
AT = datetime(2026, 3, 10, tzinfo=UTC)


def no_phones(text: str) -> str:
    """The user's own."""
    return text.replace("555-0199", "[phone]")


def test_the_users_function_comes_before_the_built_in_shapes() -> None:
    """Both take out what is theirs; without a function the shapes alone do."""
    said = f"call 555-0199, the key is {KEY} ok"
    assert redactor(no_phones)(said) == "call [phone], the key is [removed: an access key] ok"
    assert redactor()(said) == "call 555-0199, the key is [removed: an access key] ok"
    assert redactor(no_phones)("") == ""


@pytest.mark.parametrize("returned", [None, 7, ValueError(KEY)])
def test_a_function_that_fails_keeps_nothing(
    returned: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The text is left out, the session goes on, and the log does not show it."""

    def broken(text: str) -> str:
        if isinstance(returned, Exception):
            raise returned
        return returned

    with caplog.at_level(logging.WARNING):
        assert redactor(broken)(f"my key {KEY}") == FAILED
    assert "@redact" in caplog.text
    assert KEY not in caplog.text


def test_a_secret_at_a_cut_is_taken_out_whole() -> None:
    """Redaction comes first: half of a secret has no shape any more."""
    for start in range(400, 500, 9):
        call = ToolCall(id="t1.s1.c0", name="login", arguments={"note": "x" * start + " " + KEY})
        kept = kept_text(Message(id="m1", role=Role.ASSISTANT, calls=[call], at=AT))
        assert "sk-proj" not in kept
    for start in (685, 690, 699, 1_600):
        text = "y" * start + " " + KEY + " z" * 500
        result = Message(id="m2", role=Role.TOOL_RESULT, content=text, at=AT)
        assert "Ab3Ab3" not in kept_text(result)


def test_the_app_has_one() -> None:
    """`@redact` is found in the app; two of them are refused."""

    @redact
    def one(text: str) -> str:
        return text.upper()

    assert load_app("", [one]).redact is one
    assert load_app("").redact is None
    with pytest.raises(ConfigurationError, match="marks two functions"):
        load_app("", [one, redact(no_phones)])


@pytest.mark.parametrize("wrong", [str, None, "text"])
def test_only_a_plain_function_is_marked(wrong: Any) -> None:
    """An object that cannot be called with a text at once is refused where it is marked."""
    with pytest.raises(ConfigurationError, match="plain function"):
        redact(wrong)


def test_an_async_function_is_refused() -> None:
    """It would have to be awaited, in a thread that has no loop."""

    async def later(text: str) -> str:
        return text

    with pytest.raises(ConfigurationError, match="not async"):
        redact(later)  # type: ignore[arg-type]
