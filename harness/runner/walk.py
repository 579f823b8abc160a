"""Walks a plan through a backend, round by round, and stores each launch as it ends."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Protocol

from harness.model.backend import Backend
from harness.model.cell import Cell
from harness.model.environment import Requirement
from harness.model.job import Job, Sampling
from harness.model.job import Protocol as SamplingProtocol
from harness.model.launch import Launch, Outcome, Role, Seen, Status
from harness.model.run import Plan
from harness.plan.groups import order
from harness.runner.advice import advice
from harness.runner.rounds import Ledger
from harness.store.folder import RunFolder

#: How the pilot samples: enough to find broken cells, warm caches and size the samples; its times are in no statistic.
PILOT = Sampling(protocol=SamplingProtocol.TIME, warmup_seconds=0.1, measure_seconds=0.1)


class Listener(Protocol):
    """Hears what a walk does, to show it."""

    def begin(self, cell: Cell, number: int) -> None:
        """A launch of round `number` begins."""

    def end(self, launch: Launch) -> None:
        """A launch was stored."""

    def skip(self, launches: int) -> None:
        """So many launches will not be done: they are there already, or their cells failed for good."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A launch's place in a run: group, round (0: the pilot), attempt at that round, and place in its order."""

    group: str
    round: int
    attempt: int
    place: int

    @property
    def folder(self) -> str:
        """A name for the launch's artifacts; a hash stands for the group, whose name holds a stranger's strings."""
        group = hashlib.sha256(self.group.encode()).hexdigest()[:8]
        return f"{group}-round{self.round}-attempt{self.attempt}-{self.place}"


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk over a plan: what it needs, given once; `run` does it. `requirements` are by environment."""

    plan: Plan
    folder: RunFolder
    backend: Backend
    requirements: Mapping[str, Requirement]
    job: Callable[[Cell, Sampling], Job]
    listener: Listener

    def run(self, finished: list[Launch]) -> list[Launch]:
        """Launch what `finished` does not hold yet; returns all launches, old and new.

        Round r of every group comes before round r + 1 of any, so that an end at any time leaves all groups equally
        far. A round that was interrupted is done again whole: its cells are compared with one another.
        """
        ledger = Ledger(finished)
        launches = list(finished)
        for number in range(self.plan.rounds + 1):
            for group in self.plan.groups:
                if ledger.is_complete(group, number):
                    self.listener.skip(len(group.cells))
                    continue
                cells = ledger.alive(group, number)
                self.listener.skip(len(group.cells) - len(cells))
                attempt = ledger.attempts(group, number)
                for place, cell in enumerate(order(self.plan.seed, group.name, number, cells)):
                    launch = self._launch(Slot(group.name, number, attempt, place), cell, ledger.pilot(cell))
                    ledger.add(launch)
                    launches.append(launch)
        return launches

    def _launch(self, slot: Slot, cell: Cell, pilot: Launch | None) -> Launch:
        self.listener.begin(cell, slot.round)
        job = self.job(cell, self._sampling(slot.round, pilot))
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        try:
            outcome = self.backend.launch(self.requirements[cell.environment], job)
        except KeyboardInterrupt:
            self.folder.append(_record(slot, cell, started, Outcome(status=Status.INTERRUPTED)))
            raise
        launch = _record(slot, cell, started, outcome)
        if outcome.artifacts:
            launch = replace(launch, artifacts=self.folder.write_artifacts(slot.folder, outcome.artifacts))
        self.folder.append(launch)
        self.listener.end(launch)
        return launch

    def _sampling(self, number: int, pilot: Launch | None) -> Sampling:
        """The pilot's own sampling in round 0, then the plan's, with the sample's size that the pilot found."""
        if number == 0:
            return PILOT
        if self.plan.sampling.protocol is SamplingProtocol.DOCUMENT or pilot is None:
            return self.plan.sampling
        return replace(self.plan.sampling, calls_per_sample=pilot.calls_per_sample)


def _record(slot: Slot, cell: Cell, started: str, outcome: Outcome) -> Launch:
    seen = {each.name: getattr(outcome, each.name) for each in fields(Seen)}
    if outcome.status is Status.OK:
        # TensorFlow's warnings of a launch that went well would be most of the file
        seen["stderr"] = ""
    return Launch(
        **seen,
        group=slot.group,
        round=slot.round,
        attempt=slot.attempt,
        order=slot.place,
        role=Role.PILOT if slot.round == 0 else Role.MEASURE,
        cell=cell,
        started=started,
        advice=advice(outcome),
    )
