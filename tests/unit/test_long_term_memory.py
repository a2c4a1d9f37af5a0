"""Long-term memory outside of workflows: the store is asked directly."""

import asyncio
import json
import math
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agentmem.contracts import ScopeRef
from agentmem.errors import ConfigurationError, InvalidFact
from agentmem.facts import KEY_BYTES, VALUE_BYTES, EarlierValue, Evidence, Fact, Unconfirmed, Write
from agentmem.memory.long_term import LongTermMemory, long_term_memory
from agentmem.memory.references import in_memory, named, postgresql, sqlite
from agentmem.storage.registry import Providers, default_providers


@pytest.fixture
async def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LongTermMemory]:
    monkeypatch.setenv("AGENTMEM_DATA", str(tmp_path))
    yield long_term_memory(sqlite("facts.db"), "assistant", "user-1")
    await default_providers().close()


def test_the_three_parts_are_required_and_known() -> None:
    """Provider, agent and scope say whose facts these are; names are kept NFC-normalised."""
    memory = long_term_memory(provider=postgresql(), agent="research", scope="A\u030a")
    assert (memory.provider, memory.agent, memory.scope) == ("postgresql", "research", "\u00c5")
    assert memory.store == ScopeRef(provider="postgresql", agent="research", scope="\u00c5")
    with pytest.raises(TypeError):
        long_term_memory(provider=postgresql(), scope="s")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "provider", ["postgresql://me:secret@db/facts", "sqlite", object(), None, Providers]
)
def test_only_a_reference_is_a_provider(provider: Any) -> None:
    """A URL or a client is refused with what to write, and without showing the URL."""
    with pytest.raises(ConfigurationError, match="neither clients nor URLs: pass sqlite") as error:
        long_term_memory(provider, "a", "s")
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("name", ["", "  ", None, 7, "a\x00b", "\ud800", "x" * (KEY_BYTES + 1)])
def test_names_that_no_store_can_hold_are_refused(name: Any) -> None:
    """Agent and scope are text, not empty, at most 512 bytes."""
    with pytest.raises(InvalidFact, match="agent"):
        long_term_memory(in_memory(), name, "s")
    with pytest.raises(InvalidFact, match="scope"):
        long_term_memory(in_memory(), "a", name)


async def test_facts_are_stored_recalled_and_forgotten(memory: LongTermMemory) -> None:
    """A key holds its last value; a missing one is None; forgetting is by key or for all."""
    assert await memory.recall() == {}
    await memory.memorize("city", "Oslo")
    await memory.memorize("city", "Bergen")
    await memory.memorize("pets", ["cat", {"name": "Pus", "age": 3}])
    assert await memory.recall("city") == "Bergen"
    assert await memory.recall("street") is None
    assert await memory.recall() == {
        "city": "Bergen",
        "pets": ["cat", {"name": "Pus", "age": 3}],
    }
    assert await memory.keys() == ["city", "pets"]
    await memory.forget("city")
    await memory.forget("street")
    assert await memory.keys() == ["pets"]
    await memory.forget()
    assert await memory.recall() == {}


async def test_scopes_are_those_of_the_agent(memory: LongTermMemory) -> None:
    """Scopes are told apart exactly, and another agent's are not seen."""
    for scope in ("a_b", "a-b", "A_B"):
        await long_term_memory(sqlite("facts.db"), "assistant", scope).memorize("k", scope)
    await long_term_memory(sqlite("facts.db"), "other", "x").memorize("k", 1)
    assert await memory.scopes() == ["A_B", "a-b", "a_b"]
    assert await long_term_memory(sqlite("facts.db"), "assistant", "a_b").recall("k") == "a_b"


@pytest.mark.parametrize(
    "value", [None, 0, False, "", [], {}, 1e300, "\\u0000 as text", [{"a": 1}]]
)
async def test_any_json_comes_back_as_it_was(memory: LongTermMemory, value: Any) -> None:
    """A value keeps its type."""
    await memory.memorize("k", value)
    found = await memory.recall("k")
    assert (found, type(found)) == (value, type(value))


async def test_python_values_become_the_json_that_they_are(memory: LongTermMemory) -> None:
    """A tuple is a list and a number as a key is text, here as in a workflow."""
    await memory.memorize("k", {1: (1, 2)})  # type: ignore[arg-type]
    assert await memory.recall("k") == {"1": [1, 2]}


NOT_STORABLE: list[Any] = [
    math.nan,
    math.inf,
    b"x",
    datetime(2026, 1, 1, tzinfo=UTC),
    {"a": {1}},
    "\x00",
    "\udc00",
    "x" * VALUE_BYTES,
]


@pytest.mark.parametrize("value", NOT_STORABLE)
async def test_what_is_no_json_or_too_long_is_refused(memory: LongTermMemory, value: Any) -> None:
    """Nothing is stored; the error says what is wrong with which key."""
    with pytest.raises(InvalidFact, match="'k'"):
        await memory.memorize("k", value)
    assert await memory.recall() == {}


@pytest.mark.parametrize("key", ["", " ", 7, b"k", "x" * (KEY_BYTES + 1), "\x00"])
async def test_what_is_no_key_is_refused_everywhere(memory: LongTermMemory, key: Any) -> None:
    """An empty key is an error and never the whole scope."""
    await memory.memorize("kept", 1)
    for operation in (memory.memorize(key, 1), memory.recall(key), memory.forget(key)):
        with pytest.raises(InvalidFact, match="key"):
            await operation
    assert await memory.keys() == ["kept"]


async def test_a_missing_key_is_required_to_memorize(memory: LongTermMemory) -> None:
    """None names no key."""
    with pytest.raises(InvalidFact, match="key must be text, got NoneType"):
        await memory.memorize(None, 1)  # type: ignore[arg-type]


async def test_an_unknown_provider_is_named(memory: LongTermMemory) -> None:
    """A name that nobody registered is the caller's mistake."""
    with pytest.raises(ConfigurationError, match="redis"):
        await long_term_memory(named("redis"), "a", "s").keys()


async def test_many_tasks_may_use_one_memory(memory: LongTermMemory) -> None:
    """Writes of many tasks at once all land."""
    await asyncio.gather(*(memory.memorize(f"k{n}", n) for n in range(50)))
    assert await memory.recall() == {f"k{n}": n for n in range(50)}


def test_tools_and_hint_are_for_a_model(memory: LongTermMemory) -> None:
    """`as_tools` gives the four tools of this scope, in order; the hint names what they are."""
    tools = memory.as_tools()
    assert [tool.name for tool in tools] == [
        "recall_memory",
        "store_memory",
        "forget_memory",
        "list_memory_keys",
    ]
    assert all(tool.store == memory.store for tool in tools)
    assert "recall_memory" in memory.system_prompt_hint()


async def test_what_people_look_after(memory: LongTermMemory) -> None:
    """History, undo, pins, export and erasing, from a script, by the same object."""
    await memory.memorize("city", "Oslo")
    await memory.memorize("city", None)
    await memory.pin("city")
    assert [fact.pinned for fact in await memory.entries(["city", "gone"])] == [True]
    assert [one.change for one in await memory.history("city")] == ["city@1", "city@2", "city@3"]
    await memory.unpin("city")
    assert (await memory.undo("city@4")).keys == ["city"]
    taken = await memory.export()
    assert sum((await memory.erase()).values()) == len(taken)
    assert await memory.entries() == await memory.history("city") == []
    assert await memory.restore(taken) == len(taken)
    assert [fact.pinned for fact in await memory.entries()] == [True]
    with pytest.raises(InvalidFact, match="there is no fact 'pet'"):
        await memory.pin("pet")
    with pytest.raises(InvalidFact, match="key is empty"):
        await memory.history("")


async def test_a_fact_is_recalled_until_its_last_day(memory: LongTermMemory) -> None:
    """`until` is a day, month, year or instant; what is over stays for the next dream to remove."""
    await memory.memorize("visit", "the dentist", until="2999-05-09")
    await memory.memorize("voucher", "10 % off", until="2020-02-01")
    await memory.memorize("call", "at six", until="2999-05-09T18:00+02:00")
    await memory.memorize("plain", 1)
    assert set(await memory.recall()) == {"visit", "call", "plain"}
    known = await memory.recall(details=True)
    assert {key: fact["until"] for key, fact in known.items()} == {
        "visit": "2999-05-10T00:00:00Z",
        "call": "2999-05-09T16:00:00Z",
        "plain": None,
    }
    assert [fact.key for fact in await memory.entries()] == ["call", "plain", "visit", "voucher"]
    await memory.memorize("visit", "the dentist")
    assert (await memory.recall("visit", details=True))["until"] is None
    assert await memory.recall("voucher", details=True) is None
    wrong: list[Any] = ["tomorrow", "", "2026-02-30", "9999-12-31", "2026-05-09T18:00", 2026]
    for until in wrong:
        with pytest.raises(InvalidFact, match="until"):
            await memory.memorize("k", 1, until=until)
    assert await memory.recall("k") is None


async def test_details_say_what_is_known_of_a_fact(memory: LongTermMemory) -> None:
    """Every field of a fact as JSON: what was before for 30 days, what is not confirmed beside."""
    now = datetime.now(UTC)
    quoted = Evidence(session="r1", memory="wm0", message="m1", said_at=now, quote="Rome, maybe")
    new = Unconfirmed(value="Rome", said_at=now, evidence=[quoted])
    was = EarlierValue(value="Bergen", replaced_at=now - timedelta(days=29))
    write = Write(
        key="city", value="Oslo", state="tentative", unconfirmed=new, was=was, evidence=[quoted]
    )
    old = write.replace(key="home", was=was.replace(replaced_at=now - timedelta(days=31)))
    provider = await default_providers().get(memory.provider)
    await provider.write(memory.agent, memory.scope, [write, old])
    known = await memory.recall(details=True)
    city = known["city"]
    assert json.loads(json.dumps(known)) == known
    assert set(city) == set(Fact.model_fields) - {"key", "expires_at"} | {"until"}
    assert (city["value"], city["state"], city["trust"]) == ("Oslo", "tentative", "user")
    assert city["was"]["value"] == "Bergen"
    assert known["home"]["was"] is None
    assert city["unconfirmed"]["value"] == "Rome"
    assert city["unconfirmed"]["until"] is None
    for evidence in (city["evidence"], city["unconfirmed"]["evidence"]):
        assert [item["quote"] for item in evidence] == ["Rome, maybe"]
    assert await memory.recall() == {"city": "Oslo", "home": "Oslo"}
    assert await memory.recall("gone", details=True) is None


async def test_a_person_confirms_a_fact_by_code(memory: LongTermMemory) -> None:
    """A tentative fact settles with what is known of it; one that is settled is an error."""
    provider = await default_providers().get(memory.provider)
    tentative = Write(key="city", value="Oslo", state="tentative", kind="profile", importance=5)
    await provider.write(memory.agent, memory.scope, [tentative])
    await memory.confirm("city", by="Ada")
    [fact] = await memory.entries()
    assert (fact.state, fact.author, fact.kind, fact.importance) == ("settled", "Ada", "profile", 5)
    assert (await memory.history("city"))[-1].reason == "confirmed"
    with pytest.raises(InvalidFact, match="confirmed already"):
        await memory.confirm("city")
    with pytest.raises(InvalidFact, match="there is no fact 'pet'"):
        await memory.confirm("pet")


async def test_a_confirmed_value_brings_when_it_holds(memory: LongTermMemory) -> None:
    """The days of the old value end with it."""
    end = datetime(2999, 6, 1, tzinfo=UTC)
    new = Unconfirmed(value="Rome", valid_from="2999-05", expires_at=end)
    write = Write(key="city", value="Oslo", valid_from="2019", valid_to="2020", unconfirmed=new)
    provider = await default_providers().get(memory.provider)
    await provider.write(memory.agent, memory.scope, [write])
    await memory.confirm("city")
    [fact] = await memory.entries()
    assert (fact.value, fact.valid_from, fact.valid_to) == ("Rome", "2999-05", "")
    assert fact.expires_at == end
