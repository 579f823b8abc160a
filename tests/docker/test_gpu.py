"""The way of a GPU into a container, with a real engine and GPUs of the tests' own: device nodes that are /dev/null."""

import dataclasses
import io
import json
import secrets
from pathlib import Path

import pytest

from harness.backends.compiled_code import name_cache
from harness.backends.docker import gpus as code
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.gpus import KIND, GpuAccess
from harness.catalog.project import Project
from harness.catalog.scenarios import read_kit_files
from harness.model.backend import GpuWay
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import Job, Limits, Sampling, Status
from harness.model.scenario import Cell
from tests.backends.workers import job
from tests.lacking import lacking

pytestmark = pytest.mark.docker

ROOT = Path(__file__).parents[2]

#: What the GPU images have beside the CPU's: the folder that a volume is mounted at.
GPU_IMAGE = """\
FROM {base}
USER root
RUN install -d -o harness -g harness {folder}
USER harness
"""

#: A scenario that trains nothing and computes a little, in either mode.
WORK = """
import tensorflow as tf


def scenario(bench, mode):
    if mode == "graph" and tf.executing_eagerly():
        tf.compat.v1.disable_eager_execution()
    {before}
    bench.measure(lambda: 1.0, document=3)
"""


@pytest.fixture
def gpus(no_gpus):
    """A GPU that is a device node."""
    node = {"path": "/dev/nvidia0", "hostPath": "/dev/null"}
    entries = [{"name": "0", "containerEdits": {"deviceNodes": [node]}}]
    path = no_gpus / f"harness-test-{secrets.token_hex(4)}.json"
    is_made = not no_gpus.exists()
    try:
        no_gpus.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"cdiVersion": "0.5.0", "kind": KIND, "devices": entries}))
    except OSError as error:
        lacking(f"{no_gpus} cannot be written, where the engine reads CDI specifications: {error.strerror}")
    yield
    path.unlink()
    if is_made:
        no_gpus.rmdir()


def build(engine, base: str, name: str) -> None:
    text = io.BytesIO(GPU_IMAGE.format(base=base, folder=code.CODE_FOLDER).encode())
    for line in engine.api.build(fileobj=text, tag=f"harness/{name}:gpu", rm=True, decode=True):
        assert "error" not in line, line


@pytest.fixture(scope="module")
def image(engine, built):
    """A GPU image with nothing in it, as a function of which requirement it is of."""
    name = f"test-{secrets.token_hex(4)}"
    build(engine, f"harness/{built[1].environment.name}:cpu", name)
    yield requirement_of(name)
    remove(engine, name)


@pytest.fixture(scope="module")
def tensorflow(engine, need_images):
    """TensorFlow 2.0 for the CPU in what passes for a GPU image: the harness must not believe it."""
    need_images("tf2.0")
    name = f"test-{secrets.token_hex(4)}"
    build(engine, "harness/tf2.0:cpu", name)
    yield requirement_of(name)
    remove(engine, name)


def requirement_of(name: str) -> Requirement:
    environment = Environment(name, "2.0.0", "3.7", "2020-01-01T00:00:00Z", cuda="10.0", gpu_code="sm_70 compute_70")
    return Requirement(environment, Device.GPU, Lock(Path("none"), "0", {}))


def remove(engine, name: str) -> None:
    prefix = name_cache(engine.api.inspect_image(f"harness/{name}:gpu")["Id"], {}, []).rsplit("-", 2)[0]
    for volume in code.list_code_volumes(engine):
        if volume.startswith(prefix):
            engine.api.remove_volume(volume)
    engine.api.remove_image(f"harness/{name}:gpu", force=True)


@pytest.fixture
def backend(engine):
    """A backend with a run of its own, of which nothing may be left."""
    backend = DockerBackend(ROOT, f"test-{secrets.token_hex(8)}")
    backend.engine = engine
    yield backend
    assert backend.clean(backend._run) == 0


def on_gpus(source: str, *names: str, **limits: float) -> Job:
    launch = job(f"{source}\nsay('end', status='ok')")
    return dataclasses.replace(launch, limits=dataclasses.replace(launch.limits, gpus=names, **limits))


def test_what_the_engine_refuses_at_the_start_says_what_to_do(backend, no_gpus, image):
    with pytest.raises(CannotRunHereError) as error:
        backend.check_gpus(["0"])
    assert "nvidia-ctk cdi generate" in error.value.advice
    for way, words, command in (
        (GpuWay.CDI, "unresolvable CDI devices", "nvidia-ctk cdi generate"),
        (GpuWay.RUNTIME, "unknown or invalid runtime name: nvidia", "nvidia-ctk runtime configure"),
        (GpuWay.DRIVER, "could not select device driver", "apt-get install nvidia-container-toolkit"),
    ):
        backend.access = GpuAccess(way)
        with pytest.raises(CannotRunHereError, match=words) as error:
            backend.launch(image, on_gpus("", "0"))
        assert error.value.message.startswith("--gpus 0: ")
        assert command in error.value.advice


KEEPS = (
    "folder = os.environ['CUDA_CACHE_PATH']\n"
    "say('observation', name='before', value=sorted(os.listdir(folder)))\n"
    "say('observation', name='owner', value=os.stat(folder).st_uid)\n"
    "open(os.path.join(folder, 'compiled'), 'w').close()\n"
)


def test_what_the_driver_compiles_outlives_the_container_for_the_same_scenario(backend, engine, gpus, image):
    launch = on_gpus(KEEPS, "0")
    mine, others = (dataclasses.replace(launch, files={**launch.files, name: b""}) for name in ("mine.py", "others.py"))
    first, other, second = (backend.launch(image, entry) for entry in (mine, others, mine))
    assert first.status is Status.OK, (first.error, first.stderr)
    assert first.observations == other.observations == {"before": [], "owner": 1000}
    assert second.observations["before"] == ["compiled"]
    name = name_cache(first.image, mine.files, backend.gpu_host.select(["0"]))
    assert name in backend.caches()
    assert engine.api.inspect_volume(name)["Labels"] == {code.CODE_LABEL: code.CODE_VALUE}


READS_FIRST = (
    "folder = os.environ.get('FIRST_START_CACHE_PATH', '')\n"
    "say('observation', name='first', value=sorted(os.listdir(folder)) if folder else None)\n"
    "try:\n"
    "    open(os.path.join(folder, 'changed'), 'w').close()\n"
    "except OSError as error:\n"
    "    say('observation', name='error', value=os.strerror(error.errno))\n"
)


def test_a_scenario_reads_the_code_of_the_first_start_and_cannot_change_it(backend, gpus, image):
    launch = on_gpus(f"os.chdir('/tmp')\n{READS_FIRST}", "0")
    before = backend.launch(image, launch)
    assert before.observations["first"] is None, (before.error, before.stderr)
    first_start = on_gpus(KEEPS, "0")
    kit = {name: data for name, data in first_start.files.items() if name.startswith("kit/")}
    outcome = backend.launch(image, dataclasses.replace(first_start, files=kit))
    assert outcome.status is Status.OK, (outcome.error, outcome.stderr)
    after = backend.launch(image, launch)
    assert after.observations == {"first": ["compiled"], "error": "Read-only file system"}


def test_a_launch_whose_code_may_have_to_be_compiled_gets_longer_until_one_has_gone_well(backend, gpus, image):
    limits = {"seconds": 0.001, "first_start_seconds": 60.0}
    assert backend.launch(image, on_gpus("", "0", **limits)).status is Status.OK
    outcome = backend.launch(image, on_gpus("signal.pause()", "0", **limits))
    assert (outcome.status, outcome.error) == (Status.TIMEOUT, "it was still running after 0.001 s")


def test_caches_are_removed_by_their_label(backend, engine, monkeypatch):
    monkeypatch.setattr(code, "CODE_VALUE", f"test-{secrets.token_hex(4)}")
    for name in ("a", "b"):
        code.make_volume(engine, f"harness-{code.CODE_VALUE}-{name}")
    code.make_volume(engine, f"harness-{code.CODE_VALUE}-a")  # it is there already
    assert len(backend.caches()) == 2
    assert backend.clean_caches() == 2
    assert backend.caches() == []


CAMPAIGN = pytest.mark.campaign


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    ("before", "mode"),
    [
        ("bench.device()", "eager"),
        pytest.param("bench.device()", "graph", marks=CAMPAIGN),
        pytest.param("pass", "eager", marks=CAMPAIGN),
        pytest.param("pass", "graph", marks=CAMPAIGN),
    ],
)
def test_a_run_on_the_cpu_in_place_of_the_gpu_is_caught(backend, gpus, tensorflow, mode, before):
    limits = Limits(cpus=(0,), gpus=("0",))
    script = WORK.format(before=before).encode()
    launch = Job(
        cell=Cell("work", tensorflow.environment.name, Device.GPU, {"mode": mode}),
        script="work.py",
        files={"work.py": script, **read_kit_files(Project(ROOT))},
        sampling=Sampling(warmup_seconds=0.0, measure_seconds=0.01),
        limits=limits,
        environ={},
    )
    outcome = backend.launch(tensorflow, launch)
    assert outcome.status is Status.CPU_FALLBACK, (outcome.error, outcome.stderr)
    assert outcome.error == ("TensorFlow 2.0.0 lists no GPU, only CPU:0, XLA_CPU:0: it is built without CUDA")
    # where the scenario wakes the device, nothing is measured in vain
    assert bool(outcome.samples) is (before == "pass")
    assert outcome.resources["ptx_cache_bytes"] == 0
