"""Fallbacks for environments that a GPU cannot run, in suites of the project and in invented ones."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.model.backend import Supply
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.gpu import Gpu, GpuHost
from harness.model.run import StandIn, describe_fallbacks
from harness.model.scenario import Cell, Need, Scenario
from harness.plan.availability import split
from harness.plan.fallbacks import find_fallbacks, replace_cells, replace_environments
from harness.plan.gpus import CAPABILITIES, fit
from harness.plan.selection import Catalog, Selection, resolve, select
from harness.plan.settings import add_setting_axes
from harness.project import Project
from harness.scenarios.catalog import find_scenarios, load_suites
from tests.cards import A100, H100, RTX3090, RTX4090, RTX5090, T4, V100
from tests.conftest import ROOT

PROJECT = Project(ROOT)
KNOWN = load_environments(PROJECT)
SCENARIOS = find_scenarios(PROJECT).scenarios
SUITES = load_suites(PROJECT)
REPLACED = [name for name, suite in SUITES.items() if suite.instead]


@cache
def locked(name: str) -> Requirement:
    return load_lock(PROJECT, KNOWN[name], Device.GPU)


@cache
def selected(suite: str) -> tuple[list[Cell], list[str]]:
    return select(Selection(suite=suite), catalog(suite), Device.GPU)


@cache
def catalog(suite: str) -> Catalog:
    return add_setting_axes(Selection(suite=suite), Catalog(list(KNOWN), SCENARIOS, SUITES))


def host(card: Gpu, driver: str = "550.54.15", cuda: tuple[int, int] = (12, 4)) -> GpuHost:
    return GpuHost([card], driver, cuda)


def taken(suite: str, machine: GpuHost) -> list[StandIn]:
    (cells, _), scenarios = selected(suite), catalog(suite).scenarios
    return find_fallbacks(SUITES[suite].instead, cells, scenarios, KNOWN, locked, gpus=machine.gpus, host=machine)


def able(suite: str, cells: Sequence[Cell], machine: GpuHost) -> list[Cell]:
    names = {cell.environment for cell in cells if Device.GPU in KNOWN[cell.environment].devices}
    requirements = {name: locked(name) for name in names}
    return split(cells, catalog(suite).scenarios, requirements, KNOWN, gpus=machine.gpus, host=machine)[0]


#: Machines: a card, and its driver.
HOSTS = {
    "T4": host(T4),
    "V100": host(V100),
    "A100": host(A100),
    "RTX 3090": host(RTX3090),
    "RTX 3090 with a driver that is too old for TensorFlow 1": host(RTX3090, "470.223.02", (11, 4)),
    "RTX 4090": host(RTX4090),
    "H100": host(H100),
    "H100 with CUDA 12.2": host(H100, "535.104.05", (12, 2)),
    "H100 with CUDA 11.8": host(H100, "520.61.05", (11, 8)),
    "H100 with CUDA 11.4": host(H100, "470.82.01", (11, 4)),
    "RTX 5090": host(RTX5090),
}


@pytest.mark.slow
def test_what_stands_in_for_environments_of_each_suite(snapshot):
    """The sign `=` marks a fallback that the suite also measures as itself."""
    fallbacks = {
        name: {
            suite: ", ".join(
                f"{entry.role}: {entry.environment}{'=' if entry.is_itself_too else ''}"
                for entry in taken(suite, machine)
            )
            for suite in ("quick", "headline", "training", "once", "seed", "gpu", "releases")
        }
        for name, machine in HOSTS.items()
    }
    assert fallbacks == snapshot


def in_python(*here: str, downloads: Sequence[str] = ()) -> list[StandIn]:
    """Return the substitutes of `quick` on a CPU of a machine with these versions of Python."""

    def supply(requirement: Requirement) -> Supply:
        python = requirement.environment.python
        return Supply.HERE if python in here else Supply.POSSIBLE if python in downloads else Supply.NONE

    cells, _ = select(Selection(suite="quick"), catalog("quick"), Device.CPU)
    on_cpu = lambda name: load_lock(PROJECT, KNOWN[name], Device.CPU)  # noqa: E731
    return find_fallbacks(SUITES["quick"].instead, cells, catalog("quick").scenarios, KNOWN, on_cpu, supply=supply)


def test_the_oldest_release_with_an_interpreter_is_compared_with_itself():
    for here, downloads, environment in [
        (["3.7"], [], None),
        (["3.11"], [], "tf2.13-py3.11"),
        (["3.11"], ["3.8"], "tf2.13-py3.11"),
        (["3.8", "3.11"], [], "tf2.2"),
        ([], ["3.8", "3.11"], "tf2.2"),
        ([], [], None),
    ]:
        fallbacks = {entry.role: entry.environment for entry in in_python(*here, downloads=downloads)}
        assert fallbacks == ({"tf1.14": environment, "tf2.0": environment} if environment else {}), (here, downloads)
    cells, _ = selected("quick")
    for machine in (GpuHost(absent="the engine is on another machine", is_here=False), GpuHost(driver="550.54.15")):
        assert not find_fallbacks(SUITES["quick"].instead, cells, SCENARIOS, KNOWN, locked, gpus=(), host=machine)


def test_it_is_said_what_stands_in_for_what_and_why(snapshot):
    assert describe_fallbacks(()) == ""
    fallbacks = {
        "a card": taken("quick", host(RTX3090)),
        "a release of the suite": taken("seed", host(RTX3090)),
        "no older release": taken("seed", host(H100)),
        "an interpreter": in_python("3.11"),
        "no GPU code": find({"gone": ["a"]}, bare("gone", "2.0.0", ""), OLDER),
    }
    assert {case: describe_fallbacks(entries) for case, entries in fallbacks.items()} == snapshot


hosts = st.builds(
    lambda capability, driver: host(Gpu(0, "GPU-0", "A card", capability, 2**34), *driver),
    st.sampled_from(CAPABILITIES),
    st.sampled_from(
        [("410.48", (10, 0)), ("418.87", (10, 1)), ("470.82", (11, 4)), ("525.60.13", (12, 0)), ("580.65", (13, 0))]
    ),
)


@pytest.mark.slow
@given(st.sampled_from(REPLACED), hosts)
def test_a_stand_in_runs_what_it_replaces_does_not_and_no_cell_that_runs_is_lost(suite, machine):
    cells, environments = selected(suite)
    fallbacks = taken(suite, machine)
    for entry in fallbacks:
        assert fit(KNOWN[entry.role], machine.gpus, machine).is_impossible
        assert not fit(KNOWN[entry.environment], machine.gpus, machine).is_impossible
        assert entry.environment in resolve(SUITES[suite].instead[entry.role], list(KNOWN), "environment")
    moved = replace_cells(cells, fallbacks)
    assert set(able(suite, cells, machine)) <= set(able(suite, moved, machine))
    for entry in fallbacks:
        its = [cell for cell in moved if cell.environment == entry.environment]
        assert able(suite, its, machine), "one that measures nothing is no stand-in"
    assert set(replace_environments(environments, fallbacks)) >= {cell.environment for cell in moved}


def bare(name: str, tensorflow: str, gpu_code: str = "sm_70") -> Environment:
    gpu = {"cuda": "12.2", "cudnn": "8.9", "gpu_code": gpu_code} if gpu_code else {}
    return Environment(name, tensorflow, "3.8", "2023-04-15T00:00:00Z", **gpu)


CARD = Gpu(0, "GPU-80", "A card", (8, 0), 2**34)
GONE, NATIVE, OLDER, LATER = (
    bare("gone", "2.0.0"),
    bare("b", "2.9", "sm_80"),
    bare("a", "2.8", "sm_80"),
    bare("c", "3.0"),
)
COMPILED = bare("compiled", "2.0", "compute_70")


STEP = Scenario("step", Path("step.py"), "step", "", [], {"mode": ["graph", "eager"]}, "", ())


def find(instead: Mapping[str, Sequence[str]], *environments: Environment, needs: Sequence[Need] = ()) -> list[StandIn]:
    catalog = {environment.name: environment for environment in environments}

    def lock(name: str) -> Requirement:
        return Requirement(catalog[name], Device.GPU, Lock(Path("lock"), "0", {"tensorflow": catalog[name].tensorflow}))

    cells = [Cell("step", name, Device.GPU, {"mode": mode}) for name in instead for mode in ("graph", "eager")]
    scenarios = {"step": replace(STEP, needs=needs)}
    machine = GpuHost([CARD], "550.54.15", (12, 4))
    return find_fallbacks(instead, cells, scenarios, catalog, lock, gpus=[CARD], host=machine)


def first(listed: Sequence[str], *others: Environment, needs: Sequence[Need] = ()) -> str | None:
    fallbacks = find({"gone": listed}, GONE, *others, needs=needs)
    return fallbacks[0].environment if fallbacks else None


def need(requires: str, when: Mapping[str, str] | None = None) -> Need:
    return Need([requires], when or {})


def test_the_order_of_substitutes():
    assert first(["b", "*"], NATIVE, OLDER, COMPILED) == "b"
    assert first(["*"], NATIVE, OLDER, COMPILED) == "a"
    assert first(["compiled", "*"], NATIVE, OLDER, COMPILED) == "a"
    assert first(["c", "comp*"], NATIVE, LATER, COMPILED) == "compiled"
    assert first(["c"], LATER) is None
    # The oldest that loses fewest of the cells that the environment itself would have measured.
    assert first(["*"], NATIVE, OLDER, needs=[need("tensorflow!=2.8", {"mode": "graph"})]) == "b"
    assert first(["*"], NATIVE, OLDER, needs=[need("tensorflow>=2.9", {"mode": "graph"})]) == "a"
    assert first(["a", "b"], NATIVE, OLDER, needs=[need("tensorflow!=2.8", {"mode": "graph"})]) == "a"
    # one that can run none of the cells is passed over
    assert first(["a", "b"], NATIVE, OLDER, needs=[need("tensorflow!=2.8")]) == "b"
    assert first(["a"], OLDER, needs=[need("tensorflow!=2.8")]) is None
    # All combinations of 8 environments and 20 fallbacks would take years.
    old = [bare(f"old{number}", f"2.{number}") for number in range(8)]
    able = [bare(f"b{number}", f"2.{number}", "sm_80") for number in range(8, 28)]
    fallbacks = find({entry.name: ["b*"] for entry in reversed(old)}, *old, *able)
    assert {entry.role: entry.environment for entry in fallbacks} == {
        f"old{number}": f"b{number + 8}" for number in range(8)
    }
