import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.cdi import list_device_names
from harness.backends.docker.engine import connect
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import SHORT, Job, Limits
from harness.model.scenario import Cell
from harness.project import Project as Folder
from harness.scenarios.catalog import read_kit_files
from tests.conftest import ROOT, copy_part
from tests.docker.nvidia_engine import running, small
from tests.lacking import lacking

#: The image that CPU images are built on, and in how many seconds a registry has to give it.
BASE, PULL_SECONDS = "python:{}-slim-bookworm", 60


@pytest.fixture(scope="session")
def engine():
    """A Docker Engine."""
    try:
        return connect()
    except CannotRunHereError as error:
        lacking(str(error))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport():
    """Give all skipped tests one location, so that the summary has one line for each reason."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        report.longrepr = (lacking.__code__.co_filename, lacking.__code__.co_firstlineno, report.longrepr[2])
    return report


@contextlib.contextmanager
def locked(path):
    """Hold a lock between processes during the block."""
    with path.open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="session")
def shared_folder(tmp_path_factory):
    """Return the folder that is common to all processes of a pytest session."""
    folder = tmp_path_factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def need_bases(engine, shared_folder):
    """Return a function that skips a test if the base image of a Python version is missing. uv needs 3.11."""
    present = {}

    def need(*versions):
        for version in ("3.11", *versions):
            image = BASE.format(version)
            if image not in present:
                present[image] = find_or_pull(engine, image, shared_folder)
            if not present[image]:
                lacking(f"the engine lacks the image {image}, and could not pull it within {PULL_SECONDS} s")

    return need


def find_or_pull(engine, image, folder):
    """Return whether the engine has an image, after an attempt to pull it. Only one process tries to pull it."""
    note = folder / f"absent-{hashlib.sha256(image.encode()).hexdigest()}"
    with locked(folder / "bases.lock"):
        if not engine.api.images(name=image) and not note.exists():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                command = ["docker", "pull", "--quiet", image]
                subprocess.run(command, capture_output=True, timeout=PULL_SECONDS, check=False)
        is_here = bool(engine.api.images(name=image))
        if not is_here:
            note.touch()
    return is_here


@pytest.fixture(scope="session")
def need_images(need_bases, shared_folder):
    """Return a function that builds CPU images of the catalog, in one process at a time."""
    project = Folder(ROOT)
    environments = load_environments(project)

    def need(*names):
        requirements = [load_lock(project, environments[name], Device.CPU) for name in names]
        need_bases(*(requirement.environment.python for requirement in requirements))
        with locked(shared_folder / "images.lock"):
            DockerBackend(ROOT, "test").prepare(requirements, lambda step: None)
        return requirements

    return need


@pytest.fixture(scope="module")
def launched(need_images):
    """Launches a script with these axes in an environment of the catalogue, on a CPU, and returns the outcome.

    `device` is the device in the job.
    """
    project = Folder(ROOT)
    files = {"keras_step.py": (project.scenarios / "keras_step.py").read_bytes(), **read_kit_files(project)}
    backend = DockerBackend(ROOT, f"test-{secrets.token_hex(8)}")

    def launch(name, script, axes, device=Device.CPU, **changes):
        (requirement,) = need_images(name)
        cell = Cell("script", name, device, axes)
        options = {"sampling": SHORT, "environ": {}, **changes}
        job = Job(cell, "script.py", {"script.py": script, **files}, limits=Limits(), **options)
        return backend.launch(requirement, job)

    yield launch
    assert backend.clean(backend._run) == 0


#: The keys of an environment in the bake file.
KEYS = ("name", "tensorflow", "python", "as_of", "cuda", "cudnn", "gpu_code", "cuda_image", "gpu_image")


def copy_images(root: Path) -> None:
    """Copy what images are built from to a project, which gets an empty folder of locks."""
    (root / "images" / "locks").mkdir(parents=True)
    for path in (ROOT / "images").glob("*.*"):
        shutil.copy(path, root / "images")


def write_catalog(root: Path, environments: Iterable[Environment]) -> None:
    """Write our bake file with other environments."""
    entries = [[f'{key} = "{getattr(entry, key)}"' for key in KEYS if getattr(entry, key)] for entry in environments]
    listed = "".join(f"    {{ {', '.join(pairs)} }},\n" for pairs in entries)
    text = (ROOT / "docker-bake.hcl").read_text()
    bake = re.sub(r"default = \[.*?\n  \]", lambda _: f"default = [\n{listed}  ]", text, count=1, flags=re.DOTALL)
    (root / "docker-bake.hcl").write_text(bake)


@pytest.fixture
def gpu_project(tmp_path):
    """A project whose one environment is TensorFlow 2.0 for GPUs, by a name of its own: its folder, and that."""
    root, name = tmp_path / "project", f"test-{secrets.token_hex(4)}"
    copy_images(root)
    copy_part("scenarios", root)
    (root / "images" / "locks" / f"{name}-gpu.txt").write_text("tensorflow==2.0.0\nkeras==2.3.1\n")
    gpu = {"cuda": "11.2", "cudnn": "8.1", "gpu_code": "sm_35 compute_80"}
    write_catalog(root, [Environment(name, "2.0.0", "3.7", "2020-01-01T00:00:00Z", **gpu)])
    project = Folder(root)
    return root, load_lock(project, load_environments(project)[name], Device.GPU)


@pytest.fixture(scope="session")
def _nvidia(engine, built):
    with running(engine) as nvidia:
        nvidia.load(small(engine, f"harness/{built[1].environment.name}:cpu"))
        yield nvidia


@pytest.fixture
def nvidia(_nvidia):
    """An engine of the tests' own that gives GPUs by NVIDIA's hook and runtime, and by CDI once that describes some."""
    yield _nvidia
    _nvidia.mend()


@pytest.fixture(scope="module")
def no_gpus(engine):
    """The folder of CDI specifications that tests may write to, on a machine without GPUs, one process at a time."""
    folders = [Path(folder) for folder in engine.info.get("CDISpecDirs") or ()]
    if not engine.is_here or not folders:
        lacking("CDI is off in the engine, or it is elsewhere: these tests write a CDI specification of their own")
    with locked(Path(tempfile.gettempdir(), "harness-tests-cdi.lock")):
        # a test that was killed leaves its own, and whoever has the lock is alone
        for left in (path for folder in folders for path in folder.glob("harness-*.json")):
            left.unlink()
        if list_device_names(folders):
            lacking("this machine has GPUs by CDI: a second specification of them would be refused")
        yield folders[-1]


class Project:
    """A project of the tests' own: our images/ and bake file, with other environments, whose locks name nothing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        copy_images(root)
        self.requirements: list[Requirement] = []

    def add(self, name: str, python: str, lock: str = "") -> Requirement:
        path = self.root / "images" / "locks" / f"{name}-cpu.txt"
        path.write_text(lock or f"# {name}: nothing\n")
        environment = Environment(name, "0", python, "2020-01-01T00:00:00Z")
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        self.requirements.append(Requirement(environment, Device.CPU, Lock(path, sha256, {})))
        write_catalog(self.root, [requirement.environment for requirement in self.requirements])
        return self.requirements[-1]


@pytest.fixture
def project(tmp_path, engine, need_bases, monkeypatch):
    """An empty project; its images are removed at the end."""
    need_bases()
    monkeypatch.delenv("REGISTRY", raising=False)
    project = Project(tmp_path)
    yield project
    _remove_images(engine, project)


@pytest.fixture(scope="session")
def built(engine, need_bases, tmp_path_factory):
    """Build the image of an empty lock, in a project of this process."""
    need_bases()
    project = Project(tmp_path_factory.mktemp("built"))
    requirement = project.add(f"test-{secrets.token_hex(4)}", "3.11")
    DockerBackend(project.root, "test").prepare(project.requirements, lambda line: None)
    yield project, requirement
    _remove_images(engine, project)


@pytest.fixture
def requirement(built):
    return built[1]


@pytest.fixture
def docker(built, engine):
    """A backend with that image and a run of its own, of which nothing may be left."""
    backend = DockerBackend(built[0].root, f"test-{secrets.token_hex(8)}")
    backend.engine = engine
    yield backend
    assert backend.clean(backend._run) == 0


def _remove_images(engine, project):
    from docker.errors import ImageNotFound

    for requirement in project.requirements:
        with contextlib.suppress(ImageNotFound):
            engine.api.remove_image(f"harness/{requirement.environment.name}:cpu", force=True)
