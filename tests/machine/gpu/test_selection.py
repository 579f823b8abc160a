"""Which GPUs the options mean."""

from dataclasses import replace

import pytest

from harness.machine.gpu.selection import (
    choose_monitor,
    collect_facts,
    describe_gpus,
    list_sharing,
    list_visible,
    parse_requested,
    resolve_names,
    select_gpus,
)
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Gpu, GpuHost, GpuProcess, Instance, Settings

OLD = Gpu(index=0, uuid="GPU-aaaa", name="Tesla K80", capability=(3, 7), memory_bytes=12 * 2**30)
NEW = Gpu(index=1, uuid="GPU-bbbb", name="NVIDIA H100", capability=(9, 0), memory_bytes=80 * 2**30)
HOST = GpuHost(cards=[OLD, NEW], driver="470.223.02", cuda=(11, 4))
UNKNOWN = GpuHost(absent="libnvidia-ml.so.1 is not there")


@pytest.mark.parametrize(
    ("gpu", "gpus", "meant"),
    [
        (False, "", ()),
        (True, "", ("0",)),
        (False, "0,1", ("0", "1")),
        (True, "1", ("1",)),
        (False, " 0 , 01,1 ", ("0", "1")),
        (False, "all", ("all",)),
        (False, "GPU-8a7ab9d1-4a7c", ("GPU-8a7ab9d1-4a7c",)),
        (False, "MIG-8a7ab9d1-4a7c", ("MIG-8a7ab9d1-4a7c",)),
        (False, "0:0", ("0:0",)),
    ],
)
def test_one_gpu_unless_others_are_named(gpu: bool, gpus: str, meant: tuple[str, ...]) -> None:
    assert parse_requested(gpu, gpus) == meant


@pytest.mark.parametrize("gpus", ["0,x", "0,", ",", "-1", "0-1", "all,0", "GPU-", "nvidia.com/gpu=0", "0:", "0:0,1"])
def test_what_is_no_gpu_is_a_sentence(gpus: str) -> None:
    with pytest.raises(UsageError, match=f"--gpus {gpus}: "):
        parse_requested(False, gpus)


def test_the_cards_that_are_meant() -> None:
    assert select_gpus(["0"], HOST) == [OLD]
    assert select_gpus(["GPU-bbbb"], HOST) == [NEW]
    assert select_gpus(["all"], HOST) == [OLD, NEW]
    assert select_gpus(["MIG-cccc"], HOST) == []
    assert select_gpus(["7"], UNKNOWN) == []


def test_a_gpu_that_the_machine_lacks_is_named_with_those_that_it_has() -> None:
    with pytest.raises(
        CannotRunHereError,
        match=r"--gpus 0,7: GPU 7 isn't on this machine\. The machine has the GPUs 0: Tesla K80; 1: NVIDIA H100\.",
    ):
        select_gpus(["0", "7"], HOST)
    with pytest.raises(CannotRunHereError, match=r"no GPU was found on this machine\."):
        select_gpus(["all"], GpuHost(driver="470.1"))


PART = Instance("2:0", "MIG-cccc", "NVIDIA A100 MIG 1g.5gb", 5 * 2**30)
DIVIDED = Gpu(2, "GPU-cccc", "NVIDIA A100", (8, 0), 40 * 2**30, is_partitioned=True, instances=[PART])


@pytest.mark.parametrize(
    ("names", "host", "seen"),
    [
        (["1"], HOST, "GPU-bbbb"),
        (["GPU-aaaa", "1"], HOST, "GPU-aaaa,GPU-bbbb"),
        (["all"], HOST, "GPU-aaaa,GPU-bbbb"),
        (["2:0"], GpuHost(cards=[OLD, DIVIDED]), "MIG-cccc"),
        (["1"], UNKNOWN, "1"),
        (["all"], UNKNOWN, None),
    ],
)
def test_cuda_is_told_the_gpus_by_uuid(names: list[str], host: GpuHost, seen: str | None) -> None:
    assert list_visible(names, host) == seen


def test_an_instance_means_its_card_and_the_divided_card_itself_is_given_to_no_launch() -> None:
    host = GpuHost(cards=[OLD, NEW, DIVIDED])
    assert select_gpus(["MIG-cccc"], host) == [DIVIDED]
    assert select_gpus(["2:0"], host) == [DIVIDED]
    for name in ("2", "GPU-cccc", "all"):
        with pytest.raises(
            CannotRunHereError, match=r"GPU 2 \(NVIDIA A100\) is divided .* instances: 2:0 1g.5gb \(MIG-cccc\)"
        ):
            select_gpus([name], host)
    with pytest.raises(CannotRunHereError, match="The instances: none yet"):
        select_gpus(["2"], GpuHost(cards=[OLD, NEW, replace(DIVIDED, instances=())]))


def test_an_instance_that_a_divided_card_does_not_have_is_refused_where_it_tells_of_its_own() -> None:
    with pytest.raises(
        CannotRunHereError,
        match=r"GPU 2:1 isn't on this machine\. The machine has the GPUs .*; 2: NVIDIA A100, divided into 2:0 "
        r"1g\.5gb \(",
    ):
        select_gpus(["2:1"], GpuHost(cards=[OLD, NEW, DIVIDED]))
    with pytest.raises(
        CannotRunHereError, match=r"GPU 0:0 isn't on this machine\. The machine has the GPUs 0: Tesla K80; "
    ):
        select_gpus(["0:0"], GpuHost(cards=[OLD, NEW, DIVIDED]))
    untold = replace(DIVIDED, instances=())
    assert select_gpus(["2:1"], GpuHost(cards=[OLD, NEW, untold])) == [untold]


def test_where_containers_get_all_gpus_or_none_that_is_what_one_gpu_means() -> None:
    """As on WSL2, where whichever GPU is asked for, all come."""
    one, two = GpuHost(cards=[OLD], all_or_none=True), replace(HOST, all_or_none=True)
    for host, names, typed in ((one, ["0"], False), (one, ["0"], True), (two, ["0"], False), (two, ["all"], True)):
        assert resolve_names(names, host, typed=typed) == ("all",)
    assert resolve_names(["0", "1"], two, typed=True) == ("all",)
    for names in (["0"], ["1"], ["GPU-bbbb"]):
        with pytest.raises(CannotRunHereError, match=r"containers get all of this machine's 2 GPUs or none") as no:
            resolve_names(names, two, typed=True)
        assert no.value.advice.startswith("Use --gpus all.")
    with pytest.raises(CannotRunHereError, match=r"GPU 7 isn't on this machine"):
        resolve_names(["7"], one, typed=True)
    assert resolve_names(["0"], replace(UNKNOWN, all_or_none=True), typed=False) == ("all",)
    assert resolve_names([], two, typed=False) == ()
    assert resolve_names(["1"], HOST, typed=True) == ("1",)
    assert describe_gpus([OLD, NEW], two)[-1] == "Containers get all of these GPUs, and TensorFlow uses the first one."
    assert len(describe_gpus([OLD], one)) == 1


def test_a_run_tells_of_its_gpus_and_not_which_ones_they_are() -> None:
    (told,) = collect_facts([NEW], HOST)["gpus"]
    assert told == {
        "index": 1,
        "name": "NVIDIA H100",
        "capability": "9.0",
        "memory_bytes": 80 * 2**30,
        "driver": "470.223.02",
        "locked_sm_clock_mhz": None,
    }
    assert collect_facts([NEW], HOST, "1410")["gpus"] == [{**told, "locked_sm_clock_mhz": 1410}]
    assert collect_facts([NEW], HOST, "base")["gpus"] == [{**told, "locked_sm_clock_mhz": "base"}]
    part = Instance("1:0", "MIG-cccc", "NVIDIA H100 MIG 1g.10gb", 10 * 2**30)
    card = replace(NEW, pci="0000:65:00.0", is_partitioned=True, instances=[part], settings=Settings(persistence=False))
    (set_so,) = collect_facts([card], HOST)["gpus"]
    assert set_so == {**told, "pci": "0000:65:00.0", "mig": ["1g.10gb"], "persistence": False}
    assert collect_facts([NEW], HOST)["gpu_telemetry"] == "NVML, every 0.1 s"
    assert collect_facts([], UNKNOWN) == {
        "gpus": "not known: libnvidia-ml.so.1 is not there",
        "gpu_telemetry": "none: libnvidia-ml.so.1 is not there",
    }


def test_a_run_is_watched_where_its_gpus_are_known_and_else_it_is_said_why_not() -> None:
    assert choose_monitor([]) is None
    assert choose_monitor([NEW])
    assert collect_facts([], HOST) == {"gpus": [], "gpu_telemetry": "none: NVML can't see the GPUs of the launches"}


def test_the_plan_says_what_it_was_judged_by() -> None:
    assert describe_gpus([OLD], HOST) == ["GPU 0: Tesla K80, compute capability 3.7"]
    assert "libnvidia-ml.so.1 is not there" in describe_gpus([], UNKNOWN)[0]


def test_who_else_uses_the_gpus_is_told() -> None:
    busy = Gpu(1, "GPU-80", "NVIDIA A100", (8, 0), 1, [GpuProcess(7, "python"), GpuProcess(8)])
    assert list_sharing([OLD, busy]) == [
        "GPU 1 (NVIDIA A100) is also used by python (process 7). The report marks launches that share this GPU.",
        "GPU 1 (NVIDIA A100) is also used by process 8. The report marks launches that share this GPU.",
    ]
