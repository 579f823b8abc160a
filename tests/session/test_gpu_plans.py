"""The plans of the project's own suites on GPUs that people own, with drivers that they have."""

import itertools
import os
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

import pytest

from harness.backends import registry
from harness.environments.catalog import load_environments
from harness.machine.gpu import selection as gpus
from harness.model.backend import Supply
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Gpu, GpuHost, Instance
from harness.model.run import describe_fallbacks
from harness.plan.availability import assess_on_gpus
from harness.plan.gpus import fit
from harness.project import Project
from harness.runner.executor import RunExecutor
from harness.session import running
from harness.session.forecast import START, DurationEstimate, estimate_duration
from harness.session.planning import cells as step_cells
from harness.session.planning import inputs
from harness.session.planning import planned as planned_module
from harness.session.planning.plan import plan as make_plan
from harness.session.planning.planned import Planned
from harness.session.reporting import Written
from harness.session.request import Request
from tests.cards import A100, B200, H100, RTX3090, RTX4090, RTX5090, T4, V100
from tests.conftest import ROOT
from tests.errors import catch_text
from tests.lacking import for_a_campaign
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
#: The first and the last generations; the campaign has all pairs.
PAIRS = ((T4, "450.80.02"), (RTX3090, "535.104.05"), (H100, "525.60.13"), (RTX5090, "570.86.10"))
ALL_PAIRS = pytest.mark.parametrize(
    "pairs",
    [
        pytest.param(PAIRS, marks=pytest.mark.slow),
        *for_a_campaign([(card, driver) for card in CARDS for driver in DRIVERS]),
    ],
    ids=["some", "all"],
)
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


FILES = [
    (module, name, once(getattr(module, name)))
    for module, names in (
        (inputs, ["find_scenarios", "read_suites", "load_environments"]),
        (step_cells, ["load_lock"]),
        (planned_module, ["load_environments"]),
    )
    for name in names
]


@pytest.fixture
def plan(monkeypatch: pytest.MonkeyPatch) -> Plan:
    """Return a function that plans a suite, or other options, for a machine with one GPU and this driver."""
    monkeypatch.setenv("HARNESS_PROJECT", str(ROOT))
    for module, name, read in FILES:
        monkeypatch.setattr(module, name, read)
    monkeypatch.setattr(step_cells, "_make_supply_check", lambda *_: lambda requirement: Supply.HERE)

    def make(card: Gpu, driver: str = "550.54.15", *, has_packages: bool = False, **options: object) -> Planned:
        host = GpuHost(gpus=[card], driver=driver, cuda=DRIVERS[driver], needs_packages=has_packages)
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
        return make_plan(Request(**{"gpu": True, "seed": 1, **options}))  # type: ignore[arg-type]

    return make


@cache
def count_cells(suite: str) -> dict[str, int]:
    """Return the number of cells in each group of the suite's own releases."""
    planned = make_plan(Request(suite=suite, seed=1))
    cells = dict.fromkeys([*planned.cells, *(entry.cell for entry in planned.plan.unavailable)])
    sizes: dict[str, int] = {}
    for cell in cells:
        name = planned.group_of(cell).replace(" cpu ", " gpu ")
        sizes[name] = sizes.get(name, 0) + 1
    return sizes


@ALL_PAIRS
def test_a_suite_compares_releases_in_their_order_or_says_of_each_why_not(plan, pairs):
    for (card, driver), suite in itertools.product(pairs, ("headline", "seed", "gpu")):
        planned = plan(card, driver, suite=suite)
        used = {cell.environment for cell in planned.cells}
        releases = [environment.release for environment in planned.environments if environment.name in used]
        assert releases == sorted(set(releases)), suite
        lone = [group for group in planned.plan.groups if len(group.cells) == 1]
        for group in lone:  # what is alone was alone before, or its scenario has statements to check
            assert count_cells(suite)[group.name] == 1 or planned.scenarios[group.scenario].expect
        for entry in planned.plan.unavailable:
            support = fit(CATALOG[entry.cell.environment], planned.gpus, planned.gpu_host)
            needs = {need.reason for need in planned.scenarios[entry.cell.scenario].needs}
            assert not support.is_impossible or entry.reason in {support.reason, *needs}
        substitutes = [fallback.environment for fallback in planned.plan.stand_ins]
        assert len(set(substitutes)) == len(substitutes), "a substitute replaces only one environment"
        for fallback in planned.plan.stand_ins:
            if fallback.is_itself_too:  # the report shows the comparison that is missing
                sentence = f"does not compare {fallback.environment} and {fallback.role}."
                assert sentence in describe_fallbacks(planned.plan.stand_ins)
            assert fallback.reason == fit(CATALOG[fallback.role], planned.gpus, planned.gpu_host).reason
            assert CATALOG[fallback.environment].release[0] == CATALOG[fallback.role].release[0]


@ALL_PAIRS
def test_a_requested_release_runs_or_is_refused_for_its_own_reason(plan, pairs):
    names = [name for name, environment in CATALOG.items() if Device.GPU in environment.devices]
    for card, driver in pairs:
        planned = plan(card, driver, environments=names, scenarios=["matmul_loop"], axes={"mode": ["function"]})
        unavailable = {entry.cell.environment: entry for entry in planned.plan.unavailable}
        for name in names:
            support = assess_on_gpus(CATALOG[name], CATALOG.values(), planned.gpus, planned.gpu_host)
            if support.is_impossible:
                assert (unavailable[name].reason, unavailable[name].advice) == (support.reason, support.advice)
                assert support.advice


def cell_names(planned: Planned) -> list[str]:
    """Return the environments in which something would be launched."""
    return list(dict.fromkeys(cell.environment for cell in planned.cells))


def test_an_instance_of_a_divided_card_is_used_like_a_card(plan):
    instance = Instance("0:0", "MIG-cccc", "NVIDIA A100 MIG 1g.5gb", 5 * 2**30)
    card = replace(A100, is_partitioned=True, instances=[instance])
    for name in ("0:0", "MIG-cccc"):
        assert cell_names(plan(card, gpu=False, gpus=name)) == ["tf1.15-ngc", "tf2.4"]


@pytest.mark.slow
def test_a_plan_says_what_does_not_run_and_what_the_driver_compiles(plan, snapshot):
    selection = {"environments": ["tf2.15"], "scenarios": ["train_batch"], "axes": {"batch": ["16"]}}
    plans = {
        "too old a driver for NVIDIA's TensorFlow 1": plan(RTX3090, "470.82.01", suite="quick"),
        "one release alone": plan(RTX5090, "570.86.10", suite="quick"),
        "no release": plan(RTX5090, "570.86.10", environments=["tf2.2*"], scenarios=["keras_step"]),
        "requested by name": plan(RTX3090, environments=["tf1.14", "tf2.0"], scenarios=["keras_step"]),
        "CUDA in an image": plan(T4, has_packages=True, scenarios=["keras_step"], environments=["tf1.14"]),
        "both devices": plan(RTX5090, "570.86.10", **selection, gpu=False, device=[Device.CPU, Device.GPU]),
        "substitutes": plan(H100, suite="seed"),
    }
    texts = {}
    for case, planned in plans.items():
        texts[case] = [*planned.gpu_lines, describe_fallbacks(planned.plan.stand_ins)]
        try:
            planned.refuse_nothing()
        except CannotRunHereError as error:
            texts[case].append(str(error))
        unavailable = planned.plan.unavailable
        texts[case] += sorted({text for entry in unavailable for text in (entry.reason, entry.advice)})
    assert texts == snapshot


def test_what_the_catalogue_refuses_is_tried_if_it_is_requested(plan, snapshot):
    selection = {"environments": ["tf2.20", "tf2.21"], "scenarios": ["matmul_loop"]}
    assert cell_names(plan(RTX5090, "570.86.10", **selection)) == []
    planned = plan(RTX5090, "570.86.10", try_anyway=True, **selection)
    assert cell_names(planned) == ["tf2.20", "tf2.21"]
    errors = []
    for options in ({"try_anyway": True}, {"try_anyway": True, "gpu": False, "environments": ["tf2.0"]}):
        errors.append(catch_text(UsageError, plan, T4, **options))
    assert [planned.plan.compiled_code, *planned.gpu_lines, *errors] == snapshot


@pytest.mark.parametrize(
    "machines",
    [[(T4, "headline")], *for_a_campaign([*itertools.product((T4, RTX3090, H100), ("headline", "seed", "gpu"))])],
    ids=["some", "all"],
)
def test_an_estimate_is_within_a_fifth_of_what_a_run_takes(plan, machines, tmp_path, monkeypatch):
    """First by assumed times, with first starts; and, on a slower machine, by an earlier run."""
    driver = "550.54.15"
    monkeypatch.setattr(gpus, "choose_monitor", lambda cards: None)
    monkeypatch.setattr(running, "report", lambda *_: Written((), ()))  # nobody reads it
    monkeypatch.setattr(os, "fsync", lambda _: None)

    def run(machine: SimulatedGpus, suite: str, start: float, name: str) -> tuple[DurationEstimate, float]:
        """Return the estimate, and the seconds of the launches."""
        monkeypatch.setattr(registry, "choose", lambda *_, **__: (machine, "simulated"))
        monkeypatch.setattr(running, "RunExecutor", partial(RunExecutor, clock=machine.clock))
        machine.start = start
        planned = plan(
            machine.cards[0], driver, suite=suite, results=tmp_path / f"{machine.cards[0].uuid}-{suite}-{name}"
        )
        estimate, begin = estimate_duration(planned), machine.clock.now
        running.run(planned)
        return estimate, machine.clock.now - begin

    for card, suite in machines:
        machine = SimulatedGpus([card], GpuHost([card], driver, DRIVERS[driver]))
        estimate, launches = run(machine, suite, START, "first")
        assert estimate.basis == ""
        assert estimate.seconds == pytest.approx(launches, rel=0.2)
        assert launches > estimate.first_starts * ALL_CODE
        run(machine, suite, 2.5 * START, "slow")
        estimate, launches = run(machine, suite, 2.5 * START, "slow")
        assert (estimate.unknown, estimate.first_starts) == (0, 0)
        assert estimate.seconds == pytest.approx(launches, rel=0.2)
