from hypothesis import given
from hypothesis import strategies as st

from harness.plan.groups import group, order
from tests.factories import cells, scenario

CELLS = cells(calls=("fit", "batch"))


def test_cells_that_are_compared_are_one_group() -> None:
    groups = group(CELLS, {"step": scenario()}, "tf1.14")
    assert [found.name for found in groups] == ["step cpu call=fit dtype=float32", "step cpu call=batch dtype=float32"]
    assert [len(found.cells) for found in groups] == [4, 4]
    assert groups[0].axes == {"call": "fit", "dtype": "float32"}


@given(st.integers(0, 2**32), st.integers(0, 20))
def test_a_round_launches_every_cell_once_in_an_order_of_its_own(seed: int, number: int) -> None:
    shuffled = order(seed, "g", number, CELLS)
    assert sorted(shuffled, key=str) == sorted(CELLS, key=str)
    assert shuffled == order(seed, "g", number, CELLS)


def test_orders_differ_from_round_to_round_and_from_group_to_group() -> None:
    assert len({tuple(order(1, "g", number, CELLS)) for number in range(10)}) > 5
    assert order(1, "g", 1, CELLS) != order(1, "h", 1, CELLS)
