"""What was measured."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from harness.model.backend import BackendFacts
from harness.model.environment import Device
from harness.model.gpu import UsedGpu
from harness.model.launch import Limits
from harness.report.blocks import Items, Where
from harness.report.sections.run_info import SCRIPT_CHARACTERS, describe_machine, list_facts, list_pairs, make_sections
from tests.factories import cell, cells, launch, rounds, run, scenario
from tests.report.sections.reading import everything, make, strong, summaries, text

TIMES = dict.fromkeys(cells(), 0.01)
UNKNOWN = BackendFacts("")


make_section = partial(make, make_sections)


def list_items(planned, launches=()):
    (block,) = [block for block in everything(make_section(planned, launches)) if isinstance(block, Items)]
    return {strong(item)[0]: text(item) for item in block.items}


def test_scenarios_and_how_many_of_their_cells_have_a_result(snapshot):
    lost = cell("tf2.0", mode="eager")
    launches = [launch for launch in rounds(TIMES) if launch.cell != lost]
    observed = [launch(cell(), (), 0, observations={"traces": 3})]
    both_devices = run([cell(), cell(device=Device.GPU)])
    without_source = run(scenarios=[scenario(source=""), scenario("other", title="Another")])
    assert {
        "three of four cells": list_items(run(), launches)["One training step"],
        "observations": list_items(run([cell()]), observed)["One training step"],
        "both devices": list_items(both_devices)["One training step"],
        "without a source": list_items(without_source)["One training step"],
    } == snapshot
    assert "Another" not in list_items(without_source)


def test_a_machine_is_described_by_what_is_known_of_it(snapshot):
    remote = BackendFacts("docker", engine="Docker Engine 28", where="remote", architecture="x86_64", cpus=64)
    card = {"name": "NVIDIA A100", "power_limit_watts": 400.0, "power_limit_default_watts": 400.0}
    card |= {"pcie_width": 16, "pcie_width_most": 16, "virtualization": "none", "display": False, "ecc": True}
    limited = card | {"power_limit_watts": 250.0, "pcie_width": 8}

    def describe(host, backend=UNKNOWN):
        return describe_machine(run(host=host, backend=backend))

    assert {
        "an engine elsewhere": describe({"cpu": "x"}, replace(remote, memory_bytes=2**36)),
        "nothing is known": describe({}),
        "one core": describe({"cores": 1}),
        "without an engine": describe({"cpu": "Some CPU"}, BackendFacts("local")),
        "a GPU": describe({"gpus": [card]}),
        "an unknown GPU": describe({"gpus": "not known: no driver"}),
        "a limited GPU": describe({"gpus": [limited]}),
        "a divided GPU": describe({"gpus": [card | {"mig": []}]}),
        "a part of a GPU": describe({"gpus": [card | {"virtualization": "vGPU", "display": True}]}),
    } == snapshot
    host = {"cpu": "Some CPU", "memory_bytes": 2**30, "gpus": [], "kernel": None, "swap_on": False, "n": [1, 2]}
    listed = {"index": 0, "name": "NVIDIA H100", "capability": "9.0", "memory_bytes": 80 * 2**30, "driver": "550.54.15"}
    listed |= {"power_limit_watts": 250.0, "sm_clock_most_mhz": 1980, "pcie_width": 8, "ecc": True}
    hosts = host, {"engine": {"version": "26.1"}}, {"gpus": [listed, {"index": 1}]}, {"gpus": "not known: no driver"}
    assert list(map(list_pairs, hosts)) == snapshot
    assert list_facts(run(host={"cpu": "x"}, backend=BackendFacts("docker"))) == [
        ("machine", "CPU", "x"),
        ("backend", "name", "docker"),
    ]
    nothing = run(host={}, backend=UNKNOWN)
    assert "Machine:" not in list_items(nothing)
    assert not summaries(make_section(nothing))


def test_items_about_gpus_and_sampling(snapshot):
    one, other = UsedGpu("NVIDIA H100", (9, 0), "0000:3b:00.0"), UsedGpu("NVIDIA T4", (7, 5))
    used = [launch(cell(), number=number, gpus=gpus) for number, gpus in enumerate([[one], [one], [other]])]
    ways = {"tf2.5": "compiled at first start", **dict.fromkeys(("tf2.8", "tf2.9"), "some kernels are compiled")}
    locked, base = (run([cell()], asked={"lock_clocks": clocks}) for clocks in ("1410", "base"))
    steady = {"gpu_steady": 1.0, "gpu_sm_clock_mhz": 1408.0, "gpu_sm_clock_least_mhz": 1395.0}
    loading = {**steady, "gpu_steady": 0.0, "gpu_sm_clock_least_mhz": 300.0}
    clocks = [launch(cell(), resources=steady), launch(cell(), number=2, resources=loading)]
    constant = [launch(cell(), resources={**steady, "gpu_sm_clock_mhz": 1395.0})]
    preferred = BackendFacts("docker", priority="262144 CPU shares")
    assert {
        "GPUs": list_items(run([cell()]), used)["GPUs used:"],
        "code": list_items(run([cell()], asked={"compiled": ways}))["GPU code:"],
        "clocks": list_items(locked, clocks)["GPU clocks:"],
        "constant clocks": list_items(locked, constant)["GPU clocks:"],
        "base clock": list_items(base, [launch(cell())])["GPU clocks:"],
        "with priority": list_items(run(backend=preferred))["Sampling:"],
        "on all cores": list_items(run(asked={"limits": Limits()}))["Sampling:"],
    } == snapshot
    # clocks that nobody locked are not mentioned
    assert {"GPUs used:", "GPU code:", "GPU clocks:"}.isdisjoint(list_items(run([cell()]), clocks))


def test_a_long_scenario_is_in_the_details():
    for length, where, other in (
        (SCRIPT_CHARACTERS, Where.PASTE, Where.DETAILS),
        (SCRIPT_CHARACTERS + 1, Where.DETAILS, Where.PASTE),
    ):
        planned = run(scenarios=[scenario(path=Path("/home/me/step.py"))], scripts={"step": "x" * length})
        (folded,) = [block for block in make_section(planned).blocks if "step.py" in str(block)]
        assert where | Where.PAGE in folded.where, length
        assert other not in folded.where, length
