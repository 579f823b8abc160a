"""Measures a plan in shards, in several places, and merges their runs.

Each shard is the same command with `--shard`. A free place takes the next shard. The folder of the whole run has a
folder `shards/`, with a folder for each attempt at a shard, which contains a plain run. The whole run is merged from
the newest attempts. So no finished launch is lost if a process or a machine fails. A shard that stopped early is
measured again, in another place if its place has failed, and the remaining runs can be merged manually.
"""

import json
import os
import shutil
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote
from typing import Protocol

from harness.backends import registry
from harness.environments.requested import FromSource, parse_requested
from harness.environments.sources import is_on_this_machine
from harness.files import parse_json, read, write_atomically
from harness.fleet import check, ssh
from harness.fleet.merge import Merged, merge
from harness.fleet.parcel import Parcel, pack
from harness.fleet.shell import ShellRunner, make_script
from harness.machine.lock import hold_machine, is_held
from harness.machine.slots import Slot
from harness.model.errors import CannotRunHereError, DamagedError, Exit, FileError, UnavailableError, UsageError
from harness.model.texts import has_password
from harness.session.listener import Listener
from harness.session.options import AUTO, EVENLY, format_seconds
from harness.session.planning.plan import replace_fallbacks
from harness.session.planning.planned import Planned
from harness.session.preparing import prepare
from harness.session.request import LaunchRequest, Request
from harness.session.running import hold_run
from harness.session.slot_plans import choose_slot_gpus, divide_into_slots
from harness.session.starting import make_run_id
from harness.store.folder import RunFolder
from harness.store.signature import is_from_here, sign

#: The number of shards per place, so that other places needn't wait for a slow place. With a budget, there is one shard
#: per place, because each place has the whole budget.
PER_PLACE = 4

#: The exit codes of a shard's command that has measured everything that it could.
_FINISHED_CODES = (Exit.OK, Exit.CELLS_FAILED, Exit.SLOWER)

#: Names in the folder of a fleet's run: the folder of the shards' runs, their request, and the files that are sent.
SHARDS, ASKED, PARCEL = "shards", "fleet.json", "parcel.tar.gz"

#: The largest number of bytes to read from each of the last two files.
MOST = 256 * 1024**2


class ShardExecutor(Protocol):
    """A place where shards are measured, at most `slots` at once.

    `is_here`: whether the shards' runs are stored on this machine and can be continued. `queues`: whether the place
    accepts all shards, and queues them itself.
    """

    name: str
    is_here: bool
    queues: bool
    slots: int

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        """Run `harness WORDS` in this place, and put its run into the folder `into`.

        Return its exit code and the last lines of its stderr. Raises CannotRunHereError if this place can't measure
        any more.
        """
        ...

    def stop(self) -> None:
        """End the current measurements, as Ctrl-C does, and every later one immediately."""
        ...


class LocalExecutor:
    """Executor that runs each shard in a worker slot of this machine. The command of a shard finds its own slot."""

    is_here, queues, slots = True, False, 1

    def __init__(self, name: str, say: Callable[[str], object]) -> None:
        self.name = name
        self._shell = ShellRunner(lambda line: say(f"{name}: {line}"))

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        """Run the command on this machine."""
        words = words if "--resume" in words else [*words, "--results", str(into)]
        return self._shell.run(["sh", "-c", make_script(words, quote(sys.executable), environ={})])

    def stop(self) -> None:
        """End the command."""
        self._shell.stop()


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """The request for the shards of a run.

    - `words`: the arguments of each shard's command, without `--shard`; `of`: the number of shards
    - `on`: the machines that measure; `slots`: the number of slots of this machine
    - `command`: the command line of the whole run
    - `parcel`: the file that other machines get; `packages`: the packages that they need
    - `unavailable`: the environments that this machine can't prepare, with the message and the advice of the error
    """

    words: Sequence[str]
    of: int
    on: str
    slots: int
    command: Sequence[str]
    parcel: str = ""
    packages: Sequence[str] = ()
    unavailable: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FleetResult:
    """The merged run, with sentences about failures."""

    merged: Merged
    failed: Sequence[str]

    @property
    def lacks(self) -> list[str]:
        """A sentence for each missing part."""
        return [*self.failed, *self.merged.lacks]


def uses_several_places(request: LaunchRequest) -> bool:
    """Return whether a request measures in several places at once. A shard and `--slots 1` use one place."""
    if not isinstance(request, Request):
        return False
    return bool(request.on or request.spread or (request.slots not in ("", "1") and not request.shard))


def name_slot_kind(planned: Planned) -> str:
    """Return the kind of slots of a plan, which determines their interference."""
    return "gpu" if planned.plan.limits.gpus else "cpu"


def find_slots_for_shard(planned: Planned) -> list[Slot]:
    """Return the slots that a shard can use one of; empty if it uses the whole machine.

    Raises CannotRunHereError if their interference wasn't measured, or exceeds the margin.
    """
    count = _count_slots(planned.request, planned)
    return divide_into_slots(planned, count) if count > 1 else []


def run(planned: Planned, listener: Listener, *, command: Sequence[str], wait: bool = False) -> FleetResult:
    """Measure a plan in shards, and merge them in the folder of a new run.

    An interruption (KeyboardInterrupt) ends all shards early; a second one passes through. Raises UsageError for
    invalid places, UntrustedError for scripts that --trust must allow, and CannotRunHereError if no place has a run.
    """
    planned.refuse_nothing()
    request = planned.request
    if planned.untrusted and not registry.is_contained(request.backend):
        raise registry.UntrustedError(request.backend, planned.untrusted)
    assert isinstance(request, Request)
    on = request.on
    if on == "ray":
        on = "ray://auto" if os.environ.get("RAY_ADDRESS") else "ray://local"
    if on and on != "ray://local" and (request.slots or request.spread):
        raise UsageError(
            f"--slots and --spread apply to this machine, but --on {request.on} measures on other machines.",
            "Omit --slots and --spread.",
        )
    if any(map(has_password, request.command())):
        raise UsageError(
            "A run on several machines or slots can't use an address with a password: the command lines of its shards "
            "would show it.",
            "Omit the password, and set up git's credentials on each machine."
            if on
            else "Use a checkout: -e ENVIRONMENT+PACKAGE@FOLDER",
        )
    if on:
        _refuse_local_sources(planned, request)
    slots = _count_slots(request, planned)
    shard_request = replace(
        request,
        seed=planned.plan.seed,
        balance=request.balance or EVENLY,
        on="",
        slots="" if on else str(slots),
        spread=False,
        results=Request().results,
    )
    parcel = None
    if planned.untrusted:  # other machines can't see whose code it is
        shard_request = replace(shard_request, backend=registry.find_contained(request.backend))
    if on:
        parcel, shard_request = pack(shard_request, planned.scenarios.values())
    with _open_places(on, slots, parcel, listener.say) as places:
        unavailable = {} if on else _prepare_environments(planned, listener, wait=wait)
        shards = sum(place.slots for place in places) * (1 if planned.plan.budget_seconds else PER_PLACE)
        shards = max(1, min(shards, len(planned.plan.groups)))
        fleet_request = FleetRequest(
            [*shard_request.command()[1:], "--wait"],
            shards,
            on,
            slots,
            command,
            unavailable={name: (error.message, error.advice) for name, error in unavailable.items()},
        )
        folder = RunFolder.create(request.results, make_run_id(datetime.now(UTC)))
        if parcel:
            fleet_request = replace(fleet_request, parcel=parcel.name, packages=parcel.packages)
            write_atomically(folder.path / PARCEL, parcel.archive)
        write_atomically(folder.path / ASKED, sign(json.dumps(asdict(fleet_request), indent=2).encode() + b"\n"))
        return _Fleet(folder, fleet_request, listener.say, refused=planned.refused).run(places)


def _refuse_local_sources(planned: Planned, request: Request) -> None:
    """Raise UsageError for a package from a file or folder of this machine, because other machines don't have it."""
    wheels = [environment.name for environment in planned.environments if environment.wheel]
    for text in (*request.environments, request.reference):
        spec = parse_requested(text)
        if text in wheels or (isinstance(spec, FromSource) and is_on_this_machine(spec, request.repository)):
            raise UsageError(
                f"{text!r} is built from files of this machine, but --on {request.on} measures on other machines.",
                "Push the commit, and pass its address: -e ENVIRONMENT+PACKAGE@https://HOST/OWNER/NAME@REVISION",
            )


def resume(
    path: Path,
    listener: Listener,
    *,
    rounds: int | None,
    budget: float | None,
    unsettled: bool = False,
    slots: str = "",
    wait: bool = False,
) -> FleetResult:
    """Continue a run in shards: measure the shards that stopped or are missing.

    On other machines, stopped shards are measured again from the start. Raises UsageError for a run that this user
    didn't start on this machine, and for a run on other machines that would be longer than planned.
    """
    fleet_request = _read_request(path)
    parcel = Parcel(_read(path, PARCEL), fleet_request.packages) if fleet_request.on else None
    extra_words = [
        *(["--rounds", str(rounds)] if rounds else []),
        *(["--budget", format_seconds(budget)] if budget else []),
        *(["--unsettled"] if unsettled else []),
    ]
    if parcel and (extra_words or parcel.name != fleet_request.parcel):
        reason = (
            f"{PARCEL} has changed since"
            if parcel.name != fleet_request.parcel
            else "it doesn't accept --rounds and --budget"
        )
        raise UsageError(f"{path} was measured on other machines, but {reason}.", "Start a new run.")
    count = int(slots) if slots.isdecimal() and not fleet_request.on else fleet_request.slots
    with _open_places(fleet_request.on, count, parcel, listener.say) as places:
        if not fleet_request.on:
            # if the command was killed just now, its shards are still stopping
            is_stopping = any(is_held(lock) for lock in (path / SHARDS).glob("*/*/.lock"))
            _wait_for_machine(listener, wait=wait or is_stopping)
        return _Fleet(RunFolder(path), fleet_request, listener.say, extra_words).run(places)


def read_unavailable(results: Path) -> dict[str, UnavailableError]:
    """Return the environments that the whole run couldn't prepare, if `results` is the folder for the run of a shard.

    So the shard doesn't try to build them again while other shards measure.
    """
    if results.parent.name != SHARDS:
        return {}
    try:
        fleet_request = _read_request(results.parent.parent)
    except UsageError:  # without a secret, the request isn't signed
        return {}
    return {name: UnavailableError(*texts) for name, texts in fleet_request.unavailable.items()}


def _read_request(path: Path) -> FleetRequest:
    try:
        document = _read(path, ASKED)
        if not is_from_here(document):
            raise UsageError(f"The run {path} wasn't started by this user on this machine.", "Start a new run.")
        values = parse_json(document)
        names = [attribute.name for attribute in fields(FleetRequest)]
        return FleetRequest(**{name: values[name] for name in names if name in values})  # an older run has fewer names
    except (ValueError, TypeError):
        raise DamagedError(path / ASKED, "the request is missing") from None


def _read(path: Path, name: str) -> bytes:
    try:
        return read(Path(name), within=path, most=MOST)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.", "Start a new run.") from None


@contextmanager
def _open_places(
    on: str, slots: int, parcel: Parcel | None, say: Callable[[str], object]
) -> Iterator[Sequence[ShardExecutor]]:
    """Yield the places where shards are measured: other machines, or slots of this machine."""
    if parcel is None:
        yield [LocalExecutor(f"slot {number}", say) for number in range(1, slots + 1)]
    elif on.startswith("ssh://"):
        yield [ssh.SshExecutor(host, parcel, partial(_say_with_name, say, host.shown)) for host in ssh.parse_hosts(on)]
    else:
        from harness.fleet import ray  # noqa: PLC0415 - only a Ray cluster needs it

        address = on.removeprefix("ray://") if on in ("ray://auto", "ray://local") else on
        with ray.RayExecutor(address, parcel, say, slots) as cluster:
            yield [cluster]


def _say_with_name(say: Callable[[str], object], name: str, line: str) -> None:
    say(f"{name}: {line}")


def _prepare_environments(planned: Planned, listener: Listener, *, wait: bool) -> dict[str, UnavailableError]:
    """Prepare the environments once for all slots, under the machine's lock. Return the unavailable environments."""
    _wait_for_machine(listener, wait=wait)
    unavailable = dict[str, UnavailableError]()
    next_plan: Planned | None = planned
    while next_plan:
        unavailable |= prepare(next_plan, listener, wait=wait)
        next_plan = replace_fallbacks(next_plan, unavailable)  # the shards choose the same fallback environments
    return unavailable


def _wait_for_machine(listener: Listener, *, wait: bool) -> None:
    """Wait until no other run measures. Without `wait`, raise CannotRunHereError here, once for all slots."""
    with hold_machine(listener.say if wait else None):
        pass


def _count_slots(request: LaunchRequest, planned: Planned) -> int:
    """Return the requested number of slots of this machine; 1 if other machines measure.

    Raises UsageError for more slots than the machine has, and CannotRunHereError if their interference wasn't measured
    or exceeds the margin.
    """
    assert isinstance(request, Request)
    if request.on and not request.slots:
        return 1
    cards = choose_slot_gpus(planned)
    if request.spread and len(cards) < 2:
        raise UsageError("--spread needs several GPUs.", "Pass several GPUs, such as --gpus 0,1.")
    count = None if request.slots in ("", AUTO) else int(request.slots)
    wanted = count or (len(cards) if request.spread else None)
    allowed = check.count_allowed_slots(name_slot_kind(planned), wanted, planned.plan.margin)
    return len(divide_into_slots(planned, allowed))


@dataclass
class _Fleet:
    """A run in shards, in a folder. `longer` are arguments for resumed shards that continue beyond their plan."""

    folder: RunFolder
    asked: FleetRequest
    say: Callable[[str], object]
    longer: Sequence[str] = ()
    refused: Mapping[str, FileError] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)  # the last error of each shard
    failed_places: dict[int, str] = field(default_factory=dict)  # the errors of failed places, by their ids
    is_stopped: bool = False

    def run(self, places: Sequence[ShardExecutor]) -> FleetResult:
        """Measure the remaining shards, and merge all of them."""
        with hold_run(self.folder):
            runs = self._find_runs()
            queue = deque(
                number for number in range(1, self.asked.of + 1) if self.longer or not _has_ended(runs.get(number))
            )
            interrupted = self._measure(queue, places)
            failed = [*self.failed_places.values(), *self._describe_failures(queue, interrupted=interrupted)]
            if not (runs := self._find_runs()):
                shutil.rmtree(self.folder.path, ignore_errors=True)
                if interrupted:
                    raise KeyboardInterrupt
                raise CannotRunHereError("\n".join(["No shard produced a run.", *failed]))
            self._remove_merged()
            merged = merge([runs[number] for number in sorted(runs)], Path(), self.folder, self.asked.command)
        ended = replace(merged.ended, interrupted=interrupted, refused=self.refused)
        return FleetResult(replace(merged, ended=ended), failed)

    def _measure(self, queue: deque[int], places: Sequence[ShardExecutor]) -> bool:
        """Let places take shards from the queue until it is empty, or all places have failed.

        Return whether it was interrupted.
        """
        workers = [place for place in places for _ in range(self.asked.of if place.queues else 1)]
        with ThreadPoolExecutor(len(workers)) as pool:
            try:
                # repeat, because a failed shard may return to the queue after other places found it empty
                while queue and (remaining := [worker for worker in workers if id(worker) not in self.failed_places]):
                    for future in [pool.submit(self._measure_shards, place, queue) for place in remaining]:
                        # a signal that arrives just before a wait is handled after it, so no wait is long
                        while not wait_for([future], timeout=1).done:
                            pass
                        future.result()
            except BaseException as error:
                self.is_stopped = True
                for place in places:
                    place.stop()
                if not isinstance(error, KeyboardInterrupt):
                    raise
        return self.is_stopped

    def _measure_shards(self, place: ShardExecutor, queue: deque[int]) -> None:
        """Measure shards on one host or slot, one after the other."""
        while not self.is_stopped and id(place) not in self.failed_places:
            try:
                number = queue.popleft()
            except IndexError:
                return
            try:
                code, message = place.measure(*self._make_arguments(number, place))
            except CannotRunHereError as error:
                code, message = Exit.CANNOT_RUN_HERE, str(error)
            if code in (Exit.CANNOT_RUN_HERE, Exit.USAGE):  # every other shard would fail in this place too
                queue.appendleft(number)
                self.failed_places[id(place)] = f"Measuring stopped on {place.name}: {message}"
                return
            if code in _FINISHED_CODES or self.is_stopped:
                continue
            is_first = number not in self.failures
            self.failures[number] = (
                f"Shard {number}/{self.asked.of} ended with exit code {code} on {place.name}: {message}"
            )
            if is_first:
                self.say(f"{self.failures[number]} The shard is measured again.")
                queue.append(number)

    def _make_arguments(self, number: int, place: ShardExecutor) -> tuple[list[str], Path]:
        """Return the arguments and the folder for a shard in a place: to resume its run, or to start a new one."""
        run = self._find_runs().get(number)
        if run and place.is_here:
            return ["matrix", "--resume", str(run), *self.longer, "--wait"], run.parent
        shards = self.folder.path / SHARDS
        attempts = len(list(shards.glob(f"{number}.*")))
        return [*self.asked.words, "--shard", f"{number}/{self.asked.of}"], shards / f"{number}.{attempts + 1}"

    def _find_runs(self) -> dict[int, Path]:
        """Return the folder of the newest run of each shard."""
        folders = [path.parent for path in (self.folder.path / SHARDS).glob("*/*/run.json")]
        return {_parse_place(path)[0]: path for path in sorted(folders, key=_parse_place)}

    def _describe_failures(self, queue: Sequence[int], *, interrupted: bool) -> list[str]:
        """Return sentences about shards that failed too often, with commands to measure each of them."""
        if interrupted:
            return []
        unfinished = [number for number in self.failures if not _has_ended(self._find_runs().get(number))]
        advice = f"To measure only what is missing: harness matrix --resume {quote(str(self.folder.path))}"
        return [*(self.failures[number] for number in unfinished), *([advice] if unfinished or queue else [])]

    def _remove_merged(self) -> None:
        """Remove the earlier merged run. run.json is removed first, so that an incomplete folder isn't a run."""
        (self.folder.path / "run.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder.path / "artifacts", ignore_errors=True)
        write_atomically(self.folder.path / "launches.jsonl", b"", synced=True)


def _parse_place(path: Path) -> tuple[int, int]:
    """Return the shard and the attempt of a run's folder `shards/3.1/RUN`."""
    number, _, attempt = path.parent.name.partition(".")
    return int(number), int(attempt)


def _has_ended(run: Path | None) -> bool:
    """Return whether all groups of a shard's run have ended."""
    return run is not None and not RunFolder(run).read_run().unfinished
