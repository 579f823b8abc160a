"""Names for sets of cells."""

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.cell_set_names import cover_with_boxes
from tests.factories import cell, cells

UNIVERSE = cells(["tf1.14", "tf2.0", "tf2.1"], calls=("fit", "train_on_batch"))


def inside(box, member):
    point = {**member.axes, "device": member.device.value, "environment": member.environment}
    return all(point[axis] in values for axis, values in box.values.items())


def test_an_environments_cells_are_named_by_it_alone():
    boxes, left = cover_with_boxes([c for c in UNIVERSE if c.environment == "tf2.1"], UNIVERSE)
    assert [(dict(box.values), box.count) for box in boxes] == [({"environment": ("tf2.1",)}, 4)]
    assert left == 0


def test_every_cell_needs_no_name():
    boxes, _ = cover_with_boxes(UNIVERSE, UNIVERSE)
    assert [(dict(box.values), box.count) for box in boxes] == [({}, 12)]


def test_cells_that_the_scenario_excludes_do_not_break_a_box():
    universe = [c for c in UNIVERSE if c != cell("tf2.0", call="fit", mode="eager")]
    boxes, _ = cover_with_boxes([c for c in universe if c.environment == "tf2.0"], universe)
    assert [dict(box.values) for box in boxes] == [{"environment": ("tf2.0",)}]


def test_a_single_cell_is_named_by_what_varies():
    boxes, _ = cover_with_boxes([cell("tf2.0", mode="eager")], UNIVERSE)
    assert dict(boxes[0].values) == {"environment": ("tf2.0",), "call": ("fit",), "mode": ("eager",)}


def test_beyond_the_limit_cells_are_counted():
    diagonal = [cell("tf1.14", mode="graph"), cell("tf2.0", mode="eager")]
    boxes, left = cover_with_boxes(diagonal, UNIVERSE, limit=1)
    assert (len(boxes), left) == (1, 1)


@given(st.sets(st.sampled_from(UNIVERSE)))
def test_boxes_hold_exactly_the_cells(wanted):
    boxes, left = cover_with_boxes(wanted, UNIVERSE, limit=12)
    assert {c for c in UNIVERSE if any(inside(box, c) for box in boxes)} == wanted
    assert left == 0
    assert sum(box.count for box in boxes) == len(wanted)
    assert all(box.count == sum(inside(box, c) for c in UNIVERSE) for box in boxes)
