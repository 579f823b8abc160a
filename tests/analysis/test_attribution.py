"""Which cells are a complete factorial, and what accounts for the differences among them."""

import math
import random
from dataclasses import replace
from itertools import chain, combinations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.analysis.attribution import find_largest
from harness.analysis.looks import FIRST_LOOK, compute_settling_share
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict, Withheld, compute_shown_alpha
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Stop, StopReason
from tests.factories import broken, cell, cells, rounds, run
from tests.swept import CROSSING, swept_run
from tests.swept import seconds as swept_seconds

CALLS = ("fit", "train_on_batch")
FACTORS = {"tf1.14": 1.0, "tf2.0": 1.1, "graph": 1.0, "eager": 2.0, "fit": 1.0, "train_on_batch": 0.5}


def seconds(members):
    """Times that multiply, but for eager mode of TensorFlow 2.0: another 1.5."""
    return {
        of: 0.01
        * math.prod(FACTORS.get(value, 1.0) for value in (of.environment, *of.axes.values()))
        * (1.5 if (of.environment, of.axes["mode"]) == ("tf2.0", "eager") else 1.0)
        for of in members
    }


MEMBERS = cells(calls=CALLS)


def made(asked, launches):
    return Results(asked, launches).attributions


def factors(attribution):
    return {
        " × ".join(change.level for change in effect.changes): round(effect.estimate.value, 3)
        for effect in attribution.effects
    }


def test_effects_of_a_complete_design():
    (found,) = made(run(MEMBERS), rounds(seconds(MEMBERS), spread=0.0))
    assert list(found.axes.items()) == [
        ("environment", ["tf1.14", "tf2.0"]),
        ("mode", ["graph", "eager"]),
        ("call", ["fit", "train_on_batch"]),
    ]
    assert factors(found) == {
        "tf2.0": round(1.1 * math.sqrt(1.5), 3),
        "eager": round(2.0 * math.sqrt(1.5), 3),
        "train_on_batch": 0.5,
        "tf2.0 × eager": 1.5,
        "tf2.0 × train_on_batch": 1.0,
        "eager × train_on_batch": 1.0,
    }
    assert (found.cells, found.of, found.rounds, found.held) == (8, 8, 5, {})
    assert found.judged


def test_groups_that_were_measured_one_after_the_other_have_no_effect_across_them():
    asked, launches = run(MEMBERS), rounds(seconds(MEMBERS), spread=0.0)

    def begun(first, second):
        return [replace(launch, started=f"2026-01-01T{first(launch)}-{second(launch)}") for launch in launches]

    groups = [group.name for group in asked.plan.groups]
    assert len(groups) == 2
    place, number = (lambda each: groups.index(each.group)), (lambda each: each.round)
    assert made(asked, begun(number, place))
    assert not made(asked, begun(place, number))
    # the effects within one group are told all the same
    within = [member for member in MEMBERS if member.axes["call"] == "fit"]
    alone = [replace(each, started=str(place)) for place, each in enumerate(rounds(seconds(within), spread=0.0))]
    assert made(run(within), alone)


def test_the_base_is_the_runs_reference_and_the_headers_first_value():
    (found,) = made(run(MEMBERS, reference="tf2.0"), rounds(seconds(MEMBERS)))
    assert [(effect.changes[0].level, effect.changes[0].base) for effect in found.effects[:3]] == [
        ("tf1.14", "tf2.0"),
        ("eager", "graph"),
        ("train_on_batch", "fit"),
    ]


def test_the_order_of_cells_and_launches_does_not_matter():
    launches = rounds(seconds(MEMBERS))
    (one,) = made(run(MEMBERS), launches)
    draw = random.Random(3)
    (other,) = made(run(draw.sample(MEMBERS, 8)), draw.sample(launches, len(launches)))
    assert other == one


def test_what_slows_a_whole_round_cancels():
    launches = [
        replace(
            entry, samples=[replace(sample, seconds=sample.seconds * (1 + entry.round)) for sample in entry.samples]
        )
        for entry in rounds(seconds(MEMBERS), spread=0.0)
    ]
    (found,) = made(run(MEMBERS), launches)
    effect = found.effects[1]
    assert effect.verdict is Verdict.SLOWER
    assert effect.estimate.interval.high / effect.estimate.interval.low == pytest.approx(1.0, abs=1e-6)


def test_a_cell_without_a_number_leaves_the_largest_complete_design():
    lost = cell("tf1.14", call="fit", mode="eager")
    times = {of: each for of, each in seconds(MEMBERS).items() if of != lost}
    (found,) = made(run(MEMBERS), [*rounds(times), broken(lost, Status.FAILED)])
    assert (list(found.axes), found.held) == (["environment", "mode"], {"call": "train_on_batch"})
    assert (found.cells, found.of) == (4, 7)


def test_an_axis_with_one_value_is_left_out():
    (found,) = made(run(), rounds(seconds(cells())))
    assert list(found.axes) == ["environment", "mode"]
    assert found.held == {}


def test_with_one_axis_there_is_nothing_to_attribute():
    only = cells(modes=["graph"])
    assert made(run(only), rounds(seconds(only))) == []
    each_as_it_comes = [cell(), cell("tf2.0", mode="eager")]
    assert made(run(each_as_it_comes), rounds(seconds(each_as_it_comes))) == []


def test_rounds_are_those_that_all_cells_have():
    launches = rounds(seconds(MEMBERS), count=6)
    short = [launch for launch in launches if not (launch.cell == MEMBERS[0] and launch.round == 4)]
    (found,) = made(run(MEMBERS), short)
    assert found.rounds == 5


def test_a_cell_with_few_rounds_counts_as_missing_where_others_have_three():
    launches = [entry for entry in rounds(seconds(MEMBERS)) if entry.cell != MEMBERS[0] or entry.round < 3]
    (found,) = made(run(MEMBERS), launches)
    assert (found.cells, found.of, found.rounds) == (4, 8, 5)


def test_few_rounds_of_all_have_no_verdict():
    (found,) = made(run(MEMBERS), rounds(seconds(MEMBERS), count=2))
    assert (found.cells, found.rounds, found.judged) == (8, 2, False)
    assert {effect.withheld for effect in found.effects} == {Withheld.FEW_ROUNDS}


def test_no_round_in_common_is_no_design():
    launches = [
        entry for entry in rounds(seconds(cells()), count=2) if entry.round == (1 if entry.cell == cells()[0] else 2)
    ]
    assert made(run(), launches) == []


def test_cells_of_different_work_count_as_missing():
    odd = cell("tf2.0", call="fit", mode="eager")
    launches = [
        replace(entry, fingerprint={"parameters": 2 if entry.cell == odd else 1}) for entry in rounds(seconds(MEMBERS))
    ]
    (found,) = made(run(MEMBERS), launches)
    assert (found.cells, found.of, found.unchecked) == (4, 8, False)


def test_where_work_differs_between_rows_it_is_the_rows_own():
    launches = [
        replace(entry, fingerprint={"parameters": len(entry.cell.axes["call"])}) for entry in rounds(seconds(MEMBERS))
    ]
    (found,) = made(run(MEMBERS), launches)
    assert (found.cells, found.unchecked) == (8, False)


def test_where_as_many_did_one_work_as_another_one_half_counts_as_missing():
    launches = [
        replace(entry, fingerprint={"parameters": len(entry.cell.environment + entry.cell.axes["mode"])})
        for entry in rounds(seconds(cells()))
    ]
    assert made(run(), launches) == []


def test_work_that_nothing_told_of_is_unchecked():
    assert made(run(), rounds(seconds(cells())))[0].unchecked


def test_each_device_has_its_own():
    members = [replace(of, device=device) for device in Device for of in cells()]
    times = {
        of: each * (2.0 if (of.device, of.axes["mode"]) == (Device.GPU, "eager") else 1.0)
        for of, each in seconds(members).items()
    }
    cpu, gpu = made(run(members), rounds(times, spread=0.0))
    assert (cpu.device, cpu.cells, cpu.of) == (Device.CPU, 4, 4)
    assert (gpu.device, gpu.cells, gpu.of) == (Device.GPU, 4, 4)
    assert gpu.effects[1].estimate.value == pytest.approx(2.0 * cpu.effects[1].estimate.value)


def test_along_a_sweep_nothing_is_attributed():
    asked, launches = swept_run(swept_seconds(CROSSING, ("tf1.14", "tf2.0")))
    assert made(asked, launches) == []


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
    assert find_largest(AXES, everything()) == AXES


def test_a_level_that_lacks_a_combination_goes():
    assert find_largest(AXES, everything(without=[("newer", "eager", "fit")])) == {
        **AXES,
        "environment": ["old", "new"],
    }


def test_what_goes_is_what_costs_least():
    gaps = [("new", mode, "step") for mode in ("graph", "eager")] + [("newer", mode, "step") for mode in ("graph",)]
    assert find_largest(AXES, everything(without=gaps)) == {**AXES, "call": ["fit"]}


def test_an_axis_may_be_left_with_one_level():
    axes = {"environment": ["old", "new"], "mode": ["graph", "eager"], "api": ["own", "other"]}
    kept = find_largest(axes, everything(axes, without=[("old", "eager", "own")]))
    assert kept == {"environment": ["old", "new"], "mode": ["graph", "eager"], "api": ["other"]}


def test_of_equally_large_ones_the_first_axis_keeps_more_levels_and_then_the_first_levels_stay():
    axes = {"environment": ["old", "new", "newer"], "mode": ["graph", "eager", "op_by_op"]}
    kept = find_largest(axes, everything(axes, without=[("newer", "op_by_op")]))
    assert kept == {"environment": ["old", "new", "newer"], "mode": ["graph", "eager"]}
    each_lacks_one = [("old", "1"), ("new", "2"), ("newer", "3")]
    axes = {"environment": ["old", "new", "newer"], "size": ["1", "2", "3", "4"]}
    kept = find_largest(axes, everything(axes, without=each_lacks_one))
    assert kept == {"environment": ["old", "new"], "size": ["3", "4"]}


def test_of_equally_large_ones_more_axes_are_kept():
    axes = {"environment": ["a", "b", "c", "d"], "mode": ["graph", "eager"], "call": ["fit", "step"]}
    cube = set(product("ab", ["graph", "eager"], ["fit", "step"]))
    plane = set(product("abcd", ["graph", "eager"], ["fit"]))
    assert span(find_largest(axes, cube | plane)) == cube


def test_two_axes_vary_or_there_is_none():
    axes = {"environment": ["old", "new", "newer"], "mode": ["graph", "eager"]}
    assert find_largest(axes, [("old", "graph"), ("new", "eager"), ("newer", "eager")]) is None
    assert (
        find_largest({"environment": ["old", "new"], "mode": ["graph"]}, [("old", "graph"), ("new", "graph")]) is None
    )
    assert find_largest({"environment": [], "mode": []}, []) is None


def test_two_axes_are_preferred_to_a_longer_one():
    axes = {"environment": [str(number) for number in range(9)], "mode": ["graph", "eager"]}
    points = [(name, "eager") for name in axes["environment"]] + [(name, "graph") for name in "01"]
    assert find_largest(axes, points) == {"environment": ["0", "1"], "mode": ["graph", "eager"]}


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
    assert find_largest(axes, points) == (best and {axis: list(levels) for axis, levels in best.items()})


@given(designs(), st.randoms())
@example(({"a": ["1", "2"], "b": ["1", "2"]}, [("1", "1")]), random.Random(0))
def test_the_order_of_the_points_does_not_matter(design, draw):
    axes, points = design
    shuffled = draw.sample(points, len(points))
    assert find_largest(axes, shuffled) == find_largest(axes, points)


def test_a_large_design_full_of_gaps_ends_and_is_complete():
    draw = random.Random(7)
    axes = {f"axis{place}": [str(index) for index in range(size)] for place, size in enumerate([26, 3, 3, 3, 2, 2])}
    points = {point for point in everything(axes) if draw.random() < 0.8}
    kept = find_largest(axes, points)
    assert span(kept) <= points
    assert kept == find_largest(axes, sorted(points))


def test_axes_too_many_for_a_grid_in_memory():
    axes = {f"axis{place}": [str(index) for index in range(10)] for place in range(15)}
    points = [(str(index),) * 15 for index in range(10)]
    points += [(str(i), str(j), *["0"] * 13) for i in range(2) for j in range(2)]
    kept = find_largest(axes, points)
    assert [axis for axis, levels in kept.items() if len(levels) > 1] == ["axis0", "axis1"]


def test_effects_of_a_group_that_clear_verdicts_ended_have_the_share_of_those_verdicts():
    for spread, rounds_, share in [
        (0.1, FIRST_LOOK + 2, compute_settling_share(FIRST_LOOK + 2)),
        (0.001, FIRST_LOOK + 2, 1.0),
        (0.1, FIRST_LOOK + 1, 1.0),  # no look is after this round
    ]:
        times = dict(zip(cells(), [0.01, 0.02, 0.04, 0.08], strict=True))
        asked = run(times)
        stops = {group.name: Stop(StopReason.PRECISION, rounds_) for group in asked.plan.groups}
        asked = replace(asked, plan=replace(asked.plan, precision=0.02), stops=stops)
        (found,) = made(asked, rounds(times, spread=spread, count=rounds_))
        plain = 1.0 - compute_shown_alpha(len(found.effects))
        assert found.effects[0].level == pytest.approx(1.0 - share * (1.0 - plain)), (spread, rounds_, share)
