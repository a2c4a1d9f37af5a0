"""A scripted model's answers: replies, tool calls, failures, silence and broken connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Call:
    """One tool call of a reply.

    Attributes:
        name: The tool's name.
        arguments: A mapping, or text that is sent exactly as it is (broken JSON, for example).
        id: The call's id; None gives an OpenAI reply a fresh one, and an Ollama reply none.
    """

    name: str
    arguments: Mapping[str, object] | str = field(default_factory=dict[str, object])
    id: str | None = None


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer of the endpoint; build it with `reply`, `fail`, `hang` or `reset`.

    Attributes:
        content: The message's content: text, None, or a list of parts.
        calls: Tool calls; a mapping is sent as it is, whatever its shape.
        finish: Finish reason; None means `tool_calls` with calls and `stop` without.
        extra: More fields of the message, such as `reasoning_content` or `thinking_blocks`.
        usage: Token counts that replace the estimated ones, by their OpenAI names.
        raw: The whole body instead of all of the above: JSON, or bytes that are sent as they are.
        status: HTTP status.
        headers: HTTP headers.
        delay: Seconds between the request and the answer.
        ending: Whether the answer is sent, held back for ever, or replaced by a TCP reset.
        headers_first: With `hang` and `reset`: the headers and half of the body go out before.
        chunks: Where the client asks for pieces: these, each sent as it is, in place of the
            pieces of the answer.
        pause: Where the client asks for pieces: seconds between them.
    """

    content: object = None
    calls: Sequence[Call | Mapping[str, object]] = ()
    finish: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])
    usage: Mapping[str, object] = field(default_factory=dict[str, object])
    raw: object = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    delay: float = 0
    ending: Literal["sent", "hang", "reset"] = "sent"
    headers_first: bool = False
    chunks: Sequence[object] | None = None
    pause: float = 0


def call(name: str, /, **arguments: object) -> Call:
    """A tool call with a fresh id and the keywords as its arguments.

    Use `Call` for an id of your own or for arguments that are not valid.
    """
    return Call(name, arguments)


def reply(
    content: object = None,
    *,
    calls: Sequence[Call | Mapping[str, object]] = (),
    finish: str | None = None,
    extra: Mapping[str, object] | None = None,
    usage: Mapping[str, object] | None = None,
    raw: object = None,
    headers: Mapping[str, str] | None = None,
    delay: float = 0,
    chunks: Sequence[object] | None = None,
    pause: float = 0,
) -> Reply:
    """An answer with status 200; the arguments are those of `Reply`."""
    return Reply(
        content=content,
        calls=calls,
        finish=finish,
        extra=extra or {},
        usage=usage or {},
        raw=raw,
        headers=headers or {},
        delay=delay,
        chunks=chunks,
        pause=pause,
    )


def fail(
    status: int,
    body: object = None,
    *,
    headers: Mapping[str, str] | None = None,
    delay: float = 0,
) -> Reply:
    """An error answer.

    Args:
        status: HTTP status, such as 429.
        body: Text becomes the message in the provider's error shape; anything else is sent as the
            body, as `Reply.raw`; None stands for a neutral message.
        headers: HTTP headers, such as `{"Retry-After": "7"}`.
        delay: Seconds between the request and the answer.
    """
    text = f"scripted failure {status}" if body is None else body
    return Reply(
        content=text if isinstance(text, str) else None,
        raw=None if isinstance(text, str) else text,
        status=status,
        headers=headers or {},
        delay=delay,
    )


def hang(*, headers_first: bool = False) -> Reply:
    """No answer: the request is accepted and stays open until the client gives up.

    Args:
        headers_first: The status, the headers and half of a body are sent, and then nothing.
    """
    return Reply(content="never finished", ending="hang", headers_first=headers_first)


def reset(*, headers_first: bool = False) -> Reply:
    """No answer: the connection is reset.

    Args:
        headers_first: The status, the headers and half of a body are sent before the reset.
    """
    return Reply(content="never finished", ending="reset", headers_first=headers_first)
