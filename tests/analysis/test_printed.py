"""Numbers that plain scripts print."""

import pytest

from harness.analysis import printed
from harness.analysis.quantities import launches_of
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.scenario import NUMBER_UNITS, NUMBERS, PRINTED, STEP, Cell, Comparison
from tests.factories import launch, scenario

SAVED = PRINTED + "saved"
CELL = Cell("mine", "tf1.14", Device.CPU, {})


def printing(values, unit="s"):
    units = {SAVED: unit}
    mean = values[0] if isinstance(values[0], float) else 1.0
    return launch(CELL, (0.1,), observations={SAVED: mean, NUMBERS: {SAVED: values}, NUMBER_UNITS: units})


def test_values_that_rise_in_every_launch_grow_by_the_ratio_of_their_last_quarter_to_the_first():
    rising = [0.03, 0.05, 0.04, 0.06, 0.07, 0.09, 0.08, 0.12]
    growth = printed.growth(SAVED, [printing(rising), printing(rising)])
    assert (growth.first, growth.last, growth.count) == (pytest.approx(0.04), pytest.approx(0.10), 8)
    # thousands of values are judged by their means
    assert printed.growth(SAVED, [printing([1.0 + number / 1000 for number in range(1000)])]).count == 1000


def test_few_steady_falling_or_invalid_values_do_not_grow():
    for values in [
        [1.0, 2.0, 3.0, 4.0],
        [5.0, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0],
        [1.0, 1.001, 1.002, 1.003, 1.004, 1.005, 1.006, 1.007],
        [8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0],
        [-8.0, -7.0, -6.0, -5.0, -4.0, -3.0, -2.0, -1.0],
        "no list",
        ["1", None, True, 1e301],
    ]:
        assert printed.growth(SAVED, [printing(values)] * 3) is None


def test_the_unit_is_that_of_all_launches_and_zeros_have_any():
    assert printed.unit_of(SAVED, [printing([1.0]), printing([0.0], "")]) == "s"
    assert printed.unit_of(SAVED, [printing([1.0], "")]) == ""
    # numbers of which only some have a unit are not compared
    some = [printing([1.0]), printing([1.0], "")]
    assert printed.unit_of(SAVED, some) is None
    assert [one.status for one in launches_of(SAVED, some)] == [Status.NOT_AVAILABLE] * 2
    assert [one.status for one in launches_of(SAVED, some[:1])] == [Status.OK]


def test_a_quantity_is_a_ratio_if_both_of_its_numbers_are_quantities_too():
    names = ["half", "single", "half/single", "ms/step"]
    compare = [
        Comparison(name, along="environment", of=quantity)
        for name, quantity in [("", STEP), *((n, PRINTED + n) for n in names)]
    ]
    mine = scenario("mine", axes={}, default={}, compare=compare)
    assert printed.find_ratio_numbers(PRINTED + "half/single", mine) == ("half", "single")
    assert printed.find_ratio_numbers(PRINTED + "ms/step", mine) is None
    assert printed.find_ratio_numbers(PRINTED + "half", mine) is None
