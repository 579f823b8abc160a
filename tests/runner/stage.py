"""What stands around a walk in tests: a backend that answers at once, a listener, jobs."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from harness.model.backend import Backend
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.launch import Job, Launch, Limits, Outcome, Sample, Sampling, Status
from harness.model.run import Group, Plan
from harness.model.scenario import Cell
from harness.model.texts import format_cpu_list
from harness.runner.executor import RunExecutor, Watch
from harness.runner.schedule import Pairs, RunEstimate
from harness.runner.stop_rules import Widths
from harness.store.folder import RunFolder

REQUIREMENTS = {
    name: Requirement(Environment(name, "1", "3.7", ""), Device.CPU, Lock(Path("l"), "0", {}))
    for name in ("old", "new")
}


class Clock:
    """A clock that stands still until someone moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Answered:
    """A launch that answers at once, and takes its turns; `words` are all that the stage's launches were told."""

    job: Job
    answer: Callable[[], Outcome]
    words: list[tuple[Cell, str]]
    take: Callable[[str], None] = lambda _: None
    turns: int = 0

    def start(self) -> None:
        self.words.append((self.job.cell, f"start on {format_cpu_list(self.job.limits.cpus or ())}"))

    def move(self, cpus: Collection[int]) -> None:
        self.words.append((self.job.cell, f"move to {format_cpu_list(cpus)}"))

    def resume(self, word: str = "") -> bool:
        self.take(word)
        self.words.append((self.job.cell, word))
        if not word:
            self.ended = self.answer()
        self.turns += word.startswith("turn")
        if self.ended.status is not Status.OK or not self.ended.samples or word == "end":
            return False
        takes_turns = bool(self.job.sampling.turns) and not self.ended.fixes_calls
        return takes_turns or (self.job.waits and not word)

    def outcome(self) -> Outcome:
        return replace(self.ended, samples=[*self.ended.samples] * self.turns) if self.turns else self.ended


@dataclass
class Backstage:
    """Answers launches with what `answer` says, and keeps the jobs it was given and the words it was told.

    On `clock` each launch takes the seconds that `cost` says until it waits for its turns, and `turn` in each of them.
    """

    answer: Callable[[int, Job], Outcome] = lambda _, job: Outcome(
        Status.OK, samples=[Sample(1.0, 100)], calls_per_sample=7
    )
    jobs: list[Job] = field(default_factory=list)
    words: list[tuple[Cell, str]] = field(default_factory=list)
    name: str = "backstage"
    clock: Clock = field(default_factory=Clock)
    cost: Callable[[Job], float] = lambda _: 0.0
    turn: float = 0.0

    @contextmanager
    def hold(self, requirement: Requirement, job: Job) -> Iterator[Answered]:
        assert requirement.environment.name == job.cell.environment
        self.jobs.append(job)
        count = len(self.jobs)

        def take(word: str) -> None:
            self.clock.now += (
                self.turn * int(word[5:] or 1) if word.startswith("turn") else 0.0 if word else self.cost(job)
            )

        yield Answered(job, lambda: self.answer(count, job), self.words, take)


def interrupted_at(number: int) -> Backstage:
    def answer(count: int, _: Job) -> Outcome:
        if count == number:
            raise KeyboardInterrupt
        return Outcome(Status.OK, samples=[Sample(1, 1)])

    return Backstage(answer)


class Shelf:
    def __init__(self) -> None:
        self.launches: list[Launch] = []

    def write_artifacts(self, launch: str, artifacts: Mapping[str, bytes]) -> list[str]:
        return [f"artifacts/{launch}/{name}" for name in artifacts]

    def append(self, launch: Launch) -> None:
        self.launches.append(launch)

    def read_launches(self) -> list[Launch]:
        return list(self.launches)


class Silent:
    def __init__(self) -> None:
        self.skipped = 0
        self.estimates: list[RunEstimate] = []

    def begin(self, cell: Cell, number: int) -> None: ...

    def end(self, launch: Launch) -> None: ...

    def skip(self, launches: int) -> None:
        self.skipped += launches

    def turn(self, number: int, turns: int) -> None: ...

    def again(self, number: int, launches: int) -> None: ...

    def estimate(self, estimate: RunEstimate) -> None:
        self.estimates.append(estimate)


def no_widths(_: Sequence[Launch]) -> dict[str, float]:
    raise AssertionError("a plan without a precision was asked for widths")


def job(cell: Cell, sampling: Sampling) -> Job:
    return Job(cell, "step.py", {}, sampling, Limits(gpus=("0",)), {})


def staged(
    folder: RunFolder | Shelf,
    backend: Backend | Backstage,
    planned: Plan,
    listener: Silent | None = None,
    *,
    widths: Widths = no_widths,
    watch: Watch | None = None,
    pairs: Pairs | None = None,
) -> RunExecutor:
    clock = backend.clock if isinstance(backend, Backstage) else Clock()
    walk = RunExecutor(planned, folder, backend, REQUIREMENTS, job, listener or Silent(), widths)  # type: ignore[arg-type]
    return replace(walk, pairs=pairs or {}, clock=clock, gpu_watch=watch)


def walk(
    folder: RunFolder | Shelf, backend: Backend | Backstage, planned: Plan, finished: Sequence[Launch] = ()
) -> list[Launch]:
    """All launches of a run that goes on from those that are finished: each that it plans is made, or skipped."""
    silent = Silent()
    launches = staged(folder, backend, planned, silent).run(list(finished))
    assert len(launches) - len(finished) + silent.skipped >= planned.all_launches
    return launches


def last_attempt(launches: Iterable[Launch], group: Group, number: int) -> list[Launch]:
    attempts = [launch for launch in launches if (launch.group, launch.round) == (group.name, number)]
    return [launch for launch in attempts if launch.attempt == max(attempt.attempt for attempt in attempts)]
