"""Pieces of a reply, put together; and waits before the next attempt."""

import json
from datetime import timedelta
from typing import Any

import pytest

from agentmem.llm.errors import next_wait
from agentmem.llm.response_stream import Assembly
from agentmem.wire import JSONObject


def delta(**fields: Any) -> JSONObject:
    """A chunk with this delta."""
    return {"choices": [{"index": 0, "delta": fields, "finish_reason": None}]}


def piece(index: int | None, arguments: str, **fields: Any) -> JSONObject:
    """A piece of a tool call."""
    function = {"arguments": arguments, **{k: v for k, v in fields.items() if k == "name"}}
    rest = {k: v for k, v in fields.items() if k != "name"}
    return {"index": index, "function": function, **rest}


def assembled(*chunks: JSONObject) -> JSONObject:
    """Return the reply of these chunks."""
    assembly = Assembly()
    for chunk in chunks:
        assembly.add(chunk)
    return assembly.reply()


def calls_of(reply: JSONObject) -> list[tuple[str, str, JSONObject]]:
    """Return ids, names and parsed arguments of a reply's calls."""
    made = reply["choices"][0]["message"]["tool_calls"]
    return [(c["id"], c["function"]["name"], json.loads(c["function"]["arguments"])) for c in made]


TWO = [("a", "look", {"city": "Oslo"}), ("b", "look", {"city": "Cairo"})]


@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize("together", [True, False])
def test_two_calls_at_one_place_are_two(index: int | None, together: bool) -> None:
    """Both with index 0, or with none: another id is another call."""
    pieces = [piece(index, json.dumps(args), id=i, name=name) for i, name, args in TWO]
    chunks = [delta(tool_calls=pieces)] if together else [delta(tool_calls=[p]) for p in pieces]
    assert calls_of(assembled(*chunks)) == TWO


def test_interleaved_pieces_go_where_they_belong() -> None:
    """The arguments of two calls in twenty pieces, in turns."""
    texts = [json.dumps(args) for _, _, args in TWO]
    chunks = [
        delta(tool_calls=[piece(n, "", id=i, name=name)]) for n, (i, name, _) in enumerate(TWO)
    ]
    for at in range(0, max(map(len, texts)), 2):
        chunks += [delta(tool_calls=[piece(n, text[at : at + 2])]) for n, text in enumerate(texts)]
    assert len(chunks) >= 20
    assert calls_of(assembled(*chunks)) == TWO


def test_an_id_that_is_repeated_or_missing_begins_no_call_of_its_own() -> None:
    """Some send the id with each piece, some send none at all."""
    repeated = [piece(0, text, id="a", name="look") for text in ('{"city": ', '"Oslo"}')]
    assert calls_of(assembled(*(delta(tool_calls=[p]) for p in repeated))) == TWO[:1]
    nameless = [
        piece(0, '{"city": "Oslo"}', name="look"),
        piece(0, '{"city": "Cairo"}', name="look"),
    ]
    made = calls_of(assembled(*(delta(tool_calls=[p]) for p in nameless)))
    assert [args for _, _, args in made] == [{"city": "Oslo"}, {"city": "Cairo"}]


def test_chunks_without_choices_or_delta_add_no_text() -> None:
    """Usage may stand alone in the last chunk, be missing, or be None; text is joined."""
    text = [delta(content="Hel"), {"choices": [{"delta": None}]}, delta(content="lo", refusal=None)]
    usage: JSONObject = {"prompt_tokens": 3, "completion_tokens": None}
    reply = assembled(*text, {"choices": [], "usage": usage}, {"choices": [], "usage": None})
    assert reply["choices"][0]["message"] == {"role": "assistant", "content": "Hello"}
    assert reply["usage"] == usage
    assert assembled(*text)["usage"] == {}
    assert assembled({"choices": []})["choices"] == []


def test_thinking_and_signatures_come_whole() -> None:
    """A block ends with its signature; what a provider attached is kept."""
    reply = assembled(
        delta(reasoning_content="h", thinking_blocks=[{"type": "thinking", "thinking": "h"}]),
        delta(thinking_blocks=[{"type": "thinking", "thinking": "m", "signature": None}]),
        delta(thinking_blocks=[{"type": "thinking", "thinking": "", "signature": "s1"}]),
        delta(thinking_blocks=[{"type": "redacted_thinking", "data": "d"}]),
        delta(provider_specific_fields={"thought_signatures": ["x"]}),
        delta(provider_specific_fields={"thought_signatures": ["y"], "other": 1}),
        delta(tool_calls=[piece(0, "{}", id="a", provider_specific_fields={"sig": "z"})]),
    )
    message = reply["choices"][0]["message"]
    assert message["thinking_blocks"] == [
        {"type": "thinking", "thinking": "hm", "signature": "s1"},
        {"type": "redacted_thinking", "data": "d"},
    ]
    fields = message["provider_specific_fields"]
    assert fields == {"thought_signatures": ["x", "y"], "other": 1}
    assert message["tool_calls"][0]["provider_specific_fields"] == {"sig": "z"}


@pytest.mark.parametrize("chance", [0.0, 0.5, 1.0])
def test_waits_grow_and_are_spread(chance: float) -> None:
    """1, 2, 4, ... 60 seconds, half less to half more, so that many do not come at once."""
    waits = [next_wait(None, attempt, lambda: chance).total_seconds() for attempt in range(1, 9)]
    assert waits == [min(2**n, 60) * (0.5 + chance) for n in range(8)]


def test_what_a_provider_asks_for_is_never_undercut() -> None:
    """Seven seconds are seven to seven and a tenth of them more."""
    asked = timedelta(seconds=7)
    assert next_wait(asked, 4, lambda: 0.0) == asked
    assert next_wait(asked, 4, lambda: 1.0) == timedelta(seconds=7.7)


WHOLE = '{"city": "Oslo"}'


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, '{"ci', id="a", name="look"), piece(0, 'ty": "Oslo"}'), piece(0, WHOLE)],
        [piece(0, WHOLE, id="a", name="look"), piece(0, WHOLE, id="a", name="look")],
        [piece(0, WHOLE, id="a", name="look"), piece(None, WHOLE, id="a", name="look")],
        [piece(0, '{"ci', id="a", name="look"), piece(None, WHOLE, id="a", name="look")],
        [piece(0, '{"ci', id="a", name="look"), piece(None, 'ty": "Oslo"}')],
        [piece(0, '{"ci', id="a", name="look"), piece(0, '{"city": "O'), piece(0, WHOLE)],
        [piece(0, "{}", id="a", name="look"), piece(0, '{"ci'), piece(0, 'ty": "Oslo"}')],
        [piece(0, WHOLE, id="a", name="look"), piece(0, '{"city":"Oslo"}'), piece(0, "")],
        [piece(0, p, id="a", name="look") for p in ('{"ci', 'ty": "Oslo"}', WHOLE)],
        [piece(0, WHOLE, id="a", name="look"), piece(1, WHOLE, id="a", name="look")],
    ],
)
def test_arguments_that_are_sent_again_are_one_call(pieces: list[JSONObject]) -> None:
    """The whole once more, or more of it each time, is no second call and no broken one."""
    reply = assembled(*(delta(tool_calls=[one]) for one in pieces))
    assert calls_of(reply) == [("a", "look", {"city": "Oslo"})]


@pytest.mark.parametrize(
    "pieces",
    [
        [piece(0, '{"ci', name="look"), piece(0, 'ty": "Os', name="look"), piece(0, 'lo"}')],
        [piece(0, '{"ci', name="look"), piece(0, 'ty": "Oslo"}', name="look")],
        [piece(0, "", name="look"), piece(0, WHOLE, name="look"), piece(0, WHOLE, name="look")],
        [piece(0, "", name="lo"), piece(0, "", name="ok"), piece(0, WHOLE)],
        [piece(0, "", name="lo"), piece(0, WHOLE, name="ok")],
        [piece(0, "", name="lo"), piece(0, "", name="look"), piece(0, WHOLE, name="look")],
        [piece(None, "", name="l"), piece(None, "", name="oo"), piece(None, WHOLE, name="k")],
    ],
)
@pytest.mark.parametrize("tools", [(), ("look", "ok", "lo")])
def test_a_name_that_is_repeated_or_split_is_one_name(
    pieces: list[JSONObject], tools: tuple[str, ...]
) -> None:
    """Without an id, the name in each piece is the same call, and a name may come in pieces."""
    assembly = Assembly(tools)
    for one in pieces:
        assembly.add(delta(tool_calls=[one]))
    assert calls_of(assembly.reply()) == [(None, "look", {"city": "Oslo"})]


def test_an_offered_tool_decides_what_a_name_in_pieces_means() -> None:
    """A tool may be called `lolo`, and a provider may say `lo` twice."""
    for tools, name in ((["lolo"], "lolo"), (["lo"], "lo")):
        assembly = Assembly(tools)
        for arguments in ("", WHOLE):
            assembly.add(delta(tool_calls=[piece(0, arguments, name="lo")]))
        assert calls_of(assembly.reply()) == [(None, name, {"city": "Oslo"})]


def test_two_different_calls_without_ids_stay_two() -> None:
    """The name again with other arguments, after whole ones, is another call."""
    pieces = [piece(0, json.dumps(args), name=name) for _, name, args in TWO]
    made = calls_of(assembled(*(delta(tool_calls=[one]) for one in pieces)))
    assert [call[2] for call in made] == [args for _, _, args in TWO]


@pytest.mark.parametrize(
    "pieces",
    [
        [
            piece(0, "", id="a", name="look"),
            piece(0, '{"ci', id="b"),
            piece(0, 'ty": "Oslo"}', id="c"),
        ],
        [piece(0, "", id="a", name="look"), piece(0, WHOLE, id="b"), piece(0, "", id="c")],
        [
            piece(0, '{"ci', id="a", name="look"),
            piece(0, 'ty": "Oslo', id="b", name="look"),
            piece(0, '"}', id="c", name="look"),
        ],
        [piece(0, "", id="a", name="look"), piece(1, '{"ci'), piece(2, 'ty": "Oslo"}')],
        [piece(0, '{"ci', id="a", name="look"), piece(1, 'ty": "Oslo"}', id="a")],
        [piece(3, '{"ci', id="a", name="look"), piece(4, 'ty": "Oslo"}', id="a"), piece(5, "")],
    ],
)
def test_an_id_or_a_place_of_its_own_makes_a_piece_no_call(pieces: list[JSONObject]) -> None:
    """Some servers make up an id for each piece, and some count pieces, not calls."""
    reply = assembled(*(delta(tool_calls=[one]) for one in pieces))
    assert calls_of(reply) == [("a", "look", {"city": "Oslo"})]


@pytest.mark.parametrize("place", [0, None])
def test_pieces_are_told_apart_by_their_ids(place: int | None) -> None:
    """Without a place, or all at one, in turns."""
    texts = [(i, json.dumps(args)) for i, _, args in TWO]
    pieces = [piece(place, "", id=i, name=name) for i, name, _ in TWO]
    pieces += [piece(place, text[at : at + 4], id=i) for at in range(0, 20, 4) for i, text in texts]
    assert calls_of(assembled(*(delta(tool_calls=[one]) for one in pieces))) == TWO


OTHER = '{"city": "Cairo"}'


@pytest.mark.parametrize(
    ("pieces", "cities"),
    [
        (["look", WHOLE, "look", OTHER], ["Oslo", "Cairo"]),
        (["look", WHOLE[:5], WHOLE[5:], "look", OTHER[:8], OTHER[8:]], ["Oslo", "Cairo"]),
        (["look", WHOLE, "ok", OTHER], ["Oslo", "Cairo"]),
        (["look", WHOLE, "look"], ["Oslo"]),
        (["look", WHOLE, "look", WHOLE], ["Oslo"]),
        (["look", WHOLE, "look", WHOLE[:5], WHOLE[5:]], ["Oslo"]),
    ],
)
@pytest.mark.parametrize("place", [0, None])
def test_a_name_alone_behind_whole_arguments(
    place: int | None, pieces: list[str], cities: list[str]
) -> None:
    """It begins another call, unless what follows says the same once more."""
    made = [piece(place, "", name=one) if one.isalpha() else piece(place, one) for one in pieces]
    found = calls_of(assembled(*(delta(tool_calls=[one]) for one in made)))
    assert [call[2]["city"] for call in found] == cities
    assert [call[1] for call in found] == [one for one in pieces if one.isalpha()][: len(cities)]


@pytest.mark.parametrize("field", ["content", "reasoning_content", "refusal"])
def test_a_text_that_is_sent_again_is_said_once(field: str) -> None:
    """In the closing piece, or more of it with each piece; a word said twice stays twice."""
    closing = delta(**{field: "Cairo."})
    closing["choices"][0]["finish_reason"] = "stop"
    for chunks, text in (
        ([delta(**{field: "Cai"}), delta(**{field: "ro."}), closing], "Cairo."),
        ([delta(**{field: part}) for part in ("C", "Cai", "Cairo.")], "Cairo."),
        ([delta(**{field: "ha"}), delta(**{field: "ha"})], "haha"),
        ([delta(**{field: "no"}), delta(**{field: "no, wait"})], "nono, wait"),
    ):
        assert assembled(*chunks)["choices"][0]["message"][field] == text


def test_arguments_that_are_cut_off_stay_so() -> None:
    """An inner object is not taken for the whole: half of a call must not run."""
    pieces = [piece(0, '{"a": ', id="a", name="look"), piece(0, "{}")]
    reply = assembled(*(delta(tool_calls=[one]) for one in pieces))
    assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"] == '{"a": {}'
