"""`--on http://…`: measures shards on a Ray cluster. Each shard is a job of Ray's Jobs API.

A job requests all CPUs of its node, and all GPUs if the run uses GPUs, so that Ray starts no other job there. A
node with several slots offers them as a custom resource named `slot`, and each slot gets an equal part. The API is
HTTP, so this machine and the cluster can have different versions of Ray and
Python, and a cluster that fails doesn't end this process. If this process is killed, its jobs continue, and a resumed
run fetches their results.
"""

import base64
import io
import logging
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from harness.fleet.parcel import unpack
from harness.fleet.places import FINISHED_CODES, FOLDER, LAST_LINES, REMOTE_COMMAND, make_remote_script
from harness.model.errors import CannotRunHereError, Exit, UsageError
from harness.model.texts import joined

#: The custom resource of a node with several slots. Its amount is their number.
RESOURCE = "slot"

#: The start of the name of the resource that Ray gives to a node with GPUs of a kind: accelerator_type:T4.
_KIND = "accelerator_type:"

#: The label of a node with its id.
_NODE = "ray.io/node-id"

#: The port of Ray's dashboard, which has the Jobs API.
_DASHBOARD_PORT = 8265

#: Lines in the log of a job, around the stderr of the shard's command. The second ends with the exit code of the
#: command. The rest of the log is an archive of the run's folder in base64.
_BEGIN, _END = "harness-shard-begin", "harness-shard-end"

#: The seconds to wait for an answer, the seconds of failed requests after which a cluster is lost, and the seconds
#: between two requests.
_TIMEOUT, _PATIENCE, _PAUSE = 30, 30.0, 1.0

#: The seconds that Ray gives a stopped job to end. harness ends earlier, when it has removed its containers.
_STOP_SECONDS = "120"

#: The files in a job's working folder.
_PARCEL, _SCRIPT = "parcel.tar.gz", "shard.sh"

#: The script of a job, before and after `make_remote_script`. To stop a job, Ray sends SIGTERM to all its processes.
#: Ray's limits on threads and GPUs don't apply to harness.
_UNPACK = f"""\
folder=$HOME/{FOLDER}/$1
mkdir -p "$folder" && tar -xzof {_PARCEL} -C "$folder" && cd "$folder" || exit {Exit.CANNOT_RUN_HERE:d}
unset OMP_NUM_THREADS CUDA_VISIBLE_DEVICES
trap : TERM
echo {_BEGIN}"""
_MEASURE = f"""\
{REMOTE_COMMAND} >/dev/null
code=$?
echo {_END} $code
if test -d runs; then tar -czf sent.tar.gz -C runs . && base64 sent.tar.gz; fi"""


def open_cluster(on: str, parcel: bytes, say: Callable[[str], object], *, needs_gpus: bool = False) -> list["RayPlace"]:
    """Return a place for each node of a Ray cluster, or for each of its slots.

    `on` is the address of the cluster, or `ray` for the address in RAY_ADDRESS. After `#`, it can name the kind of GPUs
    that nodes must have: http://HEAD:8265#T4. Raises CannotRunHereError if Ray isn't installed, if the cluster doesn't
    answer, or if no node can measure, and UsageError if nodes have different kinds of GPUs.
    """
    on, _, kind = on.partition("#")
    if on.startswith("ray://"):  # the address of Ray's client, which is on the same machine
        on = f"http://{on.removeprefix('ray://').rpartition(':')[0]}:{_DASHBOARD_PORT}"
    if on != "ray":
        os.environ["RAY_API_SERVER_ADDRESS"] = on  # Ray prefers RAY_ADDRESS to an address that is passed
    elif "RAY_ADDRESS" not in os.environ:
        raise CannotRunHereError(
            "--on ray measures on the Ray cluster in RAY_ADDRESS, but this variable isn't set.",
            "Pass the cluster's address: --on http://HEAD:8265. For several slots of this machine, use --slots.",
        )
    try:
        from ray.job_submission import JobSubmissionClient
    except ImportError:
        raise CannotRunHereError(
            "--on needs Ray.", "Install it into the environment of harness: python -m pip install 'ray[default]'"
        ) from None
    try:
        for handler in logging.getLogger("ray").handlers:
            handler.setLevel(logging.ERROR)  # Ray reports each upload
        client: Any = JobSubmissionClient()
        # without a time limit, a request to a machine that has failed never ends
        client._do_request = partial(client._do_request, timeout=_TIMEOUT)
        nodes = _list_nodes(client)
    except Exception as error:  # noqa: BLE001 - Ray raises many kinds of errors
        raise CannotRunHereError(
            f"The Ray cluster doesn't answer: {_get_first_line(error)}",
            "Check it with `ray status` on its head node. Pass the address of its dashboard, such as http://HEAD:8265.",
        ) from None
    return [
        RayPlace(*_describe_slot(node, number, count, needs_gpus=needs_gpus), client, parcel, say)
        for node in _select_nodes(nodes, kind, needs_gpus=needs_gpus)
        for count in [int(node.resources_total.get(RESOURCE, 1))]
        for number in range(1, count + 1)
    ]


def _select_nodes(nodes: Sequence[Any], kind: str, *, needs_gpus: bool) -> list[Any]:
    """Return the nodes that can measure: with CPUs or slots and, if GPUs are needed, with GPUs of one kind."""
    able = [node for node in nodes if node.resources_total.get("CPU") or node.resources_total.get(RESOURCE)]
    if needs_gpus:
        able = [node for node in able if node.resources_total.get("GPU")]
    if kind:
        able = [node for node in able if f"{_KIND}{kind}" in node.resources_total]
    if not able:
        needed = f"{kind} GPUs" if kind else "GPUs" if needs_gpus else "CPUs"
        raise CannotRunHereError(
            f"No node of the Ray cluster has {needed}.", "To see the nodes and their resources, use `ray status`."
        )
    kinds = {name.removeprefix(_KIND) for node in able for name in node.resources_total if name.startswith(_KIND)}
    if needs_gpus and len(kinds) > 1 and not kind:
        raise UsageError(
            f"The nodes of the Ray cluster have different GPUs: {joined(sorted(kinds))}. A run uses GPUs of one kind.",
            f"Add the kind to the address: --on 'http://HEAD:8265#{min(kinds)}'",
        )
    return able


def _describe_slot(node: Any, slot: int, count: int, *, needs_gpus: bool) -> tuple[str, dict[str, Any]]:
    """Return the name of one of `count` slots of a node, and the options of its jobs: the node and their resources."""

    def divide(resource: str) -> float:
        total = node.resources_total.get(resource, 0.0)
        return float(total // count or total / count)  # Ray accepts parts of a CPU or GPU only below 1

    options: dict[str, Any] = {"entrypoint_label_selector": {_NODE: node.node_id}, "entrypoint_num_cpus": divide("CPU")}
    options |= {"entrypoint_num_gpus": divide("GPU")} if needs_gpus else {}
    name = f"{node.node_name} ({node.node_id[:8]})"
    return (name, options) if count == 1 else (f"{name} slot {slot}", options | {"entrypoint_resources": {RESOURCE: 1}})


class RayPlace:
    """A node of a Ray cluster, or one of its slots, with the options of its jobs.

    `client` is a client of Ray's Jobs API, and `parcel` is an archive.
    """

    def __init__(
        self, name: str, options: Mapping[str, Any], client: Any, parcel: bytes, say: Callable[[str], object]
    ) -> None:
        self.name, self._options = name, options
        self._slot_words = ["--slots", "auto"] if "entrypoint_resources" in options else []
        self._client, self._parcel, self._say = client, parcel, say
        self._is_stopped = False

    def measure(self, shard: str, words: Sequence[str], into: Path, earlier: Path | None) -> tuple[int, str]:
        """Measure a shard on the node, and copy its run. If an earlier process has started the job, wait for it.

        Raises CannotRunHereError if the node has left the cluster, or if the cluster doesn't answer.
        """
        try:
            jobs = [job.submission_id for job in self._client.list_jobs() if shard == (job.metadata or {}).get("shard")]
            job = jobs[0] if jobs else self._submit(shard, words)
        except Exception as error:  # noqa: BLE001 - Ray raises many kinds of errors
            raise _explain(error) from None
        try:
            details, log = self._follow(job)
            stderr, _, result = log.partition(f"{_END} ")
            code, _, archive = result.partition("\n")
            if archive:
                unpack(io.BytesIO(base64.b64decode(archive)), into)
            exit_code = int(code or details.driver_exit_code or Exit.DEFECT)
            if archive and exit_code in FINISHED_CODES:
                selector = self._options["entrypoint_label_selector"]
                self._client.submit_job(entrypoint=f"rm -rf $HOME/{FOLDER}/{shard}", entrypoint_label_selector=selector)
            self._client.delete_job(job)
        except Exception as error:  # noqa: BLE001 - Ray raises many kinds of errors
            return Exit.DEFECT, _explain(error).message
        last_lines = [line.strip() for line in stderr.splitlines()][-LAST_LINES:] or [_get_first_line(details.message)]
        return exit_code, " ".join(last_lines)

    def stop(self) -> None:
        """End the measurement on the node, as Ctrl-C does."""
        self._is_stopped = True  # `_follow` sends the request

    def _submit(self, shard: str, words: Sequence[str]) -> str:
        """Start a job on the node, and return its id. Raises CannotRunHereError if the node has left the cluster."""
        node_id = self._options["entrypoint_label_selector"][_NODE]
        if all(node.node_id != node_id for node in _list_nodes(self._client)):
            raise CannotRunHereError("The node has left the Ray cluster.")
        script = "\n".join([_UNPACK, make_remote_script([*words, *self._slot_words]), _MEASURE])
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / _PARCEL).write_bytes(self._parcel)
            (Path(folder) / _SCRIPT).write_text(script)
            job = self._client.submit_job(
                # Ray's own shell would end before the script, and Ray would wait for an orphan, which nobody reaps in
                # many containers
                entrypoint=f"exec sh {_SCRIPT} {shard}",
                runtime_env={"working_dir": folder, "env_vars": {"RAY_JOB_STOP_WAIT_TIME_S": _STOP_SECONDS}},
                metadata={"shard": shard},
                **self._options,
            )
        return str(job)

    def _follow(self, job: str) -> tuple[Any, str]:
        """Report the stderr of a job until it has ended. Return its details, and its log after the line `_BEGIN`.

        After `stop`, this sends Ray requests to end the job until one succeeds.
        """
        reported, answered, is_ending = 0, time.monotonic(), False
        while True:
            try:
                if self._is_stopped and not is_ending:
                    self._client.stop_job(job)
                    is_ending = True
                details = self._client.get_job_info(job)
                if details.status.is_terminal() and details.driver_exit_code is None and not self._is_stopped:
                    return details, ""  # the node or Ray's process has failed, so it can't send the log
                log = self._client.get_job_logs(job).partition(f"{_BEGIN}\n")[2]
            except (OSError, RuntimeError):
                if time.monotonic() - answered > _PATIENCE:
                    raise
                time.sleep(_PAUSE)
                continue
            answered = time.monotonic()
            # the last line is incomplete, or empty
            lines = log.partition(f"{_END} ")[0].split("\n")[:-1]
            for line in lines[reported:]:
                self._say(f"{self.name}: {line.rstrip()}")
            reported = len(lines)
            if details.status.is_terminal():
                return details, log
            time.sleep(_PAUSE)


def _list_nodes(client: Any) -> list[Any]:
    """Return the nodes of a client's cluster that haven't failed, by name: their ids change if the cluster restarts."""
    from ray.util.state import list_nodes

    nodes = list_nodes(client.get_address(), limit=10_000, timeout=_TIMEOUT, raise_on_missing_output=False)
    return sorted((node for node in nodes if node.state == "ALIVE"), key=lambda node: str(node.node_name))


def _explain(error: Exception) -> CannotRunHereError:
    """Return an error for a sentence about the cluster. Ray raises many kinds of errors."""
    if isinstance(error, CannotRunHereError):
        return error
    from requests import RequestException

    reason = "the connection failed" if isinstance(error, RequestException) else _get_first_line(error)
    return CannotRunHereError(f"The Ray cluster doesn't answer: {reason}")


def _get_first_line(error: object) -> str:
    """Return the first line of Ray's error or message."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
