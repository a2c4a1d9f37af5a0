"""Data that may be stored are kept exactly as given, alike on every store; others are refused."""

import json
import math
import unicodedata
from datetime import UTC, datetime
from typing import Any

import pytest

from agentmem.contracts import FactRequest, ScopeRef
from agentmem.errors import ConfigurationError, InvalidFact
from agentmem.facts import KEY_BYTES, LEVELS, VALUE_BYTES, Write
from agentmem.records import MessageId, Range
from agentmem.storage.sql.provider import SqlProvider

NOT_JSON: list[Any] = [
    *(math.nan, math.inf, {"mean": math.nan}, [-math.inf], b"bytes", {1, 2}, object()),
    *(datetime(2026, 1, 1, tzinfo=UTC), "W\x00s", {"deep": ["\x00"]}, {"\x00": 1}),
    *("\ud800", {"\udfff": 1}),
]

APART = [
    *("a_b", "a-b", "foo", "foobar", "%", "_", "john_doe", "john-doe", "john%", "100%", "a\\b"),
    *("A", "a", "Key", "key", " key", "key ", "key\n", "KEY\u200b", "\u00df", "SS", "ss"),
    *("\u0131", "i", "I", "\u0130", "../x", "x/../y", "a'b", 'a"b', "a;b--", "null", "None", "0"),
    *("\U0001f600", "\U0001f469\u200d\U0001f467", "e\u0301x\u0323"),
]
"""Names that folding, trimming, patterns or prefixes would confuse."""

VALUES: list[Any] = [
    *(None, True, False, 0, -1, 1.5, 1e308, 10**30, "", " ", "0", "null", "ü 😀 日本語"),
    *([], {}, [[]], {"": None}, {"b": 1, "a": {"z": [1, None, "x"], "c": []}}, [0, False, None]),
    *("literal \\u0000 stays", 'a "quoted" \\ text\n\t', "\u2028\u2029\ufeff"),
]


async def test_a_value_comes_back_as_it_was(store: SqlProvider) -> None:
    """Any JSON value comes back equal, with its type and the order of its keys."""
    for value in VALUES:
        await store.memorize("a", "s", "k", value)
        assert json.dumps(await store.recall("a", "s", "k")) == json.dumps(value)
        assert json.dumps(await store.recall("a", "s")) == json.dumps({"k": value})


@pytest.mark.parametrize("which", ["agent", "scope", "key"])
async def test_names_are_compared_exactly(store: SqlProvider, which: str) -> None:
    """No two of these names are one, and none shows what another holds."""
    for number, name in enumerate(APART):
        place = {"agent": "a", "scope": "s", "key": "k"} | {which: name}
        await store.memorize(**place, value=number)
    for number, name in enumerate(APART):
        place = {"agent": "a", "scope": "s", "key": "k"} | {which: name}
        assert await store.recall(**place) == number
        if which != "key":
            assert await store.recall(place["agent"], place["scope"]) == {"k": number}
    if which == "key":
        expected = sorted(unicodedata.normalize("NFC", name) for name in APART)
        assert await store.keys("a", "s") == expected
        assert list(await store.recall("a", "s")) == expected


async def test_forgetting_a_scope_leaves_the_others(store: SqlProvider) -> None:
    """Removing one of two look-alike scopes touches nothing of the other."""
    for scope in APART:
        await store.memorize("a", scope, "k", scope)
    await store.forget("a", "john_doe")
    left = await store.scopes("a")
    assert left == sorted({unicodedata.normalize("NFC", name) for name in APART} - {"john_doe"})


async def test_composed_and_decomposed_names_are_one(store: SqlProvider) -> None:
    """A name's NFC and NFD forms are one name, kept in NFC."""
    await store.memorize("a", "s", "e\u0301", 1)
    await store.memorize("a", "s", "\u00e9", 2)
    assert await store.recall("a", "s") == {"\u00e9": 2}


@pytest.mark.parametrize("kind", ["lists", "objects"])
async def test_how_deep_a_value_may_be(store: SqlProvider, kind: str) -> None:
    """A value that is nested deeper than every reader can follow is refused, not stored."""

    def nested(levels: int) -> Any:
        value: Any = "[{" * LEVELS
        for _ in range(levels):
            value = [value] if kind == "lists" else {"a": value}
        return value

    await store.memorize("a", "s", "deep", nested(LEVELS))
    for levels in (LEVELS + 1, 300, 30_000):
        with pytest.raises(InvalidFact):
            await store.memorize("a", "s", "deeper", nested(levels))
    (fact,) = await store.entries("a", "s")
    assert fact.value == await store.recall("a", "s", "deep") == nested(LEVELS)
    request = FactRequest(
        store=ScopeRef(provider="x", agent="a", scope="s"), key="k", value=fact.value
    )
    assert FactRequest.model_validate_json(request.model_dump_json()).value == fact.value


@pytest.mark.parametrize("odd", ["x\x00", "\ud800", "k\udcff"], ids=ascii)
async def test_no_store_trips_over_a_name_that_none_holds(store: SqlProvider, odd: str) -> None:
    """Asked for by a name that no database can hold, every store knows nothing of it."""
    for change in (odd, f"{odd}@1", f"x/{odd}"):
        with pytest.raises(ConfigurationError, match="no change"):
            await store.undo("a", "s", change)
    for message in (MessageId(session=odd, message="m1"), MessageId(session="r", message=odd)):
        assert await store.forget_message("a", "s", message) == 0
    assert await store.dream("a", "s", odd) is None
    assert await store.replies("a", "s", odd) == []
    assert await store.transcript("a", "s", [Range(session=odd, memory=odd, first=1, last=2)]) == []


async def test_what_is_not_json_is_refused_and_nothing_is_stored(store: SqlProvider) -> None:
    """NaN, NUL, surrogates and non-JSON are refused alike, for good."""
    for value in NOT_JSON:
        with pytest.raises(InvalidFact) as refused:
            await store.memorize("a", "s", "k", value)
        assert refused.value.non_retryable, ascii(value)
    assert await store.keys("a", "s") == []


@pytest.mark.parametrize("which", ["agent", "scope", "key"])
async def test_a_name_that_cannot_be_stored_is_refused(store: SqlProvider, which: str) -> None:
    """An empty, over-long or unstorable name is refused by every method."""
    names: list[Any] = ["", "  ", "k\x00", "\x00", "\ud800", 7, "k" * (KEY_BYTES + 1)]
    for name in names:
        place: dict[str, Any] = {"agent": "a", "scope": "s", "key": "k"} | {which: name}
        with pytest.raises(InvalidFact, match=which):
            await store.memorize(**place, value=1)
        with pytest.raises(InvalidFact, match=which):
            await store.recall(**place)
        with pytest.raises(InvalidFact, match=which):
            await store.forget(**place)
    assert await store.scopes("a") == []


@pytest.mark.parametrize("key", ["k" * KEY_BYTES, "😀" * (KEY_BYTES // 4)], ids=["ascii", "emoji"])
async def test_names_at_the_limit_work(store: SqlProvider, key: str) -> None:
    """The longest agent, scope and key work together, also in one index."""
    await store.memorize(key, key, key, key)
    assert await store.recall(key, key) == {key: key}
    assert await store.scopes(key) == [key]


async def test_the_limit_of_keys_is_in_bytes(store: SqlProvider) -> None:
    """One limit, in bytes of UTF-8, before the database sees the key."""
    for size in (255, KEY_BYTES, KEY_BYTES + 1, 1_000, 3_000, 100_000):
        key = "".join(chr(0x21 + position * 7919 % 94) for position in range(size))
        if size <= KEY_BYTES:
            await store.memorize("a", "s", key, 1)
            continue
        with pytest.raises(InvalidFact, match=str(KEY_BYTES)):
            await store.memorize("a", "s", key, 1)
    assert [len(key) for key in await store.keys("a", "s")] == [255, KEY_BYTES]


async def test_the_limit_of_values_is_in_bytes(store: SqlProvider) -> None:
    """A value at the limit is whole, one over it is refused, never cut."""
    for key, size in (("under", VALUE_BYTES - 1), ("at", VALUE_BYTES)):
        value = _text(size)
        await store.memorize("a", "s", key, value)
        assert await store.recall("a", "s", key) == value
    for size in (VALUE_BYTES + 1, 5_000_000):
        with pytest.raises(InvalidFact, match=str(VALUE_BYTES)):
            await store.memorize("a", "s", "over", _text(size))
    assert await store.keys("a", "s") == ["at", "under"]


def _text(size: int) -> str:
    """A text whose JSON takes so many bytes, two a character."""
    return "\u00fc" * ((size - 2) // 2) + "x" * (size % 2)


async def test_one_bad_write_of_several_stores_none(store: SqlProvider) -> None:
    """A batch is refused as a whole; nothing is partly stored."""
    with pytest.raises(InvalidFact):
        await store.write("a", "s", [Write(key="good", value=1), Write(key="bad", value="\x00")])
    assert await store.keys("a", "s") == []


async def test_agents_of_our_own_are_kept_free(store: SqlProvider) -> None:
    """No user's facts lie where agentmem keeps the records of other stores."""
    with pytest.raises(InvalidFact, match="agentmem/"):
        await store.memorize("agentmem/redis/assistant", "s", "k", 1)
