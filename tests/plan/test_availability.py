"""Cells that cannot run: for want of an image for the device, of code for the GPU, or of packages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.environments.catalog import load_environments
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.run import Unavailable
from harness.model.scenario import Cell, Need, Scenario
from harness.plan import availability
from harness.plan.availability import (
    describe_gpu_support,
    find_nearest_with,
    list_compiled,
    list_gpu_rows,
    list_names_on,
)
from harness.project import Project
from tests.cards import A100, H100, K80, T4, V100
from tests.conftest import ROOT

CATALOG = load_environments(Project(ROOT))


NO_NEEDS = Scenario("step", Path("step.py"), "step", "", [], {"call": ["fit"]}, "", ())


def make_host(*cards: Gpu, driver: str = "550.54.15", cuda: tuple[int, int] = (12, 4)) -> GpuHost:
    return GpuHost(cards, driver, cuda)


def cell(environment: str, device: Device = Device.GPU) -> Cell:
    return Cell("step", environment, device, {"call": "fit"})


def split(
    cells: Sequence[Cell],
    host: GpuHost = CPU_ALONE,
    catalog: dict[str, Environment] = CATALOG,
    needs: Sequence[Need] = (),
) -> tuple[list[Cell], list[Unavailable]]:
    locks = {value.name: Requirement(value, Device.CPU, Lock(Path("lock"), "0", {})) for value in catalog.values()}
    return availability.split(
        cells, {"step": replace(NO_NEEDS, needs=needs)}, locks, catalog, gpus=host.gpus, host=host
    )


def on_gpu(names: Sequence[str], host: GpuHost) -> tuple[list[str], dict[str, Unavailable]]:
    able, unable = split([cell(name) for name in names], host)
    return [entry.environment for entry in able], {entry.cell.environment: entry for entry in unable}


INT32 = Need(when={"call": "fit"}, devices=[Device.CPU], reason="int32 is multiplied on the CPU", advice="Go there.")


def test_what_the_image_of_an_environment_brings_is_taken_to_be_there():
    """No lock names the NumPy in NVIDIA's image; its TensorFlow is known, and is judged."""
    requirement_of_image = Requirement(
        CATALOG["tf1.15-ngc"], Device.GPU, Lock(Path("lock"), "0", {"tensorflow": "1.15.5"})
    )

    def split(*requires: str) -> tuple[list[Cell], list[Unavailable]]:
        scenario = replace(NO_NEEDS, needs=[Need(requires=requires)])
        return availability.split(
            [cell("tf1.15-ngc")], {"step": scenario}, {"tf1.15-ngc": requirement_of_image}, CATALOG
        )

    assert split("numpy>=1.20", "tensorflow<2") == ([cell("tf1.15-ngc")], [])
    (missing,) = split("numpy", "tensorflow>=2.4")[1]
    assert missing.reason == "needs tensorflow>=2.4"


def bare(name: str, tensorflow: str, gpu_code: str = "sm_70") -> Environment:
    return Environment(name, tensorflow, "3.8", "2023-04-15T00:00:00Z", gpu_code=gpu_code)


def test_a_release_without_gpu_code_has_no_gpu_and_the_nearest_one_stands_in():
    without, older, newer = bare("tf2.9", "2.9.0", ""), bare("tf2.8", "2.8.0"), bare("tf2.10", "2.10.0")
    _, (missing,) = split([cell("tf2.9")], catalog={value.name: value for value in (without, newer)})
    assert missing.advice == "Use tf2.10."
    assert find_nearest_with(Device.GPU, without, [without, newer, older]) is older
    assert find_nearest_with(Device.GPU, newer, [without, newer, older]) is newer
    assert find_nearest_with(Device.GPU, without, [without]) is None


def test_what_cannot_run_names_the_nearest_release_that_runs_natively():
    for card, unavailable, nearest in [
        (A100, "tf1.14", "tf1.15-ngc"),
        (A100, "tf2.0", "tf2.4"),
        (A100, "tf2.3", "tf2.4"),
        (H100, "tf1.15", "tf1.15-ngc"),
        (H100, "tf2.0", "tf2.16"),
        (H100, "tf2.4", "tf2.16"),
        (V100, "tf2.21", "tf2.19"),
        (K80, "tf2.21", "tf2.10"),
        (K80, "tf1.15-ngc", "tf1.15"),
    ]:
        able, unable = on_gpu(list(CATALOG), make_host(card))
        assert unable[unavailable].reason
        assert (unable[unavailable].advice, nearest in able) == (f"Use {nearest}.", True), (card.name, unavailable)
        assert sorted([*able, *unable]) == sorted(CATALOG)


def test_an_environment_that_is_launched_anyway_needs_cuda_alone():
    locks = {"tf2.0": Requirement(CATALOG["tf2.0"], Device.CPU, Lock(Path("lock"), "0", {}))}
    steps = {"step": NO_NEEDS}
    for needs_packages in (False, True):
        host = replace(make_host(A100), needs_packages=needs_packages)
        able, unable = availability.split(
            [cell("tf2.0")], steps, locks, CATALOG, gpus=host.gpus, host=host, anyway=["tf2.0"]
        )
        assert (len(able), len(unable)) == ((0, 1) if needs_packages else (1, 0))


def test_who_cannot_run_is_told_why_and_what_to_do(snapshot):
    point_release = replace(CATALOG["tf2.0"], name="tensorflow-2.0.1", tensorflow="2.0.1", asked="tensorflow==2.0.1")
    few = {name: CATALOG[name] for name in ("tf2.3", "tf2.5")}
    old_driver = make_host(T4, driver="418.40.04", cuda=(10, 1))
    anywhere = replace(INT32, reason="", advice="")
    on_gpu = replace(anywhere, devices=[Device.GPU])
    cases = {
        "image for GPUs": split([cell("tf1.15-ngc", Device.CPU)]),
        "image for GPUs alone": split([cell("tf1.15-ngc", Device.CPU)], catalog={"tf1.15-ngc": CATALOG["tf1.15-ngc"]}),
        # before what the GPU lacks: the advice to use another environment would lead nowhere
        "work of the CPU": split([cell("tf1.14")], make_host(A100), needs=[anywhere]),
        "work of a GPU": split([cell("tf2.15", Device.CPU)], needs=[on_gpu]),
        "no GPU code": split([cell("tf2.9")], catalog={name: bare(name, "2.9.0", "") for name in ["tf2.9"]}),
        "compiled": split([cell("tf2.3")], make_host(H100), few),
        "typed": split([cell(point_release.name)], make_host(A100), {**CATALOG, point_release.name: point_release}),
        "old driver": split([cell("tf2.21")], old_driver, {name: CATALOG[name] for name in ("tf2.21", "tf2.3")}),
        "old driver for all": split([cell("tf2.21")], old_driver, {"tf2.21": CATALOG["tf2.21"]}),
        "newer driver for another": split(
            [cell("tf2.0")],
            make_host(A100, driver="440.33", cuda=(10, 2)),
            {name: CATALOG[name] for name in ("tf1.15", "tf2.0", "tf2.8")},
        ),
        "old card": split([cell("tf2.21")], make_host(replace(K80, capability=(3, 0)))),
    }
    assert {
        case: (len(able), [[entry.reason, entry.advice] for entry in unable]) for case, (able, unable) in cases.items()
    } == snapshot


def test_environments_are_listed_with_their_support(snapshot):
    few = [CATALOG[name] for name in ("tf1.14", "tf2.5", "tf2.14", "tf2.16", "tf2.21")]
    host = make_host(H100)
    assert {
        "no environment": describe_gpu_support(few[:1], [H100], host),
        "few": describe_gpu_support(few[:4], [H100, H100], host),
        "many": describe_gpu_support([*few, CATALOG["tf2.15"]], [H100, T4], make_host(T4)),
        "names": list_names_on([H100], host, few),
        "rows": list_gpu_rows(few, CATALOG, [H100], host),
        "compiled": list_compiled(few, [H100], host),
    } == snapshot


def requirement(python: str = "3.7", **pins: str) -> Requirement:
    environment = Environment("e", "2.1.4", python, "2021-06-20T00:00:00Z")
    return Requirement(environment, Device.CPU, Lock(Path("l"), "0", {k.replace("_", "-"): v for k, v in pins.items()}))


def scenario(*needs: Need) -> Scenario:
    axes = {"api": ["keras", "tf.keras"]}
    return Scenario("s", Path("s.py"), "s", "", [], axes, ">=3.6", ("tensorflow",), needs=needs)


def explain(described: Scenario, required: Requirement) -> dict[str, tuple[str, str]]:
    cells = [Cell("s", "e", Device.CPU, {"api": api}) for api in ("keras", "tf.keras")]
    _, unable = availability.split(cells, {"s": described}, {"e": required}, {"e": required.environment})
    return {entry.cell.axes["api"]: (entry.reason, entry.advice) for entry in unable}


def test_tensorflow_cpu_counts_as_tensorflow():
    assert explain(scenario(), requirement(tensorflow_cpu="2.1.4")) == {}


def test_packages_that_a_cell_needs_are_named_or_described_by_its_scenario(snapshot):
    words = "from 2.4 on it is tf.keras", "Take api=tf.keras."
    assert {
        "own words": explain(
            scenario(Need(["keras<2.4"], {"api": "keras"}, *words)), requirement(tensorflow="2.5", keras="2.5")
        ),
        "one package": explain(
            scenario(Need(requires=["keras<2.4", "tensorflow>=1"], when={"api": "keras"})),
            requirement(tensorflow="2.5"),
        ),
        "two packages": explain(scenario(Need(requires=["keras<2.4", "tensorflow>=3"])), requirement(tensorflow="2.5")),
        "two needs": explain(
            scenario(Need(["pandas"], reason="line 1 imports pandas"), Need(["scipy"], reason="line 2 imports scipy")),
            requirement(tensorflow="2.5"),
        ),
        "Python": explain(scenario(), requirement("3.5", tensorflow="1.0")),
        "dependencies": explain(scenario(), requirement(numpy="1")),
    } == snapshot


def test_a_backend_of_keras_needs_keras_3_and_its_package(snapshot):
    problems = {}
    for backend, pins in [
        ("tensorflow", {"keras": "2.15.0"}),
        ("jax", {"keras": "3.12.0", "jax": "0.7.2"}),
        ("jax", {"keras": "3.12.0"}),
        ("torch", {"keras": "2.15.0", "torch": "2.8.0"}),
        ("torch", {"keras": "3.0.0"}),
        ("openvino", {"keras": "3.12.0"}),
    ]:
        locks = {"tf2.21": Requirement(CATALOG["tf2.21"], Device.CPU, Lock(Path("lock"), "0", pins))}
        step = Cell("step", "tf2.21", Device.CPU, {"call": "fit", "KERAS_BACKEND": backend})
        able, unable = availability.split([step], {"step": NO_NEEDS}, locks, CATALOG)
        assert len(able) + len(unable) == 1
        problems[f"{backend} with {pins}"] = [[entry.reason, entry.advice] for entry in unable]
    assert problems == snapshot


def test_on_arm64_releases_without_a_wheel_and_gpus_are_refused():
    catalog = load_environments(Project(ROOT, architecture="arm64"))
    cells = [cell("tf2.6", Device.CPU), cell("tf2.7", Device.CPU), cell("tf2.15")]
    available, unavailable = split(cells, catalog=catalog)
    assert available == [cells[1]]
    assert [(entry.reason, entry.advice) for entry in unavailable] == [
        ("tf2.6 has no wheel for arm64", "TensorFlow 2.7 and later have one."),
        ("tf2.15 has no wheel with GPU code for arm64", "Omit --gpu and --gpus."),
    ]
