"""A dream of several rounds reports all of them, shortly."""

from agentmem.contracts import DreamReport, Usage
from agentmem.dreaming.report import APPLIED, REPORT_BYTES, added_up
from agentmem.wire import encoded_size

FIRST = DreamReport(
    status="completed_with_rejections",
    summary="1 added. A cat.",
    dream="d1",
    keys_before=3,
    keys_after=4,
    changes={"accepted": 1, "held": 1},
    applied=["add cat: new"],
    held=["held update city"],
    notes=["a limit was reached"],
    usage=Usage(prompt=10, completion=1, requests=4),
)
SECOND = DreamReport(
    status="completed",
    summary="1 updated. A dog.",
    dream="d2",
    keys_before=4,
    keys_after=4,
    changes={"accepted": 2, "conflict": 1},
    applied=["update dog: correction"],
    conflicts=["job"],
    notes=["a limit was reached"],
    usage=Usage(prompt=20, completion=2, requests=2),
)


def test_rounds_are_added_up() -> None:
    """Counts and usage are sums, lines stand in order, the facts are the first and the last."""
    assert added_up(FIRST, SECOND) == DreamReport(
        status="completed_with_rejections",
        summary="1 added. A cat. 1 updated. A dog.",
        dream="d2",
        keys_before=3,
        keys_after=4,
        changes={"accepted": 3, "held": 1, "conflict": 1},
        applied=["add cat: new", "update dog: correction"],
        held=["held update city"],
        conflicts=["job"],
        notes=["a limit was reached"],
        usage=Usage(prompt=30, completion=3, requests=6),
    )


def test_what_waits_after_several_rounds() -> None:
    """A held change waits on; a deferred one was offered to the next round, and counts there."""
    first = FIRST.replace(changes={"held": 1, "deferred": 3}, waiting=4)
    last = SECOND.replace(changes={"deferred": 2}, waiting=2)
    assert added_up(first, last).waiting == 3


def test_a_round_without_effect_hides_nothing() -> None:
    """The changes of an earlier round stay reported; the cost of the later one is counted."""
    assert added_up(FIRST, DreamReport(status="nothing_new", keys_before=9)) == FIRST
    empty = DreamReport(status="nothing_learned", summary="nothing changed.", keys_after=4)
    found = added_up(FIRST, empty.replace(usage=Usage(requests=1)))
    assert (found.status, found.summary) == ("completed_with_rejections", "1 added. A cat.")
    assert (found.applied, found.usage.requests) == (FIRST.applied, 5)
    assert added_up(empty, empty).summary == "nothing changed."


def test_a_status_of_somebody_elses_is_no_failure() -> None:
    """`before` may come from a person: whatever it says, the last round's report is given."""
    odd = DreamReport(status="odd")
    assert added_up(odd, SECOND).status == "completed"
    assert added_up(odd, odd).status == "odd"


def test_many_rounds_stay_under_4_kilobytes() -> None:
    """However much five rounds did, the report is short and its counts are whole."""
    whole = FIRST
    for number in range(4):
        lines = [f"add {'long_key_' * 8}{number}-{line}" for line in range(40)]
        whole = added_up(
            whole,
            SECOND.replace(
                summary="s" * 600, applied=lines, held=lines, conflicts=lines, notes=["n" * 300]
            ),
        )
        assert encoded_size(whole.model_dump_json()) <= REPORT_BYTES
    assert len(whole.applied) <= APPLIED
    assert whole.changes == {"accepted": 9, "held": 1, "conflict": 4}
