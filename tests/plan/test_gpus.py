"""Which GPUs run an environment: its wheel's code against a GPU and its driver."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.environments.catalog import load_environments
from harness.model.environment import Device, Environment
from harness.model.gpu import Gpu, GpuCode, GpuHost
from harness.model.run import Group
from harness.model.scenario import Cell
from harness.plan.gpus import (
    CAPABILITIES,
    Support,
    describe,
    find_first_starts,
    find_lazy_starts,
    fit,
    judge,
    minimum_driver,
)
from harness.project import Project
from tests.conftest import ROOT
from tests.runs import plan

Pair = tuple[int, int]
CATALOG = load_environments(Project(ROOT))
OLD = Environment(
    "old", "1.14.0", "3.7", "", cuda="10.0", cudnn="7.4", gpu_code="sm_35 sm_37 sm_52 sm_60 sm_61 compute_70"
)
MIDDLE = Environment(
    "middle", "2.15.1", "3.11", "", cuda="12.2", cudnn="8.9", gpu_code="sm_50 sm_60 sm_70 sm_75 compute_80"
)
#: Some of its kernels have PTX alone for its newest GPUs, and its cuDNN has no code for its oldest ones.
MIXED = replace(MIDDLE, name="mixed", ptx_alone="compute_80 of PTX 8.1", cudnn_code="sm_60 sm_70 sm_80")
EAGER = replace(MIDDLE, name="eager", cuda="12.1")
COMING = Environment("coming", "2.99.0", "3.13", "", cuda="12.9", cudnn="9.9", gpu_code="sm_80 compute_120")
BARE = Environment("bare", "2.0.0", "3.8", "")
NIGHTLY = replace(
    CATALOG["tf2.21"], name="tf-nightly", tensorflow="2.23.0.dev20261026", gpu_code_of="2.21.0"
)  # newer than the catalog


RELEASES = ["1.14", "1.15-ngc", "2.3", "2.4", "2.5", "2.7", "2.8", "2.10", "2.14", "2.15", "2.17-ngc", "2.19", "2.20"]


def test_each_environment_on_each_gpu(snapshot):
    """From what was measured of wheels and of cuDNN, with a driver of today."""
    judged = [OLD, MIDDLE, MIXED, EAGER, COMING, NIGHTLY, *(CATALOG[f"tf{name}"] for name in [*RELEASES, "2.21"])]
    supports = {}
    for environment in judged:
        by_support: dict[str, list[str]] = {}
        for major, minor in CAPABILITIES:
            support = judge(environment, (major, minor), (12, 9), "575.51.03").support
            by_support.setdefault(support.name, []).append(f"{major}.{minor}")
        supports[environment.name] = {support: " ".join(gpus) for support, gpus in by_support.items()}
    assert supports == snapshot
    assert {environment.name: describe(environment) for environment in [*judged, BARE]} == snapshot


#: An environment, a GPU's capability, and the CUDA and version of its driver.
REASONS: list[tuple[Environment, Pair, Pair | None, str]] = [
    (BARE, (8, 0), None, ""),
    (OLD, (5, 0), None, ""),
    (OLD, (8, 0), (12, 4), "550.54.15"),
    (MIXED, (5, 0), None, ""),
    (MIXED, (8, 0), (12, 1), "535.54.03"),
    (MIXED, (8, 0), (12, 0), "535.54.03"),
    (EAGER, (9, 0), (12, 1), "535.54.03"),
    (MIDDLE, (9, 0), None, ""),
    (MIDDLE, (9, 0), (12, 0), "525.60.13"),
    (MIDDLE, (8, 0), None, "525.60.12"),
    (MIDDLE, (8, 0), None, "90.1"),
    (CATALOG["tf2.4"], (8, 6), None, ""),
    (CATALOG["tf2.17-ngc"], (9, 0), (12, 2), "535.104.05"),
    (NIGHTLY, (12, 0), (12, 8), "570.86.10"),
    (NIGHTLY, (12, 0), (11, 4), "470.82"),
    (MIDDLE, (12, 0), (12, 8), "570.86.10"),
    *[
        (CATALOG[name], (12, 0), (12, 8), "570.86.10")
        for name in ("tf1.15", "tf1.15-ngc", "tf2.4", "tf2.15", "tf2.16", "tf2.20", "tf2.21")
    ],
]


def test_what_is_not_native_has_a_reason_and_advice(snapshot):
    fits = {
        f"{environment.name} on {capability} with {cuda} {driver}": judge(environment, capability, cuda, driver)
        for environment, capability, cuda, driver in REASONS
    }
    assert {case: [result.support.value, result.reason, result.advice] for case, result in fits.items()} == snapshot
    assert [case for case, result in fits.items() if result.support is Support.NATIVE] == []


def test_ptx_that_stands_alone_needs_a_driver_that_knows_its_version():
    for ptx, knows, does_not in [
        ("6.3", (10, 0), (9, 2)),
        ("6.5", (10, 2), (10, 1)),
        ("7.1", (11, 1), (11, 0)),
        ("8.1", (12, 1), (12, 0)),
        ("8.5", (12, 5), (12, 4)),
        ("8.6", (12, 7), (12, 6)),
        ("8.7", (12, 8), (12, 7)),
        ("8.8", (12, 9), (12, 8)),
        ("9.0", (13, 0), (12, 9)),
    ]:
        environment = replace(MIXED, ptx_alone=f"compute_80 of PTX {ptx}")
        assert judge(environment, (8, 0), knows).support is Support.PARTLY
        assert judge(environment, (8, 0), does_not).support is Support.CANNOT
        assert f"CUDA {knows[0]}.{knows[1]} " in judge(environment, (8, 0), does_not).advice
        assert judge(environment, (7, 5), does_not).support is Support.NATIVE  # which has machine code in all of them
    assert judge(replace(MIXED, ptx_alone="compute_80"), (8, 0), (9, 0)).support is Support.PARTLY


def test_the_oldest_driver_of_a_cuda_is_enough_and_of_two_cards_both_have_to_run():
    drivers = {"10.0": "410.48", "10.1": "418.39", "10.2": "440.33", "11.0": "450.36.06", "11.2": "450.80.02"}
    drivers |= {"11.8": "450.80.02", "12.5": "525.60.13", "13.1": "580.65.06", "99.0": "", "": ""}
    assert {cuda: minimum_driver(replace(BARE, cuda=cuda)) for cuda in drivers} == drivers
    for driver in ("525.60.13", "525.105.17", "", "unknown"):
        assert judge(MIDDLE, (8, 0), None, driver).support is Support.NATIVE
    older, newer = Gpu(0, "GPU-75", "T4", (7, 5), 0), Gpu(1, "GPU-90", "H100", (9, 0), 0)
    both = GpuHost([older, newer], "550.54.15", (12, 4))
    assert fit(CATALOG["tf2.0"], [older], both).support is Support.NATIVE
    assert fit(CATALOG["tf2.0"], [older, newer], both).support is Support.CANNOT
    assert fit(CATALOG["tf2.8"], [older, newer], both).support is Support.COMPILED
    assert fit(CATALOG["tf2.0"], [newer], GpuHost(absent="the driver is not loaded")).support is Support.NATIVE
    assert "arm64" in fit(CATALOG["tf2.17"], [Gpu(0, "", "NVIDIA GH200 480GB", (9, 0), 0)], both).reason


def test_without_containers_cuda_has_to_be_in_packages(snapshot):
    card = Gpu(0, "GPU-75", "T4", (7, 5), 0)
    host = GpuHost([card], "550.54.15", (12, 4), needs_packages=True)
    assert fit(CATALOG["tf2.5"], [card], host).support is Support.NATIVE
    result = fit(CATALOG["tf2.4"], [card], host)
    assert [result.support.value, result.reason, result.advice] == snapshot


def test_a_driver_compiles_at_first_start_or_in_parts():
    names = {"a": Support.COMPILED, "b": Support.COMPILED, "c": Support.LAZY, "d": Support.PARTLY}
    cells = [Cell("step", name, Device.GPU, {"mode": "graph"}) for name in names]
    cells[1] = replace(cells[1], axes={"cuda_loading": "lazy"})
    group = Group("step", "step", "gpu", {}, cells)
    planned = replace(plan(), groups=[group], compiled={name: support.value for name, support in names.items()})
    assert (find_first_starts(planned), find_lazy_starts(planned)) == (["a"], ["b", "c"])
    on_cpu = replace(group, cells=[replace(cell, device=Device.CPU) for cell in cells])
    assert find_first_starts(replace(planned, groups=[on_cpu])) == []


ENVIRONMENTS = st.sampled_from(list(CATALOG.values()))
GPUS = st.sampled_from(CAPABILITIES) | st.tuples(st.integers(3, 12), st.integers(0, 9))
DRIVERS = st.tuples(st.integers(390, 620), st.integers(0, 200), st.integers(0, 99))
CUDAS = st.tuples(st.integers(9, 14), st.integers(0, 9))


@given(ENVIRONMENTS, GPUS, st.lists(DRIVERS, min_size=2, max_size=2), st.lists(CUDAS, min_size=2, max_size=2))
def test_a_newer_driver_makes_nothing_worse_and_what_is_not_native_has_a_reason(
    environment, capability, drivers, cudas
):
    ways = [
        judge(environment, capability, cuda, ".".join(map(str, driver)))
        for driver, cuda in zip(sorted(drivers), sorted(cudas), strict=True)
    ]
    assert ways[1].rank <= ways[0].rank
    for way in (*ways, judge(environment, capability)):
        assert bool(way.reason) == (way.support is not Support.NATIVE)


@given(ENVIRONMENTS, GPUS)
def test_what_runs_natively_has_machine_code_in_its_wheel_and_in_its_cudnn(environment, capability):
    codes = [GpuCode.parse(environment.gpu_code), GpuCode.parse(environment.cudnn_code or environment.gpu_code)]
    is_native = judge(environment, capability, (13, 0), "580.65.06").is_native
    assert is_native == all(code.runs_on(capability) for code in codes)
