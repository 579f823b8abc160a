"""What stands in for environments that a card cannot run, in the project's own suites and in made-up ones."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock
from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenarios, load_suites
from harness.model.backend import Supply
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.gpu import Gpu, GpuHost
from harness.model.run import StandIn, describe_fallbacks
from harness.model.scenario import Cell, Need, Scenario
from harness.plan.availability import split
from harness.plan.fallbacks import find_fallbacks, replace_cells, replace_environments
from harness.plan.gpus import CAPABILITIES, Support, fit
from harness.plan.selection import Catalog, Selection, resolve, select
from harness.plan.settings import add_setting_axes
from tests.cards import A100, H100, RTX3090, RTX4090, RTX5090, T4, V100
from tests.conftest import ROOT

PROJECT = Project(ROOT)
KNOWN = load_environments(PROJECT)
SCENARIOS = find_scenarios(PROJECT).scenarios
SUITES = load_suites(PROJECT)
ASKED = [name for name, suite in SUITES.items() if suite.instead]


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


def taken(suite: str, known: GpuHost) -> list[StandIn]:
    (cells, _), scenarios = selected(suite), catalog(suite).scenarios
    return find_fallbacks(SUITES[suite].instead, cells, scenarios, KNOWN, locked, cards=known.cards, host=known)


def places(suite: str, known: GpuHost) -> dict[str, str]:
    return {entry.role: entry.environment for entry in taken(suite, known)}


def able(suite: str, cells: Sequence[Cell], known: GpuHost) -> list[Cell]:
    requirements = {name: locked(name) for name in {cell.environment for cell in cells}}
    return split(cells, catalog(suite).scenarios, requirements, KNOWN, cards=known.cards, host=known)[0]


@pytest.mark.parametrize("suite", ["quick", "headline", "training", "seed", "once"])
@pytest.mark.parametrize(
    ("card", "graph", "eager"),
    [
        (T4, None, None),
        (V100, None, None),
        (RTX3090, "tf1.15-ngc", "tf2.5"),
        (RTX4090, "tf1.15-ngc", "tf2.5"),
        (H100, "tf1.15-ngc", "tf2.16"),
        (RTX5090, None, "tf2.17-ngc"),
    ],
)
def test_the_question_is_asked_of_what_each_card_runs(
    suite: str, card: Gpu, graph: str | None, eager: str | None
) -> None:
    found = places(suite, host(card))
    if suite == "seed" and eager == "tf2.16":
        # the suite has tf2.5 itself, and no older release runs there
        eager = "tf2.5"
    assert (found.get("tf1.14"), found.get("tf2.0")) == (graph, eager)


def test_a_release_of_the_suite_is_used_rather_than_one_whose_cuda_is_older_than_the_gpu() -> None:
    found = taken("seed", host(RTX3090))
    assert [(entry.environment, entry.is_itself_too) for entry in found] == [("tf1.15-ngc", False), ("tf2.5", True)]
    assert "So this run does not compare tf2.5 and tf2.0." in describe_fallbacks(found)
    # CUDA 11.0 has code for this GPU
    assert places("seed", host(A100)) == {"tf1.14": "tf1.15-ngc", "tf2.0": "tf2.4"}


@pytest.mark.parametrize("card", [RTX3090, RTX4090, H100])
def test_no_two_environments_of_a_suite_become_one_with_a_driver_of_today(card: Gpu) -> None:
    for suite in ("quick", "headline", "training", "once"):
        _, environments = selected(suite)
        assert len(replace_environments(environments, taken(suite, host(card)))) == len(environments), suite


def test_on_gpus_a_later_major_version_does_not_answer_for_tensorflow_1() -> None:
    """The driver is too old for NVIDIA's TensorFlow 1."""
    assert places("quick", host(RTX3090, "470.223.02", (11, 4))) == {"tf2.0": "tf2.5"}


def test_releases_keep_their_order_and_what_is_native_comes_first() -> None:
    # the suite prefers 2.15 and 2.14, which have no code for this GPU; this driver can't compile the PTX of 2.18
    assert places("gpu", host(H100, "535.104.05", (12, 2))) == {"tf2.18": "tf2.16", "tf2.21": "tf2.17-ngc"}
    assert places("gpu", host(H100, "470.82.01", (11, 4))) == {"tf2.18": "tf2.10", "tf2.21": "tf2.11"}


def test_what_no_older_release_runs_is_measured_in_the_next_one_and_said() -> None:
    found = taken("seed", host(H100))
    places_taken = {entry.role: entry.environment for entry in found}
    assert places_taken == {"tf1.14": "tf1.15-ngc", "tf2.0": "tf2.5", "tf2.21": "tf2.18"}
    assert "So this run does not compare tf2.5 and tf2.0." in describe_fallbacks(found)


@pytest.mark.parametrize("card", [RTX3090, H100])
def test_in_all_releases_nvidias_tensorflow_1_is_there_once_and_no_release_twice(card: Gpu) -> None:
    cells, environments = selected("releases")
    found = taken("releases", host(card))
    assert replace_environments(environments, found)[:3] == ["tf1.14", "tf1.15-ngc", "tf2.0"]
    measured = able("releases", replace_cells(cells, found), host(card))
    assert len(measured) == len({cell.environment for cell in measured})
    assert {cell.axes["mode"] for cell in measured if cell.environment == "tf1.15-ngc"} == {"graph"}


def test_a_stand_in_is_selected_in_the_place_of_what_it_stands_in_for() -> None:
    cells, _ = selected("quick")
    for card in (RTX3090, H100):
        known = host(card)
        found = places("quick", known)
        moved = {(cell.environment, cell.axes["mode"]) for cell in replace_cells(cells, taken("quick", known))}
        assert moved == {(found["tf1.14"], "graph"), (found["tf2.0"], "eager")}


def test_what_the_driver_compiles_comes_last() -> None:
    known = host(H100, "520.61.05", (11, 8))
    (name,) = set(places("quick", known).values())
    assert fit(KNOWN[name], known.cards, known).support is Support.COMPILED
    known = host(H100)
    assert all(fit(KNOWN[name], known.cards, known).is_native for name in places("quick", known).values())


def in_python(*here: str, downloads: Sequence[str] = ()) -> list[StandIn]:
    """Return the substitutes of `quick` on a CPU of a machine with these versions of Python."""

    def supply(requirement: Requirement) -> Supply:
        python = requirement.environment.python
        return Supply.HERE if python in here else Supply.POSSIBLE if python in downloads else Supply.NONE

    cells, _ = select(Selection(suite="quick"), catalog("quick"), Device.CPU)
    on_cpu = lambda name: load_lock(PROJECT, KNOWN[name], Device.CPU)  # noqa: E731
    return find_fallbacks(SUITES["quick"].instead, cells, catalog("quick").scenarios, KNOWN, on_cpu, supply=supply)


@pytest.mark.parametrize(
    ("here", "downloads", "environment"),
    [
        (["3.7"], [], None),
        (["3.11"], [], "tf2.13-py3.11"),
        (["3.11"], ["3.8"], "tf2.13-py3.11"),
        (["3.8", "3.11"], [], "tf2.2"),
        ([], ["3.8", "3.11"], "tf2.2"),
        ([], [], None),
    ],
)
def test_without_an_interpreter_the_oldest_release_whose_interpreter_is_here_is_compared_with_itself(
    here: list[str], downloads: list[str], environment: str | None
) -> None:
    found = {entry.role: entry.environment for entry in in_python(*here, downloads=downloads)}
    assert found == ({"tf1.14": environment, "tf2.0": environment} if environment else {})


def test_a_missing_interpreter_is_told() -> None:
    told = describe_fallbacks(in_python("3.11"))
    assert "which this machine cannot run (Python 3.7 is missing, and" in told
    assert "So this run does not compare tf1.14 and tf2.0." in told


def test_where_nothing_is_known_of_the_cards_nothing_stands_in() -> None:
    cells, _ = selected("quick")
    for known in (GpuHost(absent="the engine is on another machine", is_here=False), GpuHost(driver="550.54.15")):
        assert not find_fallbacks(SUITES["quick"].instead, cells, SCENARIOS, KNOWN, locked, cards=(), host=known)


def test_it_is_said_what_stands_in_for_what_and_why() -> None:
    assert describe_fallbacks(()) == ""
    assert describe_fallbacks(taken("quick", host(RTX3090))) == (
        "tf1.15-ngc replaces tf1.14, and tf2.5 replaces tf2.0, which the NVIDIA GeForce RTX 3090 cannot run (CUDA "
        "10.0 is older than GPUs of compute capability 8.6. On such GPUs, releases took half an hour to start, "
        "stopped responding, or computed "
        "wrong results). Keras's training loop changed in TensorFlow 2.2, so this run doesn't show how fast tf2.0 "
        "trains. To see this, use the CPU (without --gpu), or a GPU up to compute capability 7.5, such as T4 or V100."
    )


hosts = st.builds(
    lambda capability, driver: host(Gpu(0, "GPU-0", "A card", capability, 2**34), *driver),
    st.sampled_from(CAPABILITIES),
    st.sampled_from(
        [("410.48", (10, 0)), ("418.87", (10, 1)), ("470.82", (11, 4)), ("525.60.13", (12, 0)), ("580.65", (13, 0))]
    ),
)


@given(st.sampled_from(ASKED), hosts)
def test_a_stand_in_runs_what_it_replaces_does_not_and_no_cell_that_runs_is_lost(suite: str, known: GpuHost) -> None:
    cells, environments = selected(suite)
    found = taken(suite, known)
    for entry in found:
        assert fit(KNOWN[entry.role], known.cards, known).is_impossible
        assert not fit(KNOWN[entry.environment], known.cards, known).is_impossible
        assert entry.environment in resolve(SUITES[suite].instead[entry.role], list(KNOWN), "environment")
    moved = replace_cells(cells, found)
    assert set(able(suite, cells, known)) <= set(able(suite, moved, known))
    for item in found:
        its = [cell for cell in moved if cell.environment == item.environment]
        assert able(suite, its, known), "one that measures nothing is no stand-in"
    assert set(replace_environments(environments, found)) >= {cell.environment for cell in moved}


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


def first(
    listed: Sequence[str], *others: Environment, needs: Sequence[Need] = (), modes: Sequence[str] = ("graph", "eager")
) -> str | None:
    """What stands in for `gone`, of two cells, where the list is this."""
    catalog = {other.name: other for other in (GONE, *others)}
    step = Scenario("step", Path("step.py"), "step", "", [], {"mode": ["graph", "eager"]}, "", (), needs=needs)
    cells = [Cell("step", "gone", Device.GPU, {"mode": mode}) for mode in modes]
    found = find_fallbacks(
        {"gone": listed},
        cells,
        {"step": step},
        catalog,
        lambda name: Requirement(
            catalog[name], Device.GPU, Lock(Path("lock"), "0", {"tensorflow": catalog[name].tensorflow})
        ),
        cards=[CARD],
        host=GpuHost([CARD], "550.54.15", (12, 4)),
    )
    return found[0].environment if found else None


def need(requires: str, when: Mapping[str, str] | None = None) -> Need:
    return Need([requires], when or {})


def test_what_is_native_comes_first_then_names_in_their_order_and_of_a_glob_the_oldest() -> None:
    assert first(["b", "*"], NATIVE, OLDER, COMPILED) == "b"
    assert first(["*"], NATIVE, OLDER, COMPILED) == "a"
    assert first(["compiled", "*"], NATIVE, OLDER, COMPILED) == "a"
    assert first(["c", "comp*"], NATIVE, LATER, COMPILED) == "compiled"
    assert first(["c"], LATER) is None


def test_what_the_scenarios_need_decides_before_age() -> None:
    """The oldest that loses fewest of the cells that the environment itself would have measured."""
    assert first(["*"], NATIVE, OLDER, needs=[need("tensorflow!=2.8", {"mode": "graph"})]) == "b"
    assert first(["*"], NATIVE, OLDER, needs=[need("tensorflow>=2.9", {"mode": "graph"})]) == "a"
    assert first(["a", "b"], NATIVE, OLDER, needs=[need("tensorflow!=2.8", {"mode": "graph"})]) == "a"


def test_one_that_can_run_none_of_the_cells_is_passed_over() -> None:
    assert first(["a", "b"], NATIVE, OLDER, needs=[need("tensorflow!=2.8")]) == "b"
    assert first(["a"], OLDER, needs=[need("tensorflow!=2.8")]) is None


def test_many_environments_are_replaced_in_the_order_of_their_releases() -> None:
    """All combinations of 8 environments and 20 fallbacks would take years."""
    old = [bare(f"old{number}", f"2.{number}") for number in range(8)]
    able = [bare(f"b{number}", f"2.{number}", "sm_80") for number in range(8, 28)]
    catalog = {value.name: value for value in (*old, *able)}
    step = Scenario("step", Path("step.py"), "step", "", [], {}, "", ())
    found = find_fallbacks(
        {entry.name: ["b*"] for entry in reversed(old)},
        [Cell("step", entry.name, Device.GPU, {}) for entry in old],
        {"step": step},
        catalog,
        lambda name: Requirement(catalog[name], Device.GPU, Lock(Path("lock"), "0", {})),
        cards=[CARD],
        host=GpuHost([CARD], "550.54.15", (12, 4)),
    )
    assert {entry.role: entry.environment for entry in found} == {
        f"old{number}": f"b{number + 8}" for number in range(8)
    }


def test_an_environment_without_a_gpu_has_a_stand_in_too() -> None:
    known, cpu = GpuHost([CARD], "550.54.15", (12, 4)), bare("gone", "2.0.0", "")
    step = Scenario("step", Path("step.py"), "step", "", [], {}, "", ())
    catalog = {"gone": cpu, "a": OLDER}
    (found,) = find_fallbacks(
        {"gone": ["a"]},
        [Cell("step", "gone", Device.GPU, {})],
        {"step": step},
        catalog,
        lambda name: Requirement(catalog[name], Device.GPU, Lock(Path("lock"), "0", {})),
        cards=[CARD],
        host=known,
    )
    assert (found.environment, found.pins) == ("a", {"tensorflow": "2.0.0"})
    assert "(the catalog lists no GPU code for it)." in describe_fallbacks([found])
