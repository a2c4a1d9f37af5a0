"""The record that a store keeps of its own changes: versions of facts, undoing, erasing."""

from typing import Literal

from agentmem.facts import Fact
from agentmem.values import Wire


class FactVersion(Fact):
    """One write to a key, as its history keeps it: the fact that it left, and how it came about.

    Attributes:
        op: `set`, or `remove` for one that took the fact away; its `value` is None then.
        reason: new, correction, decision, duplicate, condensed, superseded, expired, evicted,
            retracted, asked_to_forget, confirmed, pinned, unpinned, undone, or empty.
        replaced_by: For a removal, the key that holds what stays.
        dream: The dream that wrote it, empty if none did.
        change: What `undo` takes to take it back: `<dream>/<change>`, or `<key>@<version>`.
    """

    op: Literal["set", "remove"] = "set"
    reason: str = ""
    replaced_by: str = ""
    dream: str = ""
    change: str = ""


class Undone(Wire):
    """The result of an undo.

    Attributes:
        keys: Keys that stand again as before; those that did so already are among them.
        conflicts: Keys that changed meanwhile: they were left as they are, and so was everything
            else that the same change did.
    """

    keys: list[str] = []
    conflicts: list[str] = []
