"""The tool of the benchmarks' agents."""

from agentmem import tool
from benchmarks.texts import page_text


@tool
def look_up(page: int) -> str:
    """Read a page.

    Args:
        page: Its number.
    """
    return page_text(page)
