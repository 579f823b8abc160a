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
from harness.backends.docker import cuda, gpus
from harness.backends.docker.backend import DockerBackend, _is_ours_and_ended
from harness.backends.docker.cuda import CudaReport
from harness.backends.docker.engine import raise_as_sentences
from harness.backends.docker.gpu_refusals import GpuRefusedError
from harness.backends.docker.gpus import GpuAccess
from harness.backends.docker.priority import Priority
from harness.backends.docker.specification import OWNER_LABEL, RUN_LABEL, Specification, get_owner
from harness.backends.worker import Ending
from harness.machine.lock import hold_run_lock
from harness.model.backend import BackendFacts, GpuWay
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> DockerBackend:
    monkeypatch.delenv("REGISTRY", raising=False)
    made: Any = DockerBackend(Path(), "run")
    devices = [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]
    info = {"Runtimes": {"runc": {}, "nvidia": {}}, "DiscoveredDevices": devices}
    facts = BackendFacts("docker", engine="Docker Engine 28")
    made.engine = SimpleNamespace(facts=facts, info=info, is_here=True, is_podman=False)
    made.images = SimpleNamespace(
        find=lambda asked: asked.image and SimpleNamespace(id=asked.image), any_for=lambda device: ""
    )
    return made  # type: ignore[no-any-return]


@pytest.mark.parametrize(("inside", "version"), [("", None), ("Docker", "v0.13")])
def test_images_can_be_made_outside_of_containers_and_with_buildx(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch, inside: str, version: str | None
) -> None:
    monkeypatch.setattr("harness.machine.host.detect_container", lambda: inside)
    monkeypatch.setattr(code.bake, "get_version", lambda: version)
    backend.check_tools()


def test_a_container_with_an_engines_socket_alone_makes_no_images(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.machine.host.detect_container", lambda: "Docker")
    monkeypatch.setattr(code.bake, "get_version", lambda: None)
    with pytest.raises(CannotRunHereError, match="socket of a Docker Engine, but not the docker command"):
        backend.check_tools()


def test_the_registry_that_images_have_in_their_names_is_told(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"name": "docker", "engine": "Docker Engine 28"}
    assert backend.facts().to_dict() == told
    monkeypatch.setenv("REGISTRY", "ghcr.io/x/")
    assert backend.facts().to_dict() == {**told, "registry": "ghcr.io/x/"}


def test_launches_are_moved_between_the_cpus_of_this_machine_alone(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    for is_here, info, can in (
        (True, {"CPUSet": True, "NCPU": 4}, True),
        (False, {"CPUSet": True, "NCPU": 4}, False),
        (True, {"CPUSet": True, "NCPU": 2}, False),
        (True, {"CPUSet": False, "NCPU": 4}, False),
        (True, {}, False),
    ):
        backend.engine = SimpleNamespace(info=info, is_here=is_here)  # type: ignore[assignment]
        assert backend.can_move() is can


@pytest.fixture
def containers(monkeypatch: pytest.MonkeyPatch, backend: DockerBackend) -> list[Specification]:
    """The containers that were made, by an engine that can give priority; one image is prepared."""
    made: list[Specification] = []

    @contextmanager
    def created(_: object, specification: Specification) -> Iterator[Any]:
        made.append(specification)
        yield SimpleNamespace(run=lambda *_: None)

    monkeypatch.setattr(code, "create_container", created)
    vars(backend.engine)["info"] = {"CgroupDriver": "systemd", "NCPU": 4}
    vars(backend)["_ids"] = {"harness/test:cpu": "sha256:1"}
    return made


def test_launches_have_priority_once_a_container_has_started_with_it(
    backend: DockerBackend, containers: list[Specification]
) -> None:
    assert backend.facts().priority == ""
    assert backend.give_priority([3]) == []
    assert [(container.image, container.priority) for container in containers] == [
        ("sha256:1", Priority("-.slice", (3,)))
    ]
    assert backend.facts().priority == "262144 CPU shares in the control group -.slice"


def test_nothing_is_tried_without_an_image_or_on_all_cpus(
    backend: DockerBackend, containers: list[Specification]
) -> None:
    assert backend.give_priority([0, 1, 2, 3]) == []
    vars(backend)["_ids"] = {}
    assert backend.give_priority([3]) == []
    assert (containers, backend.facts().priority) == ([], "")


def test_an_engine_that_refuses_priority_is_a_sentence_and_launches_go_on_without(
    backend: DockerBackend, containers: list[Specification], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        with raise_as_sentences("run a container"):
            raise APIError("500", explanation="unable to apply cgroup configuration")

    monkeypatch.setattr(code, "create_container", refused)
    assert backend.give_priority([3]) == [
        "Launches share their CPUs with other work, because they get no priority: Docker Engine refused to run a "
        "container: unable to apply cgroup configuration. Work of other processes on these CPUs makes launches "
        "longer and "
        "intervals wider."
    ]
    assert backend.facts().priority == ""


def test_an_engine_that_stops_answering_ends_the_run_as_ever(
    backend: DockerBackend, containers: list[Specification], monkeypatch: pytest.MonkeyPatch
) -> None:
    def silent(*_: object) -> None:
        with raise_as_sentences("run a container"):
            raise OSError(errno.ECONNRESET, "Connection reset by peer")

    monkeypatch.setattr(code, "create_container", silent)
    with pytest.raises(CannotRunHereError, match="stopped answering"):
        backend.give_priority([3])


@pytest.mark.parametrize("is_unread", [True, False])
def test_the_gpu_code_that_is_read_in_an_image_is_returned_if_it_was_assumed(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch, is_unread: bool
) -> None:
    environment = Environment("tf-nightly-2.23.0", "2.23.0", "3.13", "", cuda="12.5", gpu_code="sm_90")
    read = replace(environment, gpu_code="sm_90 compute_120")
    checked = replace(environment, gpu_code_of="2.21.0") if is_unread else environment
    report = CudaReport(read if is_unread else environment, {}, {})
    monkeypatch.setattr(cuda, "check_cuda", lambda *_: report)
    monkeypatch.setattr(code, "run_script", lambda *_, **__: ('{"packages": {}, "system": {}}', "", Ending(0)))
    monkeypatch.setattr(DockerBackend, "_get_image_id", lambda *_: "sha256:1")
    requirement = Requirement(checked, Device.GPU, Lock(Path("none"), "0", {}))
    assert backend.verify(requirement).read == (read if is_unread else None)


#: Environments whose image is there, and is not.
MADE: Any = SimpleNamespace(image="sha256:1")
NOT_MADE: Any = SimpleNamespace(image="")


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, GpuWay]]:
    """The trials that were made: of which image, by which way. By CDI nothing starts."""
    made: list[tuple[str, GpuWay]] = []

    def tried(_: object, image: str, way: GpuWay, *__: object) -> tuple[str, str]:
        made.append((image, way))
        if way is GpuWay.CDI:
            raise GpuRefusedError("It is older than the driver.", "Make it anew")
        return "", "all"

    monkeypatch.setattr(gpus, "try_access", tried)
    monkeypatch.setenv("PATH", "")
    return made


def test_launches_get_gpus_by_the_way_that_worked_once_it_was_tried(
    backend: DockerBackend, trials: list[tuple[str, GpuWay]]
) -> None:
    assert backend.facts().gpus_by == ""
    backend.check_gpus(["0"])
    assert backend.access == GpuAccess(GpuWay.CDI, ("0",))
    assert backend.try_gpus([MADE]) == [
        "Containers don't get GPUs through CDI. It is older than the driver. Make it anew.",
        "Containers get GPUs through the runtime nvidia.",
    ]
    assert backend.access == GpuAccess(GpuWay.RUNTIME)
    assert backend.facts().gpus_by == "the runtime nvidia"
    assert trials == [("sha256:1", GpuWay.CDI), ("sha256:1", GpuWay.RUNTIME)]


def test_gpus_are_tried_once_and_when_an_image_is_there(
    backend: DockerBackend, trials: list[tuple[str, GpuWay]]
) -> None:
    assert backend.try_gpus([MADE]) == []  # none were asked for
    backend.check_gpus(["0"], GpuWay.RUNTIME)
    assert backend.try_gpus([NOT_MADE]) == []
    assert not trials
    assert backend.try_gpus([NOT_MADE, MADE]) == ["Containers get GPUs through the runtime nvidia."]
    assert backend.try_gpus([MADE]) == []
    assert trials == [("sha256:1", GpuWay.RUNTIME)]


def test_before_its_images_are_built_any_image_of_ours_shows_which_way_works(
    backend: DockerBackend, trials: list[tuple[str, GpuWay]]
) -> None:
    vars(backend.images)["any_for"] = lambda device: {Device.GPU: "sha256:2"}[device]
    backend.check_gpus(["0"], GpuWay.RUNTIME)
    assert backend.try_gpus([NOT_MADE]) == ["Containers get GPUs through the runtime nvidia."]
    assert trials == [("sha256:2", GpuWay.RUNTIME)]
    backend.check_gpus(["0"], GpuWay.CDI)
    with pytest.raises(GpuRefusedError):
        backend.try_gpus([NOT_MADE])


def test_an_image_that_is_no_part_of_the_run_cannot_end_it(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tried(_: object, image: str, *__: object) -> tuple[str, str]:
        if image == "sha256:2":
            raise CannotRunHereError("No such image.")
        return "", "all"

    monkeypatch.setattr(gpus, "try_access", tried)
    vars(backend.images)["any_for"] = lambda _: "sha256:2"
    backend.check_gpus(["0"])
    assert backend.try_gpus([NOT_MADE]) == []
    assert backend.try_gpus([MADE]) == ["Containers get GPUs through CDI."]


def found_access(backend: DockerBackend, *wanted: str, **images: Any) -> Any:
    """What the doctor finds of the ways to GPUs."""
    backend.images = SimpleNamespace(find=lambda _: None, room=lambda _: None, **images)  # type: ignore[assignment]
    backend.gpu_host = SimpleNamespace(absent="")  # type: ignore[assignment]
    return backend.findings([], wanted)[-1]


@pytest.fixture
def no_builder(monkeypatch: pytest.MonkeyPatch, backend: DockerBackend) -> None:
    monkeypatch.setattr(code.bake, "get_version", lambda: None)
    vars(backend.engine).update(version="28.2", address="")


@pytest.mark.usefixtures("no_builder")
def test_the_doctor_tries_the_ways_with_any_image_of_ours(
    backend: DockerBackend, trials: list[tuple[str, GpuWay]]
) -> None:
    check = found_access(backend, "0", any_for=lambda device: {Device.GPU: "sha256:2"}[device])
    assert check.level == "warn"
    assert check.value == "containers get GPUs through the runtime nvidia, as a test container showed"
    assert "It is older than the driver. Make it anew." in check.advice
    assert trials[-1] == ("sha256:2", GpuWay.RUNTIME)


@pytest.mark.usefixtures("no_builder", "trials")
def test_the_doctor_says_where_it_could_not_try_or_was_not_asked_to(backend: DockerBackend) -> None:
    no_image = {"any_for": lambda _: ""}
    untried = "containers may get GPUs through CDI, but this was not tested, because no image is available"
    assert found_access(backend, "0", **no_image).value == untried
    assert found_access(backend, **no_image).value == "containers may get GPUs through CDI"
    missing = found_access(backend, "1", any_for=lambda _: "")
    assert (missing.level, missing.value) == (
        "good",
        "containers may get GPUs through the runtime nvidia" + untried.partition("CDI")[2],
    )


def test_the_doctor_has_the_advice_of_the_connection(backend: DockerBackend) -> None:
    def refused(_: object) -> None:
        raise CannotRunHereError("Permission denied.", "Give your user access to Docker Engine.")

    backend.engine = type("Refusing", (), {"facts": property(refused)})()
    assert backend.findings([], [])[0].advice.startswith("Give your user access to Docker Engine. Without Docker, ")


@pytest.mark.parametrize("wanted", [["0"], []])
def test_a_check_of_the_gpus_does_not_recommend_itself(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch, wanted: list[str]
) -> None:
    def refuse(*_: object) -> Any:
        raise GpuRefusedError("There is no way.", gpus.INSTALL_ADVICE, "generate")

    monkeypatch.setattr(gpus, "find", refuse)
    advice = backend._check_access(wanted, []).advice
    assert ("`harness doctor --gpu` shows" in advice) is (not wanted)
    assert "install the NVIDIA driver" in advice


def test_containers_of_a_run_that_goes_on_and_of_other_users_are_not_cleaned_away() -> None:
    labels = {RUN_LABEL: "run", OWNER_LABEL: get_owner()}
    with hold_run_lock("run"):
        assert not _is_ours_and_ended(labels)
    assert _is_ours_and_ended(labels)
    assert not _is_ours_and_ended({**labels, OWNER_LABEL: "elsewhere:0"})


def test_a_launch_that_docker_desktop_refuses_needs_no_toolkit(
    backend: DockerBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> Any:
        raise CannotRunHereError('could not select device driver "nvidia" with capabilities: [[gpu]]')

    monkeypatch.setattr(code, "create_container", refuse)
    monkeypatch.setattr(backend, "_make_specification", lambda *_: None)
    backend.engine.facts = BackendFacts("docker", system="Docker Desktop")  # type: ignore[misc]
    job: Any = SimpleNamespace(limits=Limits(gpus=("0",)))
    requirement: Any = None
    with pytest.raises(GpuRefusedError) as error, backend.hold(requirement, job):
        pass
    assert "update Docker Desktop" in error.value.advice
    assert "nvidia-container-toolkit" not in error.value.advice
