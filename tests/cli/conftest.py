"""A project of its own for each test: two environments without packages, and scenarios that need no TensorFlow."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from harness.backends.local.backend import LocalBackend
from harness.cli import main
from harness.model.environment import Requirement
from harness.model.launch import Job, Launch, Outcome, Sample, Status
from harness.model.run import Run
from harness.store.folder import RunFolder
from tests.conftest import ROOT, copy_part
from tests.forked import Forks
from tests.runner.stage import Answered

BAKE = """
variable "ENVIRONMENTS" {
  default = [
    { name = "old", tensorflow = "1.0.0", python = "3.11", as_of = "2019-09-01T00:00:00Z" },
    { name = "new", tensorflow = "2.0.0", python = "3.11", as_of = "2019-11-01T00:00:00Z" },
  ]
}
"""

#: Does as its axis says, so that every way to end can be selected.
SCENARIO = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Ways to end"
# source = "https://example.org/question"
#
# [tool.harness.axes]
# way = ["fine", "raises", "exits", "killed", "prints", "garbage", "endless", "signals"]
# speed = ["fast", "slow"]
#
# [tool.harness.default]
# speed = "fast"
#
# [[tool.harness.needs]]
# when = { way = "signals" }
# requires = ["tensorflow>=99"]
# reason = "no release does this"
#
# [[tool.harness.compare]]
# name = "new against old"
# along = "environment"
# ///
import os, signal, sys, time


def scenario(bench, way, speed):
    if way == "raises":
        raise ValueError("a | pipe and \\033[31mcolour")
    if way == "exits":
        sys.exit(0)
    if way == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if way == "prints":
        for _ in range(64):
            print("x" * 2**16)
            print("y" * 2**16, file=sys.stderr)
    if way == "garbage":
        for number in range(3, 32):
            try:
                os.write(number, b"garbage\\n")
            except OSError:
                pass
    if way == "endless":
        signal.pause()
    bench.measure(lambda: sum(range(1000 if speed == "fast" else 3000)), document=100)
"""


#: What two issues claim: that a sum is twice as slow in the environment `old`, and that another one takes for ever.
CLAIMS = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Sums"
# tags = ["upstream", "calls"]
#
# [tool.harness.axes]
# length = ["short", "long"]
#
# [[tool.harness.claim]]
# issue = "T#1001"
# reported = "a long sum takes ten times as long"
# worse = { environment = "old", length = "long" }
# better = { environment = "old", length = "short" }
# ratio = [5, 30]
# [[tool.harness.claim]]
# issue = "K#7"
# reported = "a long sum takes a minute"
# worse = { environment = "old", length = "long" }
# seconds = [60, 90]
# visible = ["gpu"]
# ///


def scenario(bench, length):
    # one step takes longer than a sample, so both cells measure the same steps: a trend can't withhold the outcome
    numbers = range(200_000 if length == "short" else 2_000_000)
    bench.measure(lambda: sum(numbers))
"""

#: An environment without an engine.
NOWHERE = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}


#: Local launches as short as can be.
SHORT = ("--backend", "local", "--warmup", "1ms", "--measure", "5ms", "--seed", "1")


def stored(results: Path, run: Run, launches: Iterable[Launch]) -> Path:
    """A run's folder that no launch had to be made for."""
    folder = RunFolder.create(results, run.id)
    folder.write_run(run)
    for launch in launches:
        folder.append(launch)
    return folder.path


class Harness:
    """The command, in a project of its own."""

    def __init__(self, root: Path, forks: Forks) -> None:
        self.root = root
        self.forks = forks
        self.environ = {**os.environ, "HARNESS_PROJECT": str(root), "COLUMNS": "200"}

    def command(self, *arguments: str) -> list[str]:
        """What is executed."""
        return [sys.executable, "-m", "harness", *arguments]

    def __call__(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        variables = {**self.environ, **environ}
        if self.forks.takes(variables):
            return self.forks.run(arguments, environ=variables, folder=self.root, seconds=120)
        return subprocess.run(
            self.command(*arguments),
            cwd=self.root,
            env=variables,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def call(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the command in this process, which is ten times as fast."""
        output, errors = (TextIOWrapper(BytesIO(), "utf-8", newline="\n") for _ in range(2))
        code = 0
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(output), redirect_stderr(errors):
            patch.chdir(self.root)
            patch.setattr(sys, "argv", ["harness", *arguments])
            patch.setattr(sys.modules["__main__"], "__package__", "")  # so that help names the command
            for name, value in {**self.environ, **environ}.items():
                patch.setenv(name, value)
            try:
                main()
            except SystemExit as ending:
                code = int(ending.code or 0)
        texts = []
        for stream in (output, errors):
            stream.flush()
            texts.append(stream.buffer.getvalue().decode())  # type: ignore[attr-defined]
        return subprocess.CompletedProcess(["harness", *arguments], code, *texts)

    def matrix(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """`harness matrix` in local environments, with launches as short as can be."""
        return self("matrix", *arguments, *SHORT, **environ)

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start a command, to be interrupted."""
        return subprocess.Popen(
            self.command(*arguments),
            cwd=self.root,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def run(self) -> Path:
        """The folder of the one run there is."""
        (folder,) = (self.root / "results").iterdir()
        return folder

    @property
    def launches(self) -> list[dict[str, Any]]:
        """What it has stored, less rounds that were done again because something else ran on this machine."""
        stored = [json.loads(line) for line in (self.run / "launches.jsonl").read_text().splitlines()]
        return [launch for launch in stored if launch["attempt"] == 0]


def write_project(root: Path) -> None:
    """Write a project with two environments and the scenario `ways`, which need no TensorFlow."""
    shutil.copytree(ROOT / "images", root / "images", ignore=shutil.ignore_patterns("locks"))
    copy_part("scenarios/kit", root)
    (root / "docker-bake.hcl").write_text(BAKE)
    (root / "scenarios" / "ways.py").write_text(SCENARIO)
    (root / "images" / "locks").mkdir()
    for name in ("old", "new"):
        (root / "images" / "locks" / f"{name}-cpu.txt").write_text("# nothing\n")


@pytest.fixture(scope="session")
def _environments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache for the session: the two environments are made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, _environments: Path, forks: Forks) -> Harness:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(_environments))
    root = tmp_path / "project"
    write_project(root)
    return Harness(root, forks)


@pytest.fixture
def write_scenario(harness: Harness) -> Callable[[str, str], Path]:
    """Write another scenario beside `ways`, or over it."""

    def write(name: str, text: str) -> Path:
        path = harness.root / "scenarios" / f"{name}.py"
        path.write_text(text)
        return path

    return write


@dataclass
class InstantLaunches:
    """Launches in local environments that start no process. `answer` gives the outcome of a job."""

    jobs: list[tuple[Requirement, Job]] = field(default_factory=list)
    answer: Callable[[Job], Outcome] = lambda _: Outcome(Status.OK, samples=[Sample(0.1, 100)], calls_per_sample=100)

    @contextmanager
    def hold(self, requirement: Requirement, job: Job) -> Iterator[Answered]:
        self.jobs.append((requirement, job))
        yield Answered(job, lambda: self.answer(job), [])


@pytest.fixture
def instant(monkeypatch: pytest.MonkeyPatch) -> InstantLaunches:
    """Replace the launches of local environments by launches that end at once."""
    launches = InstantLaunches()
    monkeypatch.setattr(LocalBackend, "hold", lambda _, requirement, job: launches.hold(requirement, job))
    return launches
