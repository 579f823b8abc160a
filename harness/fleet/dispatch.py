"""Measures a plan in shards, in several places, and merges their runs.

Each shard is the same command with `--shard`, in a place of its own (places.py). The folder of the whole run has a
folder `shards/`, with a folder for each attempt at a shard, which contains a plain run. The whole run is merged from
one attempt of each shard. So no finished launch is lost if a process or a machine fails. If the command of a shard
fails, its place continues the shard. If a place fails, the next place measures its shard afterwards.
"""

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from harness.backends import registry
from harness.environments.requested import FromSource, parse_requested
from harness.environments.sources import parse_place
from harness.files import parse_json, read, write_atomically
from harness.fleet import check, ssh
from harness.fleet.merge import Merged, merge
from harness.fleet.parcel import pack
from harness.fleet.places import FINISHED_CODES, LocalPlace, Place
from harness.machine.lock import hold_machine, is_held
from harness.machine.slots import Slot
from harness.model.errors import CannotRunHereError, DamagedError, Exit, FileError, UnavailableError, UsageError
from harness.model.texts import has_password
from harness.session.listener import Listener
from harness.session.options import AUTO, EVENLY, format_seconds
from harness.session.planning.planned import Planned
from harness.session.preparing import prepare
from harness.session.request import LaunchRequest, Request
from harness.session.running import hold_run
from harness.session.slot_plans import divide_into_slots
from harness.session.starting import make_run_id
from harness.store.folder import RunFolder
from harness.store.signature import is_from_here, sign

#: Names in the folder of a fleet's run: the folder of the shards' runs, their request, and the files that are sent.
SHARDS, ASKED, PARCEL = "shards", "fleet.json", "parcel.tar.gz"

#: The largest number of bytes to read from each of the last two files.
MOST = 256 * 1024**2

#: How often a place measures or continues a shard whose command fails.
ATTEMPTS = 3


@dataclass(frozen=True, slots=True)
class FleetRequest:
    """The request for the shards of a run.

    - `run`: the id of the whole run
    - `words`: the arguments of each shard's command, without `--shard`; `of`: the number of shards
    - `on`: the machines that measure; `slots`: the number of slots of this machine
    - `command`: the command line of the whole run
    - `parcel`: the SHA-256 hash of the archive that other machines get
    - `unavailable`: the environments that this machine can't prepare, with the message and the advice of the error
    """

    run: str
    words: Sequence[str]
    of: int
    on: str
    slots: int
    command: Sequence[str]
    parcel: str
    unavailable: Mapping[str, Sequence[str]] = field(default_factory=dict)


def uses_several_places(request: LaunchRequest) -> bool:
    """Return whether a request measures in several places at once. A shard and `--slots 1` use one place."""
    return isinstance(request, Request) and bool(request.on or (request.slots not in ("", "1") and not request.shard))


def find_slots(planned: Planned) -> list[Slot]:
    """Return the slots of this machine that a request selects.

    Raises UsageError for more slots than the machine has, and CannotRunHereError if their interference wasn't measured
    or exceeds the margin.
    """
    request = planned.request
    assert isinstance(request, Request)
    count = None if request.slots in ("", AUTO) else int(request.slots)
    allowed = check.count_allowed_slots(check.name_slot_kind(planned), count, planned.plan.margin)
    return divide_into_slots(planned, allowed)


def run(planned: Planned, listener: Listener, *, command: Sequence[str], wait: bool = False) -> Merged:
    """Measure a plan in shards, and merge them in the folder of a new run.

    An interruption (KeyboardInterrupt) ends all shards early; a second one passes through. Raises UsageError for
    invalid places, UntrustedError for scripts that --trust must allow, and CannotRunHereError if no place has a run.
    """
    request = check_request(planned)
    slots = 1 if request.on else len(find_slots(planned))
    shard_request = replace(
        request,
        seed=planned.plan.seed,
        balance=request.balance or EVENLY,
        on="",
        slots="" if request.on else str(slots),
        results=Request().results,
    )
    if planned.untrusted:  # other machines can't see whose code it is
        shard_request = replace(shard_request, backend=registry.find_contained(request.backend))
    parcel, unavailable = b"", dict[str, UnavailableError]()
    if request.on:
        parcel, shard_request = pack(shard_request, planned.scenarios.values())
    words = [*shard_request.command()[1:], "--wait", *(["--history-rounds"] if planned.plan.settled else [])]
    places = open_places(request.on, slots, parcel, listener, words=words)
    if not request.on:
        # prepare the environments once for all slots
        _wait_for_machine(listener, wait=wait)
        unavailable = prepare(planned, listener, wait=wait)
    folder = RunFolder.create(request.results, make_run_id(datetime.now(UTC)))
    fleet_request = FleetRequest(
        run=folder.path.name,
        words=words,
        of=max(1, min(len(places), len(planned.plan.groups))),
        on=request.on,
        slots=slots,
        command=command,
        parcel=hashlib.sha256(parcel).hexdigest(),
        unavailable={name: (error.message, error.advice) for name, error in unavailable.items()},
    )
    if parcel:
        write_atomically(folder.path / PARCEL, parcel)
    write_atomically(folder.path / ASKED, sign(json.dumps(asdict(fleet_request), indent=2).encode() + b"\n"))
    return _Fleet(folder, fleet_request, places, listener.say, refused=planned.refused).run()


def check_request(planned: Planned) -> Request:
    """Return the request of a plan. Raises an error if it can't be measured in several places."""
    planned.refuse_nothing()
    request = planned.request
    if planned.untrusted and not registry.is_contained(request.backend):
        raise registry.UntrustedError(request.backend, planned.untrusted)
    assert isinstance(request, Request)
    if request.on and request.slots:
        raise UsageError(
            f"--slots applies to this machine, but --on {request.on} measures on other machines.", "Omit --slots."
        )
    if any(map(has_password, request.command())):
        raise UsageError(
            "A run on several machines or slots can't use an address with a password: the command lines of its shards "
            "would show it.",
            "Omit the password, and set up git's credentials on each machine."
            if request.on
            else "Use a checkout: -e ENVIRONMENT+PACKAGE@FOLDER",
        )
    if request.on:
        _refuse_local_sources(planned, request)
    return request


def _refuse_local_sources(planned: Planned, request: Request) -> None:
    """Raise UsageError for a package from a file or folder of this machine, because other machines don't have it."""
    wheels = [environment.name for environment in planned.environments if environment.wheel]
    for text in (*request.environments, request.reference):
        spec = parse_requested(text)
        is_local = isinstance(spec, FromSource) and (
            spec.place.endswith(".whl") or parse_place(spec, request.repository).is_on_this_machine
        )
        if text in wheels or is_local:
            raise UsageError(
                f"{text!r} is built from files of this machine, but --on {request.on} measures on other machines.",
                "Push the commit, and pass its address: -e ENVIRONMENT+PACKAGE@https://HOST/OWNER/NAME@REVISION",
            )


def resume(path: Path, request: Request, listener: Listener, *, unsettled: bool = False, wait: bool = False) -> Merged:
    """Continue a run in shards: measure the shards that stopped or are missing.

    The request can set the slots, rounds and budget. Other machines continue a stopped shard if they still have its
    run. Raises UsageError for a run that this user didn't start on this machine, and for a run on other machines that
    would be longer than planned.
    """
    fleet_request = _read_request(path)
    on = fleet_request.on
    longer = [
        *(["--rounds", str(request.rounds)] if request.rounds else []),
        *(["--budget", format_seconds(request.budget)] if request.budget else []),
        *(["--unsettled"] if unsettled else []),
    ]
    parcel = _read(path, PARCEL) if on else b""
    if on and (longer or hashlib.sha256(parcel).hexdigest() != fleet_request.parcel):
        reason = "it doesn't accept --rounds and --budget" if longer else f"{PARCEL} has changed since"
        raise UsageError(f"{path} was measured on other machines, but {reason}.", "Start a new run.")
    count = int(request.slots) if request.slots.isdecimal() and not on else fleet_request.slots
    places = open_places(on, count, parcel, listener, words=fleet_request.words, longer=longer)
    if not on:
        # if the command was killed just now, its shards are still stopping
        is_stopping = any(is_held(lock) for lock in (path / SHARDS).glob("*/*/.lock"))
        _wait_for_machine(listener, wait=wait or is_stopping)
    return _Fleet(RunFolder(path), fleet_request, places, listener.say, is_longer=bool(longer)).run()


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
        return FleetRequest(**{name: value for name, value in values.items() if name != "signature"})
    except (ValueError, TypeError):
        raise DamagedError(path / ASKED, "the request is missing") from None


def _read(path: Path, name: str) -> bytes:
    try:
        return read(Path(name), within=path, most=MOST)
    except OSError as error:
        raise UsageError(f"{error.filename} cannot be read: {error.strerror}.", "Start a new run.") from None


def open_places(
    on: str, slots: int, parcel: bytes, listener: Listener, *, words: Sequence[str], longer: Sequence[str] = ()
) -> Sequence[Place]:
    """Return the places where shards of the command `words` are measured: other machines, or slots of this machine."""
    if not on:
        return [LocalPlace(f"slot {number}", listener.say, longer) for number in range(1, slots + 1)]
    if on.startswith("ssh://"):
        return [ssh.SshPlace(host, parcel, listener.say) for host in ssh.parse_hosts(on)]
    from harness.fleet import ray  # noqa: PLC0415 - only a Ray cluster needs it

    return ray.open_cluster(on, parcel, listener.say, needs_gpus=not {"--gpu", "--gpus"}.isdisjoint(words))


def _wait_for_machine(listener: Listener, *, wait: bool) -> None:
    """Wait until no other run measures. Without `wait`, raise CannotRunHereError here, once for all slots."""
    with hold_machine(listener.say if wait else None):
        pass


@dataclass
class _Fleet:
    """A run in shards, in a folder. `is_longer` if all shards continue beyond their plan."""

    folder: RunFolder
    asked: FleetRequest
    places: Sequence[Place]
    say: Callable[[str], object]
    is_longer: bool = False
    refused: Mapping[str, FileError] = field(default_factory=dict)
    failures: dict[int, str] = field(default_factory=dict)  # the last error of each failed shard
    failed_places: dict[str, str] = field(default_factory=dict)  # the errors of failed places, by their names
    is_stopped: bool = False

    def __post_init__(self) -> None:
        self._locks = {place.name: threading.Lock() for place in self.places}

    def run(self) -> Merged:
        """Measure the remaining shards, and merge all of them."""
        with hold_run(self.folder):
            self._measure(range(1, self.asked.of + 1) if self.is_longer else self._find_unfinished())
            runs = self._find_runs()
            if not runs and not self.failures:
                shutil.rmtree(self.folder.path, ignore_errors=True)
                if self.is_stopped:
                    raise KeyboardInterrupt
            failed = self._describe_failures()
            if not runs:
                raise CannotRunHereError("\n".join(["No shard produced a run.", *failed]))
            self._remove_merged()
            merged = merge([runs[number] for number in sorted(runs)], Path(), self.folder, self.asked.command)
        ended = replace(merged.ended, interrupted=self.is_stopped, refused=self.refused)
        return Merged(ended, [*failed, *merged.lacks])

    def _measure(self, numbers: Sequence[int]) -> None:
        """Measure shards at the same time. An interruption stops all of them."""
        with ThreadPoolExecutor(self.asked.of) as pool:
            try:
                for future in [pool.submit(self._measure_shard, number) for number in numbers]:
                    # a signal that arrives just before a wait is handled after it, so no wait is long
                    while not wait_for([future], timeout=1).done:
                        pass
                    future.result()
            except BaseException as error:
                self.is_stopped = True
                for place in self.places:
                    place.stop()
                if not isinstance(error, KeyboardInterrupt):
                    raise

    def _measure_shard(self, number: int) -> None:
        """Measure a shard in its own place, or in the next place that hasn't failed."""
        first = (number - 1) % len(self.places)
        for place in [*self.places[first:], *self.places[:first]]:
            with self._locks[place.name]:
                if place.name not in self.failed_places and self._measure_in(place, number):
                    return

    def _measure_in(self, place: Place, number: int) -> bool:
        """Measure a shard in a place. If its command fails, continue it. Return False if the place has failed."""
        for attempt in range(1, ATTEMPTS + 1):
            if self.is_stopped:
                break
            words = [*self.asked.words, "--shard", f"{number}/{self.asked.of}"]
            shards = self.folder.path / SHARDS
            into = shards / f"{number}.{len(list(shards.glob(f'{number}.*'))) + 1}"
            try:
                shard = f"{self.asked.run}-{number}"
                code, message = place.measure(shard, words, into, self._find_runs().get(number))
            except CannotRunHereError as error:
                code, message = Exit.CANNOT_RUN_HERE, str(error)
            if self.is_stopped:
                break
            if code in (Exit.CANNOT_RUN_HERE, Exit.USAGE):  # every other shard would fail in this place too
                self.failed_places[place.name] = f"Measuring stopped on {place.name}: {message}"
                self.say(self.failed_places[place.name])
                return False
            if code in FINISHED_CODES and number in self._find_runs():
                self.failures.pop(number, None)
                break
            self.failures[number] = (
                f"Shard {number}/{self.asked.of} ended with exit code {code} on {place.name}: {message}"
            )
            if attempt < ATTEMPTS:
                self.say(f"{self.failures[number]} The shard is measured again.")
        return True

    def _find_runs(self) -> dict[int, Path]:
        """Return the folder of a run of each shard: if possible one that has ended, and otherwise the longest."""
        runs = dict[int, Path]()
        paths = [path.parent for path in (self.folder.path / SHARDS).glob("*/*/run.json")]
        for path in sorted(paths, key=lambda path: (_has_ended(path), (path / "launches.jsonl").stat().st_size)):
            runs[int(path.parent.name.partition(".")[0])] = path
        return runs

    def _find_unfinished(self) -> list[int]:
        """Return the numbers of the shards that have no run, or a run that hasn't ended."""
        runs = self._find_runs()
        return [number for number in range(1, self.asked.of + 1) if number not in runs or not _has_ended(runs[number])]

    def _describe_failures(self) -> list[str]:
        """Return sentences about the reasons why shards are missing, and the command that measures these shards."""
        if self.is_stopped or not self._find_unfinished():
            return []
        sentences = [*self.failed_places.values(), *(self.failures[number] for number in sorted(self.failures))]
        if self.folder.path.exists():
            command = f"harness matrix --resume {quote(str(self.folder.path))}"
            sentences.append(f"To measure only what is missing: {command}")
        return sentences

    def _remove_merged(self) -> None:
        """Remove the earlier merged run. run.json is removed first, so that an incomplete folder isn't a run."""
        (self.folder.path / "run.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder.path / "artifacts", ignore_errors=True)
        write_atomically(self.folder.path / "launches.jsonl", b"", synced=True)


def _has_ended(run: Path) -> bool:
    """Return whether all groups of a shard's run have ended."""
    return not RunFolder(run).read_run().unfinished
