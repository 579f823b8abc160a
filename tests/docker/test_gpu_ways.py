"""The three ways of a GPU into a container, in an engine of the tests' own, and what becomes of one that does not work.

NVIDIA's hook and runtime are stand-ins (tests/docker/nvidia_programs.py); the engine, containerd and runc are real, and
so are the words in which they tell what these programs said.
"""

import dataclasses
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path

import pytest

from bench.gpu_check import access
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.images import Images
from harness.model.backend import GpuWay
from harness.model.errors import CannotRunHereError
from harness.model.launch import Status
from harness.store.folder import RunFolder
from tests.docker.gpu_launches import REQUIREMENT, on_gpus
from tests.docker.nvidia_engine import IMAGE, NvidiaEngine
from tests.docker.nvidia_programs import HOOK, RUNTIME

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]

#: How a rootless engine's hook ends.
CGROUPS = (
    "Auto-detected mode as 'legacy'\nnvidia-container-cli: mount error: failed to add device rules: unable to find "
    "any existing device filters attached to the cgroup: bpf_prog_query(BPF_CGROUP_DEVICE) failed: operation not "
    "permitted\n"
)


@pytest.fixture
def backend(nvidia, monkeypatch):
    """A backend of that engine, with a run of its own, of which nothing may be left."""
    monkeypatch.setenv("PATH", f"{nvidia.programs}:{os.environ['PATH']}")
    backend = DockerBackend(ROOT, f"test-{secrets.token_hex(8)}")
    backend.engine = nvidia.engine
    yield backend
    assert backend.clean(backend._run) == 0


@pytest.mark.parametrize(
    ("way", "variables"),
    [
        (GpuWay.CDI, {}),
        (GpuWay.RUNTIME, {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}),
        (GpuWay.DRIVER, {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}),
    ],
)
def test_a_launch_has_its_gpus_by_each_way_and_no_more_rights(backend, nvidia, way, variables):
    nvidia.describe()
    backend.check_gpus(["0", "1"], way)
    assert backend.try_gpus([REQUIREMENT]) == [f"Containers get GPUs through {way.words}."]
    outcome = backend.launch(REQUIREMENT, on_gpus("0", "1"))
    assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
    assert outcome.observations == {
        "nodes": ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"],
        "cuda": True,
        "variables": variables,
        "rights": [1000, 0, "1"],
    }
    assert backend.facts().gpus_by == way.words


@pytest.mark.parametrize("way", GpuWay)
def test_gpu_check_starts_cuda_through_each_way(backend, nvidia, way):
    nvidia.describe()
    image = access.pull(nvidia.engine, f"harness/{IMAGE}:gpu")
    finding = access.try_way(nvidia.engine, image, way, ["0"])
    assert finding.passed
    assert finding.sentence.startswith(f"{way}: CUDA starts in a container. ")
    # the nodes are /dev/null
    assert "/dev/nvidia0 (mode 666), /dev/nvidiactl (mode 666), /dev/nvidia-uvm (mode 666)." in finding.sentence


def test_the_tests_for_nvidias_own_toolkit_pass_with_the_substitutes(nvidia):
    nvidia.describe()
    # the substitutes give any GPU by its index, and CDI lists 0 and 1
    able = "0 or (all and not cdi) or (exist and cdi)"
    environ = {"DOCKER_HOST": nvidia.engine.address, "PATH": f"{nvidia.programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests/docker/gpu_toolkit.py", "-k", able],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout


def test_every_gpu_can_be_asked_for(backend):
    backend.check_gpus(["all"], GpuWay.DRIVER)
    assert backend.try_gpus([REQUIREMENT]) == ["Containers get GPUs through the engine's device driver."]
    assert "/dev/nvidia1" in backend.launch(REQUIREMENT, on_gpus("all")).observations["nodes"]


STALE = "/usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07"


def test_a_cdi_specification_that_is_older_than_the_driver_is_passed_over_for_the_runtime(backend, nvidia):
    nvidia.describe(STALE)
    backend.check_gpus(["0"])
    assert backend.try_gpus([REQUIREMENT]) == [
        "Containers don't get GPUs through CDI. --gpus 0: The CDI specification is older than the NVIDIA driver: it "
        f"lists {STALE}, which no longer exists. The specification is {nvidia.specifications / 'nvidia.json'}. "
        "Regenerate the specification: sudo systemctl restart nvidia-cdi-refresh || sudo nvidia-ctk cdi generate "
        "--output=/etc/cdi/nvidia.yaml",
        "Containers get GPUs through the runtime nvidia.",
    ]
    assert backend.launch(REQUIREMENT, on_gpus("0")).status is Status.OK


@pytest.mark.parametrize("is_refreshed_stale", [False, True])
def test_of_two_specifications_the_engine_uses_the_later_folders(backend, nvidia, is_refreshed_stale):
    for is_refreshed in (False, True):
        nvidia.describe(*[STALE] * (is_refreshed is is_refreshed_stale), is_refreshed=is_refreshed)
    backend.check_gpus(["0"])
    first, *_ = backend.try_gpus([REQUIREMENT])
    if is_refreshed_stale:
        assert f"The specification is {nvidia.refreshed / 'nvidia.json'}." in first
    else:
        assert first == "Containers get GPUs through CDI."


def test_a_runtime_that_fails_is_passed_over_for_the_engines_device_driver(backend, nvidia):
    nvidia.describe(hook="/usr/bin/nvidia-cdi-hook-of-another-version")
    unresolved = "failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=0"
    nvidia.fail(
        RUNTIME, f"could not apply required modification to OCI specification: error modifying OCI spec: {unresolved}"
    )
    backend.check_gpus(["0"])
    cdi, runtime, taken = backend.try_gpus([REQUIREMENT])
    assert "containers start /usr/bin/nvidia-cdi-hook-of-another-version, which is missing" in cdi
    assert "could not generate a description of the GPUs" in runtime
    assert taken == "Containers get GPUs through the engine's device driver."
    assert backend.launch(REQUIREMENT, on_gpus("0")).status is Status.OK


def test_a_way_in_which_a_container_has_no_library_of_the_driver_is_passed_over(backend, nvidia):
    nvidia.describe(has_driver=False)
    backend.check_gpus(["0"])
    lacks, taken = backend.try_gpus([REQUIREMENT])
    assert lacks.startswith("Through CDI, containers don't get everything that CUDA needs. A test container")
    assert "gets /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm and no libcuda.so.1" in lacks
    assert taken == "Containers get GPUs through the runtime nvidia."


def test_where_nothing_works_the_run_ends_with_a_sentence_for_each_way(backend, nvidia):
    nvidia.describe(STALE)
    nvidia.fail(RUNTIME, 'exec: "/usr/bin/nvidia-container-runtime-hook": executable file not found in $PATH')
    nvidia.fail(HOOK, CGROUPS)
    backend.check_gpus(["0"])
    with pytest.raises(CannotRunHereError) as error:
        backend.try_gpus([REQUIREMENT])
    first, words, *others = error.value.message.splitlines()
    assert first.startswith("--gpus 0: The CDI specification is older than the NVIDIA driver")
    assert "no such file or directory" in words
    assert [other.partition(".")[0] for other in others[-2:]] == [
        "Containers don't get GPUs through the runtime nvidia",
        "Containers don't get GPUs through the engine's device driver",
    ]
    assert error.value.advice.startswith("Regenerate the specification: sudo systemctl restart nvidia-cdi-refresh || ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (CGROUPS, "can't change control groups"),
        (
            "Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: load library failed: "
            "libnvidia-ml.so.1: cannot open shared object file: no such file or directory\n",
            "can't find libnvidia-ml.so.1",
        ),
        (
            "Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: nvml error: driver/library "
            "version mismatch\n",
            "was updated, but it wasn't reloaded",
        ),
        (
            "Auto-detected mode as 'legacy'\nnvidia-container-cli: initialization error: driver rpc error: timed out\n",
            "did not start before the time limit of NVIDIA's tools",
        ),
        (
            "Auto-detected mode as 'legacy'\nnvidia-container-cli: requirement error: unsatisfied condition: "
            "cuda>=12.8, please update your driver to a newer version, or use an earlier cuda container\n",
            "requires cuda>=12.8",
        ),
        (
            "Auto-detected mode as 'legacy'\nnvidia-container-cli: device error: 1: unknown device\n",
            "doesn't list the GPU 1.",
        ),
        (
            "Auto-detected mode as 'cdi'\ninvoking the NVIDIA Container Runtime Hook directly (e.g. specifying the "
            "docker --gpus flag) is not supported. Please use the NVIDIA Container Runtime (e.g. specify the "
            "--runtime=nvidia flag) instead\n",
            "refuses the engine's device driver",
        ),
        (
            "Auto-detected mode as 'legacy'\nnvidia-container-cli: detection error: the moon is full\n",
            "failed: the moon",
        ),
    ],
)
def test_what_nvidias_hook_says_is_known_in_what_the_engine_makes_of_it(backend, nvidia, words, sentence):
    nvidia.fail(HOOK, words)
    backend.check_gpus(["0"], GpuWay.DRIVER)
    with pytest.raises(CannotRunHereError) as error:
        backend.launch(REQUIREMENT, on_gpus("0"))
    assert sentence in error.value.message.splitlines()[0]
    assert error.value.advice


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.535.161.07", "older than the NVIDIA driver: it lists"),
        ("/lib/firmware/nvidia/535.161.07/gsp_tu10x.bin", "older than the NVIDIA driver: it lists"),
        ("/run/nvidia-persistenced/socket", "which exists only while the driver's daemon runs"),
    ],
)
def test_what_a_cdi_specification_names_and_is_not_there_is_told(backend, nvidia, path, sentence):
    nvidia.describe(path)
    backend.check_gpus(["0"], GpuWay.CDI)
    with pytest.raises(CannotRunHereError) as error:
        backend.launch(REQUIREMENT, on_gpus("0"))
    first = error.value.message.splitlines()[0]
    assert sentence in first
    assert path in first


@pytest.mark.parametrize(
    ("node", "sentence"),
    [
        ("/dev/nvidia-uvm", "the driver's CUDA module hasn't been loaded"),
        ("/dev/nvidia7", "the NVIDIA driver isn't loaded"),
        ("/dev/dri/card7", "The CDI specification lists the device /dev/dri/card7"),
    ],
)
def test_a_device_node_that_is_not_there_is_told(backend, nvidia, node, sentence):
    assert not Path(node).exists()
    nvidia.describe(node=node)
    backend.check_gpus(["0"], GpuWay.CDI)
    with pytest.raises(CannotRunHereError) as error:
        backend.launch(REQUIREMENT, on_gpus("0"))
    assert sentence in error.value.message.splitlines()[0]


@pytest.mark.parametrize("way", [GpuWay.RUNTIME, GpuWay.DRIVER])
def test_nodes_that_are_open_to_one_group_are_open_to_containers(backend, nvidia, monkeypatch, way):
    nvidia.close(44)
    backend.check_gpus(["0"], way)
    (told,) = backend.try_gpus([REQUIREMENT])
    assert "can't open /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm (EACCES)" in told
    assert "NVreg_DeviceFileMode=0666" in told
    monkeypatch.setattr("harness.backends.docker.gpus.find_groups", lambda _: [44])
    backend.check_gpus(["0"], way)
    assert backend.try_gpus([REQUIREMENT]) == [f"Containers get GPUs through {way.words}."]
    asked = on_gpus("0", source="say('observation', name='open', value=os.access('/dev/nvidia0', os.R_OK | os.W_OK))")
    assert backend.launch(REQUIREMENT, asked).observations == {"open": True}


@pytest.mark.parametrize("way", [GpuWay.RUNTIME, GpuWay.DRIVER])
def test_nodes_without_a_rule_in_the_control_group_are_closed_to_containers(backend, nvidia, way):
    nvidia.deny()
    backend.check_gpus(["0"], way)
    (message,) = backend.try_gpus([REQUIREMENT])
    assert "can't open /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm (EPERM)" in message
    assert "no-cgroups = false" in message


@pytest.fixture
def root(nvidia, gpu_project):
    """A project whose environment has an image in that engine that is right by its labels, and no TensorFlow."""
    root, requirement = gpu_project
    name = requirement.environment.name
    labels = Images(nvidia.engine, root).labels(requirement)
    nvidia.label(f"harness/{name}:gpu", labels)
    yield root
    nvidia.engine.api.remove_image(f"harness/{name}:gpu", force=True)


CELL = ["-s", "keras_step", "-e", "*"]
for _axis in ("model=small", "data=small", "call=fit", "mode=eager", "api=tf.keras", "inputs=numpy"):
    CELL += ["-a", _axis]


def test_a_run_takes_the_way_that_works_says_so_and_keeps_to_it(nvidia, root):
    nvidia.describe(STALE)
    done = harness(nvidia, root, "matrix", *CELL, "--gpu", "--rounds", "1")
    assert done.returncode == 1, done.stderr  # there is no TensorFlow in it
    told = " ".join(done.stderr.split())
    assert (
        "Containers don't get GPUs through CDI. --gpus 0: The CDI specification is older than the NVIDIA driver" in told
    )
    assert told.count("Containers get GPUs through the runtime nvidia.") == 1
    (folder,) = (root / "results").iterdir()
    assert json.loads((folder / "run.json").read_text())["backend"]["gpus_by"] == "the runtime nvidia"
    nvidia.describe()
    stored = RunFolder.open(folder)  # as if it had been killed before it wrote how its groups ended
    stored.write_run(dataclasses.replace(stored.read_run(), stops={}), signed=True)
    again = harness(nvidia, root, "matrix", "--resume", str(folder))
    assert "Containers get GPUs through the runtime nvidia." in " ".join(again.stderr.split())


def test_a_way_that_was_typed_and_does_not_work_ends_the_run_before_it_begins(nvidia, root):
    done = harness(nvidia, root, "matrix", *CELL, "--gpu-via", "cdi")
    assert done.returncode == 4, done.stderr
    assert "can't give GPUs to containers through CDI: the engine lists no nvidia.com/gpu" in done.stderr
    nvidia.fail(HOOK, CGROUPS)
    done = harness(nvidia, root, "matrix", *CELL, "--gpu-via", "driver")
    assert done.returncode == 4, done.stderr
    assert "NVIDIA's tools can't change control groups" in done.stderr
    assert "Use CDI (--gpu-via cdi), which doesn't change control groups." in done.stderr
    assert not (root / "results").exists()


def test_the_doctor_tries_the_ways(nvidia, root):
    nvidia.describe(STALE)
    done = harness(nvidia, root, "doctor", "--no-listen", "--gpu", "--json")
    (access,) = [load for load in json.loads(done.stdout)["checks"] if load["name"] == "GPU access"]
    assert (access["level"], access["value"]) == (
        "warn",
        "containers get GPUs through the runtime nvidia, as a test container showed",
    )
    assert "The CDI specification is older than the NVIDIA driver" in access["advice"]
    nvidia.describe()
    done = harness(nvidia, root, "doctor", "--no-listen", "--gpu", "--json")
    (access,) = [load for load in json.loads(done.stdout)["checks"] if load["name"] == "GPU access"]
    assert (access["level"], access["value"]) == ("good", "containers get GPUs through CDI, as a test container showed")


def harness(nvidia: NvidiaEngine, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments],
        cwd=root,
        env={
            **os.environ,
            "HARNESS_PROJECT": str(root),
            "PYTHONPATH": str(ROOT),
            "DOCKER_HOST": nvidia.engine.address,
            "PATH": f"{nvidia.programs}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
