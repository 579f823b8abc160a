"""One unit of a plan, a group with all of its rounds, measured in a slot of this machine by a process of its own.

`python -m harness.fleet.unit DESCRIPTOR` reads a unit from a connection and sends back what happens as it happens. The
unit's run folder on this machine has all of it too, so that nothing is lost where nobody listens any more: then, and
when it is told to stop, it ends as Ctrl-C ends a run.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from harness import __version__
from harness.backends import registry
from harness.catalog.project import Project
from harness.catalog.scenarios import files_of, find_scenarios, kit_files
from harness.files import data_dir
from harness.machine import cpus
from harness.machine.gpu import chosen as gpus
from harness.machine.identity import machine
from harness.machine.lock import slot_to_itself
from harness.machine.slots import Slot, divided
from harness.model.errors import CannotRunHereError, Exit, HarnessError, UsageError
from harness.model.gpu import ALL, CPU_ALONE, Card
from harness.model.launch import Launch
from harness.model.run import Run
from harness.model.scenario import Scenario
from harness.runner.walk import WalkListener
from harness.session.planning import Planned
from harness.session.running import Listener, measure, prepare

#: What a unit tells: the name of what happened, and its arguments. `said`, `begin`, `skip` and `again` as a listener
#: hears them; `opened` (the Run whose launches begin); `end` (a Launch, and its artifacts by path); last of all `over`
#: (the Run as it ended, or None; the error that ended it, or None; what `prepare` found that this machine cannot have).
Message = tuple[str, tuple[Any, ...]]

#: Seconds that a process has to end what it measures, once it was told to.
PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Unit:
    """What a process is to do: measure all groups of `planned`, or, with `to_prepare`, make its environments alone.

    `run` is the whole run's id, `name` this unit's own. `files` are those of each scenario and of the kit, as the plan
    was made with. `slots` is how many there are of the machine that it runs on, and `slot` the place of the one that it
    takes; None: any that is free. `finished` are launches that an earlier attempt has made there, and `until` is the
    round up to which it measures, where the coordinator spends the budget.
    """

    planned: Planned
    run: str
    name: str
    files: Mapping[str, Mapping[str, bytes]]
    kit: Mapping[str, bytes]
    slots: int
    slot: int | None = None
    command: Sequence[str] = ()
    finished: Sequence[Launch] = ()
    until: int | None = None
    replaces: str = ""
    to_prepare: bool = False
    wait: bool = True
    version: str = __version__


def packed(planned: Planned) -> tuple[dict[str, dict[str, bytes]], dict[str, bytes]]:
    """The files of a plan's scenarios, and the kit's. Raises UsageError for one that cannot be read."""
    kit = kit_files(planned.project)
    return {name: files_of(scenario, {}) for name, scenario in planned.scenarios.items()}, kit


def kept(run: str) -> Path:
    """The folder on this machine of all units of a run."""
    return data_dir() / "fleet" / run


class Started:
    """A unit that goes on in a process of its own."""

    def __init__(self, unit: Unit) -> None:
        self.connection, other = Pipe()
        with other:
            # Ctrl-C in a terminal is for the coordinator, which then says who stops
            self._process = subprocess.Popen(
                [sys.executable, "-m", "harness.fleet.unit", str(other.fileno())],
                pass_fds=[other.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                start_new_session=True,
            )
        with contextlib.suppress(OSError):  # it has died, which `take` tells
            self.connection.send(unit)
        self._is_over = False

    def take(self, seconds: float) -> list[Message]:
        """What has happened since, as soon as anything has, or after so many seconds; `lost` where it died."""
        found: list[Message] = []
        try:
            while not self._is_over and self.connection.poll(0.0 if found else seconds):
                found.append(self.connection.recv())
                self._is_over = found[-1][0] == "over"
        except (EOFError, OSError):
            code = self._process.wait()
            found.append(("lost", (f"its process ended with {f'signal {-code}' if code < 0 else f'code {code}'}",)))
            self._is_over = True
        return found

    def stop(self) -> None:
        """Have it end what it measures."""
        with contextlib.suppress(OSError):
            self.connection.send("stop")

    def close(self) -> None:
        """See its end; whatever does not end is killed."""
        self.connection.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Teller(Listener):
    """Tells what a run does to whoever has started this process, as long as they listen."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._folder = Path()
        self.slot: Slot | None = None
        self.replaced: Path | None = None

    def tell(self, name: str, *arguments: object) -> None:
        """Something happened."""
        with contextlib.suppress(OSError):
            self._connection.send((name, arguments))

    def say(self, sentence: str) -> None:
        """A sentence for the user."""
        self.tell("said", sentence)

    def begin(self, cell: Any, number: int) -> None:
        """A launch begins."""
        self.tell("begin", cell, number)

    def skip(self, launches: int) -> None:
        """Some will not be done."""
        self.tell("skip", launches)

    def again(self, number: int, launches: int) -> None:
        """Some more will be done."""
        self.tell("again", number, launches)

    def end(self, launch: Launch) -> None:
        """A launch is stored."""
        self.tell("end", launch, {name: (self._folder / name).read_bytes() for name in launch.artifacts})

    @contextlib.contextmanager
    def launching(self, run: Run) -> Iterator[WalkListener]:
        """The launches begin."""
        self._folder = Path(run.folder)
        self.tell("opened", run)
        if self.replaced:  # this run has its launches; a merge would find them twice
            shutil.rmtree(self.replaced, ignore_errors=True)
        # other slots' CPUs are what they measure on; of a slot of one CPU, this process waits while its launch works
        own = set(self.slot.cpus) if self.slot else set()
        with cpus.running_on(own & os.sched_getaffinity(0) or own):
            yield self


def run_unit(unit: Unit, teller: _Teller) -> None:
    """Do what a unit asks for, and tell of it."""
    run, error, missing = None, None, {}
    try:
        planned = _here(unit)
        if unit.to_prepare:
            missing = prepare(planned, teller, wait=unit.wait)
        else:
            slots = _slots(planned, unit.slots)
            slots = slots if unit.slot is None else [slots[unit.slot]]
            with slot_to_itself([slot.names for slot in slots], teller.say if unit.wait else None) as place:
                teller.slot = slots[place]
                teller.replaced = kept(unit.run) / unit.replaces if unit.replaces else None
                planned = _in_slot(planned, slots[place], unit.slots)
                run = measure(
                    planned,
                    teller,
                    unit.name,
                    command=unit.command,
                    slots=unit.slots,
                    finished=unit.finished,
                    until=unit.until,
                )
    except HarnessError as found:
        error = _plain(found)
    except KeyboardInterrupt:
        pass  # before the first launch
    teller.tell("over", run, error, {name: _plain(each) for name, each in missing.items()})


def _plain(error: HarnessError) -> HarnessError:
    """The same error, of a kind that can be sent."""
    kind = UsageError if error.exit is Exit.USAGE else CannotRunHereError
    return kind(str(error) if not hasattr(error, "message") else error.message, getattr(error, "advice", ""))


def _slots(planned: Planned, count: int) -> list[Slot]:
    cards: Sequence[Card] = ()
    if planned.plan.limits.gpus:
        host = registry.image_backend(planned.project.root).gpu_host
        names = planned.plan.limits.gpus
        cards = gpus.cards(names, host) if planned.request.gpus and ALL not in names else host.cards
    return divided(count, os.sched_getaffinity(0), cards)


def _here(unit: Unit) -> Planned:
    """The plan with this machine's project, and the scenarios' files as they were sent.

    A scenario of this machine's own project is trusted where it is the same. Raises CannotRunHereError where the
    harness here is another one.
    """
    project = Project.find()
    who = machine()
    if unit.version != __version__ or dict(unit.kit) != kit_files(project):
        raise CannotRunHereError(
            f"The machine {who.name or who.id} has harness {__version__}, and the plan was made by {unit.version}, or "
            "with another kit.",
            "Install the same version on all machines.",
        )
    own = find_scenarios(project).scenarios
    scenarios = {}
    for name, files in unit.files.items():
        scenario = unit.planned.scenarios[name]
        mine = own.get(name)
        scenarios[name] = replace(scenario, path=mine.path if mine and _is(mine, files) else _written(unit, name))
    request = replace(unit.planned.request, results=kept(unit.run))
    return replace(unit.planned, request=request, project=project, scenarios=scenarios)


def _is(scenario: Scenario, files: Mapping[str, bytes]) -> bool:
    try:
        return files_of(scenario, {}) == dict(files)
    except UsageError:
        return False


def _written(unit: Unit, scenario: str) -> Path:
    """Write a scenario's files to a folder of their own; returns the script's path."""
    folder = kept(unit.run) / f"{unit.name}.scenarios" / scenario
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in unit.files[scenario].items():
            (folder / Path(name).name).write_bytes(content)
    except OSError as error:
        raise CannotRunHereError(f"{folder} cannot be written: {error.strerror}.") from None
    return folder / unit.planned.scenarios[scenario].path.name


def _in_slot(planned: Planned, slot: Slot, slots: int) -> Planned:
    """The plan with the CPUs, the GPU and the memory of a slot."""
    request, limits = planned.request, planned.plan.limits
    wish = request.cpus or ("all" if slot.gpu else "1")
    limits = replace(
        limits,
        cpus=cpus.choose(wish, set(slot.cpus)) or slot.cpus,
        memory_bytes=request.memory or os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 4 // 5 // slots,
        gpus=(slot.gpu,) if slot.gpu else (),
    )
    host = registry.image_backend(planned.project.root).gpu_host if slot.gpu else CPU_ALONE
    cards = gpus.cards(limits.gpus, host) if slot.gpu else []
    return replace(planned, plan=replace(planned.plan, limits=limits), gpu_host=host, cards=cards)


def main(descriptor: int) -> None:
    """Do the unit that comes through the connection."""
    connection = Connection(descriptor)
    try:
        unit: Unit = connection.recv()
    except EOFError:
        return

    def listen() -> None:
        """Whoever has started this process says `stop`, or has died."""
        with contextlib.suppress(EOFError, OSError):
            connection.recv()
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    threading.Thread(target=listen, daemon=True).start()
    with contextlib.suppress(KeyboardInterrupt):
        run_unit(unit, _Teller(connection))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that nobody listens any more interrupts nothing now


if __name__ == "__main__":
    main(int(sys.argv[1]))
