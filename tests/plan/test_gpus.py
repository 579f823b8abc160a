"""Which GPUs run an environment: its wheel's code against a GPU and its driver."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.model.environment import Environment
from harness.model.gpu import Gpu, GpuCode, GpuHost
from harness.plan.gpus import CAPABILITIES, Support, describe, fit, judge, minimum_driver
from tests.conftest import ROOT

CATALOG = load_environments(Project(ROOT))

OLD = Environment(
    "old", "1.14.0", "3.7", "", cuda="10.0", cudnn="7.4", gpu_code="sm_35 sm_37 sm_52 sm_60 sm_61 compute_70"
)
MIDDLE = Environment(
    "middle", "2.15.1", "3.11", "", cuda="12.2", cudnn="8.9", gpu_code="sm_50 sm_60 sm_70 sm_75 compute_80"
)
#: Some of its kernels have PTX alone for its newest GPUs, and its cuDNN has no code for its oldest ones.
MIXED = replace(MIDDLE, ptx_alone="compute_80 of PTX 8.1", cudnn_code="sm_60 sm_70 sm_80")


def test_what_the_catalogue_says_of_a_wheel() -> None:
    assert GpuCode.parse("sm_35 compute_80 sm_120") == GpuCode(machine=((3, 5), (8, 0), (12, 0)), ptx=((8, 0),))
    assert GpuCode.parse("sm_35 compute_80", "compute_80 of PTX 7.1").ptx_alone == ((8, 0),)
    assert GpuCode.parse("") == GpuCode((), ())


@pytest.mark.parametrize(
    ("capability", "support"),
    [
        ((5, 0), Support.NATIVE),
        ((5, 2), Support.NATIVE),  # the code of 5.0 runs on 5.2 ...
        ((3, 5), Support.CANNOT),
        ((8, 0), Support.NATIVE),  # ... compute_80 is machine code too ...
        ((8, 9), Support.NATIVE),
        ((9, 0), Support.LAZY),  # ... and compiled for newer ones
    ],
)
def test_machine_code_runs_on_its_own_major_version_and_ptx_is_compiled_for_newer_ones(
    capability: tuple[int, int], support: Support
) -> None:
    assert judge(MIDDLE, capability).support is support


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (8, 9)])
def test_where_some_kernels_have_ptx_alone_these_are_compiled_at_first_use(capability: tuple[int, int]) -> None:
    found = judge(MIXED, capability, (12, 2), "535.54.03")
    assert found.support is Support.PARTLY
    assert found.support.value == "native, but some kernels are compiled at first use"
    assert found.is_native
    assert found.reason.startswith("some of its kernels have no code for compute capability 8.")
    assert judge(MIXED, (7, 5)).support is Support.NATIVE
    assert judge(MIXED, (9, 0)).support is Support.CANNOT  # its cuDNN has none


@pytest.mark.parametrize(
    ("ptx", "knows", "does_not"),
    [
        ("6.3", (10, 0), (9, 2)),
        ("7.1", (11, 1), (11, 0)),
        ("8.1", (12, 1), (12, 0)),
        ("8.5", (12, 5), (12, 4)),
        ("8.8", (12, 9), (12, 8)),
        ("9.0", (13, 0), (12, 9)),
    ],
)
def test_ptx_that_stands_alone_needs_a_driver_that_knows_its_version(
    ptx: str, knows: tuple[int, int], does_not: tuple[int, int]
) -> None:
    environment = replace(MIXED, ptx_alone=f"compute_80 of PTX {ptx}")
    assert judge(environment, (8, 0), knows).support is Support.PARTLY
    found = judge(environment, (8, 0), does_not)
    assert found.support is Support.CANNOT
    cuda = f"{knows[0]}.{knows[1]}"
    assert found.reason.startswith(
        "some of its kernels have no code for compute capability 8.0, and the driver supports only"
    )
    assert found.reason.endswith(f"too old to compile the code of CUDA {cuda}")
    assert found.advice.startswith(f"Update the driver to a version that supports CUDA {cuda} ")
    assert judge(environment, (7, 5), does_not).support is Support.NATIVE  # which has machine code in all of them


@pytest.mark.parametrize(("capability", "runs"), [((5, 0), False), ((6, 1), True), ((8, 9), True), ((9, 0), False)])
def test_an_environment_runs_only_where_its_cudnn_does(capability: tuple[int, int], runs: bool) -> None:
    found = judge(MIXED, capability)
    assert found.is_impossible is not runs
    if not runs:
        where = f"{capability[0]}.{capability[1]}"
        assert found.reason == (
            f"the cuDNN in its image has no code for compute capability {where}, only for 6.0, 7.0, 8.0"
        )


@pytest.mark.parametrize(
    ("name", "capability", "support"),
    [
        ("tf2.19", (7, 0), Support.NATIVE),  # a V100; cuDNN 9.3 has its code, 9.12 dropped it
        ("tf2.20", (7, 0), Support.CANNOT),
        ("tf2.21", (6, 1), Support.CANNOT),  # a GTX 1080
        ("tf2.21", (7, 5), Support.NATIVE),
        ("tf2.10", (3, 7), Support.NATIVE),  # a K80; cuDNN 8.7 has its code, 8.9 dropped it
        ("tf2.14", (3, 7), Support.CANNOT),
        ("tf1.14", (5, 0), Support.COMPILED),  # it has PTX of 3.7
        ("tf2.3", (5, 0), Support.CANNOT),  # it has PTX of 7.0 alone
        ("tf2.7", (8, 0), Support.NATIVE),
        ("tf2.8", (8, 0), Support.PARTLY),
        ("tf2.4", (8, 0), Support.NATIVE),
        ("tf2.4", (8, 6), Support.OLDER),  # CUDA 11.1 is the first that has these GPUs, and 11.8 for 8.9
        ("tf2.4", (8, 9), Support.OLDER),
        ("tf2.5", (8, 9), Support.NATIVE),  # built with CUDA 11.2, and its packages are of 11.8
        ("tf2.17-ngc", (7, 0), Support.CANNOT),
        ("tf2.17-ngc", (9, 0), Support.NATIVE),
        ("tf2.17-ngc", (10, 0), Support.NATIVE),
        ("tf2.17-ngc", (12, 0), Support.NATIVE),
        ("tf2.4", (9, 0), Support.CANNOT),  # cuDNN 8.0 and CUDA 11.0 are older than an H100
        ("tf2.15", (8, 0), Support.PARTLY),
        ("tf2.14", (9, 0), Support.COMPILED),
        ("tf2.15", (9, 0), Support.LAZY),  # from CUDA 12.2 on, code is loaded when it is needed
        ("tf2.21", (8, 9), Support.NATIVE),
        ("tf2.21", (9, 0), Support.PARTLY),
    ],
)
def test_what_was_measured_of_wheels_and_cudnn_decides(
    name: str, capability: tuple[int, int], support: Support
) -> None:
    assert judge(CATALOG[name], capability, (12, 9), "575.51.03").support is support


def test_machine_code_does_not_run_on_a_lower_minor_version() -> None:
    assert (
        judge(OLD, (5, 0)).reason == "it has no code for compute capability 5.0, only for 3.5, 3.7, 5.2, 6.0, 6.1, 7.0"
    )


@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)])
def test_cuda_10_cannot_run_on_newer_gpus_though_it_has_ptx(capability: tuple[int, int]) -> None:
    assert judge(OLD, (7, 5)).support is Support.NATIVE
    found = judge(OLD, capability, (12, 4), "550.54.15")
    assert found.support is Support.CANNOT
    assert "CUDA 10.0 is older" in found.reason


@pytest.mark.parametrize("driver_cuda", [None, (12, 2), (12, 4), (13, 0)])
@pytest.mark.parametrize(
    ("cuda", "support", "words"),
    [("11.8", Support.COMPILED, "30 minutes or longer"), ("12.2", Support.LAZY, "when it is first needed")],
)
def test_what_is_compiled_is_saved(
    cuda: str, support: Support, words: str, driver_cuda: tuple[int, int] | None
) -> None:
    found = judge(replace(MIDDLE, cuda=cuda), (9, 0), driver_cuda, "535.54.03" if driver_cuda else "")
    assert found.support is support
    assert words in found.reason
    assert "saved" in found.advice


def test_a_driver_cannot_compile_what_a_newer_cuda_made() -> None:
    # machine code of CUDA 12.2 runs on the first driver of CUDA 12; its PTX does not
    assert judge(MIDDLE, (8, 0), (12, 0), "525.60.13").support is Support.NATIVE
    found = judge(MIDDLE, (9, 0), (12, 0), "525.60.13")
    assert found.support is Support.CANNOT
    assert "supports only CUDA 12.0" in found.reason
    assert "CUDA 12.2" in found.advice


def test_the_oldest_driver_of_a_cuda() -> None:
    drivers = {"10.0": "410.48", "10.1": "418.39", "11.0": "450.36.06", "11.2": "450.80.02", "11.8": "450.80.02"}
    for cuda, driver in {**drivers, "12.5": "525.60.13", "99.0": "", "": ""}.items():
        assert minimum_driver(Environment("one", "2.0.0", "3.8", "", cuda=cuda)) == driver


@pytest.mark.parametrize(
    ("driver", "support"),
    [
        ("525.60.12", Support.CANNOT),
        ("525.60.13", Support.NATIVE),
        ("525.105.17", Support.NATIVE),
        ("90.1", Support.CANNOT),
        ("", Support.NATIVE),
        ("unknown", Support.NATIVE),
    ],
)
def test_an_old_driver_is_told_and_an_unknown_one_is_not_judged(driver: str, support: Support) -> None:
    found = judge(MIDDLE, (8, 0), None, driver)
    assert found.support is support
    if support is Support.CANNOT:
        assert found.reason == f"CUDA 12.2 needs the driver 525.60.13 or newer, but this machine has {driver}"
        assert found.advice == "Update the driver to 525.60.13 or newer."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tf1.15", "CUDA 10.0 is older than GPUs of compute capability 12.0"),
        ("tf1.15-ngc", "the cuDNN in its image has no code for compute capability 12.0"),
        ("tf2.4", "the cuDNN in its image has no code for compute capability 12.0"),
        ("tf2.15", "the cuDNN in its image has no code for compute capability 12.0"),
        ("tf2.16", "CUDA_ERROR_INVALID_PTX (tensorflow issues 97387"),
        ("tf2.20", "CUDA_ERROR_INVALID_PTX (tensorflow issues 97387"),
        ("tf2.21", "XLA ends the process, because XLA creates PTX 8.5"),
    ],
)
def test_on_blackwell_each_release_has_its_own_reason(name: str, words: str) -> None:
    found = judge(CATALOG[name], (12, 0), (12, 8), "570.86.10")
    assert found.support is Support.CANNOT
    assert words in found.reason


def test_a_wheel_that_is_newer_than_the_catalogue_is_not_refused_unseen() -> None:
    nightly = replace(CATALOG["tf2.21"], name="tf-nightly", tensorflow="2.23.0.dev20261026", gpu_code_of="2.21.0")
    found = judge(nightly, (12, 0), (12, 8), "570.86.10")
    assert found.support is Support.UNREAD
    assert not found.is_impossible
    assert "PTX 8.5" in found.reason
    assert judge(nightly, (8, 9), (12, 8), "570.86.10").support is Support.NATIVE
    assert judge(nightly, (12, 0), (11, 4), "470.82").is_impossible  # CUDA 12 needs a newer driver


def test_a_release_with_code_for_blackwell_will_run_there() -> None:
    coming = Environment("coming", "2.99.0", "3.13", "", cuda="12.9", cudnn="9.9", gpu_code="sm_80 compute_120")
    assert judge(coming, (12, 0)).support is Support.NATIVE


@pytest.mark.parametrize(
    ("name", "gpus"),
    [
        ("tf1.14", "3.5-3.7, 5.2-7.5, compiled 5.0"),
        ("tf1.15-ngc", "6.0-9.0"),
        ("tf2.4", "3.5-8.9"),
        ("tf2.15", "5.0-8.9, compiled 9.0"),
        ("tf2.17-ngc", "7.5-12.0"),
        ("tf2.16", "5.0-9.0"),
        ("tf2.21", "7.5-9.0"),
    ],
)
def test_the_gpus_of_an_environment_in_short(name: str, gpus: str) -> None:
    assert describe(CATALOG[name]) == gpus


def test_without_gpu_code_there_is_no_gpu() -> None:
    bare = Environment("bare", "2.0.0", "3.8", "")
    assert describe(bare) == ""
    assert judge(bare, (8, 0)).reason == "the catalog lists no GPU code for it"


def test_a_launch_that_is_given_two_cards_has_to_run_on_both() -> None:
    older, newer = Gpu(0, "GPU-75", "T4", (7, 5), 0), Gpu(1, "GPU-90", "H100", (9, 0), 0)
    both = GpuHost([older, newer], "550.54.15", (12, 4))
    assert fit(CATALOG["tf2.0"], [older], both).support is Support.NATIVE
    assert fit(CATALOG["tf2.0"], [older, newer], both).support is Support.CANNOT
    assert fit(CATALOG["tf2.8"], [older, newer], both).support is Support.COMPILED
    assert fit(CATALOG["tf2.0"], [newer], GpuHost(absent="the driver is not loaded")).support is Support.NATIVE


Pair = tuple[int, int]
ENVIRONMENTS = st.sampled_from(list(CATALOG.values()))
GPUS = st.sampled_from(CAPABILITIES) | st.tuples(st.integers(3, 12), st.integers(0, 9))
DRIVERS = st.tuples(st.integers(390, 620), st.integers(0, 200), st.integers(0, 99))
CUDAS = st.tuples(st.integers(9, 14), st.integers(0, 9))


@given(ENVIRONMENTS, GPUS, DRIVERS | st.none(), CUDAS | st.none())
def test_what_is_not_native_has_a_reason(
    environment: Environment, capability: Pair, driver: tuple[int, ...] | None, cuda: Pair | None
) -> None:
    found = judge(environment, capability, cuda, ".".join(map(str, driver)) if driver else "")
    assert bool(found.reason) == (found.support is not Support.NATIVE)


@given(ENVIRONMENTS, GPUS, st.lists(DRIVERS, min_size=2, max_size=2), st.lists(CUDAS, min_size=2, max_size=2))
def test_a_newer_driver_makes_nothing_worse(
    environment: Environment, capability: Pair, drivers: list[tuple[int, ...]], cudas: list[Pair]
) -> None:
    ways = [
        judge(environment, capability, cuda, ".".join(map(str, driver)))
        for driver, cuda in zip(sorted(drivers), sorted(cudas), strict=True)
    ]
    assert ways[1].rank <= ways[0].rank


@given(ENVIRONMENTS, GPUS)
def test_what_runs_natively_has_machine_code_in_its_wheel_and_in_its_cudnn(
    environment: Environment, capability: Pair
) -> None:
    codes = [GpuCode.parse(environment.gpu_code), GpuCode.parse(environment.cudnn_code or environment.gpu_code)]
    found = judge(environment, capability, (13, 0), "580.65.06")
    if found.is_native:
        assert all(code.runs_on(capability) for code in codes)
    if all(code.runs_on(capability) for code in codes):
        assert found.is_native
