"""How an engine gives GPUs to containers, by what it and the machine say."""

import errno
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.backends.docker import cdi, gpu_trial, gpus
from harness.backends.docker.cdi import list_device_names, read_device_names
from harness.backends.docker.gpu_refusals import GpuRefusedError
from harness.backends.docker.gpu_trial import describe_missing
from harness.backends.docker.gpus import (
    GpuAccess,
    add_gpus,
    choose_working,
    find,
    find_groups,
    find_host,
    list_methods,
    select_able,
)
from harness.backends.docker.specification import Specification
from harness.backends.worker import Ending
from harness.model.backend import BackendFacts, GpuWay
from harness.model.errors import CannotRunHereError
from harness.model.gpu import GpuHost
from harness.model.launch import Limits
from tests.cards import T4
from tests.errors import catch, catch_text

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


HOOKED, UNHOOKED = True, False


def test_the_ways_of_an_engine_are_those_that_it_and_the_machine_show():
    both = {**WITH_CDI, **WITH_RUNTIME}
    cases = [
        ((WITH_CDI, ["0", "all"], UNHOOKED), [GpuAccess(CDI, ("0", "all"))]),
        ((both, ["0"], HOOKED), [GpuAccess(CDI, ("0",)), GpuAccess(RUNTIME), GpuAccess(DRIVER)]),
        ((both, [], UNHOOKED), [GpuAccess(RUNTIME)]),
        ((WITH_CDI, [], HOOKED), [GpuAccess(DRIVER)]),
        ((WITH_CDI, [], UNHOOKED), []),
        ((NEITHER, [], UNHOOKED), []),
        ((DISCOVERED, [], UNHOOKED), [GpuAccess(CDI, ("0", "all"))]),
        # one elsewhere does not say all, so that it is tried
        ((DISCOVERED, None, UNHOOKED), [GpuAccess(CDI, ("0", "all")), GpuAccess(DRIVER)]),
        ((WITH_RUNTIME, None, UNHOOKED), [GpuAccess(RUNTIME), GpuAccess(DRIVER)]),
        ((WITH_CDI, None, UNHOOKED), [GpuAccess(CDI), GpuAccess(DRIVER)]),
        ((NEITHER, None, UNHOOKED), [GpuAccess(DRIVER)]),
    ]
    for (info, listed, hooked), accesses in cases:
        assert list_methods(info, listed, hooked=hooked) == accesses, (info, listed, hooked)


def make_engine(info: Mapping[str, Any], *, is_here: bool = True, rootless: bool = False, system: str = "") -> Any:
    """An engine that says this of itself."""
    facts = BackendFacts("docker", rootless=rootless, system=system)
    return SimpleNamespace(info=info, is_here=is_here, facts=facts, is_podman="BuildahVersion" in info)


def find_ways(*arguments: Any) -> list[GpuWay]:
    return [access.way for access in find(*arguments)]


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with none of NVIDIA's programs and specifications; the folder is where those would be."""
    monkeypatch.setattr(cdi, "FOLDERS", (tmp_path,))
    monkeypatch.setenv("PATH", "")
    return tmp_path


def test_an_engine_that_gives_no_gpus_says_why_and_what_to_do(bare, monkeypatch, snapshot):
    podman = make_engine({**WITH_RUNTIME, "BuildahVersion": "1.33.7"})
    cdi, only_all = GpuAccess(CDI, ("0", "1", "all")), GpuAccess(CDI, ("all",))
    messages = {
        "no way": catch_text(GpuRefusedError, find, make_engine(NEITHER)),
        "no CDI": catch_text(GpuRefusedError, find, make_engine(NEITHER), CDI),
        "no runtime": catch_text(GpuRefusedError, find, make_engine(NEITHER), RUNTIME),
        "no such GPU": catch_text(GpuRefusedError, select_able, [cdi], ["0", "7"]),
        "all or none": catch_text(GpuRefusedError, select_able, [only_all], ["1"]),
    }
    (bare / "nvidia.yaml").write_text(GENERATED)
    messages["CDI is off"] = catch_text(GpuRefusedError, find, make_engine(NEITHER))
    assert catch_text(GpuRefusedError, find, make_engine(NEITHER), CDI) == messages["CDI is off"]
    # its specification is not looked at
    assert find(make_engine({**NEITHER, "CDISpecDirs": [str(bare)]}, system="Docker Desktop")) == [GpuAccess(DRIVER)]
    (bare / gpus.HOOKS[1]).touch(mode=0o755)
    monkeypatch.setenv("PATH", str(bare))
    assert find(make_engine(NEITHER)) == [GpuAccess(DRIVER)]
    messages["Podman"] = catch_text(GpuRefusedError, find, podman)
    assert catch_text(GpuRefusedError, find, podman, DRIVER) == messages["Podman"]
    assert messages == snapshot


def test_gpus_that_a_way_does_not_list_leave_the_other_ways():
    cdi, runtime = GpuAccess(CDI, ("0",)), GpuAccess(RUNTIME)
    assert select_able([cdi, runtime], ["0"]) == [cdi, runtime]
    assert select_able([cdi, runtime], ["1"]) == [runtime]
    assert select_able([GpuAccess(CDI, ("0", "1"))], ["0", "1"]) == [GpuAccess(CDI, ("0", "1"))]
    # where `all` is the only device, as in WSL2's specification, it is what the first GPU means
    only = GpuAccess(CDI, ("all",))
    assert select_able([only], ["0"]) == [only]
    assert (only.list_requested(["0"]), only.list_requested(["all"])) == (("all",), ("all",))
    assert GpuAccess(CDI, ("0", "all")).list_requested(["0"]) == GpuAccess(RUNTIME).list_requested(["0"]) == ("0",)


def test_wsl_is_known_by_its_device_or_by_a_specification_of_all_alone_and_of_an_engine_elsewhere_nothing(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(gpus, "find_address", lambda: "ssh://somewhere")
    elsewhere = find_host()
    assert (elsewhere.absent, elsewhere.is_here) == ("the engine is on another machine", False)
    monkeypatch.setattr(gpus, "find_address", lambda: "unix:///var/run/docker.sock")
    monkeypatch.setattr(gpus, "WSL_NODE", tmp_path / "dxg")
    monkeypatch.setattr(cdi, "FOLDERS", (tmp_path,))
    assert not find_host().all_or_none
    specification = tmp_path / "nvidia.yaml"
    specification.write_text("kind: nvidia.com/gpu\ndevices: [{name: all}]\n")
    assert find_host().all_or_none
    specification.write_text("kind: nvidia.com/gpu\ndevices: [{name: '0'}, {name: all}]\n")
    assert not find_host().all_or_none
    (tmp_path / "dxg").touch()
    assert find_host().all_or_none


SPECIFICATION = Specification(
    image="sha256:1", command=["python"], environ={"A": "b"}, labels={}, limits=Limits(gpus=("0", "1"))
)


def test_gpus_are_requested_by_each_way_to_compute_and_for_nothing_else():
    (request,) = add_gpus(SPECIFICATION, CDI, ["0", "1"]).devices
    assert request["Driver"] == "cdi"
    assert request["DeviceIDs"] == ["nvidia.com/gpu=0", "nvidia.com/gpu=1"]
    specification = add_gpus(SPECIFICATION, RUNTIME, ["0", "1"], [44])
    assert (specification.runtime, specification.devices, specification.groups) == ("nvidia", (), [44])
    variables = {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    assert specification.environ == {**variables, "A": "b"}
    assert add_gpus(SPECIFICATION, RUNTIME, ["all"]).environ["NVIDIA_VISIBLE_DEVICES"] == "all"
    specification = add_gpus(SPECIFICATION, DRIVER, ["0", "1"])
    (request,) = specification.devices
    assert (request["Driver"], request["DeviceIDs"]) == ("nvidia", ["0", "1"])
    assert request["Capabilities"] == [["gpu", "compute", "utility"]]
    assert specification.environ == {"A": "b"}
    (request,) = add_gpus(SPECIFICATION, DRIVER, ["all"]).devices
    assert request["Count"] == -1


STALE = GpuRefusedError("It is old.", "Make it anew", "generate", words="runc said so")
ALL_WAYS = [GpuAccess(CDI, ("0",)), GpuAccess(RUNTIME), GpuAccess(DRIVER)]
NO_NODE, NO_LIBRARY = "It lacks a node.", "It lacks a library."


def choose(*outcomes: str | Exception, accesses: Sequence[GpuAccess] = ALL_WAYS) -> tuple[GpuWay, list[str]]:
    """Choose a method, given the outcome of each method's test container. Return it with the messages."""

    def try_way(access: GpuAccess) -> str:
        outcome = outcomes[ALL_WAYS.index(access)]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    access, sentences = choose_working(accesses, try_way)
    return access.way, sentences


def test_the_first_way_that_works_is_chosen_then_one_that_lacks_something(snapshot):
    chosen = {
        "the first": choose(""),  # no other is tried
        "the second": choose(STALE, ""),
        "the last": choose(NO_NODE, STALE, ""),
        "the least bad": choose(STALE, NO_NODE, NO_LIBRARY),
    }
    assert [way for way, _ in chosen.values()] == [CDI, RUNTIME, DRIVER, RUNTIME]
    messages = {case: sentences for case, (_, sentences) in chosen.items()}
    no_hook = GpuRefusedError("There is no hook.", "Install it", "install")
    error = catch(GpuRefusedError, choose, STALE, no_hook, accesses=ALL_WAYS[:2])
    messages["none"] = [error.message, error.advice]
    assert messages == snapshot
    # what has nothing to do with GPUs is no reason to try another way
    with pytest.raises(CannotRunHereError, match="silent"):
        choose(CannotRunHereError("The engine is silent."))


@pytest.mark.usefixtures("bare")
def test_where_the_driver_sees_a_gpu_the_engines_own_device_driver_is_tried_last_unless_one_was_requested(monkeypatch):
    engine = make_engine({**DISCOVERED, **WITH_RUNTIME})
    assert find_ways(engine) == [CDI, RUNTIME]
    for way in (RUNTIME, DRIVER):  # no engine says whether it has its device driver
        assert find(engine, way) == [GpuAccess(way)]
    assert find_ways(make_engine(WITH_RUNTIME)) == [RUNTIME]
    # from 4.34 on, Docker Desktop lists the runtime on every machine
    assert find_ways(make_engine(WITH_RUNTIME, system="Docker Desktop")) == [RUNTIME, DRIVER]
    monkeypatch.setattr(gpus, "find_host", lambda: GpuHost([T4], "550.54.15", (12, 4)))
    assert find_ways(make_engine(WITH_RUNTIME)) == [RUNTIME, DRIVER]
    assert find(make_engine(WITH_RUNTIME), RUNTIME) == [GpuAccess(RUNTIME)]
    # without another method, an image of gigabytes would have to be built before a test
    assert "--gpu-via driver" in catch_text(GpuRefusedError, find, make_engine(NEITHER))


def test_a_refusal_names_the_specification(bare):
    specification = bare / "nvidia.yaml"
    specification.write_text(GENERATED)
    engine = make_engine({"CDISpecDirs": [str(bare)]})
    with pytest.raises(GpuRefusedError) as error, gpus.explain_access(engine, CDI, ["0"]):
        raise CannotRunHereError(
            'CDI device injection failed: failed to stat CDI host device "/dev/nvidia0": no such file'
        )
    assert "nvidia-cdi-refresh" in error.value.advice
    assert str(specification) in error.value.message


def test_of_two_specifications_the_later_folder_counts(tmp_path):
    static, refreshed = tmp_path / "etc", tmp_path / "run"
    for folder in (static, refreshed):
        folder.mkdir()
    (static / "nvidia.yaml").write_text(GENERATED)
    assert cdi.find_specification([static, refreshed], ["0"]) == static / "nvidia.yaml"
    (refreshed / "nvidia.yaml").write_text(GENERATED)
    assert cdi.find_specification([static, refreshed], ["0"]) == refreshed / "nvidia.yaml"
    assert cdi.find_specification([static, refreshed], ["7"]) is None


NODES = {"/dev/nvidia0": 0o666, "/dev/nvidiactl": 0o666, "/dev/nvidia-uvm": 0o666}
FIRST_NODE = "/dev/nvidia0"


def describe(**answer: object) -> str:
    return describe_missing({"nodes": NODES, "closed": {}, "cuda": True, "init": 0, "count": 1, **answer})


def test_what_a_container_lacks_for_cuda_is_told_with_what_to_do(snapshot):
    for answer in ({}, {"nodes": {"/dev/dxg": 0o666}}, {"nodes": {}}, {"count": None}):
        assert describe(**answer) == ""
    assert {
        "nothing": describe(nodes={}, cuda=False),
        "no library": describe(cuda=False),
        "a node is missing": describe(nodes=dict(list(NODES.items())[:2])),
        "closed nodes": describe(closed={FIRST_NODE: errno.EACCES, "/dev/nvidiactl": errno.ENXIO}),
        "no GPU": describe(count=0),
        **{f"cuInit {code}": describe(init=code) for code in (1, 100, 802, 803)},
    } == snapshot


def test_the_groups_of_nodes_that_not_everybody_may_open_are_given_to_containers(tmp_path, monkeypatch):
    nodes = {
        "nvidia0": (0o020660, 44),
        "nvidiactl": (0o020660, 44),
        "nvidia-uvm": (0o020666, 7),
        "nvidia-modeset": (0o020600, 8),
        "nvidia1": (0o020660, 0),
        "nvidia-caps": (0o040770, 9),
        "sda": (0o020660, 6),
    }
    real = Path.stat

    def stat(self: Path, **options: bool) -> Any:
        if self.name in nodes:
            return SimpleNamespace(st_mode=nodes[self.name][0], st_gid=nodes[self.name][1])
        return real(self, **options)

    monkeypatch.setattr(Path, "stat", stat)
    for name in nodes:
        (tmp_path / name).touch()
    assert find_groups(make_engine({}), tmp_path) == [44]
    assert find_groups(make_engine({}, is_here=False), tmp_path) == []
    assert find_groups(make_engine({}, rootless=True), tmp_path) == []


def test_the_names_of_nvidias_devices_are_read_from_yaml_and_json(tmp_path):
    (tmp_path / "nvidia.yaml").write_text(GENERATED)
    mig = {"cdiVersion": "0.5.0", "kind": "nvidia.com/gpu", "devices": [{"name": "1:0"}, {"name": "all"}]}
    (tmp_path / "other.json").write_text(json.dumps(mig))
    (tmp_path / "notes.txt").write_text(GENERATED)
    names = list_device_names([tmp_path, tmp_path / "nowhere"])
    assert names == ["0", "GPU-8a7ab9d1-4a7c-4a7b-8f1c-1d3f1c1a2b3c", "all", "1:0"]


def test_a_specification_of_others_or_of_nothing_lists_none(tmp_path):
    for name, text in (
        ("a.json", "{"),
        ("a.json", "[" * 100_000),
        ("a.yaml", "[" * 400),
        ("a.json", "[]"),
        ("a.json", '{"kind": "vendor.com/net", "devices": [{"name": "0"}]}'),
        ("a.json", '{"kind": "nvidia.com/gpu", "devices": 3}'),
        ("a.json", '{"kind": "nvidia.com/gpu", "devices": [3, {}]}'),
        ("a.yaml", "kind: [nvidia.com/gpu"),
        ("a.yaml", "\x00"),
        ("a.yaml", "!!python/object/apply:os.system [exit]"),
        ("a.yaml", ""),
    ):
        (tmp_path / name).write_text(text)
        assert read_device_names(tmp_path / name) == [], text[:100]
    assert read_device_names(tmp_path / "gone.json") == []


def test_a_trial_runs_in_images_without_the_user_of_launches(monkeypatch):
    trials: list[Specification] = []

    @contextmanager
    def create(_: object, specification: Specification) -> Iterator[Any]:
        trials.append(specification)
        answer = {"nodes": {"/dev/nvidia0": 0o660}, "closed": {}, "cuda": True, "init": 803, "count": None}
        yield SimpleNamespace(run=lambda stdout, _: stdout(json.dumps(answer).encode()) or Ending(0))

    monkeypatch.setattr(gpu_trial, "create_container", create)
    engine: Any = SimpleNamespace(info={}, is_here=False, facts=BackendFacts("docker"))
    missing, description = gpu_trial.try_access(engine, "id", CDI, ["0"], "run")
    assert "803" in missing
    assert description == "Number of GPUs: isn't known. Device nodes: /dev/nvidia0 (mode 660)."
    assert [trial.user for trial in trials] == ["1000:1000"]
