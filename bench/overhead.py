"""The time that harness adds to launches, compared with a bare loop (local) and with `docker run --rm` (containers)."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.pairs import Pairs, pairs, run
from harness.backends import worker
from harness.backends.docker.backend import DockerBackend
from harness.backends.docker.recipe import make_tag
from harness.backends.local.backend import LocalBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.machine.cpus import choose
from harness.model.environment import Device, Requirement
from harness.model.errors import CannotRunHereError
from harness.model.launch import SHORT, Job, Limits
from harness.model.scenario import Cell
from harness.project import Project
from harness.scenarios.catalog import load_scenario
from harness.session.jobs import JobMaker
from harness.store.folder import RunFolder

#: A scenario that only imports TensorFlow.
IMPORT = b"""
def scenario(bench):
    import tensorflow
    bench.observe("tensorflow", tensorflow.__version__)
"""
AXES = {
    "model": "small",
    "data": "small",
    "call": "train_on_batch",
    "api": "tf.keras",
    "inputs": "numpy",
    "dtype": "float32",
}


def figures(count: int = 5) -> list[tuple[str, str]]:
    """Return the name and the value of each figure."""
    bare = "`harness matrix`, 2 cells × (pilot + 5 rounds), local, against the same launches in a bare loop"
    plain = "a container launch that imports TensorFlow 1.14, against `docker run --rm` of it"
    try:
        contained = str(container(3 * count))
    except CannotRunHereError as error:
        contained = f"not measured: {error.message.splitlines()[0]}"
    return [(bare, str(local(count))), (plain, contained)]


def local(count: int) -> Pairs:
    """Compare the whole command, including start and report, with its launches in a bare loop."""
    project = Project.find()
    requirements = {name: _requirement(project, name) for name in ("tf1.14", "tf2.0")}
    backend = LocalBackend(project.root, "bench")
    backend.prepare(list(requirements.values()), print)
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results"
        command = [sys.executable, "-m", "harness", "matrix", "--backend", "local", "-e", "tf1.14", "-e", "tf2.0"]
        cells = [f"-a{axis}={value}" for axis, value in AXES.items()] + ["-amode=graph"]
        matrix = [
            *command,
            "-s",
            "keras_step",
            *cells,
            "--seed",
            "1",
            "--warmup",
            "500ms",
            "--measure",
            "1500ms",
            "--results",
            str(results),
        ]
        run(matrix)
        stages = _stages(project, next(results.iterdir()), Path(folder) / "stages")

        def bare() -> None:
            for stage, environment in stages:
                python = backend.environments.python(requirements[environment])
                variables = {"PATH": os.environ["PATH"], "HOME": str(stage), "LANG": "C.UTF-8", **worker.ENVIRON}
                pinned = ["taskset", "-c", str(max(os.sched_getaffinity(0)))]
                subprocess.run(
                    [*pinned, str(python), *worker.ARGUMENTS], cwd=stage, env=variables, capture_output=True, check=True
                )

        return pairs(lambda: run(matrix), bare, count)


def _stages(project: Project, folder: Path, stages: Path) -> list[tuple[Path, str]]:
    """Return a folder for each launch of a run, with the same job, and the launch's environment."""
    stored = RunFolder.open(folder)
    plan = stored.read_run().plan
    jobs = JobMaker(project, {"keras_step": load_scenario(project.scenarios / "keras_step.py")}, plan.limits)
    folders = []
    for number, launch in enumerate(stored.read_launches()):
        job = jobs(launch.cell, SHORT if launch.round == 0 else plan.sampling)
        _write(stages / str(number), job)
        folders.append((stages / str(number), launch.cell.environment))
    return folders


def _write(folder: Path, job: Job) -> None:
    for name, content in worker.collect_files(job, die_with_parent=False).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def container(count: int) -> Pairs:
    """Compare a launch with all limits with a docker command that does the same work without limits."""
    project = Project.find()
    requirement = _requirement(project, "tf1.14")
    docker = DockerBackend(project.root, "bench")
    docker.prepare([requirement], print)
    cpus = choose("1", os.sched_getaffinity(0))
    files = JobMaker(project, {}, Limits()).kit | {"bare.py": IMPORT}
    cell = Cell("bare", "tf1.14", Device.CPU, {})
    job = Job(cell, "bare.py", files, SHORT, Limits(cpus=cpus, memory_bytes=4 * 2**30), {})
    plain = ["docker", "run", "--rm", f"--cpuset-cpus={','.join(map(str, cpus or ()))}", make_tag(requirement)]
    return pairs(
        lambda: docker.launch(requirement, job), lambda: run([*plain, "python", "-c", "import tensorflow"]), count
    )


def _requirement(project: Project, name: str) -> Requirement:
    return load_lock(project, load_environments(project)[name], Device.CPU)
