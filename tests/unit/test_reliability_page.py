"""The page on reliability says what the runs counted, and no more."""

from tests.faults import page
from tests.faults.cells import CELLS, EXPLAINED


def test_the_page_is_written_from_what_was_counted() -> None:
    """A figure that somebody changes by hand is no figure of a run."""
    assert page.PAGE.read_text() == page.current(EXPLAINED)


def test_every_cell_was_run_and_harm_is_explained() -> None:
    """A cell without an outcome, or with harm that nobody explains, has no place on the page."""
    counted = page.read(page.CELLS)
    assert [one["cell"] for one in counted] == [cell.name for cell in CELLS]
    harmed = {one["cell"] for one in counted if not page.is_sound(one)}
    assert harmed <= EXPLAINED.keys()
    assert all(one["struck"] for one in counted)
