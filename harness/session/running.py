"""A run from its preparation to its report: one way to measure, to go on with a run, and to profile."""

import os
import secrets
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from harness import __version__
from harness.analysis import sizing
from harness.analysis.results import Results
from harness.backends import registry
from harness.backends.protocol import RegisteredBackend
from harness.catalog.scenarios import fingerprint
from harness.files import data_dir
from harness.machine import cpus, host
from harness.machine.gpu import chosen as gpus
from harness.machine.gpu import clocks
from harness.machine.gpu.host import kept_open
from harness.machine.identity import machine
from harness.machine.lock import exclusive, machine_to_itself, run_to_itself, slot_to_itself
from harness.machine.slots import Slot
from harness.model.backend import Backend, BackendFacts, GpuWay, Meanwhile, Preparation, Progress, Step
from harness.model.environment import Requirement
from harness.model.errors import CannotRunHereError, FileError, UnavailableError
from harness.model.gpu import Card
from harness.model.launch import BROKEN, Launch, Limits
from harness.model.run import RULES, Machine, Plan, Run, Stop, StopReason, Unavailable, stood_in
from harness.model.scenario import Cell
from harness.plan.groups import control
from harness.report.sections import measured
from harness.runner.launching import Noting, Watch
from harness.runner.rounds import Ledger
from harness.runner.schedule import RunEstimate, affordable
from harness.runner.stopping import stops
from harness.runner.walk import Walk, WalkListener
from harness.session.jobs import JobMaker
from harness.session.meanwhile import Pilots
from harness.session.planning import Planned, next_in_place
from harness.session.reporting import Written, report, results_of
from harness.session.resuming import Earlier, changed, earlier, machine_facts, slot_of
from harness.session.slot_plans import in_slot
from harness.store.folder import RunFolder

#: The share of the free memory that interleaved launches may use.
HELD_SHARE = 0.5


class Listener:
    """Hears what a run does, and does nothing about it: override what you want to know.

    `preparing` and `launching` stand around a whole stage, for those who show something as long as it lasts; what they
    give is told the steps of that stage, by default this listener itself.
    """

    def say(self, sentence: str) -> None:
        """A sentence for the user: which backend was taken, what is not available here."""

    def step(self, step: Step) -> None:
        """Something happened to an environment that is being prepared."""

    def begin(self, cell: Cell, number: int) -> None:
        """A launch of round `number` begins; 0 is the pilot."""

    def end(self, launch: Launch) -> None:
        """A launch has ended, and is stored."""

    def skip(self, launches: int) -> None:
        """So many launches will not be done: they are there already, or not needed, or their cells failed for good."""

    def turn(self, number: int, turns: int) -> None:
        """The launches that have begun and not ended take turn `number` of so many."""

    def again(self, number: int, launches: int) -> None:
        """Other processes disturbed round `number` of a group: it is repeated, with so many more launches."""

    def estimate(self, estimate: RunEstimate) -> None:
        """How long the run takes, as the pilots tell, and again after each round."""

    @contextmanager
    def preparing(self) -> Iterator[Progress]:
        """Stands around the preparation of the environments."""
        yield self.step

    @contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """Stands around the launches of a run, whose folder is there now."""
        yield self


@dataclass(frozen=True, slots=True)
class Ended:
    """A run that has ended, or was interrupted, as it lies in `folder`.

    `results` has its launches and all that follows from them; `written` are its reports. `refused` are selected
    scenarios whose files are wrong. `broken_off` is what ended it early where that was no interruption: an engine that
    answers no more.
    """

    folder: Path
    results: Results
    written: Written
    interrupted: bool
    refused: Mapping[str, FileError]
    broken_off: CannotRunHereError | None = None

    @property
    def broken(self) -> list[Launch]:
        """The launches that have no number though they should have; not those that were made again."""
        return [
            launch for launch in self.results.launches if launch.status in BROKEN and not launch.ended_under_profiler
        ]


@dataclass(frozen=True, slots=True)
class _Ready:
    """A run that is ready to be launched; `finished` are the launches that it has, None: those that are stored.

    `is_longer`: its plan is a longer one than its folder has.
    """

    folder: RunFolder
    run: Run
    requirements: Mapping[str, Requirement]
    jobs: JobMaker
    backend: Backend
    watch: Watch | None
    finished: list[Launch] | None = None
    is_longer: bool = False


def run(
    planned: Planned,
    listener: Listener | None = None,
    *,
    command: Sequence[str] = (),
    wait: bool = False,
    slots: Sequence[Slot] = (),
    at: int | None = None,
) -> Ended:
    """Prepare the environments, launch what was planned, in a new run's folder, and report it.

    `command` is what the report says was typed; left out, what asks for the same. With `slots` of this machine, it is
    measured in the first one that is free, or in the one `at` that place, beside runs in the others; without, nothing
    else measures meanwhile. An interruption (KeyboardInterrupt) ends it early, with what was finished until then, and
    so does an engine that answers no more, once a launch has begun; a second interruption passes through.

    Raises CannotRunHereError where another run measures on this machine, unless it is to `wait`, and where the machine
    cannot run any of it; UsageError for a backend that cannot do what is asked.
    """
    told = listener or Listener()
    waiting = told.say if wait else None
    with ExitStack() as held:
        if slots:
            prepare(planned, told, wait=wait)  # what is built beside a run in another slot would be measured
            taken = _take_slot(held, slots if at is None else slots[at : at + 1], waiting)
            planned = in_slot(planned, taken, len(slots))
        else:
            held.enter_context(machine_to_itself(waiting))
        return _walk(_begun(planned, command, told, held, max(1, len(slots))), told, planned.refused)


def _take_slot(held: ExitStack, slots: Sequence[Slot], waiting: Callable[[str], object] | None) -> Slot:
    """Hold a free slot until `held` ends, and keep this process to its CPUs: others' are what they measure on."""
    slot = slots[held.enter_context(slot_to_itself([each.names for each in slots], waiting))]
    held.enter_context(cpus.running_on(slot.cpus))
    return slot


def prepare(planned: Planned, listener: Listener, *, wait: bool = False) -> dict[str, UnavailableError]:
    """Make the environments of a plan on this machine, which nothing else then uses; returns those it cannot have.

    Raises as `run` does.
    """
    untrusted, via = planned.is_untrusted, planned.request.gpu_via
    name, gpus_ = planned.request.backend, planned.plan.limits.gpus
    backend, _ = registry.choose(name, planned.project.root, "", untrusted=untrusted, gpus=gpus_, via=via)
    if not backend.unprepared(planned.needed):
        return {}
    with machine_to_itself(listener.say if wait else None):
        backend.check_room(planned.needed)
        return dict(_prepared(backend, planned.needed, listener).unavailable)


def resume(
    folder: Path,
    listener: Listener | None = None,
    *,
    backend: str = "auto",
    wait: bool = False,
    rounds: int | None = None,
    budget: float | None = None,
) -> Ended:
    """Go on with the run in a folder, as `run` does: as it planned, or to so many `rounds`, for `budget` seconds.

    A run that has nothing left to measure is reported again, and the listener is told what continues it. Raises
    UsageError where what it measures has changed.
    """
    host.require_linux()
    told = listener or Listener()
    waiting = told.say if wait else None
    with ExitStack() as held:
        slot = slot_of(folder)
        if slot:
            _take_slot(held, [slot], waiting)
        else:
            held.enter_context(machine_to_itself(waiting))
        found = earlier(folder, registry.known(backend), rounds=rounds, budget=budget)
        return _report_again(found, told) if found.over else _walk(_reopened(found, told, held), told, {})


def _report_again(found: Earlier, listener: Listener) -> Ended:
    """Report a run that has nothing left to measure, and say so."""
    listener.say(found.over)
    with to_itself(found.folder):
        found.folder.repair()  # it may have been killed while it reported
        results = results_of(found.run, found.folder.read_launches(found.run))
        written = report(found.folder, results)
    return Ended(found.folder.path, results, written, interrupted=False, refused={})


def new_id(now: datetime) -> str:
    """What a run that begins now is called."""
    return f"{now:%Y-%m-%dT%H-%M-%SZ}-{secrets.token_hex(2)}"


def _begun(planned: Planned, command: Sequence[str], listener: Listener, held: ExitStack, slots: int) -> _Ready:
    """Start a new run in its own folder, with its environments prepared; nothing is launched yet.

    `held` keeps resources until the run has ended; `slots` are those of the machine that it shares.
    """
    root, limits, clock = planned.project.root, planned.plan.limits, planned.plan.lock_clocks
    _hold_gpus(held, limits, planned.cards, clock, listener)
    now = datetime.now(UTC)
    named = new_id(now)
    name = planned.request.backend
    untrusted, via = planned.is_untrusted, planned.request.gpu_via
    backend, why = registry.choose(name, root, named, untrusted=untrusted, gpus=limits.gpus, via=via)
    listener.say(f"Backend: {why}.")
    planned.refuse_nothing()
    _say_stand_ins(planned.plan, listener)
    if limits.gpus:
        _try_gpus(backend, planned.needed, listener)  # with an image of an earlier run, before any is built
        backend.check_room(planned.needed)
        for sentence in [*planned.first_starts, *gpus.shared(planned.cards)]:
            listener.say(sentence)
    folder = RunFolder.create(planned.request.results, named)
    try:
        jobs = JobMaker(planned.project, planned.scenarios, limits)
        pilots = Pilots(planned, named, backend, jobs)
        early = pilots if slots == 1 and pilots.may_begin(planned.plan) else None
        planned, made = _with_what_is_there(planned, backend, listener, early, replan=slots == 1)
        planned.refuse_nothing()
        if planned.plan.stand_ins:  # what comes next in the list may have been taken
            jobs = JobMaker(planned.project, planned.scenarios, limits)
        if limits.gpus:
            _try_gpus(backend, planned.needed, listener)
        _give_priority(backend, limits, listener)
        facts = backend.facts()
        begun = Run(
            id=named,
            started=now.isoformat(timespec="seconds"),
            command=list(command) or planned.request.command(),
            harness=__version__,
            plan=planned.plan,
            reference=planned.reference,
            environments=planned.environments,
            scenarios=list(planned.scenarios.values()),
            backend=replace(facts, why=why),
            host=machine_facts(limits, planned.cards, planned.gpu_host, clock),
            folder=str(folder.path),
            commit="" if planned.project.is_installed else _commit(root),
            suite=planned.suite,
            images=made.images,
            pins={each: requirement.lock.pins for each, requirement in planned.requirements.items()},
            sources=jobs.sources(),
            scripts=jobs.scripts(planned.project.scenario_folders),
            rules=RULES,
            own=jobs.own(),
            kit=fingerprint(jobs.kit),
            machine=_machine(facts, listener),
            slots=slots,
        )
        folder.write_run(begun, signed=True)
        finished = pilots.store(folder)
    except BaseException:
        folder.discard()
        raise
    if not folder.is_from_here():
        listener.say(
            f"The secret that signs runs cannot be kept in {data_dir()}: once it has ended, this run cannot be gone on "
            "with (--resume)."
        )
    watch = gpus.watch(planned.cards)
    return _Ready(folder, begun, planned.requirements, jobs, backend, watch, finished)


def _with_what_is_there(
    planned: Planned, backend: Backend, listener: Listener, early: Meanwhile | None, *, replan: bool
) -> tuple[Planned, Preparation]:
    """Prepare the environments that this machine can have, and return the plan with them.

    `early` runs in available environments while others are being prepared. `replan` returns the plan with the next
    environment of the suite's list for a substitute that isn't available.
    """
    absent: dict[str, UnavailableError] = {}
    while True:
        made = _prepared(backend, planned.needed, listener, early)
        for each, error in made.unavailable.items():
            listener.say(f"{each} is not available here: {error}")
        absent |= made.unavailable
        again = next_in_place(planned, absent) if replan else None
        if again is None:
            return _without(planned, made.unavailable), made
        planned = again
        _say_stand_ins(planned.plan, listener)


def _reopened(found: Earlier, listener: Listener, held: ExitStack) -> _Ready:
    """Reopen a run that was started before; `held` as in `_begun`.

    Raises UsageError if it wouldn't be the same run.
    """
    begun, planned, path = found.run, found.planned, found.folder.path
    limits, cards, root = begun.plan.limits, planned.cards, planned.project.root
    jobs = JobMaker(planned.project, planned.scenarios, limits)
    _hold_gpus(held, limits, cards, begun.plan.lock_clocks, listener)
    # the backend of the first start is used: it decided whether an untrusted script may run
    via = next((way for way in GpuWay if way.words == begun.backend.gpus_by), None)
    backend, why = registry.choose(begun.backend.name, root, begun.id, gpus=limits.gpus, via=via)
    listener.say(f"Backend: {why}.")
    _say_stand_ins(begun.plan, listener)
    needed = [planned.requirements[each] for each in begun.images]
    made = _prepared(backend, needed, listener)
    if limits.gpus:
        _try_gpus(backend, needed, listener)
    if begun.backend.priority:  # launches go on as they began
        _give_priority(backend, limits, listener)
    moved = [each for each, image in begun.images.items() if made.images.get(each) != image]
    if moved:
        raise changed(path, f"the image of {', '.join(moved)}")
    watch = gpus.watch(cards)
    return _Ready(found.folder, begun, planned.requirements, jobs, backend, watch, is_longer=found.is_longer)


def _say_stand_ins(plan: Plan, listener: Listener) -> None:
    told = stood_in(plan.stand_ins)
    if told:
        listener.say(told)


def _walk(ready: _Ready, listener: Listener, refused: Mapping[str, FileError]) -> Ended:
    """Launch what is not finished, write how it ended, and report."""
    folder = ready.folder
    with to_itself(folder):
        ended, launches, end = _launched(ready, listener)
        results = results_of(ended, launches)
        written = report(folder, results)
    if isinstance(end, CannotRunHereError):
        return Ended(folder.path, results, written, interrupted=False, refused=refused, broken_off=end)
    return Ended(folder.path, results, written, interrupted=end is not None, refused=refused)


@contextmanager
def to_itself(folder: RunFolder) -> Iterator[None]:
    """Hold the folder against whoever reads it too, and the run against who cleans up."""
    with exclusive(folder.path / ".lock", f"{folder.path} is being measured."), run_to_itself(folder.path.name):
        yield


def _launched(
    ready: _Ready, listener: Listener
) -> tuple[Run, list[Launch], KeyboardInterrupt | CannotRunHereError | None]:
    """Launch what isn't finished, record how the run ended, and return what ended it early."""
    folder, plan, backend, finished = ready.folder, ready.run.plan, ready.backend, ready.finished
    widths, pairs = partial(sizing.widths, ready.run), sizing.pairs(ready.run)
    ended = ready.run
    end: KeyboardInterrupt | CannotRunHereError | None = None
    if finished is None:
        _clean(backend, ended.id, listener)
        folder.repair()
        if ready.is_longer:
            folder.write_run(ended, signed=True)
        finished = folder.read_launches(ended)
    watch = partial(Noting, {"slots": ended.slots}, ready.watch) if ended.slots > 1 else ready.watch
    starts = cpus.starting(plan.limits.cpus, os.sched_getaffinity(0)) if backend.can_move() else ()
    try:
        with cpus.keeping_off(plan.limits.cpus), listener.launching(ended) as heard:
            memory = HELD_SHARE * (ended.backend.memory_bytes if ended.backend.is_remote else host.free_memory())
            walk = Walk(
                plan,
                folder,
                backend,
                ready.requirements,
                ready.jobs,
                heard,
                widths,
                watch,
                memory,
                looks=sizing.looks(plan, ended.scenarios, ended.environments),
                pairs=pairs,
                starts=starts,
            )
            if plan.profile_calls:
                walk.profile()
            else:
                walk.run(finished)
    except (KeyboardInterrupt, CannotRunHereError) as error:
        if _is_second(error):
            raise
        end = error
        _clean(backend, ended.id, listener)
    launches = folder.read_launches(ended)
    if not plan.profile_calls:
        held, names = affordable(plan, launches, pairs), [group.name for group in plan.groups]
        found = stops(held, Ledger(held, launches), widths, interrupted=end is not None)
        whole = {group.name for group in held.groups if group in plan.groups}
        ended = replace(ended, stops={name: _stop(found.get(name), is_whole=name in whole) for name in names})
        folder.write_run(ended, signed=True)
    return ended, launches, end


def _stop(found: Stop | None, *, is_whole: bool) -> Stop:
    """How a group ended: by the budget if that left some or all of its cells out."""
    if found is None:
        return Stop(StopReason.BUDGET, 0)
    return found if is_whole or found.reason is not StopReason.ROUNDS else replace(found, reason=StopReason.BUDGET)


def _clean(backend: Backend, run: str, listener: Listener) -> None:
    """Remove what launches left. Slowness or a silent engine is only reported, because the record matters more."""
    try:
        backend.clean(run)
    except CannotRunHereError as error:
        listener.say(f"{error}\nWhat launches left is removed by: harness clean {run}")


def _is_second(interruption: BaseException) -> bool:
    """Whether the interruption came while another one was being dealt with."""
    earlier = interruption.__context__
    return earlier is not None and (isinstance(earlier, KeyboardInterrupt) or _is_second(earlier))


def _try_gpus(backend: RegisteredBackend, needed: Sequence[Requirement], listener: Listener) -> None:
    for sentence in backend.try_gpus(needed):
        listener.say(sentence)


def _give_priority(backend: RegisteredBackend, limits: Limits, listener: Listener) -> None:
    """Have pinned launches go before other work on their CPUs; on all CPUs, nothing would be left to other work."""
    if limits.cpus:
        for sentence in backend.give_priority(limits.cpus):
            listener.say(sentence)


def _prepared(
    backend: Backend, needed: Sequence[Requirement], listener: Listener, early: Meanwhile | None = None
) -> Preparation:
    with listener.preparing() as progress:
        return backend.prepare(list(needed), progress, early)


def _without(planned: Planned, missing: Mapping[str, UnavailableError]) -> Planned:
    """The plan less the environments that this machine cannot have; their cells are not available, with the reason."""
    if not missing:
        return planned
    plan = planned.plan
    gone = {cell: missing[cell.environment] for cell in plan.cells if cell.environment in missing}
    unavailable = [Unavailable(cell=cell, reason=error.message, advice=error.advice) for cell, error in gone.items()]
    groups = []
    for group in plan.groups:
        cells = [cell for cell in group.cells if cell not in gone]
        again = control(cells, planned.reference) if group.control else None
        groups += [replace(group, cells=cells, control=again)] if cells else []
    left = replace(planned, plan=replace(plan, groups=groups, unavailable=[*plan.unavailable, *unavailable]))
    was_one = sum(group.controlled for group in plan.groups if group.control) == 1
    return left.with_one_control() if was_one else left


def _hold_gpus(held: ExitStack, limits: Limits, cards: Sequence[Card], clock: str, listener: Listener) -> None:
    """Keep the GPUs' driver loaded, and their clocks locked if requested, until `held` ends."""
    if limits.gpus:
        held.enter_context(kept_open(cards))
        held.enter_context(clocks.locked(cards, clock))
    if clock:
        listener.say(f"The clocks of the GPUs are locked for this run, {measured.clock(clock)}.")


def _machine(facts: BackendFacts, listener: Listener) -> Machine | None:
    """Return the id of the measuring machine; None for a remote engine, or, with a sentence, if no id can be stored."""
    if facts.is_remote and "HARNESS_MACHINE_ID" not in os.environ:
        return None
    try:
        return machine()
    except CannotRunHereError as error:
        listener.say(f"{error} A history will not know which machine measured this run.")
        return None


def _commit(root: Path) -> str:
    """The project's git commit, with `+` where the work tree differs; empty outside a checkout."""
    try:
        git = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
        return subprocess.run(git, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
