"""The causes of a store's failures: as they may travel, and whether the store is away for now."""

from pathlib import Path

from temporalio import activity

from agentmem.errors import ProviderError, StoreUnavailable

# SQLSTATE classes (PostgreSQL, appendix A) and result codes of SQLite that lie with a statement or
# its values: they come back however long one waits.
_LASTING = (
    *("0A", "21", "22", "23", "42"),
    *("SQLITE_CONSTRAINT", "SQLITE_ERROR", "SQLITE_MISMATCH", "SQLITE_MISUSE", "SQLITE_RANGE"),
    "SQLITE_TOOBIG",
)
# What Python itself raises for a mistake in code. A driver's own errors and `OSError` are not here.
_BUGS = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError, NameError),
    *(NotImplementedError, TypeError, ValueError),
)


class Unsaid(Exception):
    """The stand-in for a driver's error in a history: its kind and place, without its text."""


def may_travel(error: BaseException) -> BaseException:
    """Return an error as the cause of one that may end in a workflow's history.

    A driver's text may hold keys, values, addresses and passwords, and Temporal records the causes
    of what an activity raises. So within an activity only the error's kind, and the line that
    raised it, stand for it. A script gets the error itself.
    """
    return _unsaid(error) if activity.in_activity() else error


def store_error(message: str, error: BaseException) -> ProviderError:
    """Return the error to raise for what a store or its driver raised.

    It is a `StoreUnavailable` unless a later try must fail in the same way: where the error has a
    code that lies with the statement or its values, or is one that Python raises for a mistake in
    code.
    """
    code = getattr(error, "sqlstate", None) or getattr(error, "sqlite_errorname", None)
    lasting = str(code).startswith(_LASTING) if code else isinstance(error, _BUGS)
    return ProviderError(message) if lasting else StoreUnavailable(message)


def _unsaid(error: BaseException) -> Unsaid:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    at = ""
    if trace is not None:
        at = f" ({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"
    return Unsaid(f"{type(error).__module__}.{type(error).__qualname__}{at}")
