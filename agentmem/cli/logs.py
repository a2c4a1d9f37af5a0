"""The log that a worker writes for people: failures that agentmem itself reports take one line."""

import logging

from agentmem.errors import AgentMemError


class OneLine(logging.Filter):
    """Takes the traceback from a failed activity whose error says all there is to know."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record if it is such a failure; let every record pass."""
        error = record.exc_info[1] if record.exc_info else None
        activity = getattr(record, "temporal_activity", None)
        if isinstance(error, AgentMemError) and activity:
            record.exc_info = record.exc_text = None
            record.msg = "activity %s of workflow %s failed, attempt %s: %s"
            names = ("activity_type", "workflow_id", "attempt")
            record.args = (*(activity.get(name) for name in names), error.message)
        return True


def log_to_stderr() -> None:
    """Log warnings and errors, of agentmem and of what it is built on, to standard error."""
    handler = logging.StreamHandler()
    handler.addFilter(OneLine())
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=logging.WARNING, format=form, handlers=[handler])
