"""A backend with simulated GPUs: first starts and launches only move a clock."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from harness.model.backend import BackendFacts, Preparation
from harness.model.environment import Environment, Requirement
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import Job, Outcome, Sample, Status
from harness.plan.gpus import Support, fit
from tests.runner.stage import Answered, Clock

#: The seconds in which the driver compiles all code of an image; what a scenario loads of it lazily; and a few kernels.
ALL_CODE, LAZY_CODE, FEW_KERNELS = 2000.0, 20.0, 2.0


@dataclass
class SimulatedGpus:
    """The backend. A launch takes about `start` seconds until its warm-up.

    `images` are what was prepared. `compiled` has the environments whose code the driver has compiled, and `loaded` the
    scripts that have loaded their code lazily.
    """

    cards: Sequence[Gpu]
    host: GpuHost
    start: float = 0.0
    clock: Clock = field(default_factory=Clock)
    images: set[str] = field(default_factory=set)
    compiled: set[str] = field(default_factory=set)
    loaded: set[tuple[str, str]] = field(default_factory=set)
    name: str = "simulated"
    makes: str = "image"

    def __getattr__(self, name: str) -> Any:
        """Return a function that does nothing, because a run asks a backend for more than launches."""
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: []

    def unprepared(self, requirements: Sequence[Requirement]) -> list[Requirement]:
        return [requirement for requirement in requirements if requirement.name not in self.images]

    def prepare(self, requirements: Sequence[Requirement], *_: object) -> Preparation:
        self.images |= {requirement.name for requirement in requirements}
        return Preparation({requirement.name: f"image of {requirement.name}" for requirement in requirements})

    def facts(self) -> BackendFacts:
        return BackendFacts(self.name, where="this machine")

    def caches(self) -> list[str]:
        return sorted(self.compiled)

    def can_move(self) -> bool:
        return False

    def launch(self, requirement: Requirement, job: Job) -> Outcome:
        self.clock.now += self._start(requirement.environment, job)
        if job.script.startswith("kit/"):  # only the kit may fill the cache
            self.compiled.add(requirement.environment.name)
        return Outcome(Status.OK)

    @contextmanager
    def hold(self, requirement: Requirement, job: Job) -> Iterator[Answered]:
        sampling = job.sampling
        warmup, measured = sampling.warmup_seconds or 0.0, sampling.measure_seconds or 0.0
        outcome = Outcome(Status.OK, phases={"warm up": warmup}, samples=[Sample(measured, 100)], calls_per_sample=7)

        def take(word: str) -> None:
            assert not word, "launches on GPUs aren't interleaved"
            self.clock.now += self._start(requirement.environment, job) + warmup + measured

        yield Answered(job, lambda: outcome, [], take)

    def _start(self, environment: Environment, job: Job) -> float:
        """Return the seconds until the warm-up, with those in which the driver compiles."""
        release, name = environment.release[0] + environment.release[1] / 100, environment.name
        support, code = fit(environment, self.cards, self.host).support, 0.0
        is_whole = support is Support.COMPILED and job.settings.get("cuda_loading") != "lazy"
        if is_whole and name not in self.compiled:
            code = ALL_CODE
        elif not is_whole and (name, job.script) not in self.loaded:
            self.loaded.add((name, job.script))
            code = {Support.COMPILED: LAZY_CODE, Support.LAZY: LAZY_CODE, Support.PARTLY: FEW_KERNELS}.get(support, 0.0)
        return self.start * (1 + release / 20) + code
