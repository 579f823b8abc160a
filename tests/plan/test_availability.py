"""Cells that cannot run: for want of an image for the device, of code for the GPU, or of packages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.catalog.scenarios import find_scenarios
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.run import Unavailable
from harness.model.scenario import Cell, Need, Scenario
from harness.plan import availability
from harness.plan.availability import find_nearest_on, find_nearest_with
from tests.cards import A100, H100, K80, T4, V100
from tests.conftest import ROOT

CATALOG = load_environments(Project(ROOT))


NO_NEEDS = Scenario("step", Path("step.py"), "step", "", [], {"call": ["fit"]}, "", ())


def host(*cards: Gpu, driver: str = "550.54.15", cuda: tuple[int, int] = (12, 4)) -> GpuHost:
    return GpuHost(cards, driver, cuda)


def cell(environment: str, device: Device = Device.GPU) -> Cell:
    return Cell("step", environment, device, {"call": "fit"})


def split(
    cells: Sequence[Cell],
    known: GpuHost = CPU_ALONE,
    catalog: dict[str, Environment] = CATALOG,
    needs: Sequence[Need] = (),
) -> tuple[list[Cell], list[Unavailable]]:
    """Of cells whose scenario asks for no package."""
    locks = {value.name: Requirement(value, Device.CPU, Lock(Path("lock"), "0", {})) for value in catalog.values()}
    return availability.split(
        cells, {"step": replace(NO_NEEDS, needs=needs)}, locks, catalog, cards=known.cards, host=known
    )


def on_gpu(names: Sequence[str], known: GpuHost) -> tuple[list[str], dict[str, Unavailable]]:
    able, unable = split([cell(name) for name in names], known)
    return [entry.environment for entry in able], {entry.cell.environment: entry for entry in unable}


def test_an_environment_without_the_device_is_not_available_and_another_is_named() -> None:
    cells = [cell(name, Device.CPU) for name in ("tf1.15", "tf1.15-ngc")]
    able, (missing,) = split(cells)
    assert able == cells[:1]
    assert missing.cell == cells[1]
    assert "nvcr.io/nvidia/tensorflow" in missing.reason
    assert missing.reason.endswith("which is made for GPUs")
    assert missing.advice == "Use tf1.15."


INT32 = Need(when={"call": "fit"}, devices=[Device.CPU], reason="int32 is multiplied on the CPU", advice="Go there.")


def test_work_that_is_done_on_the_cpu_is_not_available_on_a_gpu() -> None:
    told = split([cell("tf2.15"), cell("tf2.15", Device.CPU)], needs=[INT32])
    assert told == ([cell("tf2.15", Device.CPU)], [Unavailable(cell("tf2.15"), INT32.reason, INT32.advice)])
    able, _ = split([cell("tf2.15")], needs=[replace(INT32, when={"call": "other"})])
    assert able == [cell("tf2.15")]
    able, _ = split([cell("tf2.15")], needs=[replace(INT32, devices=[Device.CPU, Device.GPU])])
    assert able == [cell("tf2.15")]


def test_that_work_is_not_the_gpus_is_said_before_what_the_gpu_lacks() -> None:
    """The advice to use another environment would lead nowhere."""
    (missing,) = split([cell("tf1.14")], host(A100), needs=[replace(INT32, reason="", advice="")])[1]
    assert (missing.reason, missing.advice) == ("the scenario runs only on cpu", "Omit --gpu and --gpus.")


def test_of_the_projects_scenarios_these_do_their_work_on_the_cpu() -> None:
    """Products of int32, and NumPy's own work: on a GPU they would be broken, or numbers of something else."""
    scenarios = find_scenarios(Project(ROOT)).scenarios
    cells = [
        Cell(scenario.name, "tf2.15", Device.GPU, axes)
        for scenario in scenarios.values()
        for axes in scenario.combinations(scenario.axes)
    ]
    pins = {"tensorflow": "2.15.1", "keras": "2.15.0", "numpy": "1.26.4"}
    lock = {"tf2.15": Requirement(CATALOG["tf2.15"], Device.GPU, Lock(Path("lock"), "0", pins))}
    _, unable = availability.split(cells, scenarios, lock, CATALOG)
    why = {need.reason for scenario in scenarios.values() for need in scenario.needs if need.devices == [Device.CPU]}
    on_cpu = [entry.cell for entry in unable if entry.reason in why]
    # and oneDNN, which is of the CPU, and devices that are parts of it
    whole = {"onednn_single_thread", "strategy_step"}
    assert whole <= {cell.scenario for cell in on_cpu}
    others = [cell for cell in on_cpu if cell.scenario not in whole]
    assert {(cell.scenario, cell.axes.get("mode") or cell.axes["variant"]) for cell in others} == {
        ("function_amortise", "eager"),
        ("function_amortise", "function"),
        ("function_power", "eager"),
        ("function_power", "function"),
        ("function_power", "switched"),
        ("numpy_sigmoid", "numpy"),
    }


def test_what_the_image_of_an_environment_brings_is_taken_to_be_there() -> None:
    """No lock names the NumPy in NVIDIA's image; its TensorFlow is known, and is judged."""
    own = Requirement(CATALOG["tf1.15-ngc"], Device.GPU, Lock(Path("lock"), "0", {"tensorflow": "1.15.5"}))

    def split(*requires: str) -> tuple[list[Cell], list[Unavailable]]:
        scenario = replace(NO_NEEDS, needs=[Need(requires=requires)])
        return availability.split([cell("tf1.15-ngc")], {"step": scenario}, {"tf1.15-ngc": own}, CATALOG)

    assert split("numpy>=1.20", "tensorflow<2") == ([cell("tf1.15-ngc")], [])
    (missing,) = split("numpy", "tensorflow>=2.4")[1]
    assert missing.reason == "needs tensorflow>=2.4"


def bare(name: str, tensorflow: str, gpu_code: str = "sm_70") -> Environment:
    return Environment(name, tensorflow, "3.8", "2023-04-15T00:00:00Z", gpu_code=gpu_code)


def test_a_release_without_gpu_code_has_no_gpu_and_the_nearest_one_stands_in() -> None:
    without, older, newer = bare("tf2.9", "2.9.0", ""), bare("tf2.8", "2.8.0"), bare("tf2.10", "2.10.0")
    able, (missing,) = split([cell("tf2.9")], catalog={value.name: value for value in (without, newer)})
    assert able == []
    assert missing.reason == "the catalog lists no GPU code for tf2.9"
    assert missing.advice == "Use tf2.10."
    assert find_nearest_with(Device.GPU, without, [without, newer, older]) is older
    assert find_nearest_with(Device.GPU, newer, [without, newer, older]) is newer
    assert find_nearest_with(Device.GPU, without, [without]) is None


@pytest.mark.parametrize(
    ("card", "unavailable", "used"),
    [
        (A100, "tf1.14", "Use tf1.15-ngc."),
        (A100, "tf2.0", "Use tf2.4."),
        (A100, "tf2.3", "Use tf2.4."),
        (H100, "tf1.15", "Use tf1.15-ngc."),
        (H100, "tf2.0", "Use tf2.16."),
        (H100, "tf2.4", "Use tf2.16."),
        (V100, "tf2.21", "Use tf2.19."),
        (K80, "tf2.21", "Use tf2.10."),
        (K80, "tf1.15-ngc", "Use tf1.15."),
    ],
)
def test_what_cannot_run_names_the_nearest_release_that_runs_natively(card: Gpu, unavailable: str, used: str) -> None:
    able, unable = on_gpu(list(CATALOG), host(card))
    assert unable[unavailable].reason
    assert unable[unavailable].advice == used
    assert used.removeprefix("Use ").removesuffix(".") in able
    assert sorted([*able, *unable]) == sorted(CATALOG)


def test_an_old_driver_is_to_be_updated_or_an_older_release_taken() -> None:
    _, unable = on_gpu(["tf2.21", "tf2.3"], host(T4, driver="418.40.04", cuda=(10, 1)))
    assert list(unable) == ["tf2.21"]
    assert unable["tf2.21"].advice == "Update the driver to 525.60.13 or newer. Or use tf2.3."


def test_where_nothing_runs_that_is_said() -> None:
    kepler = replace(K80, capability=(3, 0))
    able, unable = on_gpu(list(CATALOG), host(kepler))
    assert not able
    told = {value.advice.split(":")[0] for value in unable.values()}
    assert told == {"No environment in the catalog runs on this GPU. Measure on the CPU, or on another GPU."}


def test_what_is_compiled_at_first_start_can_run_and_is_second_choice() -> None:
    assert on_gpu(["tf2.5"], host(H100)) == (["tf2.5"], {})
    old, compiled = (CATALOG[name] for name in ("tf2.3", "tf2.5"))
    assert find_nearest_on([H100], host(H100), old, [old, compiled]) is compiled
    _, (gone,) = split([cell("tf2.3")], host(H100), {value.name: value for value in (old, compiled)})
    assert gone.advice == "Use tf2.5 (compiled at first start)."


def test_where_nothing_is_known_of_the_gpus_nothing_is_judged() -> None:
    assert on_gpu(list(CATALOG), GpuHost(absent="the driver is not loaded")) == (list(CATALOG), {})
    assert on_gpu(["tf2.0"], GpuHost(driver="550.54.15", cuda=(12, 4))) == (["tf2.0"], {})


def test_cells_of_the_cpu_need_no_gpu() -> None:
    cells = [cell("tf2.0", Device.CPU), cell("tf2.0")]
    able, unable = split(cells, host(A100))
    assert able == [cells[0]]
    assert [entry.cell for entry in unable] == [cells[1]]


def test_an_environment_that_was_typed_is_judged_as_the_catalogues_are() -> None:
    typed = replace(CATALOG["tf2.0"], name="tensorflow-2.0.1", tensorflow="2.0.1", asked="tensorflow==2.0.1")
    _, (gone,) = split([cell(typed.name)], host(A100), {**CATALOG, typed.name: typed})
    assert gone.advice == "Use tf2.4."


def requirement(python: str = "3.7", **pins: str) -> Requirement:
    environment = Environment("e", "2.1.4", python, "2021-06-20T00:00:00Z")
    return Requirement(environment, Device.CPU, Lock(Path("l"), "0", {k.replace("_", "-"): v for k, v in pins.items()}))


def scenario(*needs: Need) -> Scenario:
    axes = {"api": ["keras", "tf.keras"]}
    return Scenario("s", Path("s.py"), "s", "", [], axes, ">=3.6", ("tensorflow",), needs=needs)


def told(described: Scenario, required: Requirement) -> dict[str, tuple[str, str]]:
    """Why each API's cell cannot run, and what to do."""
    cells = [Cell("s", "e", Device.CPU, {"api": api}) for api in ("keras", "tf.keras")]
    _, unable = availability.split(cells, {"s": described}, {"e": required}, {"e": required.environment})
    return {entry.cell.axes["api"]: (entry.reason, entry.advice) for entry in unable}


def test_tensorflow_cpu_counts_as_tensorflow() -> None:
    assert told(scenario(), requirement(tensorflow_cpu="2.1.4")) == {}


def test_a_need_speaks_for_the_cells_it_names_with_its_own_words() -> None:
    words = "from 2.4 on it is tf.keras", "Take api=tf.keras."
    need = Need(["keras<2.4"], {"api": "keras"}, *words)
    assert told(scenario(need), requirement(tensorflow="2.5", keras="2.5")) == {"keras": words}


def test_a_need_without_words_names_what_is_missing() -> None:
    need = Need(requires=["keras<2.4", "tensorflow>=1"], when={"api": "keras"})
    words = "needs keras<2.4", "Choose an environment with keras<2.4."
    assert told(scenario(need), requirement(tensorflow="2.5")) == {"keras": words}


def test_the_python_and_the_dependencies_of_the_header_count_for_every_cell() -> None:
    old = told(scenario(), requirement("3.5", tensorflow="1.0"))
    assert old["keras"] == ("s needs Python >=3.6, but e has 3.5", "Choose an environment with another Python version.")
    assert {reason for reason, _ in told(scenario(), requirement(numpy="1")).values()} == {"needs tensorflow"}


@pytest.mark.parametrize(
    ("backend", "pins", "reason"),
    [
        ("tensorflow", {"keras": "2.15.0"}, ""),
        ("jax", {"keras": "3.12.0", "jax": "0.7.2"}, ""),
        ("jax", {"keras": "3.12.0"}, "KERAS_BACKEND=jax needs jax, but tf2.21 doesn't have this package"),
        ("torch", {"keras": "2.15.0", "torch": "2.8.0"}, "KERAS_BACKEND=torch needs Keras 3"),
    ],
)
def test_a_backend_of_keras_needs_keras_3_and_its_package(backend: str, pins: dict[str, str], reason: str) -> None:
    name = "tf2.21"
    locks = {name: Requirement(CATALOG[name], Device.CPU, Lock(Path("lock"), "0", pins))}
    asked = Cell("step", name, Device.CPU, {"call": "fit", "KERAS_BACKEND": backend})
    able, unable = availability.split([asked], {"step": NO_NEEDS}, locks, CATALOG)
    assert able == ([] if reason else [asked])
    assert all(entry.reason.startswith(reason) for entry in unable)
    assert not unable or not reason.endswith("package") or "-e tf2.21+jax==VERSION" in unable[0].advice
