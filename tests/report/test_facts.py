"""Free-form facts."""

from dataclasses import replace

import pytest

from harness.report.facts import cpus, environments, other_packages, pairs
from tests.factories import ENVIRONMENTS, run


def test_facts_are_shown_by_their_names_and_empty_ones_left_out():
    host = {
        "cpu": "Some CPU",
        "memory_bytes": 2**30,
        "os": "",
        "gpus": [],
        "kernel": None,
        "swap_on": False,
        "n": [1, 2],
    }
    assert pairs(host) == [("CPU", "Some CPU"), ("memory", "1.00 GiB"), ("swap on", "no"), ("n", "1, 2")]
    assert pairs({"engine": {"version": "26.1"}}) == [("engine", '{"version": "26.1"}')]


def test_the_gpus_of_every_launch_are_named():
    card = {"index": 0, "name": "NVIDIA H100", "capability": "9.0", "memory_bytes": 80 * 2**30, "driver": "550.54.15"}
    text = "index 0, name NVIDIA H100, capability 9.0, memory 80.0 GiB, driver 550.54.15"
    assert pairs({"gpus": [card, {"index": 1}]}) == [("GPUs", f"{text}; index 1")]
    assert pairs({"gpus": "not known: no driver"}) == [("GPUs", "not known: no driver")]


def test_an_environment_shows_its_leading_packages_and_what_ran():
    assert environments(run())[0] == {
        "name": "tf1.14",
        "tensorflow": "1.14.0",
        "keras": "2.2.5",
        "numpy": "1.17.4",
        "python": "3.7",
        "image": "sha256:abababababab",
    }
    assert environments(run(images={}, pins={}))[0]["numpy"] == ""


def test_the_other_packages_stand_side_by_side():
    pins = {"tf1.14": {"six": "1.12.0", "numpy": "1"}, "tf2.0": {"gast": "0.2.2"}}
    assert other_packages(run(pins=pins)) == (
        ["package", "tf1.14", "tf2.0"],
        [["gast", "", "0.2.2"], ["six", "1.12.0", ""]],
    )


def test_the_packages_of_many_environments_have_a_row_for_each():
    many = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}") for minor in range(7)]
    pins = {each.name: {"six": "1.12.0", "gast": "0.2.2", "numpy": "1"} for each in many}
    headings, rows = other_packages(run(environments=many, pins=pins))
    assert headings == ["environment", "packages"]
    assert rows[6] == ["tf9.6", "gast 0.2.2, six 1.12.0"]


@pytest.mark.parametrize(("numbers", "text"), [([0], "0"), ([3, 0, 1, 2, 8], "0-3, 8"), ([], "")])
def test_cpu_numbers(numbers, text):
    assert cpus(numbers) == text
