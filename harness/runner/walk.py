"""Walks a plan through a backend, round by round, and stores each launch as it ends."""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Protocol

from harness.analysis import sizing
from harness.model.backend import Backend
from harness.model.environment import Requirement
from harness.model.launch import Job, Launch, Outcome, Role, Sampling, Seen, Status
from harness.model.launch import Protocol as SamplingProtocol
from harness.model.run import Group, Plan
from harness.model.scenario import Cell
from harness.plan.groups import order
from harness.runner.rounds import Ledger
from harness.runner.stopping import Widths, is_affordable, open_groups
from harness.store.folder import RunFolder

#: How the pilot samples where the plan says all: enough to find broken cells and warm caches.
SHORT = Sampling(protocol=SamplingProtocol.TIME, warmup_seconds=0.1, measure_seconds=0.1)
#: ... and where it is to find out how long to warm up and to measure: from the first step on, and for some while.
LONG = Sampling(protocol=SamplingProtocol.TIME, warmup_seconds=0.0, measure_seconds=1.5)

#: What to do about a launch that ended without a number.
ADVICE = {
    Status.OK: "",
    Status.FAILED: "Its error output is in details.md and report.html; to see all of it, run the scenario by hand in "
    "the environment.",
    Status.TIMEOUT: "Give it longer with --timeout, or choose a smaller model or data.",
    Status.OOM: "Give it more with --memory, or choose a smaller model or data.",
    Status.NOT_AVAILABLE: "Choose an environment that has what it needs.",
    Status.CPU_FALLBACK: "Its error output says what TensorFlow missed; what this machine has: harness doctor --gpu",
    # what to type names the run's folder, which whoever shows it knows
    Status.INTERRUPTED: "",
}


def pilot_sampling(plan: Plan) -> Sampling:
    """How the pilot samples; its times are in no statistic."""
    return LONG if plan.sampling.is_open else SHORT


class WalkListener(Protocol):
    """Hears what a walk does, to show it."""

    def begin(self, cell: Cell, number: int) -> None:
        """A launch of round `number` begins."""

    def end(self, launch: Launch) -> None:
        """A launch was stored."""

    def skip(self, launches: int) -> None:
        """So many launches will not be done: they are there already, or not needed, or their cells failed for good."""

    def again(self, number: int, launches: int) -> None:
        """Other processes disturbed round `number` of a group: it is repeated, with so many more launches."""


class Watched(Protocol):
    """Has watched one launch from outside."""

    def resources(self, seen: Mapping[str, float]) -> Mapping[str, float]:
        """What was seen, by the names of docs/contracts.md; `seen` is what the worker itself told."""


#: Gives what stands around one launch and watches it.
Watch = Callable[[], AbstractContextManager[Watched]]


@dataclass(frozen=True, slots=True)
class Slot:
    """A launch's place in a run, in the words of `Launch`."""

    group: str
    round: int
    attempt: int
    order: int
    role: Role

    @property
    def folder(self) -> str:
        """A name for the launch's artifacts; a hash stands for the group, whose name holds untrusted strings."""
        group = hashlib.sha256(self.group.encode()).hexdigest()[:8]
        return f"{group}-round{self.round}-attempt{self.attempt}-{self.order}"


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk over a plan: what it needs, given once; `run` measures, and `profile` profiles.

    `requirements` are by environment; `widths` tells how wide each group's intervals are, asked only where the plan
    has a precision; `watch`, where there is one, watches each launch from outside.
    """

    plan: Plan
    folder: RunFolder
    backend: Backend
    requirements: Mapping[str, Requirement]
    job: Callable[[Cell, Sampling], Job]
    listener: WalkListener
    widths: Widths
    watch: Watch | None = None

    def run(self, finished: list[Launch]) -> list[Launch]:
        """Launch what `finished` does not hold yet; returns all launches, old and new.

        Round r of every group comes before round r + 1 of any, so that an end at any time leaves all groups equally
        far. A round that was interrupted is done again whole: its cells are compared with one another.
        """
        ledger = Ledger(self.plan, finished)
        for number in range(self.plan.rounds + 1):
            names = open_groups(self.plan, ledger, number, self.widths)
            if number and not names:
                # else the next round, with none before it to tell what it costs, would look affordable
                self.listener.skip(sum(map(self.plan.launches, range(number, self.plan.rounds + 1))))
                break
            samplings = self._samplings(number, ledger)
            for group in self._groups(number):
                if group.name not in names or ledger.is_complete(group, number):
                    self.listener.skip(len(self.plan.slots(group, number)))
                    continue
                self._round(group, number, ledger, samplings[group.name])
                if ledger.is_to_repeat(group, number) and self._has_room(group, number, ledger):
                    self.listener.again(number, len(group.slots))
                    self._round(group, number, ledger, samplings[group.name])
        return ledger.launches

    def _groups(self, number: int) -> Sequence[Group]:
        """The groups in the order in which round `number` takes them: drawn from the seed, as that of their cells.

        An effect across groups would else meet whatever drifts within a round.
        """
        return order(self.plan.seed, "", number, self.plan.groups) if number else self.plan.groups

    def _has_room(self, group: Group, number: int, ledger: Ledger) -> bool:
        """Whether a repetition of the round takes no later round of all groups from the budget."""
        whole = max(ledger.seconds(each, self.plan.groups) for each in (number - 1, number))
        later = (self.plan.rounds - number) * whole
        return is_affordable(self.plan, ledger, ledger.seconds(number, [group]) + later)

    def profile(self) -> list[Launch]:
        """Launch every cell once under the profiler, in launches that enter no statistic; returns these.

        Cells are launched in an order drawn from the seed, as in a round: a machine that gets slower meanwhile changes
        seconds, and hardly shares.
        """
        return [
            self.launch(Slot(group.name, 0, 0, place, Role.PROFILE), cell, SHORT)
            for group in self.plan.groups
            for place, cell in enumerate(order(self.plan.seed, group.name, 0, group.cells))
        ]

    def _round(self, group: Group, number: int, ledger: Ledger, sampling: Sampling) -> None:
        slots = ledger.slots(group, number)
        self.listener.skip(len(self.plan.slots(group, number)) - len(slots))
        attempt = ledger.attempts(group, number)
        for place, (cell, role) in enumerate(order(self.plan.seed, group.name, number, slots)):
            if not number and not ledger.is_to_pilot(group, cell):
                self.listener.skip(1)
                continue
            sized = replace(sampling, calls_per_sample=ledger.calls_per_sample(cell)) if number else sampling
            slot = Slot(group.name, number, attempt, place, role)
            ledger.add(self.launch(slot, cell, sized, thorough=ledger.is_first(cell)))

    def launch(self, slot: Slot, cell: Cell, sampling: Sampling, *, thorough: bool = False) -> Launch:
        """Launch a cell once and store what came of it; `thorough`: it also looks at what need be seen once."""
        self.listener.begin(cell, slot.round)
        job = replace(self.job(cell, sampling), thorough=thorough, profile_calls=self.plan.profile_calls)
        started, begun = datetime.now(UTC).isoformat(timespec="milliseconds"), time.monotonic()
        try:
            outcome = self._outcome(self.requirements[cell.environment], job)
        except KeyboardInterrupt:
            self.folder.append(_record(slot, cell, started, Outcome(status=Status.INTERRUPTED)))
            raise
        seconds = round(time.monotonic() - begun, 6)
        artifacts = self.folder.write_artifacts(slot.folder, outcome.artifacts)
        launch = replace(_record(slot, cell, started, outcome), seconds=seconds, artifacts=artifacts)
        self.folder.append(launch)
        self.listener.end(launch)
        return launch

    def _outcome(self, requirement: Requirement, job: Job) -> Outcome:
        if self.watch is None:
            return self.backend.launch(requirement, job)
        with self.watch() as watched:
            outcome = self.backend.launch(requirement, job)
        return replace(outcome, resources={**outcome.resources, **watched.resources(outcome.resources)})

    def _samplings(self, number: int, ledger: Ledger) -> dict[str, Sampling]:
        """By group, the pilot's own sampling in round 0, then the plan's, with what it leaves open set by the pilot."""
        names = [group.name for group in self.plan.groups]
        if number == 0:
            return dict.fromkeys(names, pilot_sampling(self.plan))
        return sizing.samplings(self.plan.sampling, names, ledger.launches)


def _record(slot: Slot, cell: Cell, started: str, outcome: Outcome) -> Launch:
    seen = {each.name: getattr(outcome, each.name) for each in fields(Seen)}
    if outcome.status is Status.OK:
        # TensorFlow's warnings of a launch that went well would be most of the file
        seen["stderr"] = ""
    return Launch(**seen, **asdict(slot), cell=cell, started=started, advice=ADVICE[outcome.status])
