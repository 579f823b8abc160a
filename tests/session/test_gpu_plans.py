"""The plans of the project's own suites on GPUs that people own: eight GPUs, each with seven drivers."""

import os
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from harness.backends import registry
from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.machine.gpu import selection as gpus
from harness.model.backend import Supply
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.model.run import describe_fallbacks
from harness.plan.availability import assess_on_gpus
from harness.plan.gpus import find_first_starts, fit
from harness.runner.executor import RunExecutor
from harness.session import planning, running
from harness.session.forecast import START, DurationEstimate, estimate_duration
from harness.session.planning import Planned
from harness.session.planning import plan as make_plan
from harness.session.reporting import Written
from harness.session.request import Request
from tests.cards import A100, B200, H100, RTX3090, RTX4090, RTX5090, T4, V100
from tests.conftest import ROOT
from tests.session.simulated_gpus import ALL_CODE, SimulatedGpus

CATALOG = load_environments(Project(ROOT))
CARDS = (T4, V100, A100, RTX3090, RTX4090, H100, B200, RTX5090)
#: Drivers of branches that people have, each with the newest CUDA that it supports.
DRIVERS = {
    "450.80.02": (11, 0),
    "470.82.01": (11, 4),
    "525.60.13": (12, 0),
    "535.104.05": (12, 2),
    "550.54.15": (12, 4),
    "570.86.10": (12, 8),
    "580.65.06": (13, 0),
}
Plan = Callable[..., Planned]


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function, which reads files of the project, so that the plans of all machines read them once."""
    results: dict[str, Any] = {}

    def read(*arguments: Any) -> Any:
        key = str(arguments)
        if key not in results:
            results[key] = function(*arguments)
        return results[key]

    return read


FILES = {
    name: once(getattr(planning, name)) for name in ("find_scenarios", "load_lock", "read_suites", "load_environments")
}


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Return a function that plans a suite, or other options, for a machine with one GPU and this driver."""
    monkeypatch.setenv("HARNESS_PROJECT", str(ROOT))
    for name, read in FILES.items():
        monkeypatch.setattr(planning, name, read)
    monkeypatch.setattr(planning, "_make_supply_check", lambda *_: lambda requirement: Supply.HERE)

    def make(card: Gpu, driver: str, **options: object) -> Planned:
        host = GpuHost(cards=[card], driver=driver, cuda=DRIVERS[driver])
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
        return make_plan(Request(gpu=True, seed=1, **options))  # type: ignore[arg-type]

    return make


@cache
def selected_groups(suite: str) -> dict[str, int]:
    """Return the number of cells in each group of the suite's own releases."""
    planned = make_plan(Request(suite=suite, seed=1))
    cells = dict.fromkeys([*planned.cells, *(entry.cell for entry in planned.plan.unavailable)])
    sizes: dict[str, int] = {}
    for cell in cells:
        name = planned.group_of(cell).replace(" cpu ", " gpu ")
        sizes[name] = sizes.get(name, 0) + 1
    return sizes


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_suite_compares_releases_in_their_order_or_says_of_each_why_not(plan: Plan, card: Gpu, driver: str) -> None:
    for suite in ("headline", "seed", "gpu"):
        planned = plan(card, driver, suite=suite)
        used = {cell.environment for cell in planned.cells}
        releases = [environment.release for environment in planned.environments if environment.name in used]
        assert releases == sorted(set(releases)), suite
        lone = [group for group in planned.plan.groups if len(group.cells) == 1]
        for group in lone:  # what is alone was alone before, or its scenario has statements to check
            assert selected_groups(suite)[group.name] == 1 or planned.scenarios[group.scenario].expect
        for entry in planned.plan.unavailable:
            own = fit(CATALOG[entry.cell.environment], planned.cards, planned.gpu_host)
            needs = {need.reason for need in planned.scenarios[entry.cell.scenario].needs}
            assert not own.is_impossible or entry.reason in {own.reason, *needs}
        substitutes = [fallback.environment for fallback in planned.plan.stand_ins]
        assert len(set(substitutes)) == len(substitutes), "a substitute replaces only one environment"
        for fallback in planned.plan.stand_ins:
            if fallback.is_itself_too:  # the report shows the comparison that is missing
                told = f"does not compare {fallback.environment} and {fallback.role}."
                assert told in describe_fallbacks(planned.plan.stand_ins)
            assert fallback.reason == fit(CATALOG[fallback.role], planned.cards, planned.gpu_host).reason
            assert CATALOG[fallback.environment].release[0] == CATALOG[fallback.role].release[0]


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
def test_a_requested_release_runs_or_is_refused_for_its_own_reason(plan: Plan, card: Gpu, driver: str) -> None:
    names = [name for name, environment in CATALOG.items() if Device.GPU in environment.devices]
    planned = plan(card, driver, environments=names, scenarios=["matmul_loop"], axes={"mode": ["function"]})
    refused = {entry.cell.environment: entry for entry in planned.plan.unavailable}
    for name in names:
        own = assess_on_gpus(CATALOG[name], CATALOG.values(), planned.cards, planned.gpu_host)
        if own.is_impossible:
            assert (refused[name].reason, refused[name].advice) == (own.reason, own.advice)
            assert own.advice


def test_a_driver_that_is_too_old_for_nvidias_tensorflow_1_is_what_to_update(plan: Plan) -> None:
    (entry,) = [entry for entry in plan(RTX3090, "470.82.01", suite="quick").plan.unavailable if entry.advice][:1]
    assert entry.cell.environment == "tf1.14"
    assert entry.advice.startswith("Update the driver to 525.60.13 or newer. Then use tf1.15-ngc.")


def test_the_only_release_for_a_gpu_is_not_launched_without_another(plan: Plan) -> None:
    planned = plan(RTX5090, "570.86.10", suite="quick")
    assert planned.cells == []
    by_name = {entry.cell.environment: entry for entry in planned.plan.unavailable}
    assert "nothing to compare it with" in by_name["tf2.17-ngc"].reason
    assert by_name["tf2.17-ngc"].advice == "To measure this cell alone, pass -e tf2.17-ngc -s keras_step."
    assert by_name["tf1.14"].advice == "Use tf2.17-ngc."


def cell_names(planned: Planned) -> set[str]:
    return {cell.environment for cell in planned.cells}


def test_what_the_catalogue_refuses_is_tried_if_it_is_requested(plan: Plan) -> None:
    typed = {"environments": ["tf2.20", "tf2.21"], "scenarios": ["matmul_loop"]}
    assert cell_names(plan(RTX5090, "570.86.10", **typed)) == set()
    planned = plan(RTX5090, "570.86.10", try_anyway=True, **typed)
    assert cell_names(planned) == {"tf2.20", "tf2.21"}
    assert "tf2.20: tried anyway: it has no code for compute capability 12.0" in planned.plan.compiled_code
    (line,) = [line for line in planned.gpu_lines if line.startswith("tf2.20 ")]
    assert line.endswith("It may fail, stop responding, or compute wrong results.")


@pytest.mark.parametrize(
    ("options", "words"),
    [({}, "-e is missing"), ({"gpu": False, "environments": ["tf2.0"]}, "uses no GPU")],
)
def test_what_is_tried_anyway_was_requested_and_runs_on_a_gpu(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, object], words: str
) -> None:
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: GpuHost([T4], "550.54.15", (12, 4)))
    with pytest.raises(UsageError, match=words):
        make_plan(Request(**{"gpu": True, "try_anyway": True, **options}))  # type: ignore[arg-type]


def test_code_that_is_loaded_lazily_is_compiled_in_parts(plan: Plan) -> None:
    typed = {"environments": ["tf2.14"], "scenarios": ["matmul_loop"]}
    eager, lazy = plan(H100, "550.54.15", **typed), plan(H100, "550.54.15", axes={"cuda_loading": ["lazy"]}, **typed)
    assert find_first_starts(eager.plan) == ["tf2.14"]
    assert find_first_starts(lazy.plan) == []
    assert lazy.gpu_lines[-1] == (
        "The driver compiles the kernels of tf2.14 when they are first needed. This takes minutes in total."
    )


def test_graph_mode_is_not_launched_in_keras_3_which_trains_nothing_there(plan: Plan) -> None:
    planned = plan(H100, "550.54.15", suite="headline")
    modes = {
        cell.axes["mode"] for cell in planned.cells if (cell.scenario, cell.environment) == ("keras_step", "tf2.16")
    }
    assert modes == {"eager"}
    calls = {
        entry.cell.axes["call"]: entry.reason
        for entry in planned.plan.unavailable
        if (entry.cell.environment, entry.cell.axes.get("mode")) == ("tf2.16", "graph")
    }
    assert set(calls) == {"train_on_batch", "fit_epoch"}
    assert all("can't train if eager execution is disabled" in reason for reason in calls.values())


@pytest.mark.parametrize("suite", ["headline", "seed", "gpu"])
@pytest.mark.parametrize("card", [T4, RTX3090, H100], ids=lambda card: card.name)
def test_an_estimate_is_within_a_fifth_of_what_a_run_takes(
    plan: Plan, card: Gpu, suite: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """First by assumed times, with downloads and first starts; and, on a slower machine, by an earlier run."""
    driver = "550.54.15"
    machine = SimulatedGpus([card], GpuHost([card], driver, DRIVERS[driver]))
    monkeypatch.setattr(registry, "choose", lambda *_, **__: (machine, "simulated"))
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    monkeypatch.setattr(running, "RunExecutor", partial(RunExecutor, clock=machine.clock))
    monkeypatch.setattr(running, "report", lambda *_: Written((), ()))  # nobody reads it
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def run(start: float, results: Path) -> tuple[DurationEstimate, float, float]:
        """Return the estimate, and the seconds of the downloads and of the launches."""
        machine.start = start
        planned = plan(card, driver, suite=suite, results=results)
        estimate, begun = estimate_duration(planned), machine.clock.now
        running.run(planned)
        return estimate, machine.prepared - begun, machine.clock.now - machine.prepared

    estimate, downloads, launches = run(START, tmp_path / "first")
    assert estimate.basis == ""
    assert estimate.download_seconds == pytest.approx(downloads, rel=0.2)
    assert estimate.seconds == pytest.approx(launches, rel=0.2)
    assert launches > estimate.first_starts * ALL_CODE
    run(2.5 * START, tmp_path / "slow")
    estimate, downloads, launches = run(2.5 * START, tmp_path / "slow")
    assert (estimate.unknown, estimate.first_starts) == (0, 0)
    assert estimate.download_seconds == downloads == 0.0
    assert estimate.seconds == pytest.approx(launches, rel=0.2)
