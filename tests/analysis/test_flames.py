"""Samples of the stack as a picture's boxes."""

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.profiles import DEEPEST, depth, frames, tree
from tests.profiles import function, profile

FUNCTIONS = [function(name) for name in "abc"]


def laid(stacks, least=0.0):
    return frames(tree(profile(*FUNCTIONS, stacks=stacks)), least)


def test_a_function_stands_below_the_one_that_called_it_and_is_as_wide_as_its_time():
    boxes = {(box.name, box.depth): box for box in laid([(1.0, [0]), (3.0, [0, 1])])}
    assert (boxes["nn.a", 0].left, boxes["nn.a", 0].width, boxes["nn.a", 0].own) == (0.0, 1.0, 0.25)
    assert (boxes["nn.b", 1].left, boxes["nn.b", 1].width, boxes["nn.b", 1].own) == (0.0, 0.75, 0.75)


def test_what_takes_longest_stands_left():
    assert [(box.name, box.left) for box in laid([(1.0, [0]), (3.0, [1])])] == [("nn.b", 0.0), ("nn.a", 0.75)]


def test_one_function_called_from_two_places_is_two_boxes():
    boxes = laid([(1.0, [0, 2]), (1.0, [1, 2])])
    assert sorted((box.name, box.depth, box.left) for box in boxes if box.depth) == [("nn.c", 1, 0.0), ("nn.c", 1, 0.5)]


def test_what_is_too_narrow_is_not_drawn_and_counts_to_its_caller():
    (box,) = laid([(1.0, [0, 1]), (99.0, [0])], least=0.05)
    assert (box.name, box.own) == ("nn.a", 1.0)


def test_without_samples_there_is_no_box():
    assert laid([]) == []
    assert depth([]) == 0


def test_endless_recursion_is_cut():
    assert depth(laid([(1.0, [0] * 5000)])) == DEEPEST


@given(st.lists(st.tuples(st.floats(1e-6, 10.0), st.lists(st.integers(0, 2), min_size=1, max_size=6)), max_size=20))
def test_boxes_lie_within_the_one_above(stacks):
    boxes = laid(stacks)
    for box in boxes:
        assert -1e-9 <= box.left <= box.left + box.width <= 1.0 + 1e-9
        above = [each for each in boxes if each.depth == box.depth - 1]
        assert box.depth == 0 or any(
            each.left - 1e-9 <= box.left and box.left + box.width <= each.left + each.width + 1e-9 for each in above
        )
