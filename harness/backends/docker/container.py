"""One container, from its creation to its removal: nothing of this machine is mounted, nothing is left."""

import io
import os
import platform
import secrets
import signal
import struct
import tarfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path, PurePosixPath
from ssl import SSLWantReadError
from typing import TYPE_CHECKING, Any

from harness.backends.artifacts import Artifacts, from_archive
from harness.backends.docker.engine import Engine, answer_seconds, is_late, sentences
from harness.backends.docker.priority import Priority
from harness.backends.text import Tail
from harness.backends.worker import Ending, Read
from harness.machine import sysfs
from harness.machine.quota import read_quota
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import DeviceRequest

#: The labels that find what a killed harness left.
RUN_LABEL = "harness.run"
CELL_LABEL = "harness.cell"
#: Whose it is: several users, and machines, may use one engine.
OWNER_LABEL = "harness.owner"

#: The folder of the images where a launch's files go and where the process starts.
FOLDER = "/harness"
USER = "harness"
UID = 1000

#: What a script that is no launch is called there.
_SCRIPT = "script.py"

#: The streams by their numbers in a frame, and a frame's header: the stream's number, three zeros, and the length.
STDOUT, STDERR = 1, 2
_HEADER = struct.Struct(">BxxxL")

#: A process that was killed by signal N has the exit code 128 + N.
_SIGNALS = 128

#: What a container may write to its disk, in bytes, and how often that is looked at, in seconds: an engine limits it
#: only on few file systems.
DISK_LIMIT = 4 * 1024**3
DISK_SECONDS = 5.0

#: For how long an engine is asked to kill a process; it may be silent.
KILL_SECONDS = 10.0

#: For how long a removal is waited for: after a launch, and where that was interrupted. It goes on in the background.
REMOVAL_SECONDS = 60.0
INTERRUPTED_SECONDS = 5.0

#: ... and is asked for again, as long as this process lives.
_RETRY_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Specification:
    """What is to run: an image by its id, a command line, and within which limits.

    `devices` are the SDK's requests for devices, `runtime` is the engine's name for another than its usual runtime, and
    `groups` are those that the process is in besides its user's. `volumes` are the engine's own, by name, and where
    they are mounted. A process that `takes_words` reads them from its standard input; others have none. Without
    `priority` it shares its CPUs with other work.
    """

    image: str
    command: Sequence[str]
    environ: Mapping[str, str]
    labels: Mapping[str, str]
    limits: Limits
    devices: "Sequence[DeviceRequest]" = ()
    runtime: str = ""
    groups: Sequence[int] = ()
    volumes: Mapping[str, str] = field(default_factory=dict)
    takes_words: bool = False
    priority: Priority | None = None


class Container:
    """A container that was made and not yet started.

    `asked` is the instant at which it was asked to start, in seconds since 1970. Once it has started, `quota` is how
    many CPUs it may use at most; None without a CPU quota, and if it isn't known.
    """

    def __init__(self, api: "APIClient", name: str, identity: str, specification: Specification) -> None:
        self._api = api
        self._name = name
        self._id = identity
        self._seconds = specification.limits.seconds
        self._takes_words = specification.takes_words
        self._priority = specification.priority
        self._stream: Any = None
        self._socket: Any = None
        self._frames = Frames()
        self._reads: Mapping[int, Read] = {}
        self._code: int | None = None
        self._passed = False
        self._silent = False
        self._disk = 0
        self._look = 0.0
        self.asked = 0.0
        self.quota: float | None = None

    def put(self, files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> None:
        """Put files and empty folders where the process will start."""
        with sentences("take a launch's files"):
            self._api.put_archive(self._name, FOLDER, pack(files, folders))

    def run(self, stdout: Read, stderr: Read) -> Ending:
        """Run it to its end, or until a reader has enough."""
        self.start(stdout, stderr)
        self.follow(self._seconds)
        return self.end()

    def start(self, stdout: Read, stderr: Read) -> None:
        """Start it; what it writes goes to the readers."""
        self._reads = {STDOUT: stdout, STDERR: stderr}
        with sentences("run a container"):
            self._attach()
            self.asked = time.time()
            self._look = time.monotonic() + DISK_SECONDS
            self._api.start(self._name)
            self.quota = self._read_quota()

    def _read_quota(self) -> float | None:
        """Return how many CPUs the quotas of the control groups that it is in allow; None if there are none.

        None too if it isn't known: with an engine elsewhere, no process of this machine is in its control group. The
        engine isn't asked, because it may fall silent.
        """
        for path in Path("/proc").glob("[0-9]*/cgroup"):
            if self._id in (sysfs.text(path) or ""):
                return read_quota(Path("/"), path.parent.name)[1]
        return None

    def move(self, cpus: Collection[int]) -> None:
        """Have all of its threads run on these CPUs: the kernel moves each when their cgroup's set changes."""
        from docker.errors import APIError

        shares = self._priority.get_shares(cpus) if self._priority else None
        with sentences("move a container to other CPUs (not needed with --interleave launches)"):
            try:
                self._api.update_container(self._name, cpuset_cpus=_listed(cpus), cpu_shares=shares)
            except APIError:
                if self._api.inspect_container(self._name)["State"]["Running"]:
                    raise

    def follow(self, seconds: float) -> bool:
        """Read until it has ended, or kill it after so many seconds; True where a reader has enough before that.

        An engine that falls silent takes no longer: its launch has passed its limit too.
        """
        with sentences("run a container"):
            try:
                return self._followed(seconds)
            except TimeoutError:
                killed = self._kill()
                self._silent = killed is None
                self._passed = self._passed or killed is not False
            with suppress(TimeoutError):
                return not self._silent and self._followed(answer_seconds())
            return False

    def _followed(self, seconds: float) -> bool:
        """Read until it has ended; True where a reader has enough. Raises TimeoutError after so many seconds."""
        until = time.monotonic() + seconds
        while chunk := self._next(until):
            if self._read(chunk):
                return True
        self._wait(until - time.monotonic())
        return False

    def catch_up(self) -> None:
        """Read what has come from it by now, or until a reader has enough."""
        with sentences("run a container"):
            self._socket.settimeout(0)
            try:
                # an encrypted connection has errors of its own for what would wait
                with suppress(BlockingIOError, TimeoutError, SSLWantReadError):
                    while (chunk := self._received()) and not self._read(chunk):
                        pass
            finally:
                self._socket.settimeout(answer_seconds())

    def tell(self, word: str) -> None:
        """Write a line to its standard input; no mistake where it has ended."""
        with sentences("run a container"), suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(f"{word}\n".encode())

    def end(self) -> Ending:
        """Kill it where it has not ended, and say how it did."""
        # first, since a container does not end before its output has gone where it is attached to, or nothing is
        self.close()
        with sentences("run a container"):
            if self._code is None and not self._silent:
                self._silent = self._kill() is None
            if self._silent and self._passed:
                return Ending(seconds=self._seconds)
            return self._ending(self._wait(answer_seconds()))

    def close(self) -> None:
        """Let go of its streams."""
        if self._stream is not None:
            # the SDK keeps the response with the stream, and closing it closes both
            getattr(self._stream, "_response", self._stream).close()

    def artifacts(self, folder: str) -> Artifacts:
        """The files in a folder where the process started, after it has ended."""
        from docker.errors import NotFound

        try:
            with sentences("give a launch's artifacts"):
                chunks, _ = self._api.get_archive(self._name, f"{FOLDER}/{folder}")
                return from_archive(chunks)
        except CannotRunHereError as error:
            # its numbers are there all the same
            lost = Artifacts()
            if not isinstance(error.__cause__, NotFound):
                lost.refuse("the artifacts", error.message)
            return lost

    def _attach(self) -> None:
        wanted = {"stdin": 1} if self._takes_words else {}
        self._stream = self._api.attach_socket(self._name, params={"stdout": 1, "stderr": 1, "stream": 1, **wanted})
        # of a plain connection the SDK gives a reader, which cannot write; of others what reads and writes
        self._socket = getattr(self._stream, "_sock", self._stream)

    def _next(self, until: float) -> bytes:
        """What comes next, as `_receive` has it, while the container's disk is watched."""
        while True:
            now = time.monotonic()
            if now >= self._look:
                self._watch_disk()
                self._look = time.monotonic() + DISK_SECONDS
            try:
                return self._receive(min(until, self._look) - now)
            except TimeoutError:
                if time.monotonic() >= until:
                    raise

    def _watch_disk(self) -> None:
        """Kill it where it has written too much."""
        from requests.exceptions import RequestException

        with suppress(RequestException):  # its own time limit is what ends one of an engine that is silent
            found = self._api.containers(all=True, size=True, filters={"name": self._name})
            written = max((int(each.get("SizeRw") or 0) for each in found), default=0)
            if written > DISK_LIMIT and not self._disk:
                self._disk = written
                self._kill()

    def _receive(self, seconds: float) -> bytes:
        """What comes next; empty at its end. Raises TimeoutError where nothing comes for so many seconds."""
        if seconds <= 0:
            raise TimeoutError("no time is left")
        self._socket.settimeout(seconds)
        return self._received()

    def _received(self) -> bytes:
        try:
            return bytes(self._socket.recv(64 * 1024))
        except ConnectionResetError:  # its end, which a word has crossed
            return b""

    def _read(self, chunk: bytes) -> bool:
        """Hand on what has come; whether a reader has enough."""
        enough = False
        for stream, piece in self._frames.feed(chunk):
            if stream in self._reads and self._reads[stream](piece):
                enough = True  # what follows has been said all the same
        return enough

    def _wait(self, seconds: float) -> int:
        """Its exit code. Raises TimeoutError where it has not ended, or nothing is heard of it, for so many seconds."""
        from requests.exceptions import RequestException

        if self._code is None:
            try:
                self._code = int(self._api.wait(self._name, timeout=max(1, ceil(seconds)))["StatusCode"])
            except RequestException as error:
                if is_late(error):
                    raise TimeoutError(f"no answer within {seconds:.0f} s") from None
                raise
        return self._code

    def _kill(self) -> bool | None:
        """End it; False where it had ended before, None where nothing answers."""
        from docker.errors import APIError
        from requests.exceptions import RequestException

        answers: list[bool] = []

        def ask() -> None:
            try:
                self._api.kill(self._name)
                answers.append(True)
            except APIError:
                answers.append(False)
            except RequestException:
                pass

        asking = threading.Thread(target=ask, daemon=True)
        asking.start()
        asking.join(min(KILL_SECONDS, answer_seconds()))
        return answers[0] if answers else None

    def _ending(self, code: int) -> Ending:
        if self._disk:
            return Ending(disk=self._disk)
        if self._passed:
            return Ending(seconds=self._seconds)
        if code == 0:
            return Ending(code)
        # only what went wrong is worth another question
        oom = bool(self._api.inspect_container(self._name)["State"].get("OOMKilled"))
        number = code - _SIGNALS
        return Ending(signal=number, oom=oom) if 0 < number < signal.NSIG else Ending(code, oom=oom)


class Frames:
    """Takes the two streams apart, in bytes that are cut anywhere.

    The SDK has a reader too; it asks the system before every few bytes, and waits for ever on an encrypted connection
    whose library has already read the next frame.
    """

    def __init__(self) -> None:
        self._header = b""
        self._stream = self._left = 0

    def feed(self, chunk: bytes) -> Iterator[tuple[int, bytes]]:
        """The pieces in the next bytes, each with its stream's number."""
        rest = memoryview(chunk)
        while rest:
            if self._left:
                piece, rest = rest[: self._left], rest[self._left :]
                self._left -= len(piece)
                yield self._stream, bytes(piece)
            else:
                missing = _HEADER.size - len(self._header)
                self._header, rest = self._header + rest[:missing], rest[missing:]
                if len(self._header) == _HEADER.size:
                    (self._stream, self._left), self._header = _HEADER.unpack(self._header), b""


def pack(files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> bytes:
    """A tar archive of the files and folders, all owned by the images' user."""
    parents = {str(parent) for name in files for parent in PurePosixPath(name).parents if parent.name}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted(parents | set(folders)):
            tar.addfile(_entry(name, tarfile.DIRTYPE, 0o755))
        for name, content in files.items():
            tar.addfile(_entry(name, tarfile.REGTYPE, 0o644, len(content)), io.BytesIO(content))
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int, size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    entry.uid = entry.gid = UID
    return entry


def printed(
    engine: Engine, image: str, script: bytes, arguments: Sequence[str] = (), *, run: str, seconds: float
) -> tuple[str, str, Ending]:
    """What a Python script prints in a container of its own, what it writes to stderr, and how it ends.

    `image` is an id or a name, `run` the run that the container is labelled with.
    """
    specification = Specification(
        image=image,
        command=("python", _SCRIPT, *arguments),
        environ={"PYTHONDONTWRITEBYTECODE": "1"},
        labels={RUN_LABEL: run, CELL_LABEL: "verify"},
        limits=Limits(seconds=seconds),
    )
    stdout, stderr = Tail(1024**2), Tail()
    with created(engine, specification) as container:
        container.put({_SCRIPT: script})
        ending = container.run(stdout.feed, stderr.feed)
    return stdout.text(), stderr.text(), ending


@contextmanager
def created(engine: Engine, specification: Specification) -> Iterator[Container]:
    """A container for one launch; removed at the end, whatever ends it."""
    # known before it exists, so that an interrupted creation can be undone too
    name = f"harness-{secrets.token_hex(8)}"
    try:
        with sentences("make a container"):
            made = engine.api.create_container(name=name, **_options(engine, specification))
    except KeyboardInterrupt:
        removed(engine.api, name, INTERRUPTED_SECONDS, patience=1.0)
        raise
    except CannotRunHereError:
        # one that does not answer may make it still
        removed(engine.api, name, 0.0, patience=REMOVAL_SECONDS)
        raise
    patience = REMOVAL_SECONDS
    try:
        with closing(Container(engine.api, name, made["Id"], specification)) as container:
            yield container
    except (KeyboardInterrupt, CannotRunHereError):
        patience = INTERRUPTED_SECONDS
        raise
    finally:
        removed(engine.api, name, min(patience, answer_seconds()))


def _options(engine: Engine, specification: Specification) -> dict[str, Any]:
    from docker.types import LogConfig, Mount

    limits, priority = specification.limits, specification.priority
    host = engine.api.create_host_config(
        init=True,
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        # TensorFlow's thread pools grow with the CPUs
        pids_limit=512 + 16 * int(engine.info.get("NCPU", 1)),
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        cpuset_cpus=None if limits.cpus is None else _listed(limits.cpus),
        cgroup_parent=priority.parent if priority else None,
        cpu_shares=priority.get_shares(limits.cpus) if priority else None,
        # 100 MB of stderr would leave 258 MB of log on the engine's disk
        log_config=LogConfig(type="none"),
        device_requests=list(specification.devices) or None,
        runtime=specification.runtime or None,
        group_add=list(specification.groups) or None,
        mounts=[Mount(folder, volume) for volume, folder in specification.volumes.items()],
    )
    return {
        "image": specification.image,
        "command": list(specification.command),
        "environment": dict(specification.environ),
        "labels": {OWNER_LABEL: owner(), **specification.labels},
        "user": USER,
        "working_dir": FOLDER,
        "host_config": host,
        # the SDK has it closed with the connection, so that a killed harness leaves nothing that waits for a word
        "stdin_open": specification.takes_words,
    }


def _listed(cpus: Collection[int]) -> str:
    return ",".join(map(str, cpus))


def owner() -> str:
    """Return the user and machine that a container's owner label records."""
    return f"{platform.node()}:{os.getuid()}"


def removed(api: "APIClient", name: str, seconds: float, *, patience: float = 0.0) -> bool:
    """Remove a container, and its processes; whether it is gone within so many seconds.

    Where it is not, because there is much to remove or the engine is silent, that goes on in the background.
    `patience`: for how long the engine may still be making it.
    """
    tried, gone = threading.Event(), threading.Event()
    threading.Thread(target=_removing, args=(api, name, patience, tried, gone), daemon=True).start()
    tried.wait(seconds)
    return gone.is_set()


def _removing(api: "APIClient", name: str, patience: float, tried: threading.Event, gone: threading.Event) -> None:
    """Ask for the removal until it is `gone`; `tried` is set then, and where nobody is there to be asked."""
    from docker.errors import APIError, NotFound
    from requests.exceptions import RequestException

    begun = time.monotonic()
    while (passed := time.monotonic() - begun) < _RETRY_SECONDS:
        try:
            api.remove_container(name, force=True, v=True)
            break
        except NotFound:
            if passed >= patience:
                break
            time.sleep(0.05)
        except (APIError, RequestException) as error:  # such as: it is being removed already
            if isinstance(error, RequestException) and not isinstance(error, APIError) and not is_late(error):
                tried.set()
            time.sleep(min(1.0, 0.05 + passed / 10))
    else:
        return
    gone.set()
    tried.set()
