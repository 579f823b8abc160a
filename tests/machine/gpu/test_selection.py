from dataclasses import replace

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
from tests.errors import catch_text

OLD = Gpu(index=0, uuid="GPU-aaaa", name="Tesla K80", capability=(3, 7), memory_bytes=12 * 2**30)
NEW = Gpu(index=1, uuid="GPU-bbbb", name="NVIDIA H100", capability=(9, 0), memory_bytes=80 * 2**30)
HOST = GpuHost(gpus=[OLD, NEW], driver="470.223.02", cuda=(11, 4))
UNKNOWN = GpuHost(absent="libnvidia-ml.so.1 is not there")
PART = Instance("2:0", "MIG-cccc", "NVIDIA A100 MIG 1g.5gb", 5 * 2**30)
DIVIDED = Gpu(2, "GPU-cccc", "NVIDIA A100", (8, 0), 40 * 2**30, is_partitioned=True, instances=[PART])
UNLISTED = replace(DIVIDED, instances=())
THREE = GpuHost(gpus=[OLD, NEW, DIVIDED])
#: As on WSL2, where whichever GPU is asked for, all come.
ALL_OR_NONE = replace(HOST, all_or_none=True)
ONLY_ONE = GpuHost(gpus=[OLD], all_or_none=True)


def test_one_gpu_unless_others_are_named():
    requests = {
        (False, ""): (),
        (True, ""): ("0",),
        (True, "1"): ("1",),
        (False, " 0 , 01,1 "): ("0", "1"),
        (False, "all"): ("all",),
        (False, "GPU-8a7ab9d1-4a7c"): ("GPU-8a7ab9d1-4a7c",),
        (False, "0:0"): ("0:0",),
    }
    assert {request: parse_requested(*request) for request in requests} == requests


def test_names_that_mean_no_gpu_are_refused(snapshot):
    texts = ("0,x", "0,", ",", "-1", "0-1", "all,0", "GPU-", "nvidia.com/gpu=0", "0:", "0:0,1")
    errors = {text: catch_text(UsageError, parse_requested, False, text) for text in texts}
    cannot = {
        "missing": (["0", "7"], HOST),
        "none at all": (["all"], GpuHost(driver="470.1")),
        "divided": (["2"], THREE),
        "divided into nothing yet": (["2"], replace(THREE, gpus=[OLD, NEW, UNLISTED])),
        "missing instance": (["2:1"], THREE),
        "instance of an undivided card": (["0:0"], THREE),
    }
    errors |= {name: catch_text(CannotRunHereError, select_gpus, *request) for name, request in cannot.items()}
    for names, host in ((["0"], ALL_OR_NONE), (["7"], ONLY_ONE)):
        errors[f"all or none, {names[0]}"] = catch_text(CannotRunHereError, resolve_names, names, host, typed=True)
    assert errors == snapshot


def test_the_cards_that_are_meant():
    table: list[tuple[list[str], GpuHost, list[Gpu]]] = [
        (["0"], HOST, [OLD]),
        (["GPU-bbbb"], HOST, [NEW]),
        (["all"], HOST, [OLD, NEW]),
        (["7"], UNKNOWN, []),
        # an instance means its card
        (["MIG-cccc"], THREE, [DIVIDED]),
        (["2:0"], THREE, [DIVIDED]),
        (["2:1"], replace(THREE, gpus=[OLD, NEW, UNLISTED]), [UNLISTED]),
    ]
    assert [(names, host, select_gpus(names, host)) for names, host, _ in table] == table
    # and the divided card itself is given to no launch
    for name in ("GPU-cccc", "all"):
        assert "2:0" in catch_text(CannotRunHereError, select_gpus, [name], THREE)


def test_cuda_gets_the_gpus_by_uuid():
    table: list[tuple[list[str], GpuHost, str | None]] = [
        (["1"], HOST, "GPU-bbbb"),
        (["GPU-aaaa", "1"], HOST, "GPU-aaaa,GPU-bbbb"),
        (["all"], HOST, "GPU-aaaa,GPU-bbbb"),
        (["2:0"], GpuHost(gpus=[OLD, DIVIDED]), "MIG-cccc"),
        (["1"], UNKNOWN, "1"),
        (["all"], UNKNOWN, None),
    ]
    assert [(names, host, list_visible(names, host)) for names, host, _ in table] == table


def test_where_containers_get_all_gpus_or_none_that_is_what_one_gpu_means():
    table: list[tuple[list[str], GpuHost, bool, tuple[str, ...]]] = [
        (["0"], ONLY_ONE, False, ("all",)),
        (["0"], ONLY_ONE, True, ("all",)),
        (["0"], ALL_OR_NONE, False, ("all",)),
        (["all"], ALL_OR_NONE, True, ("all",)),
        (["0", "1"], ALL_OR_NONE, True, ("all",)),
        ([], ALL_OR_NONE, False, ()),
        (["1"], HOST, True, ("1",)),
    ]
    assert [
        (names, host, by_user, resolve_names(names, host, typed=by_user)) for names, host, by_user, _ in table
    ] == table
    for name in ("1", "GPU-bbbb"):
        assert "--gpus all" in catch_text(CannotRunHereError, resolve_names, [name], ALL_OR_NONE, typed=True)


def test_a_run_is_watched_where_its_gpus_are_known():
    assert choose_monitor([]) is None
    assert choose_monitor([NEW])


def test_what_the_plan_and_the_facts_say_of_the_gpus(snapshot):
    placed = replace(DIVIDED, pci="0000:65:00.0", settings=Settings(persistence=False))
    busy = Gpu(1, "GPU-80", "NVIDIA A100", (8, 0), 1, [GpuProcess(7, "python"), GpuProcess(8)])
    assert {
        "one": describe_gpus([OLD], HOST),
        "the only one": describe_gpus([OLD], ONLY_ONE),
        "all or none": describe_gpus([OLD, NEW], ALL_OR_NONE),
        "unknown": describe_gpus([], UNKNOWN),
        "shared": list_sharing([OLD, busy]),
        "facts": collect_facts([NEW, placed], HOST),
        "facts with a clock": [collect_facts([OLD], HOST, clock)["gpus"] for clock in ("1410", "base")],
        "facts of no GPU": collect_facts([], HOST),
        "facts of unknown GPUs": collect_facts([], UNKNOWN),
    } == snapshot
