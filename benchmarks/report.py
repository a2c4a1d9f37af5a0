"""Figures into the documentation, between two marks."""

from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs" / "performance.md"


def put(name: str, text: str, docs: Path = DOCS) -> None:
    """Write a benchmark's part of a page between its marks; the marks must be there.

    Args:
        name: The benchmark's file, `benchmarks/turn.py`.
        text: Markdown.
        docs: The page.
    """
    begin, end = f"<!-- {name} writes from here -->", f"<!-- {name} writes to here -->"
    before, found, rest = docs.read_text().partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"{docs} lacks the marks {begin} and {end}")
    docs.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}")
