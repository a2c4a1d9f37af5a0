"""The data kept of a conversation beside its history: quotes, transcripts, and no secrets."""

import base64
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from temporalio.api.enums.v1 import EventType
from temporalio.client import Client, WorkflowHistory

from agentmem import provider, redact
from agentmem.facts import Evidence
from agentmem.records import Range
from agentmem.storage.protocol import TransactionalProvider
from agentmem.testing import call, fail, reply
from tests.keeping_workflows import Confiding, Keeping
from tests.postgres import postgres_server, postgresql_url
from tests.providers.five_methods import FiveMethods
from tests.stack import Stack, stack

__all__ = ["postgres_server", "postgresql_url"]

KEY = "sk-proj-" + "Ab3" * 12
SAID = f"I moved to Bergen, call 555-0199, my key is {KEY}"
KEPT = "I moved to Bergen, call [phone], my key is [removed: an access key]"


@redact
def no_phones(text: str) -> str:
    """The user's own redaction."""
    return text.replace("555-0199", "[phone]")


async def friends(s: Stack) -> TransactionalProvider:
    """The store of these workflows."""
    return await s.configuration.providers.get("sqlite:facts.db")


async def evidence(s: Stack, scope: str) -> list[Evidence]:
    """Return the evidence that the stored fact rests on."""
    (version,) = await (await friends(s)).history("friend", scope, "city")
    return version.evidence


async def test_what_the_agent_stores_quotes_its_turn(client: Client, tmp_path: Path) -> None:
    """The user's words and the turn's tool results, redacted; the transcript says the same."""
    script = [
        reply(calls=[call("list_memory_keys")]),
        reply("Noted.", calls=[call("store_memory", key="city", value="Bergen")]),
        reply("Good."),
    ]
    async with stack(client, tmp_path, script, extra=[Keeping, no_phones]) as s:
        first = await s.run(Keeping.run, "ada", SAID, False)
        user, assistant = await evidence(s, "ada")
        assert (user.message, user.role, user.quote) == (first, "user", KEPT)
        assert (assistant.role, assistant.quote) == ("assistant", "Noted.")
        assert user.said_at is not None
        (row, *_) = await (await friends(s)).unread("friend", "ada", 10_000)
        assert (row.message, row.session, row.text) == (first, user.session, KEPT)


async def test_what_the_agent_forgets_cites_its_turn(client: Client, tmp_path: Path) -> None:
    """A quote of the user's message makes it the user's word, in a session too; it is redacted."""
    script = [
        reply(calls=[call("store_memory", key="city", value="Bergen", quote="i moved to bergen")]),
        reply(calls=[call("forget_memory", key="city", quote="call 555-0199, my key")]),
        reply("Good."),
    ]
    async with stack(client, tmp_path, script, extra=[Keeping, no_phones]) as s:
        first = await s.run(Keeping.run, "ada", SAID, False)
        stored, gone = await (await friends(s)).history("friend", "ada", "city")
        assert (stored.trust, gone.trust) == ("user", "user")
        assert (gone.op, gone.writer, gone.reason) == ("remove", "agent", "asked_to_forget")
        for version, quote in ((stored, "i moved to bergen"), (gone, "call [phone], my key")):
            (user,) = version.evidence
            assert (user.message, user.role, user.quote) == (first, "user", quote)


async def test_a_message_is_forgotten_after_it_was_appended(client: Client, tmp_path: Path) -> None:
    """Its text leaves the transcript and every quote with the next append, and once is enough."""
    script = [reply(calls=[call("store_memory", key="city", value="Bergen")]), reply("Good.")]
    async with stack(client, tmp_path, script, extra=[Keeping]) as s:
        handle = await client.start_workflow(
            Keeping.run, args=["ada", SAID, True], id=s.task_queue, task_queue=s.task_queue
        )
        first = await handle.result()
        (user,) = await evidence(s, "ada")
        assert (user.message, user.quote) == (first, "")
        rows = await (await friends(s)).transcript(
            "friend", "ada", [Range(session=user.session, memory="wm0", first=1, last=9)]
        )
        assert [(row.message == first, row.forgotten, bool(row.text)) for row in rows] == [
            (True, True, False),
            (False, False, True),
            (False, False, True),
            (False, False, True),
        ]
        appends = [one for one in summaries(await handle.fetch_history()) if "friend/ada" in one]
        assert appends == [
            '"4 messages to friend/ada"',
            '"1 messages forgotten in friend/ada"',
        ]


@pytest.mark.slow
@pytest.mark.postgresql
async def test_no_secret_leaves_its_place(
    client: Client,
    tmp_path: Path,
    postgresql_url: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Passwords of URLs, keys of the environment and drivers' words are in no history and no log.

    What a user says is in the history, which is the conversation; it is in no log and no summary.
    """
    secrets = ("pl4nted-url", "pl4nted-env-key", "pl4nted-redis", "pl4nted-echo")
    url = postgresql_url.replace("postgres@", f"postgres:{secrets[0]}@")
    assert secrets[0] in url
    failing = [ConnectionError(f"redis://:{secrets[2]}@host:6379 refused")]

    @provider("leaky")
    class Leaky(FiveMethods):
        """A user's store: its first answer is an error that says too much."""

        async def memorize(self, agent: str, scope: str, key: str, value: Any) -> None:
            """Fail once."""
            if failing:
                raise failing.pop()
            await super().memorize(agent, scope, key, value)

    script = [
        fail(500, f"the upstream refused sk-proj-{secrets[3]}-{'Ab3' * 9}"),
        reply(calls=[call("store_memory", key="city", value="Bergen", quote="I moved to Bergen")]),
        reply("Good."),
    ]
    with caplog.at_level(logging.INFO):
        async with stack(client, tmp_path, script, extra=[Confiding, Leaky], database_url=url) as s:
            monkeypatch.setenv("OPENAI_API_KEY", secrets[1])
            handle = await client.start_workflow(
                Confiding.run, args=["ada", SAID], id=s.task_queue, task_queue=s.task_queue
            )
            assert await handle.result() == "Good."
            assert any(secrets[1] in str(dict(one.headers)) for one in s.model.requests)
            history = await handle.fetch_history()
            store = await s.configuration.providers.get("postgresql")
            stored = json.dumps(await store.export("friend", "ada"))
            shown = s.configuration.providers.describe("postgresql") + repr(s.configuration)
    recorded = "\n".join(texts(history))
    assert "ConnectionError" in recorded, "the failure is recorded"
    assert SAID in recorded
    for secret in secrets:
        for where in (recorded, caplog.text, stored, shown):
            assert secret not in where
    for where in (stored, caplog.text, "\n".join(summaries(history))):
        assert KEY not in where


def summaries(history: WorkflowHistory) -> list[str]:
    """Return the summary that the Temporal UI shows beside each activity."""
    return [
        event.user_metadata.summary.data.decode()
        for event in history.events
        if event.event_type == EventType.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED
    ]


def texts(history: WorkflowHistory) -> Iterator[str]:
    """Every text that a history holds, payloads decoded."""

    def of(item: Any) -> Iterator[str]:
        if isinstance(item, dict):
            for name, value in item.items():  # pyright: ignore[reportUnknownVariableType]
                if name == "data" and isinstance(value, str):
                    yield base64.b64decode(value).decode("utf-8", "replace")
                else:
                    yield from of(value)
        elif isinstance(item, list):
            for value in item:  # pyright: ignore[reportUnknownVariableType]
                yield from of(value)
        elif isinstance(item, str):
            yield item

    return of(json.loads(history.to_json()))
