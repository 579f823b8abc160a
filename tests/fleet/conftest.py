"""Fleets work in the same small project as the command line's tests, and by an engine that launches nothing."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness import session
from harness.fleet.coordinator import Place
from harness.fleet.unit import Message, Unit
from harness.model.errors import CannotRunHereError
from harness.model.launch import Launch, Role
from harness.model.run import Machine, Run, Stop, StopReason
from tests import factories
from tests.cli.conftest import Harness, _environments, harness, write_scenario

__all__ = ["_environments", "harness", "write_scenario"]


def run_of(unit: Unit, machine: str) -> Run:
    """What a unit says of its run when its launches begin."""
    plan = unit.planned.plan
    return replace(
        factories.run(),
        id=unit.name,
        plan=plan,
        environments=unit.planned.environments,
        scenarios=list(unit.planned.scenarios.values()),
        reference=unit.planned.reference,
        folder=f"/kept/{unit.name}",
        images={each.name: "sha256:" + "ab" * 32 for each in unit.planned.environments},
        pins={},
        machine=Machine(machine),
    )


def launches_of(unit: Unit, seconds: float) -> Iterator[Launch]:
    """All that a unit has to launch, those rounds first that no earlier attempt has finished."""
    (group,) = unit.planned.plan.groups
    done = defaultdict(list)
    for each in unit.finished:
        done[each.round].append(each)
    for number in range((unit.until or unit.planned.plan.rounds) + 1):
        slots = [(cell, Role.PILOT) for cell in group.cells] if number == 0 else group.slots
        newest = max((each.attempt for each in done[number]), default=0)
        if sum(each.attempt == newest for each in done[number]) >= len(slots):
            continue
        attempt = 1 + max((each.attempt for each in done[number]), default=-1)
        for order, (cell, role) in enumerate(slots):
            of = {"role": role, "order": order, "group": group.name, "attempt": attempt}
            yield factories.launch(cell, seconds, number, took=1.0, **of)


@dataclass
class Pretence:
    """An engine of so many places whose units launch at once, and that loses a place after so many messages.

    `dies` maps a place's number to after how many launches it does; `refuses` a machine to why it cannot measure. Each
    launch `leaves` files of these names, whose bytes are their names.
    """

    machines: Sequence[str]
    dies: dict[int, int] = field(default_factory=dict)
    leaves: Sequence[str] = ()
    refuses: dict[str, str] = field(default_factory=dict)
    interrupts_after: int | None = None
    told: Callable[[Run], Run] = lambda run: run
    started: list[tuple[str, Unit]] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._places = [Place(machine, self.machines.count(machine), f"{machine}'s") for machine in self.machines]
        self._numbers = {place: number for number, place in enumerate(self._places)}
        self._told: deque[tuple[Place, Message]] = deque()
        self._launched = 0
        self._is_stopped = False

    def __enter__(self) -> "Pretence":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._is_stopped or not any(place.unit for place in self._places)

    def places(self) -> Sequence[Place]:
        return self._places

    def start(self, place: Place, unit: Unit) -> None:
        place.unit = unit
        self.started.append((place.machine, unit))
        if place.machine in self.refuses:
            self._tell(place, "over", None, CannotRunHereError(self.refuses[place.machine]), {})
        elif unit.to_prepare:
            self._tell(place, "over", None, None, {})
        else:
            self._measure(place, unit)

    def _measure(self, place: Place, unit: Unit) -> None:
        run, number = self.told(run_of(unit, place.machine)), self._numbers[place]
        self._tell(place, "said", "Backend: pretence.")
        self._tell(place, "opened", run)
        seconds = 0.01 if place.machine == self.machines[0] else 0.02
        for launch in launches_of(unit, seconds):
            if self.dies.get(number) == 0:
                self._tell(place, "lost", "the node has died")
                return
            if number in self.dies:
                self.dies[number] -= 1
            self._tell(place, "begin", launch.cell, launch.round)
            kept = {
                f"artifacts/{unit.name}-{launch.round}-{launch.order}/{name}": name.encode() for name in self.leaves
            }
            self._tell(place, "end", replace(launch, artifacts=list(kept)), kept)
        stops = {unit.planned.plan.groups[0].name: Stop(StopReason.ROUNDS, unit.planned.plan.rounds)}
        self._tell(place, "over", replace(run, stops=stops), None, {})

    def take(self) -> list[tuple[Place, Message]]:
        place, message = self._told.popleft()
        self._launched += message[0] == "end"
        if self._launched == self.interrupts_after:
            self._told.appendleft((place, message))
            self.interrupts_after = None
            raise KeyboardInterrupt
        if message[0] == "lost":
            self._places.remove(place)
        return [(place, message)]

    def stop(self) -> None:
        self._is_stopped = True
        kept = [each for each in self._told if each[1][0] == "over"]
        self._told = deque((place, ("over", (None, None, {}))) for place, _ in kept)

    def forget(self, run: str) -> None:
        self.forgotten.append(run)

    def _tell(self, place: Place, name: str, *arguments: object) -> None:
        self._told.append((place, (name, arguments)))


@pytest.fixture
def planned(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> session.Planned:
    """Two groups of two cells and a control, in two rounds."""
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    axes = {"way": ["fine"], "speed": ["fast", "slow"]}
    short = {"backend": "local", "warmup": 0.0, "measure": 0.005, "seed": 1}
    request = session.Request(scenarios=["ways"], axes=axes, rounds=2, results=Path("results"), **short)  # type: ignore[arg-type]
    found = session.plan(request)
    # as on several machines, each of which has a control of its own
    groups = [replace(group, controlled=True) for group in found.plan.groups]
    return replace(found, plan=replace(found.plan, groups=groups))
