"""What a report is told of the engine, and by which of its ways; launches need a real one (tests/docker)."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import APIError

from harness.backends.docker import backend as code
from harness.backends.docker import gpu_trial, gpus, image_verification, launches
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.engine import raise_as_sentences
from harness.backends.docker.gpu_refusals import GpuRefusedError
from harness.backends.docker.gpus import GpuAccess
from harness.backends.docker.priority import Priority
from harness.backends.docker.removal import _is_ours_and_ended
from harness.backends.docker.specification import OWNER_LABEL, RUN_LABEL, Specification, get_owner
from harness.backends.worker import Ending
from harness.machine.lock import hold_run_lock
from harness.model.backend import BackendFacts, DiskSpace, GpuWay
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> DockerBackend:
    monkeypatch.delenv("REGISTRY", raising=False)
    backend: Any = DockerBackend(Path(), "run")
    devices = [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]
    info = {"Runtimes": {"runc": {}, "nvidia": {}}, "DiscoveredDevices": devices}
    facts = BackendFacts("docker", engine="Docker Engine 28")
    backend.engine = SimpleNamespace(facts=facts, info=info, is_here=True, is_podman=False)
    backend.images = SimpleNamespace(
        find=lambda environment: environment.image and SimpleNamespace(id=environment.image), any_for=lambda device: ""
    )
    return backend  # type: ignore[no-any-return]


def test_images_are_made_outside_of_containers_or_with_buildx(backend, monkeypatch):
    for container, version in ("", None), ("Docker", "v0.13"), ("Docker", None):
        monkeypatch.setattr("harness.machine.host.detect_container", lambda value=container: value)
        monkeypatch.setattr(code.bake, "get_version", lambda value=version: value)
        if version or not container:
            backend.check_tools()
    # the last has an engine's socket alone
    with pytest.raises(CannotRunHereError, match="not the docker command"):
        backend.check_tools()


def test_the_registry_that_images_have_in_their_names_is_told(backend, monkeypatch):
    facts = {"name": "docker", "engine": "Docker Engine 28"}
    assert backend.facts().to_dict() == facts
    monkeypatch.setenv("REGISTRY", "ghcr.io/x/")
    assert backend.facts().to_dict() == {**facts, "registry": "ghcr.io/x/"}


def test_launches_are_moved_between_the_cpus_of_this_machine_alone(backend, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for is_here, info, can in (
        (True, {"CPUSet": True, "NCPU": 4}, True),
        (False, {"CPUSet": True, "NCPU": 4}, False),
        (True, {"CPUSet": True, "NCPU": 2}, False),
        (True, {"CPUSet": False, "NCPU": 4}, False),
        (True, {}, False),
        (True, {"CPUSet": True, "NCPU": 4, "BuildahVersion": "1"}, False),
    ):
        is_podman = "BuildahVersion" in info
        backend.engine = SimpleNamespace(info=info, is_here=is_here, is_podman=is_podman)  # type: ignore[assignment]
        assert backend.can_move() is can


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch, backend: DockerBackend) -> list[Specification]:
    """The containers that were made, by an engine that can give priority; one image is prepared."""
    specifications: list[Specification] = []

    @contextmanager
    def create(_: object, specification: Specification) -> Iterator[Any]:
        specifications.append(specification)
        yield SimpleNamespace(run=lambda *_: None)

    monkeypatch.setattr(launches, "create_container", create)
    vars(backend.engine)["info"] = {"CgroupDriver": "systemd", "NCPU": 4}
    vars(backend)["_ids"] = {"harness/test:cpu": "sha256:1"}
    return specifications


def test_launches_have_priority_once_a_container_has_started_with_it(backend, containers):
    # nothing is tried on all CPUs, or without an image
    assert backend.give_priority([0, 1, 2, 3]) == []
    images, vars(backend)["_ids"] = vars(backend)["_ids"], {}
    assert backend.give_priority([3]) == []
    assert (containers, backend.facts().priority) == ([], "")
    vars(backend)["_ids"] = images
    assert backend.give_priority([3]) == []
    assert [(container.image, container.priority) for container in containers] == [
        ("sha256:1", Priority("-.slice", (3,)))
    ]
    assert backend.facts().priority == "262144 CPU shares in the control group -.slice"


@pytest.mark.usefixtures("containers")
def test_without_priority_launches_go_on_and_without_an_engine_the_run_ends(backend, monkeypatch, snapshot):
    def fail(error: Exception) -> None:
        def create(*_: object) -> None:
            with raise_as_sentences("run a container"):
                raise error

        monkeypatch.setattr(launches, "create_container", create)

    fail(APIError("500", explanation="unable to apply cgroup configuration"))
    assert backend.give_priority([3]) == snapshot
    assert backend.facts().priority == ""
    fail(OSError(errno.ECONNRESET, "Connection reset by peer"))
    with pytest.raises(CannotRunHereError, match="stopped answering"):
        backend.give_priority([3])


def test_the_gpu_code_in_an_image_is_read_if_it_was_assumed(backend, monkeypatch):
    environment = Environment("tf-nightly-2.23.0", "2.23.0", "3.13", "", cuda="12.5", gpu_code="sm_90")
    packages = '{"packages": {}, "system": {}}'
    modules = '{"/tensorflow/libtensorflow_cc.so.2": [["sm_90", "sm_120", "ptx_120"]]}'
    outputs: list[str] = []
    monkeypatch.setattr(image_verification, "run_script", lambda *_, **__: (outputs.pop(0), "it failed", Ending(0)))
    monkeypatch.setattr(DockerBackend, "_get_image_id", lambda *_: "sha256:1")
    backend.engine = SimpleNamespace(architecture="x86_64")
    assumed = replace(environment, gpu_code_of="2.21.0")
    for checked, gpu_code, returned in (
        (assumed, modules, replace(environment, gpu_code="sm_90 compute_120")),
        (assumed, "{}", None),
        (environment, "", None),
    ):
        outputs[:] = [packages, gpu_code]
        requirement = Requirement(checked, Device.GPU, Lock(Path("none"), "0", {}))
        assert backend.verify(requirement).read == returned
    outputs[:] = [packages, "no JSON"]
    with pytest.raises(CannotRunHereError, match="it failed"):
        backend.verify(Requirement(assumed, Device.GPU, Lock(Path("none"), "0", {})))
    # with an emulated processor, TensorFlow is imported too
    emulated = replace(environment, architecture="arm64")
    outputs[:] = [packages, "2.23.0 aarch64 6\n"]
    verification = backend.verify(Requirement(emulated, Device.CPU, Lock(Path("none"), "0", {})))
    assert verification.lines()[-1] == "TensorFlow works on an emulated processor: 2.23.0 aarch64 6"


#: Environments whose image is there, and is not.
MADE: Any = SimpleNamespace(image="sha256:1")
NOT_MADE: Any = SimpleNamespace(image="")


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, GpuWay]]:
    """The trials that were made: of which image, by which way. By CDI nothing starts."""
    trials: list[tuple[str, GpuWay]] = []

    def try_access(_: object, image: str, way: GpuWay, *__: object) -> tuple[str, str]:
        trials.append((image, way))
        if way is GpuWay.CDI:
            raise GpuRefusedError("It is old.", "Make it anew")
        return "", "all"

    monkeypatch.setattr(gpu_trial, "try_access", try_access)
    monkeypatch.setenv("PATH", "")
    return trials


BY_RUNTIME = "Containers get GPUs through the runtime nvidia."


def test_launches_get_gpus_by_the_way_that_worked_once_it_was_tried(backend, trials):
    assert backend.try_gpus([MADE]) == []  # none were requested
    assert backend.facts().gpus_by == ""
    backend.check_gpus(["0"])
    assert backend.access == GpuAccess(GpuWay.CDI, ("0",))
    assert backend.try_gpus([MADE]) == ["Containers don't get GPUs through CDI. It is old. Make it anew.", BY_RUNTIME]
    assert backend.access == GpuAccess(GpuWay.RUNTIME)
    assert backend.facts().gpus_by == "the runtime nvidia"
    assert backend.try_gpus([MADE]) == []
    assert trials == [("sha256:1", GpuWay.CDI), ("sha256:1", GpuWay.RUNTIME)]


def test_before_its_images_are_built_any_image_of_ours_shows_which_way_works(backend, trials):
    backend.check_gpus(["0"], GpuWay.RUNTIME)
    assert backend.try_gpus([NOT_MADE]) == []
    assert not trials
    vars(backend.images)["any_for"] = lambda device: {Device.GPU: "sha256:2"}[device]
    assert backend.try_gpus([NOT_MADE]) == [BY_RUNTIME]
    assert trials == [("sha256:2", GpuWay.RUNTIME)]
    backend.check_gpus(["0"], GpuWay.CDI)
    with pytest.raises(GpuRefusedError):
        backend.try_gpus([NOT_MADE])


def test_an_image_that_is_no_part_of_the_run_cannot_end_it(backend, monkeypatch):
    def try_access(_: object, image: str, *__: object) -> tuple[str, str]:
        if image == "sha256:2":
            raise CannotRunHereError("No such image.")
        return "", "all"

    monkeypatch.setattr(gpu_trial, "try_access", try_access)
    vars(backend.images)["any_for"] = lambda _: "sha256:2"
    backend.check_gpus(["0"])
    assert backend.try_gpus([NOT_MADE]) == []
    assert backend.try_gpus([MADE]) == ["Containers get GPUs through CDI."]


def find_access(backend: DockerBackend, *wanted: str, any_image: str = "") -> Any:
    """What the doctor finds of the ways to GPUs."""
    backend.images = SimpleNamespace(  # type: ignore[assignment]
        find=lambda _: None,
        room=lambda _: DiskSpace(None, 0, 0, ""),
        any_for=lambda device: any_image if device is Device.GPU else "",
    )
    backend.gpu_host = SimpleNamespace(absent="")  # type: ignore[assignment]
    return backend.findings([], wanted)[-1]


def test_the_doctor_tries_the_ways_with_any_image_of_ours_if_it_is_asked_to(backend, trials, monkeypatch, snapshot):
    monkeypatch.setattr(code.bake, "get_version", lambda: None)
    vars(backend.engine).update(version="28.2", address="")
    checks = {
        "not asked to": find_access(backend),
        "no image": find_access(backend, "0"),
        "another GPU": find_access(backend, "1"),
    }
    assert not trials
    checks["tried"] = find_access(backend, "0", any_image="sha256:2")
    assert trials[-1] == ("sha256:2", GpuWay.RUNTIME)

    def refuse(*_: object) -> Any:
        raise GpuRefusedError("There is no way.", gpus.INSTALL_ADVICE, "generate")

    monkeypatch.setattr(gpus, "find", refuse)
    # a check of the GPUs does not recommend itself
    checks["refused"] = find_access(backend)
    checks["refused to one that asked"] = find_access(backend, "0")
    assert {case: [check.level, check.value, check.advice] for case, check in checks.items()} == snapshot


def test_the_doctor_has_the_advice_of_the_connection(backend):
    def refuse(_: object) -> None:
        raise CannotRunHereError("Permission denied.", "Give your user access.")

    backend.engine = type("Refusing", (), {"facts": property(refuse)})()
    assert backend.findings([], [])[0].advice.startswith("Give your user access. ")


def test_containers_of_a_run_that_goes_on_and_of_other_users_are_not_cleaned_away():
    labels = {RUN_LABEL: "run", OWNER_LABEL: get_owner()}
    with hold_run_lock("run"):
        assert not _is_ours_and_ended(labels)
    assert _is_ours_and_ended(labels)
    assert not _is_ours_and_ended({**labels, OWNER_LABEL: "elsewhere:0"})


def test_a_launch_that_docker_desktop_refuses_needs_no_toolkit(backend, monkeypatch):
    def refuse(*_: object) -> Any:
        raise CannotRunHereError('could not select device driver "nvidia" with capabilities: [[gpu]]')

    monkeypatch.setattr(launches, "create_container", refuse)
    monkeypatch.setattr(launches.ContainerLaunches, "_make_specification", lambda *_: None)
    monkeypatch.setattr(backend, "_get_image_id", lambda _: "sha256:1")
    backend.engine.facts = BackendFacts("docker", system="Docker Desktop")  # type: ignore[misc]
    job: Any = SimpleNamespace(limits=Limits(gpus=("0",)))
    requirement: Any = None
    with pytest.raises(GpuRefusedError) as error, backend.hold(requirement, job):
        pass
    assert "update Docker Desktop" in error.value.advice
    assert "nvidia-container-toolkit" not in error.value.advice
