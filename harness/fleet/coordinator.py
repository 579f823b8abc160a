"""Measures a plan in several slots at once, of this machine or of a cluster: hands out units, and keeps what they tell.

A unit is a group with all of its rounds, and a group's numbers are of one machine; a free slot takes the next group.
Where the budget is spent group by group (runner/spending.py), a unit is some rounds of a group, and what comes next is
decided as each ends. A unit that is lost in the middle goes on in another slot of the same machine, with a new attempt
at the round that was not finished; where the machine is gone, it begins again on another one, and what the first had
finished is set aside.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from harness.analysis import sizing
from harness.files import write_atomically
from harness.fleet.merge import together
from harness.fleet.unit import Message, Unit, packed
from harness.machine.gpu import chosen as gpus
from harness.model.errors import CannotRunHereError, HarnessError, UnavailableError
from harness.model.launch import Launch
from harness.model.run import Group, Run
from harness.model.texts import counted, cpu_list
from harness.plan import shards
from harness.runner.rounds import Ledger
from harness.runner.spending import Errand, Spending
from harness.runner.stopping import stops
from harness.runner.walk import WalkListener
from harness.session.planning import Planned
from harness.session.reporting import report, results_of
from harness.session.request import Request
from harness.session.resuming import Earlier, changed
from harness.session.running import Ended, Listener, new_id, report_again, to_itself, without
from harness.store import codec
from harness.store.folder import RunFolder

#: A unit that was lost so often, with whatever it ran on, is not begun again.
GIVE_UP_AFTER = 3

#: What was finished on a machine that was lost, of groups that began again on another: in the run's folder.
LOST = "lost.jsonl"


@dataclass(eq=False)
class Place:
    """A slot somewhere: of the machine with the id `machine`, which has `slots` of them; `unit` is what it does."""

    machine: str
    slots: int
    name: str = ""
    unit: Unit | None = None


class Engine(Protocol):
    """What executes units, in slots. It is a context manager, which leaves nothing running."""

    def __enter__(self) -> "Engine": ...

    def __exit__(self, *_: object) -> None: ...

    def places(self) -> Sequence[Place]:
        """The slots that there are now. Raises CannotRunHereError where there are none, and none will be."""
        ...

    def start(self, place: Place, unit: Unit) -> None:
        """Begin a unit in a place that does nothing."""
        ...

    def take(self) -> list[tuple[Place, Message]]:
        """What has happened since, as soon as anything has, or after a second.

        `lost` (why) says that a unit's process, or its place, has died, and `said` of a place without a unit is told.
        """
        ...

    def stop(self) -> None:
        """Have all units end what they measure; each tells `over` then, or `lost`."""
        ...

    def forget(self, run: str) -> None:
        """Remove what units of the run have kept on their machines: all of it has come back."""
        ...


@dataclass
class _Work:
    """What is left of one group: its launches so far, and the machine and the last unit that made them.

    `errand` is what its unit is to do of it, None: all rounds; `before` is how many launches there were then.
    """

    group: Group
    number: int
    machine: str = ""
    launches: list[Launch] = field(default_factory=list)
    unit: str = ""
    lost: int = 0
    attempts: int = 0
    errand: Errand | None = None
    before: int = 0


def run(planned: Planned, engine: Engine, listener: Listener, *, command: Sequence[str] = ()) -> Ended:
    """Measure a plan by an engine's slots, in a new run's folder, and report it.

    An interruption (KeyboardInterrupt) ends it early, with what was finished until then. Raises CannotRunHereError
    where no machine can run it.
    """
    return _Coordinator(planned, engine, listener, command).run()


def resume(earlier: Earlier, engine: Engine, listener: Listener) -> Ended:
    """Go on with a run in slots, as `run` does. Raises UsageError where what it measures has changed."""
    if earlier.over:
        return report_again(earlier, listener)
    return _Coordinator(earlier.planned, engine, listener, earlier.run.command, earlier).run()


class _NowhereError(Exception):
    """All slots are gone, in the middle of a run."""


class _Coordinator:
    """One run over slots."""

    def __init__(
        self,
        planned: Planned,
        engine: Engine,
        listener: Listener,
        command: Sequence[str],
        earlier: Earlier | None = None,
    ) -> None:
        now = datetime.now(UTC)
        self._earlier = earlier
        self._started = earlier.run.started if earlier else now.isoformat(timespec="seconds")
        self._id = earlier.run.id if earlier else new_id(now)
        self._planned, self._engine, self._listener = planned, engine, listener
        self._command = list(command) or planned.request.command()
        self._files, self._kit = packed(planned)
        self._prepared: dict[str, bool] = {}  # by machine: whether its environments are made, False: being made
        self._refused: dict[str, HarnessError] = {}  # by machine
        self._runs: dict[str, Run] = {}  # by group: as its unit told it last
        self._folder = earlier.folder if earlier else None
        self._heard: WalkListener | None = None
        self._said: set[str] = set()
        self._left: set[str] = set()  # groups of which no more is begun
        self._spending: Spending | None = None
        self._slots = 1

    def run(self) -> Ended:
        """From the first unit to the report."""
        self._planned.refuse_nothing()
        interrupted = False
        with ExitStack() as stack:
            self._stack = stack
            if self._folder:
                stack.enter_context(to_itself(self._folder))
                self._folder.repair()
                if self._earlier and self._earlier.is_longer:
                    self._folder.write_run(self._earlier.run, signed=True)
            with self._engine:
                try:
                    self._prepare()
                    self._measure()
                except KeyboardInterrupt:
                    interrupted = True
                    self._end()
                except _NowhereError as error:
                    interrupted = True
                    self._listener.say(f"{error} What was finished is kept.")
                except BaseException:
                    self._engine.stop()
                    raise
                if self._folder is None:
                    raise KeyboardInterrupt if interrupted else self._nowhere()
                # every unit has told all, `over` last
                self._engine.forget(self._id)
        folder, whole = self._folder, self._whole()
        launches = folder.read_launches(whole)
        ended = replace(whole, stops=self._stops(whole, launches, interrupted=interrupted))
        if len({run.machine for run in self._runs.values()}) > 1:
            ended, launches = self._by_machine(folder, ended, launches)
        folder.write_run(ended, signed=True)
        results = results_of(ended, launches)
        return Ended(folder.path, results, report(folder, results), interrupted, self._planned.refused)

    def _prepare(self) -> None:
        """Have every machine that is there make the environments, before anything is measured on any."""
        self._work: deque[_Work] = deque()
        with self._listener.preparing():
            while any(not self._prepared.get(place.machine) for place in self._usable()):
                self._hand_out()
                self._hear()
        plan = self._planned.plan
        works = [_Work(group, number) for number, group in enumerate(plan.groups, 1)]
        self._groups = {work.group.name: work for work in works}
        self._places_of = {work.group.name: work.number for work in works}
        self._take_up()
        if plan.is_spent_by_group:
            looks = sizing.looks(plan, self._planned.scenarios.values(), self._planned.environments)
            made = [launch for work in works for launch in work.launches]
            self._spending = Spending(plan, lambda launches: sizing.widths(self._whole(), launches), looks, made)
        else:
            self._work.extend(work for work in works if Ledger(plan, work.launches).rounds(work.group) < plan.rounds)
        found = self._planned.aspects
        whole = {each.name: each for each in self._planned.plan.groups}
        self._digest = shards.plan_digest(found, shards.cells_of(list(whole.values())))

    def _take_up(self) -> None:
        """What an earlier run has finished: it goes on on the machine where that was."""
        if self._earlier and self._folder:
            for launch in self._folder.read_launches(self._earlier.run):
                work = self._groups[launch.group]
                work.launches.append(launch)
                work.machine = self._earlier.run.machine.id if self._earlier.run.machine else ""

    def _measure(self) -> None:
        while self._is_left():
            if not self._usable():
                if self._folder is None:
                    raise self._nowhere()
                raise _NowhereError(str(self._nowhere()))
            self._hand_out()
            self._hear()

    def _is_left(self) -> bool:
        """Whether something is measured, or is to be."""
        if self._work or any(place.unit for place in self._engine.places()):
            return True
        return self._spending is not None and self._spending.next(self._left) is not None

    def _end(self) -> None:
        """Stop all that runs, and hear what it has finished."""
        self._engine.stop()
        while any(place.unit for place in self._engine.places()):
            self._hear()

    def _usable(self) -> list[Place]:
        return [place for place in self._engine.places() if place.machine not in self._refused]

    def _nowhere(self) -> HarnessError:
        return next(iter(self._refused.values()), CannotRunHereError("There is no slot to measure in."))

    def _hand_out(self) -> None:
        usable = self._usable()
        alive = {place.machine for place in usable}
        self._slots = max([self._slots, *(place.slots for place in usable)])
        for place in [each for each in usable if each.unit is None]:
            if not self._prepared.get(place.machine):
                if place.machine not in self._prepared:
                    self._prepared[place.machine] = False
                    self._engine.start(place, self._unit(self._planned, f"{self._id}-prepare", place, to_prepare=True))
                continue
            # what was begun goes on on its machine, as long as that is there
            work = next((each for each in self._work if each.machine in ("", place.machine)), None)
            work = work or next((each for each in self._work if each.machine not in alive), None)
            if work is not None:
                self._work.remove(work)
            elif (errand := self._next(place, alive)) is not None:
                work = self._groups[errand.group.name]
                work.errand = errand
            else:
                continue
            if work.machine not in ("", place.machine):
                self._set_aside(work)
            work.machine, work.before = place.machine, len(work.launches)
            self._engine.start(place, self._unit_of(work, place))
            work.attempts += 1

    def _next(self, place: Place, alive: Collection[str]) -> Errand | None:
        """What a free place does next, where the budget is spent group by group."""
        if self._spending is None:
            return None
        self._spending.lanes = len(self._usable())
        busy = {_group(each.unit) for each in self._engine.places() if each.unit and not each.unit.to_prepare}
        elsewhere = {name for name, work in self._groups.items() if work.machine in {*alive} - {place.machine}}
        return self._spending.next(busy | elsewhere | self._left | {work.group.name for work in self._work})

    def _unit_of(self, work: _Work, place: Place) -> Unit:
        planned = self._planned.only([work.group.name])
        plan, count = planned.plan, len(self._groups)
        shard = shards.shard(self._planned.plan, work.number, count, self._places_of, self._digest)
        if work.errand:
            plan = replace(plan, budget_seconds=work.errand.seconds)
        elif plan.budget_seconds is not None:
            # as much as all slots have together, by how much each group launches
            share = len(work.group.slots) / self._planned.plan.launches(1)
            plan = replace(plan, budget_seconds=plan.budget_seconds * len(self._usable()) * share)
        planned = replace(planned, plan=replace(plan, shard=shard))
        name = f"{self._id}-{work.number}" + (f"-again{work.attempts}" if work.attempts else "")
        before, work.unit = work.unit if work.launches else "", name
        until = work.errand.rounds if work.errand else None
        return self._unit(planned, name, place, finished=list(work.launches), replaces=before, until=until)

    def _unit(self, planned: Planned, name: str, place: Place, **more: Any) -> Unit:
        files = {name: self._files[name] for name in planned.scenarios}
        request = planned.request
        return Unit(
            # what is refused was told, and is no part of any unit
            replace(planned, refused={}, request=replace(request, results=Path())),
            self._id,
            name,
            files,
            self._kit,
            place.slots,
            command=self._command,
            **more,
        )

    def _hear(self) -> None:
        for place, (name, arguments) in self._engine.take():
            unit = place.unit
            if name == "said":
                self._say(*arguments)
            elif unit is None:
                continue
            elif name == "opened":
                self._open(unit, *arguments)
            elif name == "end":
                self._keep(*arguments)
            elif name == "over":
                place.unit = None
                self._over(place, unit, *arguments)
            elif name == "lost":
                place.unit = None
                self._lost(place, unit, *arguments)
            elif self._heard:
                getattr(self._heard, name)(*arguments)

    def _say(self, sentence: str) -> None:
        """A sentence for the user, once: units say the same things."""
        if sentence not in self._said:
            self._said.add(sentence)
            self._listener.say(sentence)

    def _open(self, unit: Unit, run: Run) -> None:
        """A unit's launches begin; the whole run's folder is there from the first on."""
        self._refuse_other(run)
        self._runs[_group(unit)] = run
        if self._folder is None:
            self._folder = RunFolder.create(self._planned.request.results, self._id)
            self._stack.enter_context(to_itself(self._folder))
        if self._heard is None:
            self._heard = self._stack.enter_context(self._listener.launching(self._whole()))
            if self._spending:
                self._heard.skip(self._spending.rounds_done())
        self._folder.write_run(self._whole(), signed=True)

    def _refuse_other(self, run: Run) -> None:
        """Raises UsageError where a unit of a run that goes on has other images."""
        if self._earlier:
            before = self._earlier.run.images
            moved = [name for name, image in run.images.items() if before.get(name, image) != image]
            if moved:
                raise changed(Path(self._earlier.folder.path), f"the image of {', '.join(moved)}")

    def _keep(self, launch: Launch, artifacts: Mapping[str, bytes]) -> None:
        """A launch has come: it is in the whole run's folder when this returns."""
        assert self._folder is not None
        for name, data in artifacts.items():
            _, place, *inner = Path(name).parts
            self._folder.write_artifacts(place, {"/".join(inner): data})
        self._folder.append(launch)
        self._groups[launch.group].launches.append(launch)
        if self._spending:
            self._spending.ledgers[launch.group].add(launch)
        if self._heard:
            self._heard.end(launch)

    def _over(
        self,
        place: Place,
        unit: Unit,
        run: Run | None,
        error: HarnessError | None,
        missing: Mapping[str, HarnessError],
    ) -> None:
        if unit.to_prepare:
            if error:
                self._refuse(place, error)
                return
            self._prepared[place.machine] = True
            gone = {name: UnavailableError(each.message, each.advice) for name, each in missing.items()}
            for name, each in gone.items():
                self._listener.say(f"{name} is not available on {place.name or place.machine}: {each}")
            if gone and self._folder is not None:  # it came later than the others, which have them
                self._refuse(place, next(iter(gone.values())))
                return
            self._planned = without(self._planned, gone)
            self._planned.refuse_nothing()
        elif error:
            self._refuse(place, error)
            self._work.appendleft(self._groups[_group(unit)])
        elif run is not None:
            self._runs[_group(unit)] = run
            work = self._groups[_group(unit)]
            if len(work.launches) == work.before:  # another unit would do as little
                self._left.add(work.group.name)

    def _refuse(self, place: Place, error: HarnessError) -> None:
        """Measure no more on this machine, and say why."""
        self._refused[place.machine] = error
        self._listener.say(f"Nothing more is measured on {place.name or place.machine}: {error}")

    def _lost(self, place: Place, unit: Unit, why: str) -> None:
        if unit.to_prepare:
            del self._prepared[place.machine]
            self._listener.say(f"Lost while it made environments on {place.name or place.machine}: {why}.")
            return
        work = self._groups[_group(unit)]
        work.lost += 1
        told = f"Lost the group {work.group.name} on {place.name or place.machine}: {why}."
        if work.lost < GIVE_UP_AFTER:
            self._work.appendleft(work)
            self._listener.say(f"{told} It is begun again.")
        else:
            self._left.add(work.group.name)
            self._listener.say(f"{told} It was lost {counted(work.lost, 'time')}, and is left as it is.")

    def _set_aside(self, work: _Work) -> None:
        """Take what a machine that is gone had finished of a group out of the run: it begins again on another."""
        if not (work.launches and self._folder):
            return
        others = [each for each in self._folder.read_launches() if each.group != work.group.name]
        with (self._folder.path / LOST).open("ab") as file:
            file.writelines(codec.dump(each) + b"\n" for each in work.launches)
        write_atomically(
            self._folder.path / "launches.jsonl", b"".join(codec.dump(each) + b"\n" for each in others), synced=True
        )
        self._listener.say(
            f"{work.group.name} begins again on another machine; {counted(len(work.launches), 'launch')} of it that "
            f"the lost one had finished {'is' if len(work.launches) == 1 else 'are'} in {LOST}."
        )
        work.launches = []
        if self._spending:
            self._spending.forget(work.group.name)
        self._runs.pop(work.group.name, None)

    def _whole(self) -> Run:
        """The whole run, as far as its units have told of it."""
        told = [*([self._earlier.run] if self._earlier else []), *self._runs.values()]
        first, plan, planned = told[0], self._planned.plan, self._planned
        assert self._folder is not None
        return replace(
            first,
            id=self._id,
            started=self._started,
            command=self._command,
            plan=replace(plan, limits=first.plan.limits),
            host={**_host(told), **self._named_gpus()},
            folder=str(self._folder.path),
            scenarios=[replace(each, path=planned.scenarios[each.name].path) for each in planned.scenarios.values()],
            images={name: image for each in reversed(told) for name, image in each.images.items()},
            pins={name: pins for each in reversed(told) for name, pins in each.pins.items()},
            sources={name: digest for each in reversed(told) for name, digest in each.sources.items()},
            scripts={name: text for each in told for name, text in each.scripts.items()},
            stops={},
            slots=self._slots,
        )

    def _named_gpus(self) -> Mapping[str, Any]:
        """The facts of the GPUs that were typed for slots of this machine, also of one that no unit has used yet.

        A run that goes on takes the same.
        """
        planned, request = self._planned, self._planned.request
        if self._slots == 1 or not request.gpus or (isinstance(request, Request) and request.on):
            return {}
        return gpus.facts(planned.cards, planned.gpu_host, planned.plan.lock_clocks)

    def _by_machine(self, folder: RunFolder, whole: Run, launches: Sequence[Launch]) -> tuple[Run, list[Launch]]:
        """The run as `harness merge` makes it of several machines': in analysis, each is by itself."""
        first, *_ = self._runs.values()
        of = {group.name: self._runs.get(group.name, first) for group in whole.plan.groups}
        parts = []
        for machine in dict.fromkeys(run.machine for run in of.values()):
            theirs = [run for run in of.values() if run.machine == machine]
            names = {name for name, run in of.items() if run.machine == machine}
            plan = replace(whole.plan, groups=[group for group in whole.plan.groups if group.name in names])
            part = replace(
                whole,
                id=theirs[0].id,
                plan=replace(plan, limits=theirs[0].plan.limits),
                stops={name: stop for name, stop in whole.stops.items() if name in names},
                machine=machine,
                host=_host(theirs),
                backend=theirs[0].backend,
            )
            parts.append((part, [launch for launch in launches if launch.group in names]))
        merged, found = together(folder.path, parts)
        write_atomically(
            folder.path / "launches.jsonl", b"".join(codec.dump(each) + b"\n" for each in found), synced=True
        )
        units = [run.id for run in self._runs.values()]
        return replace(merged, id=whole.id, command=whole.command, folder=whole.folder, merged=units), found

    def _stops(self, whole: Run, launches: Sequence[Launch], *, interrupted: bool) -> dict[str, Any]:
        """How each group ended: as its unit says, else as an interrupted one. Of what is spent here, as that says."""
        widths = partial(sizing.widths, whole)
        if self._spending:
            return stops(whole.plan, Ledger(whole.plan, launches), widths, interrupted=interrupted)
        found = stops(whole.plan, Ledger(whole.plan, launches), widths, interrupted=True)
        return {**found, **{name: stop for run in self._runs.values() for name, stop in run.stops.items()}}


def _host(runs: Sequence[Run]) -> Mapping[str, Any]:
    """The facts of a machine, with what launches of its slots were pinned to where there were several."""
    pinned = sorted({cpu_list(run.plan.limits.cpus or ()) for run in runs}.union(*(_pinned(run) for run in runs)))
    return {**runs[0].host, "slots": pinned} if len(pinned) > 1 else runs[0].host


def _pinned(run: Run) -> Collection[str]:
    """What a run that goes on has already told of its slots."""
    told = run.host.get("slots", ())
    return {str(each) for each in told} if isinstance(told, Sequence) and not isinstance(told, str) else set()


def _group(unit: Unit) -> str:
    return unit.planned.plan.groups[0].name
