"""The short half of the fault cells: no word, fact or message is lost, doubled or refused."""

import pytest

from tests.faults.cells import CELLS
from tests.faults.reliability import run_cells
from tests.faults.world import world

AT_ONCE = 4


@pytest.mark.postgresql
@pytest.mark.timeout(600)
async def test_the_faults_that_every_change_meets_do_no_harm() -> None:
    """Real workers, servers and databases; `make reliability` runs the other cells too."""
    short = [cell for cell in CELLS if cell.short]
    async with world() as shared:
        outcomes = await run_cells(short, shared, AT_ONCE)
    assert len(outcomes) == len(short) > 20
    harmed = {one.cell: (one.struck, one.counts.harm) for one in outcomes if not one.is_sound}
    assert harmed == {}, [note for one in outcomes if not one.is_sound for note in one.notes]
