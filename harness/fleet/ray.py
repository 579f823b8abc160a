"""`--on ray`: measures shards on a Ray cluster. Each shard is a task, which Ray queues, places and retries.

Slots are custom resources named `slot`. Ray doesn't count CPUs and GPUs, because harness divides them itself
(machine/slots.py). If the process or the node of a task fails, Ray runs the task again, on another node if necessary.

If the head of the cluster fails, Ray ends every process that is connected to the cluster. So a child process connects,
and this process can merge what has arrived.
"""

import asyncio
import contextlib
import io
import logging
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from harness.files import get_data_dir, make_folder
from harness.fleet import parcel
from harness.fleet.parcel import Parcel
from harness.fleet.shell import ShellRunner, make_script
from harness.model.errors import CannotRunHereError, Exit

#: The custom resource of a node. Its amount is the number of the node's slots.
RESOURCE = "slot"

#: The number of times that Ray runs a task again after its process or node has failed.
RETRIES = 2

#: The advice for a cluster that doesn't answer, and the seconds to wait for an answer.
SILENT = (
    "Check the cluster with `ray status` on its head node. --on needs the port of Ray's client on this node, "
    "usually 10001."
)
ANSWER = 10.0

#: The size of the object store of a local cluster, near Ray's minimum of 75 MiB, because it has no large objects.
STORE_BYTES = 80 * 2**20

#: The label with Ray's id of a node.
_NODE_LABEL = "ray.io/node-id"


class StopSignal:
    """An actor that makes all tasks of a run stop measuring."""

    def __init__(self) -> None:
        self._is_rung = asyncio.Event()

    async def ring(self) -> None:
        """Make all tasks stop now."""
        self._is_rung.set()

    async def wait(self) -> None:
        """Wait until the tasks must stop."""
        await self._is_rung.wait()


def measure(archive: bytes, name: str, words: Sequence[str], bell: Any) -> tuple[str, int, str, bytes]:
    """Measure a shard on this node, with the unpacked parcel of this name.

    Return the node, the command's exit code, the last lines of its stderr, and the folder of its run as an archive.
    Until then, the run is in the folder `fleet` in the user's data folder.
    """
    import ray as module

    ray: Any = module
    node = ray.get_runtime_context().get_node_id()
    offered = next(entry["Resources"].get(RESOURCE, 1) for entry in ray.nodes() if entry["NodeID"] == node)
    runs = Path(tempfile.mkdtemp(dir=_unpack(archive, name) / "runs"))
    folder = runs.parents[1]
    if offered > 1:
        words = [*words, "--slots", "auto"]
    shell = ShellRunner(lambda line: print(line, file=sys.stderr, flush=True))

    def listen() -> None:
        with contextlib.suppress(ray.exceptions.RayError):
            ray.get(bell.wait.remote())
            shell.stop()

    threading.Thread(target=listen, daemon=True).start()
    command = make_script(
        [*words, "--results", str(runs)],
        shlex.quote(sys.executable),
        environ=parcel.ENVIRON,
        folder=shlex.quote(str(folder)),
    )
    code, message = shell.run(["sh", "-c", command])
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        tar.add(runs, ".")
    shutil.rmtree(runs, ignore_errors=True)
    return node, code, message, buffer.getvalue()


def _unpack(archive: bytes, name: str) -> Path:
    """Return the unpacked folder of a parcel on this node. Several tasks may request it at the same time."""
    folder = get_data_dir() / "fleet" / name
    if not folder.exists():
        make_folder(folder.parent)
        part = Path(tempfile.mkdtemp(dir=folder.parent))
        parcel.unpack(io.BytesIO(archive), part / "all")
        (part / "all" / "runs").mkdir()
        with contextlib.suppress(OSError):  # another task has unpacked it
            (part / "all").rename(folder)
        shutil.rmtree(part)
    return folder


class RayExecutor:
    """A Ray cluster that measures shards, as many at the same time as it has slots. Ray queues the others.

    `address` is `local` (a cluster on this machine with `slots` slots, which ends with the run), `auto` (the cluster of
    RAY_ADDRESS, or of this node), or an address for `ray.init`. Use it as a context manager.
    """

    is_here, queues = False, True

    def __init__(self, address: str, given: Parcel, say: Callable[[str], object], slots: int = 1) -> None:
        self.name = f"the Ray cluster {address}"
        self._arguments, self._say = (address, given, slots), say
        self._answers: dict[int, Future[Any]] = {}
        self._lock, self._is_lost = threading.Lock(), False

    def __enter__(self) -> "RayExecutor":
        self._connection, end = Pipe()
        program = f"from harness.fleet.ray import drive; drive({end.fileno()})"
        # a new session, because Ctrl-C in the terminal must not end the connection to the cluster
        self._process = subprocess.Popen(
            [sys.executable, "-c", program], pass_fds=[end.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
        end.close()
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self.slots: int = self._send_request(None, *self._arguments).result()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._connection.send(None)
        try:
            self._process.wait(ANSWER)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        """Measure a shard on a node, and copy its run into a folder on this machine.

        Return the command's exit code and the last lines of its stderr. Raises CannotRunHereError if no node can
        measure any more, or if the cluster doesn't answer any more.
        """
        code, message, run = self._send_request("measure", list(words)).result()
        if run:
            parcel.unpack(io.BytesIO(run), into)
        return code, message

    def stop(self) -> None:
        """End the current measurements, as Ctrl-C does."""
        self._send_request("stop")

    def _send_request(self, method: str | None, *arguments: object) -> "Future[Any]":
        """Request something from the process that is connected to the cluster."""
        answer: Future[Any] = Future()
        with self._lock:
            number = len(self._answers)
            self._answers[number] = answer
            if self._is_lost:
                answer.set_exception(self._make_lost_error())
            with contextlib.suppress(OSError):  # `_listen` notices that the process has ended
                self._connection.send((number, method, arguments))
        return answer

    def _listen(self) -> None:
        """Distribute the answers, until the process has ended."""
        with contextlib.suppress(OSError, EOFError):
            while True:
                number, value, error = self._connection.recv()
                if number is None:
                    self._say(value)
                elif error:
                    self._answers[number].set_exception(CannotRunHereError(*error))
                else:
                    self._answers[number].set_result(value)
        with self._lock:
            self._is_lost = True
            for answer in self._answers.values():
                if not answer.done():
                    answer.set_exception(self._make_lost_error())

    def _make_lost_error(self) -> CannotRunHereError:
        return CannotRunHereError("The cluster doesn't answer any more. Its head node has probably failed.", SILENT)


def drive(descriptor: int) -> None:
    """Connect to a cluster, and answer the requests of a `RayExecutor` until its end of the connection is closed."""
    connection, lock = Connection(descriptor), threading.Lock()

    def send(*answer: object) -> None:
        with lock, contextlib.suppress(OSError):
            connection.send(answer)

    def answer(number: int, function: Callable[..., Any], arguments: Sequence[Any]) -> None:
        try:
            send(number, function(*arguments), None)
        except CannotRunHereError as error:
            send(number, None, (error.message, error.advice))
        except Exception as error:  # noqa: BLE001 - Ray raises many kinds of errors after the cluster has failed
            send(number, None, (f"The cluster doesn't answer any more: {_get_first_line(error)}.", SILENT))

    with contextlib.suppress(EOFError, OSError), contextlib.ExitStack() as stack:
        number, _, (address, archive, slots) = connection.recv()
        cluster = _Cluster(address, archive, lambda sentence: send(None, sentence, None), slots)
        answer(number, lambda: stack.enter_context(cluster).slots, ())
        while request := connection.recv():
            number, method, arguments = request
            threading.Thread(target=answer, args=(number, getattr(cluster, method), arguments), daemon=True).start()


class _Cluster:
    """The connection of this process to a Ray cluster. `RayExecutor` explains the parameters."""

    def __init__(self, address: str, given: Parcel, say: Callable[[str], object], slots: int) -> None:
        self._address, self._parcel, self._say, self._local_slots = address, given, say, slots
        self._refused: dict[str, str] = {}  # the errors of nodes that can't measure, by their ids

    def __enter__(self) -> "_Cluster":
        # set these before importing Ray: its processes must not send usage statistics
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_DEDUP_LOGS", "0")
        try:
            import ray as module
        except ImportError:
            raise CannotRunHereError(
                "--on ray needs Ray.", "Install it into the environment of harness: python -m pip install ray"
            ) from None
        self._ray: Any = module
        ray = self._ray
        new: dict[str, Any] = {
            "num_cpus": 0,
            "num_gpus": 0,
            "resources": {RESOURCE: self._local_slots},
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        }
        self._check_address()
        before = signal.getsignal(signal.SIGTERM)
        try:
            ray.init(self._address, logging_level=logging.ERROR, **(new if self._address == "local" else {}))
        except (OSError, RuntimeError, ValueError, TimeoutError) as error:
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise CannotRunHereError(f"The Ray cluster {self._address} does not answer: {reason}", SILENT) from None
        finally:
            signal.signal(signal.SIGTERM, before)  # Ray installs a handler that ends the process
        self.slots = int(ray.cluster_resources().get(RESOURCE, 0))
        if not self.slots:
            ray.shutdown()
            raise self._make_no_slots_error()
        self._bell = ray.remote(StopSignal).options(num_cpus=0, max_restarts=-1, max_task_retries=-1).remote()
        self._task = ray.remote(measure)
        self._archive = ray.put(self._parcel.archive)
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    def measure(self, words: Sequence[str]) -> tuple[int, str, bytes]:
        """Measure a shard on a node.

        Return the command's exit code, the last lines of its stderr, and the folder of its run as an archive. If a node
        can't measure, this shard and all later ones go to other nodes. Raises CannotRunHereError if no node remains.
        """
        while True:
            selector = {"label_selector": {_NODE_LABEL: f"!in({','.join(self._refused)})"}} if self._refused else {}
            task = self._task.options(num_cpus=0, resources={RESOURCE: 1}, max_retries=RETRIES, **selector)
            try:
                node, code, message, run = self._ray.get(
                    task.remote(self._archive, self._parcel.name, list(words), self._bell)
                )
            except self._ray.exceptions.RayError as error:
                return Exit.DEFECT, _get_first_line(error), b""
            if code not in (Exit.CANNOT_RUN_HERE, Exit.USAGE):
                return code, message, run
            if node not in self._refused:
                self._refused[node] = message
                self._say(f"Measuring stopped on the node {node[:8]}: {message}")
            if all(other in self._refused for other in self._list_nodes()):
                raise self._make_no_slots_error()

    def stop(self) -> None:
        """End the current measurements, as Ctrl-C does."""
        self._bell.ring.remote()

    def _list_nodes(self) -> list[str]:
        """Return the nodes that offer slots."""
        return [node["NodeID"] for node in self._ray.nodes() if node["Alive"] and node["Resources"].get(RESOURCE)]

    def _make_no_slots_error(self) -> CannotRunHereError:
        if self._refused:
            return CannotRunHereError("No node of the Ray cluster can measure.")
        return CannotRunHereError(
            f"No node of the Ray cluster has slots (the custom resource `{RESOURCE}`).",
            f"""On each machine: harness fleet check, then ray start … --resources='{{"{RESOURCE}": 2}}'""",
        )

    def _check_address(self) -> None:
        """Raise CannotRunHereError if nothing listens at the cluster's address, because Ray would retry for minutes."""
        address = os.environ.get("RAY_ADDRESS", "") if self._address == "auto" else self._address
        host, _, port = address.removeprefix("ray://").rpartition(":")
        if not port.isdecimal():
            return
        try:
            socket.create_connection((host.strip("[]"), int(port)), ANSWER).close()
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise CannotRunHereError(f"The Ray cluster {address} does not answer: {reason}.", SILENT) from None


def _get_first_line(error: Exception) -> str:
    """Return the first line of Ray's error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__).rstrip(".")
