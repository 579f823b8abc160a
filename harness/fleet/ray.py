"""`--on ray`: measures shards on a Ray cluster. Each shard is a task, which Ray queues, places and retries.

Slots are custom resources named `slot`. Ray doesn't count CPUs and GPUs, because harness divides them itself
(machine/slots.py). If the process or the node of a task fails, Ray runs the task again, on another node if necessary.
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
import sys
import tarfile
import tempfile
import threading
from collections.abc import Callable, Sequence
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
        self._address, self._parcel, self._say, self._local_slots = address, given, say, slots
        self._refused: dict[str, str] = {}  # the errors of nodes that can't measure, by their ids

    def __enter__(self) -> "RayExecutor":
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
        with contextlib.suppress(Exception):  # the cluster may have ended
            self._ray.shutdown()

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        """Measure a shard on a node, and copy its run into a folder on this machine.

        Return the command's exit code and the last lines of its stderr. If a node can't measure, this
        shard and all later ones go to other nodes. Raises CannotRunHereError if no node remains, or if the cluster
        stops answering.
        """
        try:
            return self._measure(words, into)
        except Exception as error:
            is_of_this_machine = isinstance(error, OSError) and not isinstance(error, ConnectionError)  # a full disk
            if isinstance(error, CannotRunHereError) or is_of_this_machine:
                raise
            # if the head node ends, Ray's client raises any error of its transport
            reason = _get_first_line(error)
            raise CannotRunHereError(f"The connection to the cluster was lost: {reason}.", SILENT) from error

    def _measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        while True:
            selector = {"label_selector": {_NODE_LABEL: f"!in({','.join(self._refused)})"}} if self._refused else {}
            task = self._task.options(num_cpus=0, resources={RESOURCE: 1}, max_retries=RETRIES, **selector)
            try:
                node, code, message, run = self._wait(
                    task.remote(self._archive, self._parcel.name, list(words), self._bell)
                )
            except self._ray.exceptions.RayError as error:
                return Exit.DEFECT, _get_first_line(error)
            if code not in (Exit.CANNOT_RUN_HERE, Exit.USAGE):
                parcel.unpack(io.BytesIO(run), into)
                return code, message
            if node not in self._refused:
                self._refused[node] = message
                self._say(f"Measuring stopped on the node {node[:8]}: {message}")
            if all(other in self._refused for other in self._list_nodes()):
                raise self._make_no_slots_error()

    def _wait(self, task: Any) -> tuple[str, int, str, bytes]:
        """Return the result of a task. Raises CannotRunHereError if the head node doesn't answer twice in a row.

        A minute after its head node has ended, Ray would end this process, and nothing would be merged.
        """
        was_silent = False
        while True:
            try:
                result: tuple[str, int, str, bytes] = self._ray.get(task, timeout=ANSWER)
            except self._ray.exceptions.GetTimeoutError:
                try:
                    self._check_address()
                    was_silent = False
                except CannotRunHereError:
                    if was_silent:
                        raise
                    was_silent = True
            else:
                return result

    def stop(self) -> None:
        """End the current measurements, as Ctrl-C does."""
        with contextlib.suppress(Exception):  # without the head node, no task can be reached
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
