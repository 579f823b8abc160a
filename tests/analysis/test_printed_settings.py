"""Several values of one printed number: settings, places and growth. The cases are scripts as people paste them."""

import csv
import io
import json
import math
import random

import pytest

from harness.analysis.printed_settings import find_growth, find_settings
from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.environment import Device
from harness.model.launch import Role
from harness.model.scenario import NUMBER_LABELS, NUMBER_UNITS, NUMBERS, PRINTED, STEP, Cell, Comparison
from harness.report import format
from harness.report.formats import csv_, json_
from tests.factories import launch, run, scenario

TOOK = PRINTED + "took"
OLD, NEW = (Cell("mine", name, Device.CPU, {}) for name in ("tf1.14", "tf2.0"))

COUNTED = ["image", ["0", "1", "2", "3", "4"], True]
CALLS = ["num_calls", ["None", "1", "2", "4", "AUTOTUNE"], False]


def print_values(*numbers, labels=None, rounds=3, cells=(OLD,), noise=0.03, seed=1, unit="s"):
    """Return a pilot and launches of rounds that print these numbers. The second cell takes twice as long."""
    rng = random.Random(seed)
    launches = []
    for number in range(rounds + 1):
        for factor, cell in enumerate(cells, 1):
            values = [factor * value * math.exp(rng.gauss(0.0, noise)) for value in numbers]
            observations = {TOOK: values[0], NUMBERS: {TOOK: values}, NUMBER_UNITS: {TOOK: unit}}
            if labels:
                observations[NUMBER_LABELS] = {TOOK: labels}
            role = Role.MEASURE if number else Role.PILOT
            launches.append(launch(cell, (0.1,), round=number, role=role, observations=observations))
    return launches


@pytest.mark.parametrize(
    ("numbers", "labels", "settings"),
    [
        ((0.004, 0.004, 0.178, 0.188), None, {"print 1 to 2": [0, 1], "print 3 to 4": [2, 3]}),
        ((0.322, 2.77), None, {"print 1": [0], "print 2": [1]}),
        ((0.3, 0.31, 0.32, 0.31, 0.3), CALLS, {label: [place] for place, label in enumerate(CALLS[1])}),
        ((1.0, 9.0, 1.0, 9.0), ["label", ["half", "single"] * 2, False], {"half": [0, 2], "single": [1, 3]}),
        ((1.0, 9.0), ["threads", ["1", "2"], True], {"threads 1": [0], "threads 2": [1]}),
        ((9.0, 9.0, 1.0, 1.0, 4.0), COUNTED, {"image 0 to 1": [0, 1], "image 2 to 3": [2, 3], "image 4": [4]}),
        ((3.0, 0.2, 0.2, 0.2), None, None),  # a warm-up
        ((1.0, 1.02, 0.99), ["image", ["0", "1", "2"], True], None),
        ((0.157, 0.202, 0.253, 0.328, 0.416), COUNTED, None),  # growth
    ],
)
def test_values_that_differ_by_place_or_label_are_settings(numbers, labels, settings):
    result = find_settings(TOOK, print_values(*numbers, labels=labels))
    assert (result and {name: list(places) for name, places in result[1].items()}) == settings


def test_a_label_that_the_user_names_is_a_setting_even_if_it_counts():
    launches = print_values(1.0, 1.0, labels=["label", ["1", "2"], False])
    assert find_settings(TOOK, launches) == ("label", {"1": [0], "2": [1]})


def test_noise_is_no_setting_and_one_launch_needs_a_factor_of_2():
    noisy = [print_values(*[1.0] * 4, noise=0.4, seed=seed, rounds=2) for seed in range(200)]
    assert sum(find_settings(TOOK, launches) is not None for launches in noisy) <= 4
    assert find_settings(TOOK, print_values(1.0, 1.7, rounds=0)) is None
    assert find_settings(TOOK, print_values(1.0, 2.4, rounds=0)) is not None
    disturbed = [*print_values(20.0, 4.0, rounds=20), *print_values(25.0, 12.0, rounds=0)]
    assert find_settings(TOOK, disturbed) is not None
    different_counts = [*print_values(1.0, 9.0), *print_values(1.0, 9.0, 1.0)]
    assert find_settings(TOOK, different_counts) is None


def test_labels_of_an_untrusted_launch_are_ignored():
    for labels in (
        ["batch", [1, 2], False],
        ["batch", ["1"], False],
        ["environment", ["a", "b"], False],
        "12",
        [["batch"], ["1", "2"], False],
        ["batch", ["1", "2"], 0],
    ):
        assert find_settings(TOOK, print_values(1.0, 1.0, labels=labels)) is None


@pytest.mark.parametrize(("rounds", "is_certain"), [(1, True), (0, False)])
def test_growth_is_found_in_all_launches_together_or_the_values_are_too_few(rounds, is_certain):
    growth = find_growth(TOOK, print_values(0.157, 0.202, 0.253, 0.328, 0.416, rounds=rounds))
    assert (growth.is_certain, growth.count, growth.launches) == (is_certain, 5, rounds + 1)
    assert growth.last / growth.first == pytest.approx(2.65, rel=0.1)


def test_four_values_in_three_launches_are_enough_and_rarely_grow_without_a_trend():
    assert find_growth(TOOK, print_values(1.0, 1.3, 1.6, 2.0, rounds=2)).is_certain
    assert find_growth(TOOK, print_values(1.0, 1.5, 2.0, rounds=9)) is None
    launches = [print_values(*[1.0] * 5, noise=0.3, seed=seed) for seed in range(300)]
    assert sum(find_growth(TOOK, series) is not None for series in launches) <= 3


def make_results(launches, cells):
    compare = [Comparison(quantity, along="environment", of=quantity) for quantity in (STEP, TOOK)]
    mine = scenario("mine", axes={}, default={}, compare=compare, script="mine.py")
    return Results(run(cells, scenarios=[mine], reference="tf1.14"), launches)


@pytest.mark.parametrize("unit", ["s", ""])
def test_settings_are_an_axis_with_verdicts_and_the_number_has_no_median(unit):
    cells = (OLD, NEW)
    results = make_results(print_values(1.0, 9.0, labels=["batch", ["32", "7"], False], cells=cells, unit=unit), cells)
    assert [table.quantity for table in results.all_tables] == [STEP]
    (split,) = results.by_setting
    (table,) = split.all_tables
    assert {cell.axes["batch"] for cell in table.cells()} == {"32", "7"}
    by_side = {(answer.subject, answer.base): answer.findings[0] for answer in split.answers}
    assert by_side["tf2.0", "tf1.14"].ratio.value == pytest.approx(2.0, rel=0.1)
    ratios = [finding.ratio for sides, finding in by_side.items() if {*sides} == {"7", "32"}]
    assert [math.exp(ratio.distance) for ratio in ratios] == [pytest.approx(9.0, rel=0.1)]
    assert {finding.verdict for finding in by_side.values()} <= {
        *(Verdict.SLOWER, Verdict.FASTER, Verdict.MORE, Verdict.LESS)
    }
    # a split is a run of its own, which isn't split again
    assert not split.by_setting


def test_a_printed_device_is_a_setting_and_not_the_device_of_a_cell():
    launches = print_values(1.0, 9.0, labels=["device", ["gpu", "/cpu:0"], False], cells=(OLD, NEW))
    (split,) = make_results(launches, (OLD, NEW)).by_setting
    assert {(cell.axes["device, printed"], cell.device) for table in split.all_tables for cell in table.cells()} == {
        ("gpu", Device.CPU),
        ("/cpu:0", Device.CPU),
    }


def test_settings_are_in_tables_with_their_unit_and_in_files_for_programs():
    for unit, symbol in {"s": "ms", "": ""}.items():
        results = make_results(print_values(0.02, cells=(OLD, NEW), unit=unit), [OLD, NEW])
        assert [format.unit_of(table).symbol for table in results.all_tables if table.quantity == TOOK] == [symbol]
    results = make_results(print_values(1.0, 9.0, labels=["batch", ["32", "7"], False], rounds=1, noise=0.0), [OLD])
    row = next(csv.DictReader(io.StringIO(csv_.render(results), newline="")))
    assert [row[f"{TOOK} (batch={size})"] for size in (32, 7)] == ["1.0", "9.0"]
    report = json.loads(json_.render(results))
    sizes = {cell["name"]: cell["estimate"]["value"] for cell in report["cells"] if "batch" in cell["name"]}
    assert sizes == pytest.approx({"mine took tf1.14 cpu batch=32": 1.0, "mine took tf1.14 cpu batch=7": 9.0})
    assert [entry["what"] for entry in report["comparisons"] if entry["along"] == "batch"]
