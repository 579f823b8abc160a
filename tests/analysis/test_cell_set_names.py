"""Names for sets of cells."""

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.cell_set_names import cover_with_boxes
from tests.factories import cell, cells

UNIVERSE = cells(["tf1.14", "tf2.0", "tf2.1"], calls=("fit", "train_on_batch"))


def inside(box, member):
    point = {**member.axes, "device": member.device.value, "environment": member.environment}
    return all(point[axis] in values for axis, values in box.values.items())


def test_cells_are_named_by_what_they_have_in_common():
    excluded = [c for c in UNIVERSE if c != cell("tf2.0", call="fit", mode="eager")]
    one = {"environment": ("tf2.0",), "call": ("fit",), "mode": ("eager",)}
    for wanted, universe, boxes in (
        ([c for c in UNIVERSE if c.environment == "tf2.1"], UNIVERSE, [({"environment": ("tf2.1",)}, 4)]),
        (UNIVERSE, UNIVERSE, [({}, 12)]),
        # cells that the scenario excludes do not break a box
        ([c for c in excluded if c.environment == "tf2.0"], excluded, [({"environment": ("tf2.0",)}, 3)]),
        ([cell("tf2.0", mode="eager")], UNIVERSE, [(one, 1)]),
    ):
        named, left = cover_with_boxes(wanted, universe)
        assert ([(dict(box.values), box.count) for box in named], left) == (boxes, 0)
    # beyond the limit cells are counted
    boxes, left = cover_with_boxes([cell("tf1.14", mode="graph"), cell("tf2.0", mode="eager")], UNIVERSE, limit=1)
    assert (len(boxes), left) == (1, 1)


@given(st.sets(st.sampled_from(UNIVERSE)))
def test_boxes_hold_exactly_the_cells(wanted):
    boxes, left = cover_with_boxes(wanted, UNIVERSE, limit=12)
    assert {c for c in UNIVERSE if any(inside(box, c) for box in boxes)} == wanted
    assert left == 0
    assert sum(box.count for box in boxes) == len(wanted)
    assert all(box.count == sum(inside(box, c) for c in UNIVERSE) for box in boxes)
