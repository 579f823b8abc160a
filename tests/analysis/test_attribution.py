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
from harness.analysis.verdicts import compute_shown_alpha
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
        member: 0.01
        * math.prod(FACTORS.get(value, 1.0) for value in (member.environment, *member.axes.values()))
        * (1.5 if (member.environment, member.axes["mode"]) == ("tf2.0", "eager") else 1.0)
        for member in members
    }


MEMBERS = cells(calls=CALLS)


def attribute(planned, launches):
    return Results(planned, launches).attributions


def factors(attribution):
    return {
        " × ".join(change.level for change in effect.changes): round(effect.estimate.value, 3)
        for effect in attribution.effects
    }


def test_effects_of_a_complete_design():
    (attribution,) = attribute(run(MEMBERS), rounds(seconds(MEMBERS), spread=0.0))
    assert list(attribution.axes.items()) == [
        ("environment", ["tf1.14", "tf2.0"]),
        ("mode", ["graph", "eager"]),
        ("call", ["fit", "train_on_batch"]),
    ]
    assert factors(attribution) == {
        "tf2.0": round(1.1 * math.sqrt(1.5), 3),
        "eager": round(2.0 * math.sqrt(1.5), 3),
        "train_on_batch": 0.5,
        "tf2.0 × eager": 1.5,
        "tf2.0 × train_on_batch": 1.0,
        "eager × train_on_batch": 1.0,
    }
    assert (attribution.cells, attribution.of, attribution.rounds, attribution.held) == (8, 8, 5, {})
    assert attribution.judged


def test_groups_that_were_measured_one_after_the_other_have_no_effect_across_them():
    planned, launches = run(MEMBERS), rounds(seconds(MEMBERS), spread=0.0)

    def begun(first, second):
        return [replace(launch, started=f"2026-01-01T{first(launch)}-{second(launch)}") for launch in launches]

    groups = [group.name for group in planned.plan.groups]
    assert len(groups) == 2
    place, number = (lambda item: groups.index(item.group)), (lambda item: item.round)
    assert attribute(planned, begun(number, place))
    assert not attribute(planned, begun(place, number))


def test_the_base_is_the_runs_reference_and_the_headers_first_value():
    launches = rounds(seconds(MEMBERS))
    (attribution,) = attribute(run(MEMBERS, reference="tf2.0"), launches)
    assert [(effect.changes[0].level, effect.changes[0].base) for effect in attribution.effects[:3]] == [
        ("tf1.14", "tf2.0"),
        ("eager", "graph"),
        ("train_on_batch", "fit"),
    ]


def test_a_cell_without_a_number_or_with_few_rounds_leaves_the_largest_complete_design():
    lost = cell("tf1.14", call="fit", mode="eager")
    times = {member: time for member, time in seconds(MEMBERS).items() if member != lost}
    (attribution,) = attribute(run(MEMBERS), [*rounds(times), broken(lost, Status.FAILED)])
    assert (list(attribution.axes), attribution.held) == (["environment", "mode"], {"call": "train_on_batch"})
    assert (attribution.cells, attribution.of) == (4, 7)
    launches = rounds(seconds(MEMBERS), count=6)
    few = [entry for entry in launches if entry.cell != MEMBERS[0] or entry.round < 3]
    (attribution,) = attribute(run(MEMBERS), few)
    assert (attribution.cells, attribution.of, attribution.rounds) == (4, 8, 6)
    # rounds are those that all cells have
    (attribution,) = attribute(run(MEMBERS), [x for x in launches if (x.cell, x.round) != (MEMBERS[0], 4)])
    assert (attribution.cells, attribution.rounds) == (8, 5)
    (attribution,) = attribute(run(MEMBERS), rounds(seconds(MEMBERS), count=2))
    assert (attribution.cells, attribution.rounds, attribution.judged) == (8, 2, False)
    alternating = [x for x in rounds(seconds(cells()), count=2) if x.round == (1 if x.cell == cells()[0] else 2)]
    assert attribute(run(), alternating) == []


def test_an_axis_with_one_value_is_left_out_and_with_one_axis_there_is_nothing_to_attribute():
    (attribution,) = attribute(run(), rounds(seconds(cells())))
    assert (list(attribution.axes), attribution.held) == (["environment", "mode"], {})
    for members in (cells(modes=["graph"]), [cell(), cell("tf2.0", mode="eager")]):
        assert attribute(run(members), rounds(seconds(members))) == []
    # nor along a sweep
    assert attribute(*swept_run(swept_seconds(CROSSING, ("tf1.14", "tf2.0")))) == []


def test_cells_of_different_work_count_as_missing():
    def working(parameters, members=MEMBERS):
        launches = rounds(seconds(members))
        checked = [replace(x, fingerprint={"parameters": parameters(x.cell)}) for x in launches]
        return [
            (attribution.cells, attribution.of, attribution.unchecked)
            for attribution in attribute(run(members), checked)
        ]

    odd = cell("tf2.0", call="fit", mode="eager")
    assert working(lambda member: 2 if member == odd else 1) == [(4, 8, False)]
    # between rows it is the rows' own
    assert working(lambda member: len(member.axes["call"])) == [(8, 8, False)]
    # where as many did one work as another, one half is missing
    assert working(lambda member: len(member.environment + member.axes["mode"]), cells()) == []
    assert attribute(run(), rounds(seconds(cells())))[0].unchecked


def test_each_device_has_its_own():
    members = [replace(member, device=device) for device in Device for member in cells()]
    times = {
        member: time * (2.0 if (member.device, member.axes["mode"]) == (Device.GPU, "eager") else 1.0)
        for member, time in seconds(members).items()
    }
    cpu, gpu = attribute(run(members), rounds(times, spread=0.0))
    assert [(entry.device, entry.cells, entry.of) for entry in (cpu, gpu)] == [(device, 4, 4) for device in Device]
    assert gpu.effects[1].estimate.value == pytest.approx(2.0 * cpu.effects[1].estimate.value)


def everything(axes):
    return list(product(*axes.values()))


def span(design_):
    return set(product(*design_.values()))


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


@given(designs(), st.randoms())
@example(({"a": ["1", "2"], "b": ["1", "2"]}, [("1", "1")]), random.Random(0))
def test_it_is_the_best_of_all_that_there_are_in_whatever_order(design, draw):
    axes, points = design
    complete_points = set(points)
    complete = [
        dict(zip(axes, design_, strict=True))
        for design_ in product(*(list(subsets(levels)) for levels in axes.values()))
        if sum(len(levels) > 1 for levels in design_) > 1 and set(product(*design_)) <= complete_points
    ]
    # the names of the levels are in order, so the first ones are the smallest
    best = min(
        complete,
        key=lambda design_: (
            -len(span(design_)),
            -sum(len(levels) > 1 for levels in design_.values()),
            [(-len(levels), levels) for levels in design_.values()],
        ),
        default=None,
    )
    attribution = find_largest(axes, points)
    assert attribution == (best and {axis: list(levels) for axis, levels in best.items()})
    assert find_largest(axes, draw.sample(points, len(points))) == attribution


def test_axes_too_many_for_a_grid_in_memory():
    axes = {f"axis{place}": [str(index) for index in range(10)] for place in range(15)}
    points = [(str(index),) * 15 for index in range(10)]
    points += [(str(i), str(j), *["0"] * 13) for i in range(2) for j in range(2)]
    design_ = find_largest(axes, points)
    assert [axis for axis, levels in design_.items() if len(levels) > 1] == ["axis0", "axis1"]


def test_effects_of_a_group_that_clear_verdicts_ended_have_the_share_of_those_verdicts():
    for spread, count, share in [
        (0.1, FIRST_LOOK + 2, compute_settling_share(FIRST_LOOK + 2)),
        (0.001, FIRST_LOOK + 2, 1.0),
        (0.1, FIRST_LOOK + 1, 1.0),  # no look is after this round
    ]:
        times = dict(zip(cells(), [0.01, 0.02, 0.04, 0.08], strict=True))
        planned = run(times)
        stops = {group.name: Stop(StopReason.PRECISION, count) for group in planned.plan.groups}
        planned = replace(planned, plan=replace(planned.plan, precision=0.02), stops=stops)
        (attribution,) = attribute(planned, rounds(times, spread=spread, count=count))
        plain = 1.0 - compute_shown_alpha(len(attribution.effects))
        assert attribution.effects[0].level == pytest.approx(1.0 - share * (1.0 - plain)), (spread, count)
