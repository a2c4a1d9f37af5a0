"""The causes of a store's failures, as they may travel: without the driver's own words."""

from pathlib import Path

from temporalio import activity


class Unsaid(Exception):
    """What stands in a history for a driver's error: its kind and place, without its text."""


def may_travel(error: BaseException) -> BaseException:
    """Return an error as the cause of one that may end in a workflow's history.

    A driver's text may hold keys, values, addresses and passwords, and Temporal records the causes
    of what an activity raises. So within an activity only the error's kind, and the line that
    raised it, stand for it. A script gets the error itself.
    """
    return _unsaid(error) if activity.in_activity() else error


def _unsaid(error: BaseException) -> Unsaid:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = ""
    if trace is not None:
        at = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return Unsaid(f"{type(error).__module__}.{type(error).__qualname__}{at}")
