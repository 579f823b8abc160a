"""`kill -9` at each point of a run and at any moment: what was finished is there once, and nothing else is left."""

import itertools
import os
import random
import shutil
import signal
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import session
from harness.files import get_cache_dir
from harness.history import summary
from harness.history.folder import History
from harness.model.launch import Status
from tests.cli.conftest import CLAIMS, NOWHERE, Harness, stored
from tests.fleet import test_merge as fleet
from tests.lacking import campaign, for_a_campaign

#: As short as a run can be that has launches that take turns, a control and a report.
RUN = (
    *("matrix", "-s", "ways", "-a", "way=fine", "--rounds", "1", "--backend", "local", "--seed", "1"),
    *("--warmup", "1ms", "--measure", "5ms"),
)

#: What such a run has: each cell, and the control.
LAUNCHES = 3

#: Where the last line of a run is torn.
TORN = ("harness.store.folder:append", 3, "amid")

#: Where each kind of command is killed.
POINTS = tomllib.loads(Path(__file__).with_name("kill_points.toml").read_text())

#: How many launches a run of two rounds has, before which there is a pilot.
LAUNCHES_WITH_A_PILOT = 2 + 2 * LAUNCHES


#: A step that is slower in the environment `new`, and of which a launch takes no longer than one call.
SLOWER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Slower"
# ///
import sys


def scenario(bench):
    numbers = range(1_000_000 if "/new-" in sys.prefix else 100_000)
    bench.once(lambda: sum(numbers))
"""

#: Other commands that measure, and what each needs in the project.
OTHERS = {
    "run": ("run", "mine.py", "-e", "old,new", "--backend", "local", "--trust", "--rounds", "1", "--seed", "1"),
    "repro": ("repro", "T#1001", "--backend", "local", "--no-nightly", *RUN[-4:], "--seed", "1"),
}
FILES = {"mine.py": "print(sum(range(1000)))\n", "scenarios/upstream/sums.py": CLAIMS}

#: A point is a function, the number of its call, and when it is killed there.
Point = tuple[str, int, str]


def cases(kind: str, *some: int) -> pytest.MarkDecorator:
    """Parametrize a test with some points of a kind, by their indices, and with all of them for a campaign."""
    points = [tuple(point) for point in POINTS[kind]]
    values = [[points[index] for index in some], *for_a_campaign(points)]
    return pytest.mark.parametrize("points", values, ids=["some", "all"])


#: How many moments are drawn, and from what.
MOMENTS = int(os.environ.get("HARNESS_KILLS") or (1000 if campaign() else 4))
SEED = os.environ.get("HARNESS_FUZZ_SEED", "0")


@dataclass
class Killer:
    """Runs commands, each with folders of its own, and kills them."""

    harness: Harness
    root: Path
    environ: dict[str, str] = field(default_factory=dict)
    kills: int = 0

    def __call__(
        self, *arguments: str, at: tuple[str, int, str] = ("", 1, "after"), seconds: float | None = None
    ) -> int:
        """Run a command, killed at a point or after so many seconds; returns its exit code, negative for a signal."""
        code = self.harness.forks.ended(
            arguments,
            environ={**self.harness.environ, **NOWHERE, **self.environ},
            folder=self.harness.root,
            stdout=self.root / "output",
            stderr=self.root / "output",
            at=at,
            seconds=seconds,
        )
        self.kills += code == -signal.SIGKILL
        return code

    def begin(self, root: Path) -> None:
        """Have folders of their own for the commands that follow."""
        self.root = root
        (root / "tmp").mkdir(parents=True)
        paths = {"TMPDIR": "tmp", "HARNESS_DATA_DIR": "data", "HARNESS_MACHINE_LOCK": "lock"}
        self.environ = {name: str(root / path) for name, path in paths.items()}

    def visit(self, points: Sequence[Point]) -> Iterator[Point]:
        """Have folders of their own at each point."""
        base = self.root
        for number, point in enumerate(points):
            self.begin(base / f"point{number}")
            yield point

    def check_killed(self, code: int) -> None:
        assert code == -signal.SIGKILL, self.output

    def run(self, **how: Any) -> int:
        """Begin a run."""
        return self(*RUN, "--results", str(self.results), **how)

    def resume(self, **how: Any) -> int:
        """Go on with it."""
        return self("matrix", "--resume", str(self.folder), **how)

    @property
    def results(self) -> Path:
        return self.root / "results"

    @property
    def folder(self) -> Path:
        (folder,) = self.results.iterdir()
        return folder

    @property
    def output(self) -> str:
        """All that the commands have printed."""
        return (self.root / "output").read_text()

    @property
    def processes(self) -> list[psutil.Process]:
        """Those that work in the folders of the commands."""
        return [process for process in psutil.process_iter() if works_in(process, self.root)]


def works_in(process: psutil.Process, folder: Path) -> bool:
    """Return whether a process works in a folder or in a folder below it."""
    try:
        return Path(process.cwd()).is_relative_to(folder)
    except (psutil.Error, OSError):
        return False


@pytest.fixture
def killer(harness: Harness, tmp_path: Path, record_property: Callable[[str, object], None]) -> Iterator[Killer]:
    killer = Killer(harness, tmp_path)
    killer.begin(tmp_path / "killed")
    yield killer
    record_property("kills", killer.kills)


def whole_lines(folder: Path) -> list[bytes]:
    path = folder / "launches.jsonl"
    return (
        [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")] if path.exists() else []
    )


def check_goes_on(killer: Killer, launches: int = LAUNCHES) -> None:
    """What was killed is gone on with, or removed: then what was finished is there once, and nothing else is left."""
    if not killer.results.exists() or not list(killer.results.iterdir()):
        assert not list((killer.root / "tmp").iterdir())
        return
    folder = killer.folder
    if not (folder / "run.json").exists():
        assert killer.resume() == 2
        assert "was killed before the first launch" in killer.output
        assert killer("clean", str(folder)) == 0, killer.output
        assert not folder.exists()
        return
    before = whole_lines(folder)
    assert killer.resume() == 0, killer.output
    check_whole(killer, before, launches)


def check_untouched(killer: Killer, before: list[bytes]) -> None:
    """Check that the run has each launch once and a report, and that no temporary file or process remains."""
    folder = killer.folder
    assert whole_lines(folder)[: len(before)] == before
    launches = session.read(folder).launches
    places = [(launch.group, launch.round, launch.attempt, launch.order, launch.role) for launch in launches]
    assert len(places) == len(set(places))
    assert (folder / "report.html").read_text().endswith("</html>\n")
    # what the killed one left is gone before anything else begins
    assert not (get_cache_dir() / "scratch" / folder.name).exists()
    assert not [path for path in folder.rglob("*") if path.name.endswith(".part")]
    assert not list((killer.root / "tmp").iterdir())
    assert not killer.processes


def check_whole(killer: Killer, before: list[bytes], launches: int = LAUNCHES) -> None:
    """Check that the run also has all launches of its plan."""
    check_untouched(killer, before)
    stored = session.read(killer.folder).launches
    # a round that was interrupted is done again whole, and so is one that others disturbed; of the pilot, what lacks
    last = {launch.round: launch.attempt for launch in sorted(stored, key=lambda launch: launch.attempt)}
    counted = [launch for launch in stored if launch.round == 0 or launch.attempt == last[launch.round]]
    assert {launch.status for launch in counted} == {Status.OK}
    assert len({(launch.round, launch.role, launch.cell) for launch in counted}) == len(counted) == launches
    assert (killer.folder / "report.md").read_text().count("\n## ") >= 2


@pytest.mark.slow
@cases("POINTS", 3, 12, 18)
def test_a_run_that_is_killed_at_a_point(killer, points):
    for point in killer.visit(points):
        killer.check_killed(killer.run(at=point))
        check_goes_on(killer)


@pytest.mark.slow
@cases("WITH_A_PILOT", 1)
def test_a_run_with_a_pilot_that_is_killed_in_it_and_after_it(killer, points):
    for point in killer.visit(points):
        killer.check_killed(killer(*RUN, "--rounds", "2", "--results", str(killer.results), at=point))
        check_goes_on(killer, LAUNCHES_WITH_A_PILOT)


@pytest.mark.slow
@cases("GOING_ON", 1)
def test_a_run_that_is_killed_while_it_goes_on(killer, points):
    for point in killer.visit(points):
        killer.check_killed(killer.run(at=TORN))
        killer.check_killed(killer.resume(at=point))
        check_goes_on(killer)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["run", *for_a_campaign("repro")])
@cases("POINTS", 3, 15)
def test_a_run_of_another_command_that_is_killed(killer, command, points):
    """The run's folder has a copy of the script, so that the user may delete the file."""
    for point in killer.visit(points):
        for name, text in FILES.items():
            path = killer.harness.root / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        killer.check_killed(killer(*OTHERS[command], "--results", str(killer.results), at=point))
        before = whole_lines(killer.folder)
        (killer.harness.root / "mine.py").unlink()
        if (killer.folder / "run.json").exists():
            assert killer.resume() == 0, killer.output
            check_untouched(killer, before)
        else:
            assert killer.resume() == 2
            assert killer("clean", str(killer.folder)) == 0, killer.output
            assert not list(killer.results.iterdir())


@pytest.mark.slow
@cases("SEARCHING", 3)
def test_a_search_that_is_killed_goes_on_with_its_steps(killer, points):
    (killer.harness.root / "scenarios" / "slower.py").write_text(SLOWER)
    search = ("bisect", "-s", "slower", "--good", "old", "--bad", "new", "--backend", "local")
    for point in killer.visit(points):
        killer.check_killed(killer(*search, "--results", str(killer.results), at=point))
        steps = killer.folder / "steps.jsonl"
        before = steps.read_bytes().splitlines(keepends=True) if steps.exists() else []
        finished = [line for line in before if line.endswith(b"\n")]
        assert killer("bisect", "--resume", str(killer.folder)) in (0, 1), killer.output
        # a step that was stored isn't taken again, and one that wasn't is stored now
        after = steps.read_bytes().splitlines(keepends=True)
        assert after[: len(finished)] == finished
        assert len(after) > len(finished)
        assert (killer.folder / "report.md").read_text()
        runs = [path for path in killer.folder.iterdir() if path.is_dir()]
        assert all((path / "run.json").exists() for path in runs)
        assert not [path for path in runs if (get_cache_dir() / "scratch" / path.name).exists()]
        assert killer("bisect", "--resume", str(killer.folder)) in (0, 1), killer.output
        assert steps.read_bytes().splitlines(keepends=True) == after
        assert [path for path in killer.folder.iterdir() if path.is_dir()] == runs
        assert not list((killer.root / "tmp").iterdir())
        assert not killer.processes


@pytest.mark.docker
@cases("IN_CONTAINERS", 1)
def test_a_run_in_containers_that_is_killed_leaves_none(killer, engine, built, points):
    root, environment = built[0].root, built[1].environment.name
    shutil.rmtree(root / "scenarios", ignore_errors=True)  # another test's
    (root / "scenarios").mkdir()
    for name in ("ways.py", "kit"):
        path = killer.harness.root / "scenarios" / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, root / "scenarios" / name)

    def list_containers() -> list[Any]:
        return engine.api.containers(all=True, filters={"label": f"harness.run={killer.folder.name}"})

    short = ("--rounds", "2", "--warmup", "1ms", "--measure", "5ms", "--backend", "docker", "-e", environment)
    try:
        for point in killer.visit(points):
            killer.environ |= {"DOCKER_HOST": engine.address, "HARNESS_PROJECT": str(root)}
            command = ("matrix", "-s", "ways", "-a", "way=fine", *short, "--results", str(killer.results))
            killer.check_killed(killer(*command, at=point))
            assert list_containers()
            before = whole_lines(killer.folder)
            assert killer.resume() == 0, killer.output
            assert not list_containers()
            assert {launch.status for launch in session.read(killer.folder).launches} == {Status.OK}
            check_untouched(killer, before)
    finally:
        shutil.rmtree(root / "scenarios")
        killer("clean", str(killer.folder))


@pytest.mark.slow
@cases("CLEANING", 1)
def test_a_removal_that_is_killed_is_done_again(killer, points):
    for point in killer.visit(points):
        killer.check_killed(killer.run(at=TORN))
        scratch = get_cache_dir() / "scratch" / killer.folder.name
        assert scratch.exists()
        before = whole_lines(killer.folder)
        killer.check_killed(killer("clean", str(killer.folder), at=point))
        assert killer("clean", str(killer.folder)) == 0, killer.output
        assert not scratch.exists()
        assert whole_lines(killer.folder) == before
        check_goes_on(killer)


@pytest.mark.slow
@cases("MERGING", 1, 3)
def test_runs_whose_merge_was_killed_are_merged_again(killer, points):
    """What is half merged is no run, so that no history takes it in the place of its parts."""
    for point in killer.visit(points):
        runs = [fleet.run(machine) for machine in ("m-1", "m-2")]
        parts = [stored(killer.results, run, fleet.launches(run)) for run in runs]
        merge = ("merge", *map(str, parts), "--results", str(killer.root / "merged"))
        killer.check_killed(killer(*merge, at=point))
        (left,) = (killer.root / "merged").iterdir()
        launches = sum(len(whole_lines(part)) for part in parts)
        if (left / "run.json").exists():
            assert len(whole_lines(left)) == launches
            assert killer("report", str(left)) == 0, killer.output
            assert (left / "report.html").read_text().endswith("</html>\n")
        else:
            assert killer("report", str(left)) == 2
            assert "harness clean" in killer.output or "rm -r" in killer.output
        assert killer(*merge) == 0, killer.output
        (merged,) = (path for path in (killer.root / "merged").iterdir() if path != left)
        assert len(whole_lines(merged)) == launches
        assert (merged / "report.html").read_text().endswith("</html>\n")


@pytest.mark.slow
@cases("ADDING", 0, 1)
def test_a_run_is_in_a_history_once_however_often_its_adding_was_killed(killer, points):
    for point in killer.visit(points):
        run = fleet.run()
        folder = stored(killer.results, run, fleet.launches(run))
        killer.environ["HARNESS_HISTORY"] = str(killer.root / "history")
        for _ in range(2):
            killer("history", "add", str(folder), at=point)
        assert killer("history", "add", str(folder)) == 0, killer.output
        assert History(killer.root / "history").summaries() == [summary.load_summary(folder)]


@pytest.mark.slow
def test_a_run_that_is_killed_at_any_moment(killer, tmp_path):
    """Begun, gone on with and cleaned up after; a third of those that go on are killed too."""
    assert killer.run() == 0, killer.output  # it makes the environments, too
    check_whole(killer, whole_lines(killer.folder))
    killer.begin(tmp_path / "timed")
    began = time.monotonic()
    assert killer.run() == 0, killer.output
    length = time.monotonic() - began
    draw = random.Random(f"{SEED} kills")
    numbers, printed = itertools.count(), 0
    while killer.kills < MOMENTS:
        killer.begin(tmp_path / f"killed{next(numbers)}")
        if killer.run(seconds=draw.uniform(0.0, length)) != -signal.SIGKILL:
            continue  # it was over
        if killer.kills >= printed + 50:
            printed = killer.kills
            print(f"{printed} kills, seed {SEED}", flush=True)
        goes_on = killer.results.exists() and list(killer.results.glob("*/run.json"))
        if goes_on and draw.random() < 1 / 3:
            killer.resume(seconds=draw.uniform(0.0, length))
        check_goes_on(killer)
        shutil.rmtree(killer.root)
