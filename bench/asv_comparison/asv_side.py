"""The side of asv: an environment for asv, its `existing` environments, and one `asv run` for both."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench.asv_comparison.results import Measured
from bench.pairs import run
from harness.analysis.statistics import Interval
from harness.backends import worker
from harness.backends.local.backend import LocalBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.machine.cpus import keep_process_off
from harness.machine.lock import hold_machine
from harness.machine.uv import get_last_lines, run_uv
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, UsageError
from harness.project import Project

#: asv itself (with Python 3.11), and the package that it imports in the measured environment (Python 3.7 or later).
ASV, RUNNER = "asv==0.6.6", "asv_runner==0.3.2"
ENVIRONMENTS = ("tf1.14", "tf2.0")
HERE = Path(__file__).parent


class Asv:
    """asv with its environment in `folder`, pinned to `cpus` while it measures (None: not pinned).

    `rounds` is the number of processes that measure each environment. All processes of the first environment come
    before the processes of the second one.
    """

    def __init__(self, folder: Path, rounds: int, cpus: tuple[int, ...] | None) -> None:
        self._folder = folder
        self._rounds = rounds
        self._cpus = cpus
        self._count = 0
        self._install()
        self._pythons = [self._wrapped(name, python) for name, python in _environments().items()]
        # the seconds that asv takes before it measures anything
        self._overhead, _ = self._run(1, 0.0)

    def measure(self, wall: float) -> Measured:
        """Run `asv run` once for both environments, in about `wall` seconds.

        Raises UsageError if asv's processes use all of this time before they measure anything.
        """
        seconds = (wall - self._overhead) / (self._rounds * len(ENVIRONMENTS))
        if seconds <= 0.0:
            raise UsageError(
                f"asv takes {self._overhead:.1f} s for {self._rounds} processes in each of two environments before it"
                f" measures, and {wall:.1f} s are its share.",
                "Give both more: `-- --rounds 10`, or --seconds.",
            )
        taken, results = self._run(1_000_000, seconds)
        self._overhead += taken - wall
        verdict = json.loads(
            run([str(self._bin / "python"), str(HERE / "verdict.py"), str(results), *self._pythons]).stdout
        )
        return _measured(
            verdict, taken, f"{self._rounds} processes each, {seconds:.1f} s of samples in each; 99 %, ends divided"
        )

    @property
    def _bin(self) -> Path:
        return self._folder / "asv" / "bin"

    def _install(self) -> None:
        """Install asv in a separate environment, and create a repository for its results and a machine file."""
        _uv("venv", "--quiet", "--no-project", "--clear", "--python", sys.executable, str(self._folder / "asv"))
        _uv("pip", "install", "--quiet", "--python", str(self._bin / "python"), ASV, RUNNER)
        repository = self._folder / "repository"
        identity = ["-c", "user.name=bench", "-c", "user.email=bench@localhost"]
        run(["git", "init", "--quiet", "--initial-branch=main", str(repository)])
        run(["git", "-C", str(repository), *identity, "commit", "--quiet", "--allow-empty", "--message=none"])
        run([str(self._bin / "asv"), "machine", "--yes", "--config", str(self._configured())], env=self._variables)

    def _wrapped(self, name: str, python: Path) -> str:
        """Write a command that starts this interpreter and finds asv_runner, and return its path.

        The command is outside of the environment, which stays as it was locked. asv removes PYTHONPATH from sys.path
        before it imports a benchmark, so nothing in the environment is shadowed.
        """
        folder = self._folder / name
        packages = folder / "packages"
        _uv("pip", "install", "--quiet", "--python", str(python), "--target", str(packages), RUNNER)
        wrapper = folder / "python"
        wrapper.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{python}" "$@"\n')
        wrapper.chmod(0o755)
        return str(wrapper)

    def _run(self, repeat: int, seconds: float) -> tuple[float, Path]:
        """Run asv once with at most `repeat` samples per process. Return the seconds that it took, and its results."""
        self._count += 1
        results = self._folder / "results" / str(self._count)
        command = [str(self._bin / "asv"), "run", "--config", str(self._configured()), "--set-commit-hash", "main"]
        command += ["--launch-method", "spawn", "--record-samples", "--show-stderr"]
        command += ["-a", f"rounds={self._rounds}", "-a", f"repeat=(1,{repeat},{seconds})"]
        command += [f"--cpu-affinity={','.join(map(str, self._cpus))}"] if self._cpus else []
        command += [f"--environment=existing:{python}" for python in self._pythons]
        with hold_machine(), keep_process_off(self._cpus):
            started = time.perf_counter()
            process = subprocess.run(
                command, env=self._variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
            )
            taken = time.perf_counter() - started
        if process.returncode:
            raise CannotRunHereError(f"asv failed:\n{get_last_lines(process.stdout, 30)}")
        return taken, results

    def _configured(self) -> Path:
        """Write asv's configuration for the next run, whose results get a new folder."""
        configuration = {
            "version": 1,
            "project": "keras_step",
            "repo": str(self._folder / "repository"),
            "branches": ["main"],
            "environment_type": "existing",
            "benchmark_dir": str(HERE / "benchmarks"),
            "env_dir": str(self._folder / "env"),
            "results_dir": str(self._folder / "results" / str(self._count)),
            "default_benchmark_timeout": 3600,
        }
        path = self._folder / "asv.conf.json"
        path.write_text(json.dumps(configuration))
        return path

    @property
    def _variables(self) -> Mapping[str, str]:
        """Return the environment variables of a launch of harness."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "PYTHONNOUSERSITE": "1",
            "CUDA_VISIBLE_DEVICES": "-1",
            **worker.ENVIRON,
        }


def _environments() -> dict[str, Path]:
    """Return the interpreters of harness's local environments. Create missing environments."""
    project = Project.find()
    environments = load_environments(project)
    requirements = {name: load_lock(project, environments[name], Device.CPU) for name in ENVIRONMENTS}
    backend = LocalBackend(project.root, "bench")
    backend.prepare(list(requirements.values()), lambda line: print(line, file=sys.stderr))
    return {name: backend.environments.python(requirement) for name, requirement in requirements.items()}


def _measured(verdict: dict, taken: float, note: str) -> Measured:
    first, second = verdict["results"]
    interval = Interval(second["low"] / first["high"], second["high"] / first["low"])
    ratio = second["median"] / first["median"]
    note += f"; {first['samples']} and {second['samples']} samples"
    return Measured("asv", taken, note, (first["median"], second["median"]), ratio, interval, verdict["verdict"])


def _uv(*arguments: str) -> None:
    process = run_uv(arguments)
    if process.returncode:
        raise CannotRunHereError(f"uv {' '.join(arguments[:2])} failed:\n{get_last_lines(process.stderr)}")
