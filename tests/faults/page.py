"""The page `docs/reliability.md`, written from what the runs counted and from nothing else."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"
COUNTED = Path(__file__).with_name("counted")
CELLS = COUNTED / "cells.json"
LOAD = COUNTED / "load.json"
REPLAY = COUNTED / "replay.json"

Row = Mapping[str, Any]

HEAD = """# Reliability

{summary}

`make reliability` runs all of it again and writes this page. No figure here was written by hand.

## What a cell is

A cell is one fault at one place. It has its own store, task queue and worker processes, on the real
Temporal server; the store is SQLite, and PostgreSQL where it is away or switches over. The model is
a scripted endpoint behind real HTTP. Two workers run unless the fault says otherwise. People hold a
session of three turns, one of them with a tool call that has a side effect; then it ends and is
dreamt of. Where the place needs it, a long session (8 turns of one client, or 24 of four at once),
a one-shot, an approval or a workflow of one's own takes its place. The process that reaches the
place halts there, the fault is done to it, and everybody continues. A cell whose fault did not
strike counts as failed.

Afterwards the store, the server's histories and the endpoint's requests are compared with what the
people sent and were told:

| column | counts |
|---|---|
| answered | messages that got an answer, by the workflow or, if the fault ended it, by the model |
| lost | of these: messages, answers and facts (one a message) that the store lacks |
| doubled | messages, answers and facts that are there twice, and second runs of the tool |
| refused | messages that the session or the server did not take |
| failed | messages that were taken and whose senders got no answer |
| stuck | workflows that still ran 150 s later, or that failed and not by the fault itself |
| tasks | workflow tasks that failed |
| again | model requests that were sent more than once: a call in flight is paid again |
| s | seconds from the cell's start until nothing of it ran any more |

"""

TAIL = """
## What this does not show

- One machine: the network is never cut between two parts that both go on, and clocks agree.
- The model is a script, so that facts can be counted. [The quality of dreams](dream-quality.md)
  shows how real models do.
- The Temporal server is the development server. A cluster that fails over is not tried.
- A fault strikes once, or for one stretch of time. Two faults at once are not tried.
- A message whose turn a person's fault ended (a termination, a cancellation) is not counted: its
  sender was told that it failed.
- A version of agentmem that was released before is not tried: the rolling deployment is one to a
  worker that reads the last format of what runs hand on, and back.
"""

LOAD_HEAD = """
## Load

All sessions start at the same moment. Each has two turns, ends and is dreamt of; nobody waits
between two messages, and no client sends anything again. Workers are processes of their own; with
SQLite, two of them share one file. `talked` is the time until the last session had ended, `all`
until the last dream had. The machine: {machine}.

"""

REPLAY_HEAD = """
## Another interpreter

The recorded histories, replayed on each supported Python with today's code, without the sandbox:

"""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of Markdown, figures to the right."""
    lines = [f"| {' | '.join(head)} |", f"|---|{'---:|' * (len(head) - 1)}"]
    lines += [f"| {' | '.join(map(str, row))} |" for row in rows]
    return "\n".join(lines) + "\n"


NAMES = ("lost", "doubled", "refused", "failed", "stuck", "tasks")


def harm(one: Row) -> dict[str, int]:
    """Return what was lost, doubled, refused, failed or stuck in a cell."""
    counts = one["counts"]
    return {
        "lost": counts["words_lost"] + counts["facts_lost"],
        "doubled": counts["words_doubled"] + counts["facts_doubled"] + counts["effects_doubled"],
        "refused": counts["refused"],
        "failed": counts["failed"],
        "stuck": counts["stuck"] + counts["died"],
        "tasks": counts["task_failures"],
    }


def is_sound(one: Row) -> bool:
    """Tell whether a cell's fault struck and did no harm."""
    return one["struck"] and not any(harm(one).values())


def page(
    cells: Sequence[Row],
    loads: Sequence[Row],
    replays: Sequence[Row],
    explained: Mapping[str, str],
) -> str:
    """Return the page.

    Args:
        cells: What each cell counted.
        loads: What each load counted.
        replays: What each interpreter said.
        explained: Why a cell's harm is as it is, by the cell's name.
    """
    sound = sum(map(is_sound, cells))
    totals = {name: sum(harm(one)[name] for one in cells) for name in NAMES}
    turns = sum(one["counts"]["turns"] for one in cells)
    told = ", ".join(
        f"{number} {'failed workflow tasks' if name == 'tasks' else name}"
        for name, number in totals.items()
    )
    summary = (
        f"{len(cells)} cells, each a distinct fault at a distinct place. In {sound} of them "
        f"nothing was lost, doubled, refused, failed or stuck. Over all cells {turns} messages "
        f"were answered; {told}."
    )
    text = HEAD.format(summary=summary)
    for fault in dict.fromkeys(one["fault"] for one in cells):
        text += f"## {fault[0].upper()}{fault[1:]}\n\n"
        text += _rows_of([one for one in cells if one["fault"] == fault], explained) + "\n"
    return text.rstrip() + "\n" + _replays(replays) + _loads(loads) + TAIL


def _rows_of(cells: Sequence[Row], explained: Mapping[str, str]) -> str:
    head = ["place", "answered", *NAMES, "again", "s"]
    rows = [
        [
            one["place"],
            one["counts"]["turns"],
            *harm(one).values(),
            one["counts"]["asked_again"],
            f"{one['counts']['seconds']:.0f}",
        ]
        for one in cells
    ]
    text = table(head, rows)
    for one in cells:
        if not one["struck"]:
            text += f"\nAt *{one['place']}* the fault did not strike.\n"
        elif not is_sound(one):
            why = explained.get(one["cell"], "Not explained yet.")
            text += f"\nAt *{one['place']}*: {why}\n"
    return text


def _loads(loads: Sequence[Row]) -> str:
    if not loads:
        return LOAD_HEAD.format(machine="unknown") + "Not measured yet.\n"
    head = ["store", "workers", "sessions", "answered", "words lost", "doubled", "facts lost"]
    head += ["dreams begun", "dreams done", "failed", "refused", "tasks failed", "stuck"]
    loads = sorted(loads, key=lambda one: (one["store"], one["workers"], one["sessions"]))
    rows = [[value for name, value in one.items() if name != "machine"] for one in loads]
    told = table([*head, "talked s", "all s"], rows)
    return LOAD_HEAD.format(machine=loads[0]["machine"]) + told


def _replays(replays: Sequence[Row]) -> str:
    rows = [[f"Python {one['python']}", one["said"]] for one in replays]
    return REPLAY_HEAD + table(["interpreter", "histories"], rows)


def read(path: Path) -> list[Row]:
    """Return what a run counted; nothing if there was none."""
    return json.loads(path.read_text()) if path.exists() else []


def current(explained: Mapping[str, str]) -> str:
    """Return the page from what was counted last."""
    return page(read(CELLS), read(LOAD), read(REPLAY), explained)
