"""Priorities of activities and children: turns before dreams, and scopes share what there is.

The server looks at them where tasks wait for a worker. Keys of fairness are digests, since whoever
may read a namespace's task queues reads them in clear.
"""

import hashlib

from temporalio import workflow
from temporalio.common import Priority

DREAMS = 5
"""The priority of dreams: 1 is the highest, 3 the default."""

_KEY_CHARACTERS = 32


def of_turn(agent: str, scope: str) -> Priority:
    """Return the priority of a turn's work, for workflow code.

    Its level is that of the workflow, which its starter may set. So is its fairness key, where the
    starter gave one.
    """
    return Priority(fairness_key=_key(agent, scope))


def of_dream(agent: str, scope: str) -> Priority:
    """Return the priority of a dream and of its work, after every turn's; for workflow code."""
    return Priority(priority_key=DREAMS, fairness_key=_key(agent, scope))


def _key(agent: str, scope: str) -> str | None:
    # Without a key, Temporal takes that of the workflow.
    return None if workflow.info().priority.fairness_key else fairness_key(agent, scope)


def fairness_key(agent: str, scope: str) -> str:
    """Return the key under which the work of an agent for a scope shares workers with others."""
    digest = hashlib.sha256(f"{len(agent)}:{agent}{scope}".encode("utf-8", "replace"))
    return digest.hexdigest()[:_KEY_CHARACTERS]
