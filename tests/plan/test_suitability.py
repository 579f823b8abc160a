"""Cells that no GPU of the machine can run."""

from collections.abc import Sequence

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.model.cell import Cell
from harness.model.environment import Device, Environment
from harness.model.gpu import Card, GpuHost
from harness.model.gpu_code import Way
from harness.model.run import Unavailable
from harness.plan.suitability import fit, instead, split_by_gpu
from tests.conftest import ROOT

CATALOG = load_environments(Project(ROOT))

K80 = Card(0, "GPU-37", "Tesla K80", (3, 7), 12 * 2**30)
T4 = Card(0, "GPU-75", "Tesla T4", (7, 5), 16 * 2**30)
A100 = Card(0, "GPU-80", "NVIDIA A100", (8, 0), 40 * 2**30)
H100 = Card(1, "GPU-90", "NVIDIA H100", (9, 0), 80 * 2**30)
RTX5090 = Card(0, "GPU-120", "NVIDIA GeForce RTX 5090", (12, 0), 32 * 2**30)


def host(*cards: Card, driver: str = "550.54.15", cuda: tuple[int, int] = (12, 4)) -> GpuHost:
    return GpuHost(cards, driver, cuda)


def cell(environment: str, device: Device = Device.GPU) -> Cell:
    return Cell("step", environment, device, {"call": "fit"})


def split(names: Sequence[str], known: GpuHost) -> tuple[list[str], dict[str, Unavailable]]:
    runnable, unavailable = split_by_gpu([cell(name) for name in names], CATALOG, known.cards, known)
    return [each.environment for each in runnable], {each.cell.environment: each for each in unavailable}


@pytest.mark.parametrize(
    ("card", "unavailable", "used"),
    [
        (A100, "tf1.14", "Use tf1.15-ngc."),
        (A100, "tf2.0", "Use tf2.4."),
        (A100, "tf2.3", "Use tf2.4."),
        (H100, "tf1.15", "Use tf1.15-ngc."),
        (H100, "tf2.0", "Use tf2.16."),
        (K80, "tf2.21", "Use tf2.14."),
        (K80, "tf1.15-ngc", "Use tf1.15."),
    ],
)
def test_what_cannot_run_names_the_nearest_release_that_runs_natively(card: Card, unavailable: str, used: str) -> None:
    runnable, gone = split(list(CATALOG), host(card))
    assert gone[unavailable].reason
    assert gone[unavailable].advice == used
    assert used.removeprefix("Use ").removesuffix(".") in runnable
    assert sorted([*runnable, *gone]) == sorted(CATALOG)


def test_an_old_driver_is_to_be_updated_or_an_older_release_taken() -> None:
    _, gone = split(["tf2.21", "tf2.3"], host(T4, driver="418.40.04", cuda=(10, 1)))
    assert list(gone) == ["tf2.21"]
    assert gone["tf2.21"].advice == "Update the driver to 525.60.13 or newer. Or use tf2.3."


def test_where_nothing_runs_that_is_said() -> None:
    runnable, gone = split(list(CATALOG), host(RTX5090))
    assert not runnable
    assert {each.advice.split(":")[0] for each in gone.values()} == {"No environment of the catalogue runs on this GPU"}


def test_what_is_compiled_at_first_start_can_run_and_is_second_choice() -> None:
    assert split(["tf2.4"], host(H100)) == (["tf2.4"], {})
    old, compiled = (CATALOG[name] for name in ("tf2.3", "tf2.4"))
    assert instead(old, [old, compiled], [H100], host(H100)) is compiled
    catalog = {each.name: each for each in (old, compiled)}
    _, (gone,) = split_by_gpu([cell("tf2.3")], catalog, [H100], host(H100))
    assert gone.advice == "Use tf2.4 (compiled at first start)."


def test_a_launch_that_is_given_two_cards_has_to_run_on_both() -> None:
    both = host(T4, H100)
    assert fit(CATALOG["tf2.0"], [T4], both).way is Way.NATIVE
    assert fit(CATALOG["tf2.0"], [T4, H100], both).way is Way.CANNOT
    assert fit(CATALOG["tf2.4"], [T4, H100], both).way is Way.COMPILED


def test_where_nothing_is_known_of_the_gpus_nothing_is_judged() -> None:
    absent = GpuHost(absent="the driver is not loaded")
    assert split(list(CATALOG), absent) == (list(CATALOG), {})
    assert split_by_gpu([cell("tf2.0")], CATALOG, [], host(A100)) == ([cell("tf2.0")], [])


def test_cells_of_the_cpu_pass() -> None:
    cells = [cell("tf2.0", Device.CPU), cell("tf2.0")]
    runnable, unavailable = split_by_gpu(cells, CATALOG, [A100], host(A100))
    assert runnable == [cells[0]]
    assert [each.cell for each in unavailable] == [cells[1]]


def test_an_environment_that_was_typed_is_judged_as_the_catalogues_are() -> None:
    typed = Environment(
        "tensorflow-2.0.1",
        "2.0.1",
        "3.7",
        "",
        cuda="10.0",
        gpu_code=CATALOG["tf2.0"].gpu_code,
        asked="tensorflow==2.0.1",
    )
    _, (gone,) = split_by_gpu([cell(typed.name)], {**CATALOG, typed.name: typed}, [A100], host(A100))
    assert gone.advice == "Use tf2.4."
