"""One table of all goals that the benchmarks must meet, and of whether they meet them.

The page explains each goal that is missed, in an item of a list below the table: `- Missed: `, the
goal as the table has it, a full stop, and why. A test holds the page to that.
"""

from collections.abc import Sequence

from benchmarks.report import PAGE, Goal, Sheet, benchmark, put

COLUMNS = ("benchmark", "goal", "limit", "worst", "where", "met")


def write(names: Sequence[str]) -> None:
    """Put the goals of these benchmarks into the documentation, from the kept figures."""
    put("benchmarks/goals.py", text(names), PAGE)


def text(names: Sequence[str]) -> str:
    """Return the goals of these benchmarks for the documentation."""
    found = goals(names)
    missed = sum(not goal.met for _, goal in found)
    rows = [_cells(name, goal) for name, goal in found]
    title = f"{len(found)} goals, {missed} missed"
    return Sheet(title=title, columns=COLUMNS, rows=rows).markdown()


def goals(names: Sequence[str]) -> list[tuple[str, Goal]]:
    """Return the goals of these benchmarks, each with its benchmark's name."""
    found: list[tuple[str, Goal]] = []
    for name in names:
        one = benchmark(name)
        found += [(name, goal) for goal in one.goals(one.kept())]
    return found


def explained(page: str) -> list[str]:
    """Return the goals that a page says are missed, up to their full stop, where a reason follows.

    An explanation may be broken into lines anywhere.
    """
    below = page.partition("<!-- benchmarks/goals.py writes to here -->")[2].partition("\n## ")[0]
    items = " ".join(below.split()).split("- Missed: ")[1:]
    said = (item.partition(". ") for item in items)
    return [what for what, _, why in said if why.strip()]


def _cells(name: str, goal: Goal) -> list[str]:
    limit = f"{'at least' if goal.least else 'at most'} {goal.limit:g}"
    met = "yes" if goal.met else "no"
    return [name, goal.what, limit, f"{round(goal.worst, 3):g}", goal.where, met]
