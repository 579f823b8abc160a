"""Complete factorials within what was measured."""

import random
from itertools import chain, combinations, product

from hypothesis import example, given
from hypothesis import strategies as st

from harness.analysis.attribution import largest

AXES = {"environment": ["old", "new", "newer"], "mode": ["graph", "eager"], "call": ["fit", "step"]}


def everything(axes=AXES, without=()):
    return [point for point in product(*axes.values()) if point not in without]


def span(kept):
    return set(product(*kept.values()))


@st.composite
def designs(draw):
    """Two or three axes of one to four levels, and some of their combinations."""
    sizes = draw(st.lists(st.integers(1, 4), min_size=2, max_size=3))
    axes = {f"axis{place}": [f"{place}-{index}" for index in range(size)] for place, size in enumerate(sizes)}
    grid = everything(axes)
    gaps = draw(st.lists(st.sampled_from(grid), max_size=6))
    return axes, [point for point in grid if point not in gaps]


def subsets(levels):
    return chain.from_iterable(combinations(levels, size) for size in range(1, len(levels) + 1))


def test_a_complete_design_is_kept_whole():
    assert largest(AXES, everything()) == AXES


def test_a_level_that_lacks_a_combination_goes():
    assert largest(AXES, everything(without=[("newer", "eager", "fit")])) == {**AXES, "environment": ["old", "new"]}


def test_what_goes_is_what_costs_least():
    gaps = [("new", mode, "step") for mode in ("graph", "eager")] + [("newer", mode, "step") for mode in ("graph",)]
    assert largest(AXES, everything(without=gaps)) == {**AXES, "call": ["fit"]}


def test_an_axis_may_be_left_with_one_level():
    axes = {"environment": ["old", "new"], "mode": ["graph", "eager"], "api": ["own", "other"]}
    kept = largest(axes, everything(axes, without=[("old", "eager", "own")]))
    assert kept == {"environment": ["old", "new"], "mode": ["graph", "eager"], "api": ["other"]}


def test_of_equally_large_ones_the_first_axis_keeps_more_levels_and_then_the_first_levels_stay():
    axes = {"environment": ["old", "new", "newer"], "mode": ["graph", "eager", "op_by_op"]}
    kept = largest(axes, everything(axes, without=[("newer", "op_by_op")]))
    assert kept == {"environment": ["old", "new", "newer"], "mode": ["graph", "eager"]}
    each_lacks_one = [("old", "1"), ("new", "2"), ("newer", "3")]
    axes = {"environment": ["old", "new", "newer"], "size": ["1", "2", "3", "4"]}
    kept = largest(axes, everything(axes, without=each_lacks_one))
    assert kept == {"environment": ["old", "new"], "size": ["3", "4"]}


def test_of_equally_large_ones_more_axes_are_kept():
    axes = {"environment": ["a", "b", "c", "d"], "mode": ["graph", "eager"], "call": ["fit", "step"]}
    cube = set(product("ab", ["graph", "eager"], ["fit", "step"]))
    plane = set(product("abcd", ["graph", "eager"], ["fit"]))
    assert span(largest(axes, cube | plane)) == cube


def test_two_axes_vary_or_there_is_none():
    axes = {"environment": ["old", "new", "newer"], "mode": ["graph", "eager"]}
    assert largest(axes, [("old", "graph"), ("new", "eager"), ("newer", "eager")]) is None
    assert largest({"environment": ["old", "new"], "mode": ["graph"]}, [("old", "graph"), ("new", "graph")]) is None
    assert largest({"environment": [], "mode": []}, []) is None


def test_two_axes_are_preferred_to_a_longer_one():
    axes = {"environment": [str(number) for number in range(9)], "mode": ["graph", "eager"]}
    points = [(name, "eager") for name in axes["environment"]] + [(name, "graph") for name in "01"]
    assert largest(axes, points) == {"environment": ["0", "1"], "mode": ["graph", "eager"]}


@given(designs())
def test_it_is_the_best_of_all_that_there_are(design):
    axes, points = design
    known = set(points)
    complete = [
        dict(zip(axes, kept, strict=True))
        for kept in product(*(list(subsets(levels)) for levels in axes.values()))
        if sum(len(levels) > 1 for levels in kept) > 1 and set(product(*kept)) <= known
    ]
    # the names of the levels are in order, so the first ones are the smallest
    best = min(
        complete,
        key=lambda kept: (
            -len(span(kept)),
            -sum(len(levels) > 1 for levels in kept.values()),
            [(-len(levels), levels) for levels in kept.values()],
        ),
        default=None,
    )
    assert largest(axes, points) == (best and {axis: list(levels) for axis, levels in best.items()})


@given(designs(), st.randoms())
@example(({"a": ["1", "2"], "b": ["1", "2"]}, [("1", "1")]), random.Random(0))
def test_the_order_of_the_points_does_not_matter(design, draw):
    axes, points = design
    shuffled = draw.sample(points, len(points))
    assert largest(axes, shuffled) == largest(axes, points)


def test_a_large_design_full_of_gaps_ends_and_is_complete():
    draw = random.Random(7)
    axes = {f"axis{place}": [str(index) for index in range(size)] for place, size in enumerate([26, 3, 3, 3, 2, 2])}
    points = {point for point in everything(axes) if draw.random() < 0.8}
    kept = largest(axes, points)
    assert span(kept) <= points
    assert kept == largest(axes, sorted(points))


def test_axes_too_many_for_a_grid_in_memory():
    axes = {f"axis{place}": [str(index) for index in range(10)] for place in range(15)}
    points = [(str(index),) * 15 for index in range(10)]
    points += [(str(i), str(j), *["0"] * 13) for i in range(2) for j in range(2)]
    kept = largest(axes, points)
    assert [axis for axis, levels in kept.items() if len(levels) > 1] == ["axis0", "axis1"]
