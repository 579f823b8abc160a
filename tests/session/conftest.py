"""A session works in the same small project as the command line's tests."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from harness.backends.local.backend import LocalBackend
from harness.model.environment import Requirement
from harness.model.launch import Job, Outcome, Sample, Status
from tests.cli.conftest import Harness, _environments, harness, write_scenario
from tests.runner.stage import Answered

__all__ = ["_environments", "harness", "write_scenario"]


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


@pytest.fixture
def in_project(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work in the folder of the small project."""
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
