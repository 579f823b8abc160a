"""One container, from its creation to its removal. It mounts no folder of this machine, and leaves no files."""

import io
import secrets
import signal
import tarfile
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from math import ceil
from pathlib import Path, PurePosixPath
from ssl import SSLWantReadError
from typing import TYPE_CHECKING, Any

from harness.backends.artifacts import Artifacts, read_archive
from harness.backends.docker.engine import Engine, get_timeout, is_late, raise_as_sentences
from harness.backends.docker.frames import STDERR, STDOUT, Frames
from harness.backends.docker.removal import INTERRUPTED_SECONDS, REMOVAL_SECONDS, remove
from harness.backends.docker.specification import CELL_LABEL, FOLDER, RUN_LABEL, UID, Specification, make_options
from harness.backends.untrusted_text import Tail
from harness.backends.worker import Ending, Read
from harness.machine import sysfs
from harness.machine.quota import read_quota
from harness.model.errors import CannotRunHereError
from harness.model.launch import Limits

if TYPE_CHECKING:
    from docker import APIClient

#: The name of the script in a container that runs a script instead of a launch.
_SCRIPT = "script.py"

#: A process that was killed by signal N has the exit code 128 + N.
_SIGNAL_OFFSET = 128

#: The largest number of bytes that a container may write to its disk, and the interval of the check in seconds. The
#: engine itself can enforce such a limit only on a few file systems.
DISK_LIMIT = 4 * 1024**3
DISK_SECONDS = 5.0

#: Timeout of a request to kill a process, in seconds.
KILL_SECONDS = 10.0


class Container:
    """A container that was created, but not started yet.

    `requested_at` is the time of the request to start it, in seconds since 1970. After the start, `quota` is the
    largest number of CPUs that it may use; None if there is no CPU quota, or if the quota is unknown.
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
        self._exit_code: int | None = None
        self._is_timed_out = False
        self._is_engine_silent = False
        self._written_bytes = 0
        self._next_disk_check = 0.0
        self.requested_at = 0.0
        self.quota: float | None = None

    def put(self, files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> None:
        """Put files and empty folders into the folder in which the process will start."""
        with raise_as_sentences("accept a launch's files"):
            self._api.put_archive(self._name, FOLDER, pack(files, folders))

    def run(self, stdout: Read, stderr: Read) -> Ending:
        """Run the container to its end, or until a reader has read enough. Return how it ended."""
        self.start(stdout, stderr)
        self.follow(self._seconds)
        return self.end()

    def start(self, stdout: Read, stderr: Read) -> None:
        """Start the container, with readers for its output."""
        self._reads = {STDOUT: stdout, STDERR: stderr}
        with raise_as_sentences("run a container"):
            stdin = {"stdin": 1} if self._takes_words else {}
            self._stream = self._api.attach_socket(self._name, params={"stdout": 1, "stderr": 1, "stream": 1, **stdin})
            # for a plain connection, the SDK returns an object that can only read, so use its socket
            self._socket = getattr(self._stream, "_sock", self._stream)
            self.requested_at = time.time()
            self._next_disk_check = time.monotonic() + DISK_SECONDS
            self._api.start(self._name)
            self.quota = self._read_quota()

    def _read_quota(self) -> float | None:
        """Return the number of CPUs that the quotas of its control groups allow; None without quotas, or if unknown.

        The number is unknown for an engine on another machine, whose control groups can't be read. No request is made
        to the engine, because it may not respond.
        """
        for path in Path("/proc").glob("[0-9]*/cgroup"):
            if self._id in (sysfs.read_text(path) or ""):
                return read_quota(Path("/"), path.parent.name)[1]
        return None

    def move(self, cpus: Collection[int]) -> None:
        """Move all of its threads to these CPUs.

        The kernel moves each thread when the CPU set of its cgroup changes.
        """
        from docker.errors import APIError

        shares = self._priority.get_shares(cpus) if self._priority else None
        with raise_as_sentences("move a container to other CPUs (not needed with --interleave launches)"):
            try:
                self._api.update_container(self._name, cpuset_cpus=",".join(map(str, cpus)), cpu_shares=shares)
            except APIError:
                if self._api.inspect_container(self._name)["State"]["Running"]:
                    raise

    def follow(self, seconds: float) -> bool:
        """Read the output until the container has ended. After `seconds`, kill the container.

        Returns True if a reader has read enough before that.

        The time limit also holds if the engine doesn't respond.
        """
        with raise_as_sentences("run a container"):
            try:
                return self._read_until_end(seconds)
            except TimeoutError:
                killed = self._kill()
                self._is_engine_silent = killed is None
                self._is_timed_out = self._is_timed_out or killed is not False
            with suppress(TimeoutError):
                return not self._is_engine_silent and self._read_until_end(get_timeout())
            return False

    def _read_until_end(self, seconds: float) -> bool:
        """Read until it has ended. Returns True if a reader has read enough. Raises TimeoutError after `seconds`."""
        deadline = time.monotonic() + seconds
        while chunk := self._receive_next(deadline):
            if self._read(chunk):
                return True
        self._wait(deadline - time.monotonic())
        return False

    def catch_up(self) -> None:
        """Read the output that has arrived so far. Stop when a reader has read enough."""
        with raise_as_sentences("run a container"):
            self._socket.settimeout(0)
            try:
                # an encrypted connection raises another error for a call that would block
                with suppress(BlockingIOError, TimeoutError, SSLWantReadError):
                    while (chunk := self._read_socket()) and not self._read(chunk):
                        pass
            finally:
                self._socket.settimeout(get_timeout())

    def send(self, word: str) -> None:
        """Write a line to its standard input. If the process has ended, this isn't an error."""
        with raise_as_sentences("run a container"), suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(f"{word}\n".encode())

    def end(self) -> Ending:
        """Kill the container if it hasn't ended, and return how it ended."""
        # close the streams first: a container ends only when its output was read, or when nothing is attached to it
        self.close()
        with raise_as_sentences("run a container"):
            if self._exit_code is None and not self._is_engine_silent:
                self._is_engine_silent = self._kill() is None
            if self._is_engine_silent and self._is_timed_out:
                return Ending(seconds=self._seconds)
            return self._make_ending(self._wait(get_timeout()))

    def close(self) -> None:
        """Close its streams."""
        if self._stream is not None:
            # the SDK keeps the response with the stream, and closing it closes both
            getattr(self._stream, "_response", self._stream).close()

    def artifacts(self, folder: str) -> Artifacts:
        """Return the files in a folder of the ended container. `folder` is relative to where the process started."""
        from docker.errors import NotFound

        try:
            with raise_as_sentences("return a launch's artifacts"):
                chunks, _ = self._api.get_archive(self._name, f"{FOLDER}/{folder}")
                return read_archive(chunks)
        except CannotRunHereError as error:
            # without artifacts, the launch still has its result
            no_artifacts = Artifacts()
            if not isinstance(error.__cause__, NotFound):
                no_artifacts.refuse("the artifacts", error.message)
            return no_artifacts

    def _receive_next(self, deadline: float) -> bytes:
        """Return the next bytes of the connection, empty at its end, and check the container's disk use.

        Raises TimeoutError if no bytes arrive before the deadline.
        """
        while True:
            now = time.monotonic()
            if now >= self._next_disk_check:
                self._watch_disk()
                self._next_disk_check = time.monotonic() + DISK_SECONDS
            seconds = min(deadline, self._next_disk_check) - now
            if seconds > 0:
                self._socket.settimeout(seconds)
                with suppress(TimeoutError):
                    return self._read_socket()
            if time.monotonic() >= deadline:
                raise TimeoutError("no time is left")

    def _watch_disk(self) -> None:
        """Kill the container if it has written too much."""
        from requests.exceptions import RequestException

        with suppress(RequestException):  # if the engine is silent, the time limit of the launch ends it
            containers = self._api.containers(all=True, size=True, filters={"name": self._name})
            written_bytes = max((int(container.get("SizeRw") or 0) for container in containers), default=0)
            if written_bytes > DISK_LIMIT and not self._written_bytes:
                self._written_bytes = written_bytes
                self._kill()

    def _read_socket(self) -> bytes:
        try:
            return bytes(self._socket.recv(64 * 1024))
        except ConnectionResetError:  # the container ended while a word was being sent
            return b""

    def _read(self, chunk: bytes) -> bool:
        """Pass bytes to the readers. Returns whether a reader has read enough."""
        has_enough = False
        for stream, piece in self._frames.feed(chunk):
            if stream in self._reads and self._reads[stream](piece):
                has_enough = True  # but continue, because the process has also written the rest of the chunk
        return has_enough

    def _wait(self, seconds: float) -> int:
        """Return its exit code. Raises TimeoutError if the engine doesn't report its end within `seconds`."""
        from requests.exceptions import RequestException

        if self._exit_code is None:
            try:
                self._exit_code = int(self._api.wait(self._name, timeout=max(1, ceil(seconds)))["StatusCode"])
            except RequestException as error:
                if is_late(error):
                    raise TimeoutError(f"no answer within {seconds:.0f} s") from None
                raise
        return self._exit_code

    def _kill(self) -> bool | None:
        """Kill the container. Return False if it had ended before, and None if the engine doesn't respond."""
        from docker.errors import APIError
        from requests.exceptions import RequestException

        answers: list[bool] = []

        def send_kill() -> None:
            try:
                self._api.kill(self._name)
                answers.append(True)
            except APIError:
                answers.append(False)
            except RequestException:
                pass

        kill_thread = threading.Thread(target=send_kill, daemon=True)
        kill_thread.start()
        kill_thread.join(min(KILL_SECONDS, get_timeout()))
        return answers[0] if answers else None

    def _make_ending(self, code: int) -> Ending:
        if self._written_bytes:
            return Ending(disk=self._written_bytes)
        if self._is_timed_out:
            return Ending(seconds=self._seconds)
        if code == 0:
            return Ending(code)
        # only a failure needs another request
        oom = bool(self._api.inspect_container(self._name)["State"].get("OOMKilled"))
        number = code - _SIGNAL_OFFSET
        return Ending(signal=number, oom=oom) if 0 < number < signal.NSIG else Ending(code, oom=oom)


def pack(files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> bytes:
    """Return a tar archive of the files and folders, owned by the user of the images."""
    parents = {str(parent) for name in files for parent in PurePosixPath(name).parents if parent.name}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name in sorted(parents | set(folders)):
            tar.addfile(_make_entry(name, tarfile.DIRTYPE, 0o755))
        for name, content in files.items():
            tar.addfile(_make_entry(name, tarfile.REGTYPE, 0o644, len(content)), io.BytesIO(content))
        # two empty blocks end an archive; Podman 4 can fail while it sends itself the padding after them
        end = tar.offset + 2 * tarfile.BLOCKSIZE
    return buffer.getvalue()[:end]


def _make_entry(name: str, kind: bytes, mode: int, size: int = 0) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.size = kind, mode, size
    entry.uid = entry.gid = UID
    return entry


def run_script(
    engine: Engine, image: str, script: bytes, arguments: Sequence[str] = (), *, run: str, seconds: float
) -> tuple[str, str, Ending]:
    """Run a Python script in a new container. Return its stdout, its stderr, and how it ended.

    `image` is an id or a name. `run` becomes a label of the container.
    """
    specification = Specification(
        image=image,
        command=("python", _SCRIPT, *arguments),
        environ={"PYTHONDONTWRITEBYTECODE": "1"},
        labels={RUN_LABEL: run, CELL_LABEL: "verify"},
        limits=Limits(seconds=seconds),
    )
    stdout, stderr = Tail(1024**2), Tail()
    with create_container(engine, specification) as container:
        container.put({_SCRIPT: script})
        ending = container.run(stdout.feed, stderr.feed)
    return stdout.text(), stderr.text(), ending


@contextmanager
def create_container(engine: Engine, specification: Specification) -> Iterator[Container]:
    """Create a container for one launch, and always remove it at the end."""
    # choose the name here, so that the container can be removed even if its creation was interrupted
    name = f"harness-{secrets.token_hex(8)}"
    try:
        with raise_as_sentences("create a container"):
            response = engine.api.create_container(name=name, **make_options(engine, specification))
    except KeyboardInterrupt:
        remove(engine.api, name, INTERRUPTED_SECONDS, patience=1.0)
        raise
    except CannotRunHereError:
        # an engine that doesn't respond may still create the container
        remove(engine.api, name, 0.0, patience=REMOVAL_SECONDS)
        raise
    patience = REMOVAL_SECONDS
    try:
        with closing(Container(engine.api, name, response["Id"], specification)) as container:
            yield container
    except (KeyboardInterrupt, CannotRunHereError):
        patience = INTERRUPTED_SECONDS
        raise
    finally:
        remove(engine.api, name, min(patience, get_timeout()))
