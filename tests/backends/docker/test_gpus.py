"""How an engine gives GPUs to containers, by what it and the machine say."""

import errno
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.docker import gpus
from harness.backends.docker.gpu_refusals import GpuRefusedError
from harness.backends.docker.gpus import (
    GpuAccess,
    add_gpus,
    choose_working,
    describe_missing,
    find,
    find_groups,
    find_host,
    list_device_names,
    list_methods,
    read_device_names,
    select_able,
)
from harness.backends.docker.specification import Specification
from harness.backends.worker import Ending
from harness.model.backend import BackendFacts, GpuWay
from harness.model.errors import CannotRunHereError
from harness.model.gpu import GpuHost
from harness.model.launch import Limits
from tests.cards import T4

#: What `nvidia-ctk cdi generate` writes, less most of the edits.
GENERATED = """\
---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
  - name: GPU-8a7ab9d1-4a7c-4a7b-8f1c-1d3f1c1a2b3c
    containerEdits: {}
  - name: all
    containerEdits: {}
containerEdits:
  env:
    - NVIDIA_VISIBLE_DEVICES=void
"""
CDI, RUNTIME, DRIVER = GpuWay
WITH_RUNTIME = {"Runtimes": {"runc": {}, "nvidia": {"path": "nvidia-container-runtime"}}}
WITH_CDI = {"Runtimes": {"runc": {}}, "CDISpecDirs": ["/etc/cdi"]}
NEITHER = {"Runtimes": {"runc": {}}, "CDISpecDirs": None}
DISCOVERED = {
    "DiscoveredDevices": [
        {"Source": "cdi", "ID": "vendor.com/net=eth"},
        {"Source": "cdi", "ID": "nvidia.com/gpu=0"},
        {"Source": "cdi", "ID": "nvidia.com/gpu=all"},
    ]
}


@pytest.mark.parametrize(
    ("info", "listed", "hooked", "found"),
    [
        (WITH_CDI, ["0", "all"], False, [GpuAccess(CDI, ("0", "all"))]),
        ({**WITH_CDI, **WITH_RUNTIME}, ["0"], True, [GpuAccess(CDI, ("0",)), GpuAccess(RUNTIME), GpuAccess(DRIVER)]),
        ({**WITH_CDI, **WITH_RUNTIME}, [], False, [GpuAccess(RUNTIME)]),
        (WITH_CDI, [], True, [GpuAccess(DRIVER)]),
        (WITH_CDI, [], False, []),
        (NEITHER, [], False, []),
        (DISCOVERED, [], False, [GpuAccess(CDI, ("0", "all"))]),
    ],
)
def test_the_ways_of_an_engine_here_are_those_that_it_and_the_machine_show(info, listed, hooked, found):
    assert list_methods(info, listed, hooked=hooked) == found


@pytest.mark.parametrize(
    ("info", "found"),
    [
        (DISCOVERED, [GpuAccess(CDI, ("0", "all")), GpuAccess(DRIVER)]),
        (WITH_RUNTIME, [GpuAccess(RUNTIME), GpuAccess(DRIVER)]),
        (WITH_CDI, [GpuAccess(CDI), GpuAccess(DRIVER)]),
        (NEITHER, [GpuAccess(DRIVER)]),
    ],
)
def test_an_engine_elsewhere_that_does_not_say_is_asked_by_trying(info, found):
    assert list_methods(info, None) == found


def an_engine(info: Mapping[str, Any], *, is_here: bool = True, rootless: bool = False, system: str = "") -> Any:
    """An engine that says this of itself."""
    facts = BackendFacts("docker", rootless=rootless, system=system)
    return SimpleNamespace(info=info, is_here=is_here, facts=facts, is_podman="BuildahVersion" in info)


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine with none of NVIDIA's programs and specifications; the folder is where those would be."""
    monkeypatch.setattr(gpus, "CDI_FOLDERS", (tmp_path,))
    monkeypatch.setenv("PATH", "")
    return tmp_path


@pytest.mark.usefixtures("bare")
def test_a_machine_without_any_way_says_what_to_install():
    with pytest.raises(CannotRunHereError, match="can't give GPUs to containers: the engine lists no") as error:
        find(an_engine(NEITHER))
    assert "nvidia-ctk cdi generate" in error.value.advice
    assert "harness doctor --gpu" in error.value.advice


@pytest.mark.parametrize("via", [None, CDI])
def test_cdi_that_is_off_is_told_from_cdi_that_is_not_there(bare, via):
    (bare / "nvidia.yaml").write_text(GENERATED)
    with pytest.raises(CannotRunHereError, match="CDI is disabled") as error:
        find(an_engine(NEITHER), via)
    assert '{"features": {"cdi": true}}' in error.value.advice


@pytest.mark.usefixtures("bare")
def test_a_way_that_was_typed_is_the_only_one():
    engine = an_engine({**DISCOVERED, **WITH_RUNTIME})
    assert [entry.way for entry in find(engine)] == [CDI, RUNTIME]
    assert find(engine, RUNTIME) == [GpuAccess(RUNTIME)]
    # no engine says whether it has its device driver
    assert find(engine, DRIVER) == [GpuAccess(DRIVER)]


@pytest.mark.usefixtures("bare")
@pytest.mark.parametrize(
    ("via", "words", "advice"),
    [
        (CDI, "through CDI: the engine lists no nvidia.com/gpu", "cdi generate"),
        (RUNTIME, "isn't registered", "runtime configure"),
    ],
)
def test_a_way_that_was_typed_and_is_not_there_says_why(via, words, advice):
    with pytest.raises(CannotRunHereError, match=words) as error:
        find(an_engine(NEITHER), via)
    assert advice in error.value.advice


def test_a_gpu_that_is_not_listed_is_named_with_those_that_are():
    cdi = GpuAccess(CDI, ("0", "1", "all"))
    assert select_able([cdi], ["0", "1"]) == [cdi]
    with pytest.raises(CannotRunHereError, match=r"--gpus 0,7: Docker Engine lists no GPU 7\. It lists 0, 1, all\."):
        select_able([cdi], ["0", "7"])


def test_where_all_is_the_only_device_it_is_what_the_first_gpu_means():
    """WSL2's specification has no other one."""
    only = GpuAccess(CDI, ("all",))
    assert select_able([only], ["0"]) == [only]
    assert (only.list_requested(["0"]), only.list_requested(["all"])) == (("all",), ("all",))
    assert GpuAccess(CDI, ("0", "all")).list_requested(["0"]) == GpuAccess(RUNTIME).list_requested(["0"]) == ("0",)
    with pytest.raises(CannotRunHereError, match=r"--gpus 1: Docker Engine gives a container all GPUs or none") as no:
        select_able([only], ["1"])
    assert "Use --gpus all." in no.value.advice


def test_wsl_is_known_by_its_device_or_by_a_specification_of_all_alone(tmp_path, monkeypatch):
    monkeypatch.setattr("harness.backends.docker.gpus.find_address", lambda: "unix:///var/run/docker.sock")
    monkeypatch.setattr("harness.backends.docker.gpus.WSL_NODE", tmp_path / "dxg")
    monkeypatch.setattr("harness.backends.docker.gpus.CDI_FOLDERS", (tmp_path,))
    assert not find_host().all_or_none
    specification = tmp_path / "nvidia.yaml"
    specification.write_text("kind: nvidia.com/gpu\ndevices: [{name: all}]\n")
    assert find_host().all_or_none
    specification.write_text("kind: nvidia.com/gpu\ndevices: [{name: '0'}, {name: all}]\n")
    assert not find_host().all_or_none
    (tmp_path / "dxg").touch()
    assert find_host().all_or_none


def test_a_way_that_does_not_list_a_gpu_leaves_the_others():
    cdi, runtime = GpuAccess(CDI, ("0",)), GpuAccess(RUNTIME)
    assert select_able([cdi, runtime], ["0"]) == [cdi, runtime]
    assert select_able([cdi, runtime], ["1"]) == [runtime]


SPECIFICATION = Specification(
    image="sha256:1", command=["python"], environ={"A": "b"}, labels={}, limits=Limits(gpus=("0", "1"))
)


def test_what_is_asked_for_by_cdi_are_its_own_names():
    (request,) = add_gpus(SPECIFICATION, CDI, ["0", "1"]).devices
    assert request["Driver"] == "cdi"
    assert request["DeviceIDs"] == ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]


def test_the_runtime_is_told_by_variables_to_compute_and_nothing_else():
    made = add_gpus(SPECIFICATION, RUNTIME, ["0", "1"], [44])
    assert (made.runtime, made.devices, made.groups) == ("nvidia", (), [44])
    assert made.environ == {
        "NVIDIA_VISIBLE_DEVICES": "0,1",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "A": "b",
    }
    assert add_gpus(SPECIFICATION, RUNTIME, ["all"]).environ["NVIDIA_VISIBLE_DEVICES"] == "all"


def test_the_device_driver_is_asked_to_compute_and_for_nothing_else():
    made = add_gpus(SPECIFICATION, DRIVER, ["0", "1"])
    (request,) = made.devices
    assert (request["Driver"], request["DeviceIDs"]) == ("nvidia", ["0", "1"])
    assert request["Capabilities"] == [["gpu", "compute", "utility"]]
    assert made.environ == {"A": "b"}
    (request,) = add_gpus(SPECIFICATION, DRIVER, ["all"]).devices
    assert request["Count"] == -1


def trial(outcomes: Mapping[GpuWay, str | Exception]) -> Callable[[GpuAccess], str]:
    """What each way's container lacks, or what it is refused with."""

    def tried(access: GpuAccess) -> str:
        outcome = outcomes[access.way]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return tried


STALE = GpuRefusedError("It is older than the driver.", "Make it anew", "generate", words="runc said so")
ALL_WAYS = [GpuAccess(CDI, ("0",)), GpuAccess(RUNTIME), GpuAccess(DRIVER)]


def test_the_first_way_that_works_is_taken_and_no_other_is_tried():
    assert choose_working(ALL_WAYS, trial({CDI: ""})) == (ALL_WAYS[0], ["Containers get GPUs through CDI."])


def test_a_way_that_fails_is_passed_over_with_a_sentence():
    taken, told = choose_working(ALL_WAYS, trial({CDI: STALE, RUNTIME: ""}))
    assert taken.way is RUNTIME
    assert told == [
        "Containers don't get GPUs through CDI. It is older than the driver. Make it anew: generate",
        "Containers get GPUs through the runtime nvidia.",
    ]


def test_a_way_by_which_a_container_lacks_something_is_the_last_resort():
    taken, told = choose_working(ALL_WAYS, trial({CDI: "It lacks a node.", RUNTIME: STALE, DRIVER: ""}))
    assert taken.way is DRIVER
    assert told[-2:] == [
        "Through CDI, containers don't get everything that CUDA needs. It lacks a node.",
        "Containers get GPUs through the engine's device driver.",
    ]
    taken, told = choose_working(
        ALL_WAYS, trial({CDI: STALE, RUNTIME: "It lacks a node.", DRIVER: "It lacks a library."})
    )
    assert taken.way is RUNTIME
    assert told[-1] == "Containers get GPUs through the runtime nvidia. It lacks a node."


def test_where_no_way_works_the_first_ones_refusal_ends_the_run_and_the_others_are_told():
    other = GpuRefusedError("There is no hook.", "Install it", "install")
    with pytest.raises(CannotRunHereError) as error:
        choose_working(
            ALL_WAYS[:2], trial({CDI: GpuRefusedError("It is old.", "Make it anew", words="runc"), RUNTIME: other})
        )
    assert error.value.message == (
        "It is old.\nrunc\nContainers don't get GPUs through the runtime nvidia. There is no hook. Install it: install"
    )
    assert error.value.advice == "Make it anew."


def test_what_has_nothing_to_do_with_gpus_is_no_reason_to_try_another_way():
    with pytest.raises(CannotRunHereError, match="stopped answering"):
        choose_working(ALL_WAYS, trial({CDI: CannotRunHereError("Docker Engine stopped answering.")}))


@pytest.mark.usefixtures("bare")
def test_docker_desktop_is_tried_by_its_own_device_driver_and_sees_no_specification_of_this_machine(bare):
    (bare / "nvidia.yaml").write_text(GENERATED)
    desktop = an_engine({**NEITHER, "CDISpecDirs": [str(bare)]}, system="Docker Desktop")
    assert find(desktop) == [GpuAccess(DRIVER)]
    # from 4.34 on, it lists the runtime on every machine
    assert [entry.way for entry in find(an_engine(WITH_RUNTIME, system="Docker Desktop"))] == [RUNTIME, DRIVER]
    with pytest.raises(CannotRunHereError, match="Docker Desktop doesn't offer CDI") as error:
        find(desktop, CDI)
    assert "nvidia-ctk" not in error.value.advice


@pytest.mark.parametrize("via", [None, DRIVER])
def test_podman_is_named_although_nvidias_programs_are_here(bare, monkeypatch, via):
    hook = bare / gpus.HOOKS[1]
    hook.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(bare))
    assert find(an_engine(NEITHER)) == [GpuAccess(DRIVER)]
    with pytest.raises(CannotRunHereError, match="Podman can't give GPUs") as error:
        find(an_engine({**WITH_RUNTIME, "BuildahVersion": "1.33.7"}), via)
    assert "Docker Engine" in error.value.advice


@pytest.mark.usefixtures("bare")
def test_where_the_driver_sees_a_gpu_the_engines_own_device_driver_is_tried_last(monkeypatch):
    assert [entry.way for entry in find(an_engine(WITH_RUNTIME))] == [RUNTIME]
    monkeypatch.setattr(gpus, "find_host", lambda: GpuHost([T4], "550.54.15", (12, 4)))
    assert [entry.way for entry in find(an_engine(WITH_RUNTIME))] == [RUNTIME, DRIVER]
    assert find(an_engine(WITH_RUNTIME), RUNTIME) == [GpuAccess(RUNTIME)]
    # without another method, an image of gigabytes would have to be built before a test
    with pytest.raises(CannotRunHereError, match="can't give GPUs") as error:
        find(an_engine(NEITHER))
    assert "pass --gpu-via driver" in error.value.advice


@pytest.mark.parametrize(("system", "advice"), [("Docker Desktop", "WSL 2 backend"), ("Debian", "nvidia-cdi-refresh")])
def test_a_refusal_names_the_specification_and_docker_desktop_needs_no_toolkit(bare, system, advice):
    specification = bare / "nvidia.yaml"
    specification.write_text(GENERATED)
    engine = an_engine({"CDISpecDirs": [str(bare)]}, system=system)
    words = 'CDI device injection failed: failed to stat CDI host device "/dev/nvidia0": no such file'
    with pytest.raises(GpuRefusedError) as error, gpus.explain_access(engine, CDI, ["0"]):
        raise CannotRunHereError(words)
    assert advice in error.value.advice
    is_desktop = system == "Docker Desktop"
    assert ("nvidia-ctk" in error.value.advice, str(specification) in error.value.message) == (not is_desktop,) * 2


def test_of_two_specifications_the_later_folder_counts(tmp_path):
    static, refreshed = tmp_path / "etc", tmp_path / "run"
    for folder in (static, refreshed):
        folder.mkdir()
    (static / "nvidia.yaml").write_text(GENERATED)
    assert gpus.find_specification([static, refreshed], ["0"]) == static / "nvidia.yaml"
    (refreshed / "nvidia.yaml").write_text(GENERATED)
    assert gpus.find_specification([static, refreshed], ["0"]) == refreshed / "nvidia.yaml"
    assert gpus.find_specification([static, refreshed], ["7"]) is None


NODES = {"/dev/nvidia0": 0o666, "/dev/nvidiactl": 0o666, "/dev/nvidia-uvm": 0o666}
FIRST_NODE = "/dev/nvidia0"


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        ({}, ""),
        ({"nodes": {"/dev/dxg": 0o666}}, ""),
        ({"nodes": {}}, ""),
        ({"count": None}, ""),
        ({"nodes": {}, "cuda": False}, "no NVIDIA device and no libcuda.so.1"),
        ({"cuda": False}, "gets /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm and no libcuda.so.1"),
        ({"nodes": dict(list(NODES.items())[:2])}, "sudo nvidia-modprobe -u -c 0"),
        # a mode of the node, a control group or SELinux
        ({"nodes": NODES | {FIRST_NODE: 0o660}, "closed": {FIRST_NODE: errno.EACCES}}, "NVreg_DeviceFileMode=0666"),
        ({"closed": {FIRST_NODE: errno.EACCES}}, "setsebool -P container_use_devices on"),
        ({"closed": {FIRST_NODE: errno.EPERM}}, "Use CDI (--gpu-via cdi). Or set no-cgroups = false"),
        ({"closed": {FIRST_NODE: errno.ENXIO}}, "(ENXIO). To check the driver: nvidia-smi"),
        ({"count": 0}, "CUDA starts in a test container. CUDA finds no GPU. To see whether another program"),
        ({"init": 802}, "nvidia-fabricmanager"),
        ({"init": 803}, "different versions"),
        ({"init": 1}, "cuInit fails with the error 1. To check the driver: nvidia-smi"),
    ],
)
def test_what_a_container_lacks_for_cuda_is_told_with_what_to_do(seen, words):
    told = describe_missing({"nodes": NODES, "closed": {}, "cuda": True, "init": 0, "count": 1, **seen})
    assert words in told
    assert bool(told) is bool(words)


@pytest.fixture
def nodes(tmp_path, monkeypatch):
    """A folder of device nodes, as a function that makes one with a mode and a group."""
    made: dict[str, tuple[int, int]] = {}
    real = Path.stat

    def stat(self: Path, **options: bool) -> Any:
        if self.name in made:
            mode, group = made[self.name]
            return SimpleNamespace(st_mode=mode, st_gid=group)
        return real(self, **options)

    def make(name: str, mode: int, group: int) -> None:
        (tmp_path / name).touch()
        made[name] = (mode, group)

    monkeypatch.setattr(Path, "stat", stat)
    return tmp_path, make


def test_the_groups_of_nodes_that_not_everybody_may_open_are_given_to_containers(nodes):
    folder, make = nodes
    make("nvidia0", 0o020660, 44)
    make("nvidiactl", 0o020660, 44)
    make("nvidia-uvm", 0o020666, 7)
    make("nvidia-modeset", 0o020600, 8)
    make("nvidia1", 0o020660, 0)
    make("nvidia-caps", 0o040770, 9)
    make("sda", 0o020660, 6)
    assert find_groups(an_engine({}), folder) == [44]
    assert find_groups(an_engine({}, is_here=False), folder) == []
    assert find_groups(an_engine({}, rootless=True), folder) == []


def test_the_names_of_nvidias_devices_are_read_from_yaml_and_json(tmp_path: Path):
    (tmp_path / "nvidia.yaml").write_text(GENERATED)
    mig = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "1:0"}, {"name": "all"}]}
    (tmp_path / "other.json").write_text(json.dumps(mig))
    (tmp_path / "notes.txt").write_text(GENERATED)
    found = list_device_names([tmp_path, tmp_path / "nowhere"])
    assert found == ["0", "GPU-8a7ab9d1-4a7c-4a7b-8f1c-1d3f1c1a2b3c", "all", "1:0"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", "{"),
        ("a.json", "[" * 100_000),
        ("a.yaml", "[" * 10_000),
        ("a.json", "[]"),
        ("a.json", '{"kind": "vendor.com/net", "devices": [{"name": "0"}]}'),
        ("a.json", '{"kind": "nvidia.com/gpu", "devices": 3}'),
        ("a.json", '{"kind": "nvidia.com/gpu", "devices": [3, {}]}'),
        ("a.yaml", "kind: [nvidia.com/gpu"),
        ("a.yaml", "\x00"),
        ("a.yaml", "!!python/object/apply:os.system [exit]"),
        ("a.yaml", ""),
    ],
)
def test_a_specification_of_others_or_of_nothing_lists_none(tmp_path: Path, name: str, text: str):
    path = tmp_path / name
    path.write_text(text)
    assert read_device_names(path) == []
    assert read_device_names(tmp_path / "gone.json") == []


def test_of_an_engine_elsewhere_nothing_is_known_here(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "ssh://somewhere")
    assert find_host().absent == "the engine is on another machine"


def test_a_trial_runs_in_images_without_the_user_of_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    trials: list[Specification] = []

    @contextmanager
    def create(_: object, specification: Specification) -> Iterator[Any]:
        trials.append(specification)
        answer = {"nodes": {"/dev/nvidia0": 0o660}, "closed": {}, "cuda": True, "init": 803, "count": None}
        yield SimpleNamespace(run=lambda stdout, _: stdout(json.dumps(answer).encode()) or Ending(0))

    monkeypatch.setattr(gpus, "create_container", create)
    engine: Any = SimpleNamespace(info={}, is_here=False, facts=BackendFacts("docker"))
    missing, found = gpus.try_access(engine, "id", CDI, ["0"], "run")
    assert missing.startswith("cuInit fails with the error 803. ")
    assert found == "Number of GPUs: isn't known. Device nodes: /dev/nvidia0 (mode 660)."
    assert [trial.user for trial in trials] == ["1000:1000"]
