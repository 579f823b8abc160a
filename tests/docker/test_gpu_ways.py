"""The three ways of a GPU into a container, in an engine of the tests' own, and what becomes of one that does not work.

NVIDIA's hook and runtime are stand-ins (tests/docker/nvidia_programs.py); the engine, containerd and runc are real, and
so are the words in which they tell what these programs said.
"""

import dataclasses
import json
import os
import secrets
import subprocess
from pathlib import Path

import pytest

from harness.backends.compiled_code import name_cache
from harness.backends.docker import code_volumes, gpu_trial, gpus
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.gpu_refusals import GpuRefusedError
from harness.backends.docker.images import Images
from harness.model.backend import GpuWay
from harness.model.launch import Status
from harness.store.folder import RunFolder
from tests.commands import run_harness
from tests.conftest import ROOT
from tests.docker.gpu_launches import REQUIREMENT, on_gpus
from tests.docker.nvidia_engine import NvidiaEngine
from tests.docker.nvidia_programs import HOOK, RUNTIME
from tests.errors import catch

pytestmark = pytest.mark.docker

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


def test_a_launch_has_its_gpus_by_each_way_and_no_more_rights(backend, nvidia):
    nvidia.describe()
    variables = {"NVIDIA_VISIBLE_DEVICES": "0,1", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
    for way in GpuWay:
        backend.check_gpus(["0", "1"], way)
        assert backend.try_gpus([REQUIREMENT]) == [f"Containers get GPUs through {way.words}."]
        outcome = backend.launch(REQUIREMENT, on_gpus("0", "1"))
        assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
        assert outcome.observations == {
            "nodes": ["/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl"],
            "cuda": True,
            "variables": {} if way is GpuWay.CDI else variables,
            "rights": [1000, 0, "1"],
        }
        assert backend.facts().gpus_by == way.words
        assert "/dev/nvidia1" not in backend.launch(REQUIREMENT, on_gpus("0")).observations["nodes"]
    backend.check_gpus(["all"], GpuWay.DRIVER)
    assert backend.try_gpus([REQUIREMENT]) == ["Containers get GPUs through the engine's device driver."]
    assert "/dev/nvidia1" in backend.launch(REQUIREMENT, on_gpus("all")).observations["nodes"]
    nodes = "import glob; say('observation', name='nodes', value=glob.glob('/dev/nvidia*'))"
    assert backend.launch(REQUIREMENT, on_gpus(source=nodes)).observations == {"nodes": []}


STALE = "/usr/lib/x86_64-linux-gnu/libEGL_nvidia.so.535.161.07"


def test_a_way_that_does_not_work_is_passed_over_for_the_next(backend, nvidia):
    # a specification that is older than the driver
    nvidia.describe(STALE)
    backend.check_gpus(["0"])
    cdi, chosen = backend.try_gpus([REQUIREMENT])
    assert STALE in cdi
    assert f"The specification is {nvidia.specifications / 'nvidia.json'}." in cdi
    assert chosen == "Containers get GPUs through the runtime nvidia."
    assert backend.launch(REQUIREMENT, on_gpus("0")).status is Status.OK
    # a container that has no library of the driver
    nvidia.describe(has_driver=False)
    backend.check_gpus(["0"])
    cdi, chosen = backend.try_gpus([REQUIREMENT])
    assert "gets /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm and no libcuda.so.1" in cdi
    assert chosen == "Containers get GPUs through the runtime nvidia."
    # a hook that is missing, and a runtime that fails
    nvidia.describe(hook="/usr/bin/nvidia-cdi-hook-of-another-version")
    nvidia.fail(RUNTIME, "failed to inject CDI devices: unresolvable CDI devices runtime.nvidia.com/gpu=0")
    backend.check_gpus(["0"])
    cdi, runtime, chosen = backend.try_gpus([REQUIREMENT])
    assert "/usr/bin/nvidia-cdi-hook-of-another-version is missing" in cdi
    assert "do not describe runtime.nvidia.com/gpu=0" in runtime
    assert chosen == "Containers get GPUs through the engine's device driver."
    assert backend.launch(REQUIREMENT, on_gpus("0")).status is Status.OK
    # nothing works
    nvidia.describe(STALE)
    nvidia.fail(HOOK, CGROUPS)
    backend.check_gpus(["0"])
    error = catch(GpuRefusedError, backend.try_gpus, [REQUIREMENT])
    first, words, *others = error.message.splitlines()
    assert STALE in first
    assert "no such file or directory" in words
    ways = [other.partition(".")[0].partition("through ")[2] for other in others[-2:]]
    assert ways == ["the runtime nvidia", "the engine's device driver"]
    assert "sudo systemctl restart nvidia-cdi-refresh || " in error.advice


def test_what_is_not_there_is_known_in_what_the_engine_makes_of_it(backend, nvidia):
    """Words of NVIDIA's hook, paths of a CDI specification, and device nodes."""
    nvidia.fail(HOOK, CGROUPS)
    backend.check_gpus(["0"], GpuWay.DRIVER)
    error = catch(GpuRefusedError, backend.launch, REQUIREMENT, on_gpus("0"))
    assert "can't change control groups" in error.message.splitlines()[0]
    assert error.advice
    path = "/run/nvidia-persistenced/socket"
    nvidia.describe(path)
    backend.check_gpus(["0"], GpuWay.CDI)
    error = catch(GpuRefusedError, backend.launch, REQUIREMENT, on_gpus("0"))
    assert f"{path}, which doesn't exist" in error.message.splitlines()[0]
    nvidia.describe(node="/dev/nvidia7")
    error = catch(GpuRefusedError, backend.launch, REQUIREMENT, on_gpus("0"))
    assert "the device /dev/nvidia7, which is missing" in error.message.splitlines()[0]


def test_nodes_that_containers_cannot_open_are_told_or_opened_by_their_group(backend, nvidia, monkeypatch):
    nodes = "can't open /dev/nvidia0, /dev/nvidiactl, /dev/nvidia-uvm"
    nvidia.close(44)
    backend.check_gpus(["0"], GpuWay.RUNTIME)
    (sentence,) = backend.try_gpus([REQUIREMENT])
    assert f"{nodes} (EACCES)" in sentence
    for module in (gpu_trial, gpus):
        monkeypatch.setattr(module, "find_groups", lambda _: [44])
    backend.check_gpus(["0"], GpuWay.RUNTIME)
    assert backend.try_gpus([REQUIREMENT]) == ["Containers get GPUs through the runtime nvidia."]
    source = "say('observation', name='open', value=os.access('/dev/nvidia0', os.R_OK | os.W_OK))"
    assert backend.launch(REQUIREMENT, on_gpus("0", source=source)).observations == {"open": True}
    monkeypatch.undo()
    # nodes without a rule in the control group
    nvidia.mend()
    nvidia.deny()
    backend.check_gpus(["0"], GpuWay.RUNTIME)
    (sentence,) = backend.try_gpus([REQUIREMENT])
    assert f"{nodes} (EPERM)" in sentence


def test_an_engine_without_nvidias_programs_says_what_to_do_and_caches_are_removed(
    docker, no_gpus, requirement, monkeypatch
):
    monkeypatch.setattr(code_volumes, "VALUE", f"test-{secrets.token_hex(4)}")
    assert "nvidia-ctk cdi generate" in catch(GpuRefusedError, docker.check_gpus, ["0"]).advice
    for way, words, command in (
        (GpuWay.CDI, "unresolvable CDI devices", "nvidia-ctk cdi generate"),
        (GpuWay.RUNTIME, "unknown or invalid runtime name: nvidia", "nvidia-ctk runtime configure"),
        (GpuWay.DRIVER, "could not select device driver", "apt-get install nvidia-container-toolkit"),
    ):
        docker.access = gpus.GpuAccess(way)
        error = catch(GpuRefusedError, docker.launch, requirement, on_gpus("0"))
        assert error.message.startswith("--gpus 0: ")
        assert words in error.message
        assert command in error.advice
    # each launch had the same cache
    assert (len(docker.caches()), docker.clean_caches(), docker.caches()) == (1, 1, [])


KEEPS = (
    "folder = os.environ['CUDA_CACHE_PATH']\n"
    "say('observation', name='before', value=sorted(os.listdir(folder)))\n"
    "say('observation', name='owner', value=os.stat(folder).st_uid)\n"
    "open(os.path.join(folder, 'compiled'), 'w').close()\n"
)


def test_what_the_driver_compiles_outlives_the_container_for_the_same_scenario(backend, nvidia):
    nvidia.describe()
    launch = on_gpus("0", source=KEEPS)
    mine, others = (dataclasses.replace(launch, files={**launch.files, name: b""}) for name in ("mine.py", "others.py"))
    first, other, second = (backend.launch(REQUIREMENT, entry) for entry in (mine, others, mine))
    assert first.status is Status.OK, (first.error, first.stderr)
    assert first.observations == other.observations == {"before": [], "owner": 1000}
    assert second.observations["before"] == ["compiled"]
    name = name_cache(first.image, mine.files, backend.gpu_host.select(["0"]))
    assert name in backend.caches()
    assert nvidia.engine.api.inspect_volume(name)["Labels"] == {code_volumes.LABEL: code_volumes.VALUE}


READS_FIRST = (
    "folder = os.environ.get('FIRST_START_CACHE_PATH', '')\n"
    "say('observation', name='first', value=sorted(os.listdir(folder)) if folder else None)\n"
    "try:\n"
    "    open(os.path.join(folder, 'changed'), 'w').close()\n"
    "except OSError as error:\n"
    "    say('observation', name='error', value=os.strerror(error.errno))\n"
)


def test_a_scenario_reads_the_code_of_the_first_start_and_cannot_change_it(backend, nvidia):
    nvidia.describe()
    launch = on_gpus("0", source=f"os.chdir('/tmp')\n{READS_FIRST}")
    before = backend.launch(REQUIREMENT, launch)
    assert before.observations["first"] is None, (before.error, before.stderr)
    first_start = on_gpus("0", source=KEEPS)
    kit = {name: data for name, data in first_start.files.items() if name.startswith("kit/")}
    outcome = backend.launch(REQUIREMENT, dataclasses.replace(first_start, files=kit))
    assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
    after = backend.launch(REQUIREMENT, launch)
    assert after.observations == {"first": ["compiled"], "error": "Read-only file system"}


def test_a_launch_whose_code_may_have_to_be_compiled_gets_longer_until_one_has_gone_well(backend, nvidia):
    nvidia.describe()
    limits = {"seconds": 0.001, "first_start_seconds": 60.0}
    assert backend.launch(REQUIREMENT, on_gpus("0", source="", **limits)).status is Status.OK
    outcome = backend.launch(REQUIREMENT, on_gpus("0", source="signal.pause()", **limits))
    assert (outcome.status, outcome.error) == (Status.TIMEOUT, "it was still running after 0.001 s")


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
    process = harness(nvidia, root, "matrix", *CELL, "--gpu", "--rounds", "1")
    assert process.returncode == 1, process.stderr  # there is no TensorFlow in it
    messages = " ".join(process.stderr.split())
    assert STALE in messages
    assert messages.count("Containers get GPUs through the runtime nvidia.") == 1
    (folder,) = (root / "results").iterdir()
    assert json.loads((folder / "run.json").read_text())["backend"]["gpus_by"] == "the runtime nvidia"
    nvidia.describe()
    stored = RunFolder.open(folder)  # as if it had been killed before it wrote how its groups ended
    stored.write_run(dataclasses.replace(stored.read_run(), stops={}), signed=True)
    resumed = harness(nvidia, root, "matrix", "--resume", str(folder))
    assert "Containers get GPUs through the runtime nvidia." in " ".join(resumed.stderr.split())


def test_a_way_that_was_requested_and_does_not_work_ends_the_run_before_it_begins(nvidia, root):
    nvidia.fail(HOOK, CGROUPS)
    process = harness(nvidia, root, "matrix", *CELL, "--gpu-via", "driver")
    assert process.returncode == 4, process.stderr
    assert "can't change control groups" in process.stderr
    assert "--gpu-via cdi" in process.stderr
    assert not (root / "results").exists()


def harness(nvidia: NvidiaEngine, root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = f"{nvidia.programs}:{os.environ['PATH']}"
    return run_harness(*arguments, cwd=root, HARNESS_PROJECT=str(root), DOCKER_HOST=nvidia.engine.address, PATH=path)
