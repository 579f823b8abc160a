"""Numbers that plain scripts print."""

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


def test_units_and_ratios_of_printed_numbers():
    assert printed.unit_of(SAVED, [printing([1.0]), printing([0.0], "")]) == "s"
    assert printed.unit_of(SAVED, [printing([1.0], "")]) == ""
    # numbers of which only some have a unit are not compared
    some = [printing([1.0]), printing([1.0], "")]
    assert printed.unit_of(SAVED, some) is None
    assert [one.status for one in launches_of(SAVED, some)] == [Status.NOT_AVAILABLE] * 2
    assert [one.status for one in launches_of(SAVED, some[:1])] == [Status.OK]
    names = ["half", "single", "half/single", "ms/step"]
    compare = [
        Comparison(name, along="environment", of=quantity)
        for name, quantity in [("", STEP), *((n, PRINTED + n) for n in names)]
    ]
    mine = scenario("mine", axes={}, default={}, compare=compare)
    assert printed.find_ratio_numbers(PRINTED + "half/single", mine) == ("half", "single")
    assert printed.find_ratio_numbers(PRINTED + "ms/step", mine) is None
    assert printed.find_ratio_numbers(PRINTED + "half", mine) is None
