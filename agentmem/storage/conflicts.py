"""Which steps of a dream still hold when it commits."""

from collections.abc import Sequence

from agentmem.storage.checks import CheckedStep


def standing_steps(steps: Sequence[CheckedStep], moved: set[str]) -> list[CheckedStep]:
    """Return the steps that rest on nothing that a dropped one would have written.

    Args:
        steps: All steps, in order.
        moved: The ids of those whose reads have moved: they are dropped, and whatever reads what
            they would have written, until nothing more drops.
    """
    dropped = set(moved)
    while True:
        lost = {key for step in steps if step.id in dropped for key in step.written}
        more = {step.id for step in steps if step.id not in dropped and lost & step.read}
        if not more:
            return [step for step in steps if step.id not in dropped]
        dropped |= more
