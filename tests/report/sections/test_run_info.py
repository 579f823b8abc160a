"""What was measured."""

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.model.backend import BackendFacts
from harness.model.environment import Device
from harness.model.gpu import UsedGpu
from harness.model.launch import CPU_QUOTA, Limits
from harness.model.run import Stop, StopReason
from harness.report.blocks import Code, Items, Link, Where
from harness.report.markdown import LIMIT, split_report
from harness.report.sections import summary
from harness.report.sections.run_info import (
    SCRIPT_CHARACTERS,
    command_to_continue,
    describe_early_end,
    describe_machine,
    list_facts,
    list_pairs,
    make_sections,
)
from tests.factories import cell, cells, groups, launch, rounds, run, scenario
from tests.report.sections.reading import all_tables, everything, rows, strong, summaries, text

TIMES = dict.fromkeys(cells(), 0.01)


def made(asked, launches=()):
    (found,) = make_sections(Results(asked, launches))
    return found


def items(asked, launches=()):
    """Return the list by what is bold in each item."""
    (block,) = [block for block in everything(made(asked, launches)) if isinstance(block, Items)]
    return {strong(item)[0]: text(item) for item in block.items}


def test_a_scenario_is_told_with_its_source_and_its_cells():
    lost = cell("tf2.0", mode="eager")
    launches = [entry for entry in rounds(TIMES) if entry.cell != lost]
    assert items(run(), launches)["One training step"] == (
        "One training step (step, source): 4 cells on the CPU, 3 of them with a result."
    )
    (block,) = [block for block in everything(made(run(), launches)) if isinstance(block, Items)]
    assert [item.address for item in block.items[0] if isinstance(item, Link)] == ["https://example.org/question/1"]


def test_cells_that_only_observe_are_counted():
    only = [launch(cell(), (), 0, observations={"traces": 3})]
    assert items(run([cell()]), only)["One training step"].endswith(
        ": 1 cell on the CPU, with observations instead of times."
    )


def test_a_scenario_without_a_source_or_without_a_cell():
    other = scenario("other", title="Another")
    told = items(run(scenarios=[scenario(source=""), other]), [])
    assert told["One training step"].startswith("One training step (step): 4 cells")
    assert "Another" not in told


def test_how_it_was_measured_is_a_line_each():
    told = items(run(suite="seed"), rounds(TIMES))
    assert told["Rounds:"].startswith(
        "Rounds: 5 rounds. A pilot round comes first and is not counted. After it, every round launches"
    )
    assert told["Sampling:"] == (
        "Sampling: warm up for 0.5 s, then measure for 1 s in samples of at least 0.05 s; pinned to 1 core (CPU 0)."
    )
    assert told["Machine:"] == "Machine: Some CPU, 2 cores, 8.00 GiB; 26.1.5."
    assert told["Run:"] == (
        "Run: 2026-11-21T04-10-00Z-3f2a, started 2026-11-21T04:10:00Z, harness 0.1.0, commit 0123abcd, suite seed, "
        "seed 7."
    )
    assert told["Baseline:"] == "Baseline: tf1.14."


def test_it_is_in_the_report_and_the_facts_are_folded_in_the_details():
    found = made(run())
    assert summaries(found, Where.PASTE) == []
    assert summaries(found, Where.DETAILS) == ["The machine and the backend, in full"]
    assert found.shown(Where.TERMINAL) is None
    (table,) = all_tables(found)
    assert ["machine", "kernel", "Linux 6.1"] in rows(table)
    assert ["backend", "why", "An engine answers."] in rows(table)


# The machine.


def test_an_engine_elsewhere_has_its_own_machine():
    there = BackendFacts(
        "docker", engine="Docker Engine 28", where="remote", architecture="x86_64", cpus=64, memory_bytes=2**36
    )
    told = describe_machine(run(backend=there))
    assert told == "x86_64, 64 cores, 64.0 GiB; Docker Engine 28"


def test_what_is_not_known_of_a_machine_is_left_out():
    assert describe_machine(run(host={}, backend=BackendFacts(""))) == ""
    assert describe_machine(run(host={"cores": 1}, backend=BackendFacts(""))) == "1 core"
    assert "Machine:" not in items(run(host={}, backend=BackendFacts("")))
    assert not summaries(made(run(host={}, backend=BackendFacts(""))))


def test_a_backend_without_an_engine_is_called_by_its_name():
    assert describe_machine(run(host={"cpu": "Some CPU"}, backend=BackendFacts("local"))) == "Some CPU; local"


def test_the_gpus_are_part_of_the_machine():
    assert describe_machine(run(host={"gpus": [{"name": "NVIDIA H100"}]}, backend=BackendFacts(""))) == "NVIDIA H100"
    assert describe_machine(run(host={"gpus": "not known: no driver"}, backend=BackendFacts(""))) == ""


def test_the_gpus_that_launches_said_they_were_on_are_told_once_each():
    one, other = UsedGpu("NVIDIA H100", (9, 0), "0000:3b:00.0"), UsedGpu("NVIDIA T4", (7, 5))
    launches = [launch(cell(), number=number, gpus=gpus) for number, gpus in enumerate([[one], [one], [other]])]
    assert items(run([cell()]), launches)["GPUs used:"] == (
        "GPUs used: NVIDIA H100 (compute capability 9.0, 0000:3b:00.0), NVIDIA T4 (compute capability 7.5)."
    )
    assert "GPUs used:" not in items(run([cell()]), [launch(cell())])


def test_whose_gpu_code_the_driver_compiles_is_told():
    asked = run([cell()])
    ways = {
        "tf2.5": "compiled at first start",
        "tf2.8": "some kernels are compiled",
        "tf2.9": "some kernels are compiled",
    }
    told = items(replace(asked, plan=replace(asked.plan, compiled=ways)))["GPU code:"]
    assert told == "GPU code: tf2.5: compiled at first start; tf2.8 and tf2.9: some kernels are compiled."
    assert "GPU code:" not in items(asked)


def test_of_how_a_gpu_is_set_the_unusual_stands_out():
    card = {"name": "NVIDIA A100", "power_limit_watts": 400.0, "power_limit_default_watts": 400.0}
    card |= {"pcie_width": 16, "pcie_width_most": 16, "virtualization": "none", "display": False, "ecc": True}

    def told(**other):
        return describe_machine(run(host={"gpus": [card | other]}, backend=BackendFacts("")))

    assert told() == "NVIDIA A100"
    assert told(power_limit_watts=250.0, pcie_width=8) == "NVIDIA A100 (limited to 250 W of 400 W, 8 of 16 PCIe lanes)"
    assert told(mig=[]) == "NVIDIA A100 (divided into instances (MIG))"
    assert told(virtualization="vGPU", display=True) == "NVIDIA A100 (a vGPU, drives a screen)"


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
    assert list_pairs(host) == [("CPU", "Some CPU"), ("memory", "1.00 GiB"), ("swap on", "no"), ("n", "1, 2")]
    assert list_pairs({"engine": {"version": "26.1"}}) == [("engine", '{"version": "26.1"}')]


def test_the_gpus_of_every_launch_are_named():
    card = {"index": 0, "name": "NVIDIA H100", "capability": "9.0", "memory_bytes": 80 * 2**30, "driver": "550.54.15"}
    told = "index 0, name NVIDIA H100, capability 9.0, memory 80.0 GiB, driver 550.54.15"
    assert list_pairs({"gpus": [card, {"index": 1}]}) == [("GPUs", f"{told}; index 1")]
    assert list_pairs({"gpus": "not known: no driver"}) == [("GPUs", "not known: no driver")]


def test_locked_clocks_are_told_with_what_was_read_of_them():
    asked = run([cell()], asked={"lock_clocks": "1410"})
    seen = {"gpu_steady": 1.0, "gpu_sm_clock_mhz": 1408.0, "gpu_sm_clock_least_mhz": 1395.0}
    loading = {**seen, "gpu_steady": 0.0, "gpu_sm_clock_least_mhz": 300.0}
    launches = [launch(cell(), resources=seen), launch(cell(), number=2, resources=loading)]
    assert items(asked, launches)["GPU clocks:"] == (
        "GPU clocks: locked for the run, to 1410 MHz; the clocks were 1395 to 1408 MHz while steps were timed."
    )
    steady = {**seen, "gpu_sm_clock_mhz": 1395.0}
    assert items(asked, [launch(cell(), resources=steady)])["GPU clocks:"].endswith(
        "the clocks were 1395 MHz while steps were timed."
    )
    base = items(run([cell()], asked={"lock_clocks": "base"}), [launch(cell())])
    assert base["GPU clocks:"] == "GPU clocks: locked for the run, to the base clock."
    assert "GPU clocks:" not in items(run([cell()]), launches)


def test_facts_of_a_gpu_are_shown_in_their_units():
    card = {"memory_bytes": 2**30, "power_limit_watts": 250.0, "sm_clock_most_mhz": 1980, "pcie_width": 8, "ecc": True}
    told = "memory 1.00 GiB, power limit 250 W, SM clock most 1980 MHz, PCIe width 8, ECC yes"
    assert list_pairs({"gpus": [card]}) == [("GPUs", told)]


def test_every_fact_says_whose_it_is():
    assert list_facts(run(host={"cpu": "x"}, backend=BackendFacts("docker"))) == [
        ("machine", "CPU", "x"),
        ("backend", "name", "docker"),
    ]


def test_launches_with_priority_say_so():
    told = items(run(backend=BackendFacts("docker", priority="262144 CPU shares")))["Sampling:"]
    assert told.endswith("; pinned to 1 core (CPU 0), with priority over other work.")


def test_launches_on_all_cores_say_so():
    told = items(run(asked={"limits": Limits()}))["Sampling:"]
    assert told.endswith("; on all cores of the machine.")


# A user's own scenario.


def own(text):
    return run(scenarios=[scenario(path=Path("/home/me/step.py"))], scripts={"step": text})


def test_a_users_own_scenario_is_folded_with_its_hash():
    text = "# /// script\nprint('`x`')\n"
    found = made(own(text))
    assert summaries(found, Where.PASTE) == [
        f"The scenario step.py, SHA-256 {hashlib.sha256(text.encode()).hexdigest()}"
    ]
    (code,) = [block for block in everything(found, Where.PASTE) if isinstance(block, Code)]
    assert (code.text, code.language) == (text, "python")


def test_the_projects_own_scenarios_are_not_repeated():
    assert not summaries(made(run()), Where.PASTE)


@pytest.mark.parametrize(
    ("length", "where"), [(SCRIPT_CHARACTERS, Where.PASTE), (SCRIPT_CHARACTERS + 1, Where.DETAILS)]
)
def test_a_long_scenario_is_in_the_details(length, where):
    found = made(own("x" * length))
    (folded,) = [block for block in found.blocks if getattr(block, "summary", "").startswith("The scenario step.py")]
    assert where in folded.where
    assert (Where.DETAILS in folded.where) is (where is Where.DETAILS)
    assert Where.PAGE in folded.where


def test_many_scenarios_leave_the_report_below_its_limit():
    names = [f"step{index}" for index in range(5)]
    members = [cell(of=name) for name in names]
    asked = run(
        members,
        scenarios=[scenario(name, path=Path(f"{name}.py")) for name in names],
        scripts={name: f"# {name}\n" * 2000 for name in names},
    )
    results = Results(asked, [])
    made_ = split_report([*summary.make_sections(results), *make_sections(results)], "results/x")
    assert len(made_.report) < LIMIT
    assert all(f"# {name}\n" in made_.report + made_.details for name in names)


def test_two_devices_are_both_named():
    members = [cell(), cell(device=Device.GPU)]
    assert ": 2 cells on the CPU and the GPU, none with a result." in items(run(members))["One training step"]


def ended(*stops, **asked):
    """Return a run whose groups ended so, one after the other."""
    members = cells(calls=["fit", "train_on_batch"][: len(stops)])
    named = {group.name: stop for group, stop in zip(groups(members), stops, strict=True)}
    return run(members, stops=named, folder="results/a run", asked=asked)


@pytest.mark.parametrize(
    ("stops", "asked", "sentence", "command"),
    [
        ([Stop(StopReason.ROUNDS, 5)] * 2, {}, "", ""),
        (
            [Stop(StopReason.BUDGET, 2)] * 2,
            {"budget_seconds": 90.0, "rounds": 100},
            "The budget of 90 s ended the run after 2 rounds (planned: at most 100 rounds).",
            "harness matrix --resume 'results/a run' --rounds 3",
        ),
        (
            [Stop(StopReason.BUDGET, 4), Stop(StopReason.BUDGET, 0)],
            {"budget_seconds": 90.0, "rounds": 100},
            "The budget of 90 s ended the run after 0 and 4 rounds (planned: at most 100 rounds).",
            "harness matrix --resume 'results/a run' --rounds 4",
        ),
        (
            [Stop(StopReason.BUDGET, 4)] * 2,
            {"budget_seconds": 90.0, "rounds": 100},
            "The budget of 90 s ended the run after 4 rounds (planned: at most 100 rounds).",
            "harness matrix --resume 'results/a run' --rounds 8",
        ),
        (
            [Stop(StopReason.BUDGET, 3), Stop(StopReason.ROUNDS, 5)],
            {"budget_seconds": 230.0, "budget_is_wish": True},
            "The budget of 3.8 min set by the suite ended 1 of 2 groups after 3 rounds (planned: at most 5 rounds).",
            "harness matrix --resume 'results/a run' --rounds 5",
        ),
        (
            [Stop(StopReason.PRECISION, 3), Stop(StopReason.PRECISION, 8)],
            {"precision": 0.02, "rounds": 100},
            "A clear verdict or ±2 % ended the run after 3 and 8 rounds (planned: at most 100 rounds).",
            "",
        ),
        (
            [Stop(StopReason.INTERRUPTED, 1)] * 2,
            {},
            "An interruption ended the run after 1 round (planned: 5 rounds).",
            "harness matrix --resume 'results/a run'",
        ),
    ],
    ids=[
        "as planned",
        "a budget",
        "a group left out",
        "enough for verdicts",
        "a suite's budget, of one group",
        "a precision",
        "an interruption",
    ],
)
def test_what_ended_a_run_before_its_rounds_is_said_with_the_command_that_continues_it(stops, asked, sentence, command):
    asked_for = replace(ended(*stops, **asked), suite="quick")
    assert describe_early_end(asked_for) == sentence
    assert command_to_continue(asked_for) == command
    assert command_to_continue(replace(asked_for, merged=["one", "other"])) == ""


def test_under_a_cpu_quota_the_suites_budget_is_longer_and_the_report_says_so():
    asked_for = ended(*[Stop(StopReason.BUDGET, 4)] * 2, budget_seconds=230.0, budget_is_wish=True)
    stopped = launch(cell(), resources={CPU_QUOTA: 0.5, "steady_own_cpus": 1.0})
    assert describe_early_end(replace(asked_for, suite="quick"), [stopped]).startswith(
        "The budget of 7.7 min (3.8 min set by the suite, at a CPU quota of 50 %) ended the run"
    )
    # the default budget of `harness run`
    assert describe_early_end(asked_for).startswith("The budget of 3.8 min ended the run")
    assert describe_early_end(asked_for, [stopped]).startswith(
        "The budget of 7.7 min (3.8 min, at a CPU quota of 50 %) ended the run"
    )
