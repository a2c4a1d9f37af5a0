"""The tool of the benchmarks' agents, apart: floors know nothing of agentmem."""

from agentmem import tool

PAGE_BYTES = 1_000


@tool
def look_up(page: int) -> str:
    """Read a page.

    Args:
        page: Its number.
    """
    return f"page {page} ".ljust(PAGE_BYTES, "p")
