"""The report's content."""

from harness.model.run import Unavailable
from harness.report.document import build
from tests.factories import cells, rounds, run

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


def test_cells_without_a_number_are_named_together():
    gone = [Unavailable(c, "needs keras<2.4") for c in cells(["tf2.1"])]
    (absence,) = build(run(unavailable=gone), rounds(TIMES)).absences
    assert absence.cells == ["step, tf2.1 (2 cells)"]
