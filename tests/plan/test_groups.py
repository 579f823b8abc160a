import itertools
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.scenario import Comparison
from harness.plan.groups import group, keep_one_control, order, order_turn, split
from tests.factories import cells, scenario

CELLS = cells(calls=("fit", "batch"))


def test_cells_that_are_compared_are_one_group_with_the_scenarios_phases():
    groups = group(CELLS, {"step": scenario()}, "tf1.14")
    assert [entry.name for entry in groups] == ["step cpu call=fit dtype=float32", "step cpu call=batch dtype=float32"]
    assert [len(entry.cells) for entry in groups] == [4, 4]
    assert groups[0].axes == {"call": "fit", "dtype": "float32"}
    compare = [Comparison("modes", "mode", of=of) for of in ("step", "load", "traces", "memory growth", "peak memory")]
    assert group(CELLS, {"step": scenario(compare=compare)}, "tf1.14")[0].of == ["load", "peak memory"]
    scenarios = {"step": scenario()}
    groups = group(CELLS[:-1], scenarios, "tf1.14")
    assert [len(entry.cells) for entry in groups] == [4, 3]
    assert [entry.controlled for entry in keep_one_control(groups, scenarios)] == [False, True]
    assert [entry.controlled for entry in keep_one_control(groups[::-1], scenarios)] == [True, False]


@given(st.integers(0, 2**32), st.integers(0, 20), st.integers(0, 5), st.integers(0, 70))
def test_every_cell_once_in_a_round_and_as_many_turns_as_are_asked_for_are_drawn_from_the_seed(
    seed, number, members, count
):
    shuffled = order(seed, "g", number, CELLS)
    assert sorted(shuffled, key=str) == sorted(CELLS, key=str)
    assert shuffled == order(seed, "g", number, CELLS)
    turns = order_turn(seed, "g", 1, members, count if members else 0)
    assert len(turns) == (count if members else 0)
    assert turns == order_turn(seed, "g", 1, members, count if members else 0)


def test_orders_differ_from_round_to_round_and_from_group_to_group():
    assert len({tuple(order(1, "g", number, CELLS)) for number in range(10)}) > 5
    assert order(1, "g", 1, CELLS) != order(1, "h", 1, CELLS)


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(2, 9))
def test_in_a_square_of_turns_each_has_each_place_and_follows_each_other_equally_often(seed, members):
    count = members * (1 + members % 2)
    turns = order_turn(seed, "g", 1, members, count)
    assert all(sorted(turn) == list(range(members)) for turn in turns)
    for place in range(members):
        assert set(Counter(turn[place] for turn in turns).values()) == {1 + members % 2}
    after = Counter(pair for turn in turns for pair in itertools.pairwise(turn))
    assert len(after) == members * (members - 1)
    assert len(set(after.values())) == 1


def test_what_does_not_fit_together_is_split_in_parts_of_about_equal_length():
    for sizes, parts in [
        ([], [[]]),
        ([9.0], [[0]]),
        ([1.0, 1.0, 1.0, 1.0], [[0, 1, 2, 3]]),
        ([1.0, 1.0, 1.0, 1.0, 1.0], [[0, 1], [2, 3, 4]]),
        ([3.0, 3.0], [[0], [1]]),
        ([9.0, 1.0, 9.0], [[0], [1], [2]]),
    ]:
        assert split(range(len(sizes)), sizes, 4.0) == parts
