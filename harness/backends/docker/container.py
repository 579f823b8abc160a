"""One container, from its creation to its removal: nothing of this machine is mounted, nothing is left."""

import io
import secrets
import signal
import struct
import tarfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from harness.backends.artifacts import Artifacts, from_archive
from harness.backends.docker.engine import Engine, sentences
from harness.backends.text import Tail
from harness.backends.worker import Ending, Read
from harness.model.launch import Limits

if TYPE_CHECKING:
    from docker import APIClient
    from docker.types import DeviceRequest

#: The labels that find what a killed harness left.
RUN_LABEL = "harness.run"
CELL_LABEL = "harness.cell"

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

_CONFLICT = 409


@dataclass(frozen=True, slots=True)
class Specification:
    """What is to run: an image by its id, a command line, and within which limits.

    `devices` are the SDK's requests for devices; `volumes` are the engine's own, by name, and where they are mounted.
    """

    image: str
    command: Sequence[str]
    environ: Mapping[str, str]
    labels: Mapping[str, str]
    limits: Limits
    devices: "Sequence[DeviceRequest]" = ()
    volumes: Mapping[str, str] = field(default_factory=dict)


class Container:
    """A container that was made and not yet started."""

    def __init__(self, api: "APIClient", name: str, limits: Limits) -> None:
        self._api = api
        self._name = name
        self._seconds = limits.seconds
        self._passed = False

    def put(self, files: Mapping[str, bytes], folders: tuple[str, ...] = ()) -> None:
        """Put files and empty folders where the process will start."""
        with sentences("take a launch's files"):
            self._api.put_archive(self._name, FOLDER, pack(files, folders))

    def run(self, stdout: Read, stderr: Read) -> tuple[float, Ending]:
        """Start it and read both streams until it has ended, or a reader returned True: that is enough.

        Returns the instant at which it was asked to start, and how it ended.
        """
        deadline = threading.Timer(self._seconds, self._pass)
        deadline.daemon = True
        with sentences("run a container"):
            try:
                with self._attached() as receive:
                    asked = time.time()
                    self._api.start(self._name)
                    deadline.start()
                    chunks = iter(lambda: receive(64 * 1024), b"")
                    reads = {STDOUT: stdout, STDERR: stderr}
                    enough = any(reads[stream](piece) for stream, piece in frames(chunks) if stream in reads)
                # only now: a container does not end before its output has gone where it is attached to
                if enough:
                    self._kill()
                code = int(self._api.wait(self._name, timeout=None)["StatusCode"])
            finally:
                deadline.cancel()
            deadline.join()  # where it has fired, it is about to say whether the process was still there
            return asked, self._ending(code)

    def artifacts(self, folder: str) -> Artifacts:
        """The files in a folder where the process started, after it has ended."""
        from docker.errors import NotFound

        with sentences("give a launch's artifacts"):
            try:
                chunks, _ = self._api.get_archive(self._name, f"{FOLDER}/{folder}")
            except NotFound:
                return Artifacts()
            return from_archive(chunks)

    @contextmanager
    def _attached(self) -> Iterator[Callable[[int], bytes]]:
        stream = self._api.attach_socket(self._name, params={"stdout": 1, "stderr": 1, "stream": 1})
        try:
            # a scenario may be silent for long, and the SDK gives every connection the time limit of a request
            for each in (stream, getattr(stream, "_sock", None)):
                if each is not None and hasattr(each, "settimeout"):
                    each.settimeout(None)
            yield getattr(stream, "recv", None) or stream.read
        finally:
            # the SDK keeps the response with the stream, and closing it closes both
            getattr(stream, "_response", stream).close()

    def _pass(self) -> None:
        self._passed = self._kill()

    def _kill(self) -> bool:
        """End it; False where it had ended before, or nothing answers: then reading its output fails too."""
        from docker.errors import APIError
        from requests.exceptions import RequestException

        try:
            self._api.kill(self._name)
        except (APIError, RequestException):
            return False
        return True

    def _ending(self, code: int) -> Ending:
        if self._passed:
            return Ending(seconds=self._seconds)
        if code == 0:
            return Ending(code)
        # only what went wrong is worth another question
        oom = bool(self._api.inspect_container(self._name)["State"].get("OOMKilled"))
        number = code - _SIGNALS
        return Ending(signal=number, oom=oom) if 0 < number < signal.NSIG else Ending(code, oom=oom)


def frames(chunks: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """The pieces of the two streams, each with its stream's number, in bytes that are cut anywhere.

    The SDK has a reader too; it asks the system before every few bytes, and waits for ever on an encrypted connection
    whose library has already read the next frame.
    """
    header, stream, left = b"", 0, 0
    for chunk in chunks:
        rest = memoryview(chunk)
        while rest:
            if left:
                piece, rest = rest[:left], rest[left:]
                left -= len(piece)
                yield stream, bytes(piece)
            else:
                missing = _HEADER.size - len(header)
                header, rest = header + rest[:missing], rest[missing:]
                if len(header) == _HEADER.size:
                    (stream, left), header = _HEADER.unpack(header), b""


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
        _, ending = container.run(stdout.feed, stderr.feed)
    return stdout.text(), stderr.text(), ending


@contextmanager
def created(engine: Engine, specification: Specification) -> Iterator[Container]:
    """A container for one launch; removed at the end, whatever ends it."""
    # known before it exists, so that an interrupted creation can be undone too
    name = f"harness-{secrets.token_hex(8)}"
    try:
        with sentences("make a container"):
            engine.api.create_container(name=name, **_options(engine, specification))
    except KeyboardInterrupt:
        _remove(engine.api, name, patience=1.0)
        raise
    try:
        yield Container(engine.api, name, specification.limits)
    finally:
        _remove(engine.api, name)


def _options(engine: Engine, specification: Specification) -> dict[str, Any]:
    from docker.types import LogConfig, Mount

    limits = specification.limits
    host = engine.api.create_host_config(
        init=True,
        network_mode="none",
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        # TensorFlow's thread pools grow with the CPUs
        pids_limit=512 + 16 * int(engine.info.get("NCPU", 1)),
        mem_limit=limits.memory_bytes,
        memswap_limit=limits.memory_bytes,
        cpuset_cpus=None if limits.cpus is None else ",".join(map(str, limits.cpus)),
        # 100 MB of stderr would leave 258 MB of log on the engine's disk
        log_config=LogConfig(type="none"),
        device_requests=list(specification.devices) or None,
        mounts=[Mount(folder, volume) for volume, folder in specification.volumes.items()],
    )
    return {
        "image": specification.image,
        "command": list(specification.command),
        "environment": dict(specification.environ),
        "labels": dict(specification.labels),
        "user": USER,
        "working_dir": FOLDER,
        "host_config": host,
    }


def _remove(api: "APIClient", name: str, patience: float = 0.0) -> None:
    """Remove the container, and its processes. `patience`: for how long the engine may still be making it."""
    from docker.errors import APIError, NotFound

    until = time.monotonic() + patience
    with sentences("remove a container"):
        while True:
            try:
                api.remove_container(name, force=True, v=True)
                return
            except NotFound:
                if time.monotonic() >= until:
                    return
                time.sleep(0.05)
            except APIError as error:
                if error.status_code != _CONFLICT:  # it is being removed already
                    raise
                return
