"""Free-form facts."""

import pytest

from harness.model.backend import BackendFacts
from harness.report.facts import cpus, machine, pairs
from tests.factories import run


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


def test_the_machine_in_short_and_in_full():
    told = machine(run())
    assert (told.cpu, told.cores, told.memory, told.gpus) == ("Some CPU", 2, "8.00 GiB", [])
    assert told.engine == "26.1.5"
    assert ("kernel", "Linux 6.1") in told.host
    assert ("why", "An engine answers.") in told.backend


def test_an_engine_elsewhere_has_its_own_machine():
    there = {"name": "docker", "engine": "Docker Engine 28", "where": "remote", "architecture": "x86_64", "cpus": 64}
    told = machine(run(backend=BackendFacts(**there, memory_bytes=2**36)))
    assert (told.cpu, told.cores, told.memory) == ("x86_64", 64, "64.0 GiB")


def test_what_is_not_known_of_a_machine_is_empty():
    told = machine(run(host={}, backend=BackendFacts("")))
    assert (told.cpu, told.cores, told.memory, told.engine) == ("", 0, "", "")


def test_the_gpus_are_part_of_the_machine():
    assert machine(run(host={"gpus": [{"name": "NVIDIA H100"}]})).gpus == ["NVIDIA H100"]
    assert machine(run(host={"gpus": "not known: no driver"})).gpus == []


@pytest.mark.parametrize(("numbers", "text"), [([0], "0"), ([3, 0, 1, 2, 8], "0-3, 8"), ([], "")])
def test_cpu_numbers(numbers, text):
    assert cpus(numbers) == text
