"""A Ray cluster of several nodes, as processes of this machine, each of which takes itself for a machine of its own."""

import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.backends.local.process import _PR_SET_CHILD_SUBREAPER
from harness.fleet import ray
from harness.fleet.places import FOLDER
from harness.machine.uv import find_uv
from harness.model.errors import CannotRunHereError, Exit, UsageError
from tests.cli.conftest import Harness
from tests.commands import read_until
from tests.fleet.conftest import counts, find_commands

#: Sleeps rather than computes: nodes share two cores.
SLEEPER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "Sleeps"
# [tool.harness.axes]
# size = ["1", "2"]
# ///
import time


def scenario(bench, size):
    bench.measure(lambda: time.sleep(0.01))
"""


def find_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Nodes:
    """A cluster with a head that measures nothing, and nodes with one CPU each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._nodes = folder, dict[str, subprocess.Popen[bytes]]()
        self._port, dashboard = find_port(), find_port()
        self.address = f"http://127.0.0.1:{dashboard}"
        options = ("--head", "--num-cpus=0", "--port", str(self._port), "--dashboard-port", str(dashboard))
        # the path of a socket has at most 107 characters
        self._sockets = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        self.start("head", *options, "--temp-dir", self._sockets.name)

    def home(self, name: str) -> Path:
        return self.folder / name

    def start(self, name: str, *options: str) -> None:
        self.home(name).mkdir(exist_ok=True)
        # the agents of nodes need different ports only because they share a machine
        port = ("--dashboard-agent-listen-port", str(find_port()))
        environ = {
            "HOME": str(self.home(name)),
            "HARNESS_MACHINE_ID": name,
            "HARNESS_MACHINE_LOCK": str(self.home(name) / "lock"),
            "PATH": os.pathsep.join([str(find_uv().parent), os.environ["PATH"]]),
            "UV_CACHE_DIR": subprocess.check_output([find_uv(), "cache", "dir"], text=True).strip(),
            "RAY_USAGE_STATS_ENABLED": "0",
        }
        command = [Path(sys.executable).with_name("ray"), "start", "--block", *port, *options]
        with (self.home(name) / "log").open("wb") as log:
            process = subprocess.Popen(command, env={**os.environ, **environ}, stdout=log, stderr=log)
        self._nodes[name] = process

    def add(self, name: str, count: int) -> None:
        """Start a node, and wait for a number of nodes. On a busy machine, a start can fail."""
        for _ in range(3):
            self.start(name, f"--address=127.0.0.1:{self._port}", "--num-cpus=1", "--node-name", name)
            if self.wait(count):
                return
            self.kill(name)
        pytest.fail((self.home(name) / "log").read_text())

    def wait(self, count: int) -> bool:
        """Wait up to a minute until the head and a number of nodes are ready."""
        for _ in range(120):
            try:
                places = len(ray.open_cluster(self.address, b"", print))
            except CannotRunHereError as error:
                places = 0 if "No node" in str(error) else -1
            if places == count:
                return True
            time.sleep(0.5)
        return False

    def kill(self, name: str) -> None:
        process = self._nodes.pop(name)
        for child in [*psutil.Process(process.pid).children(recursive=True), process]:
            with contextlib.suppress(psutil.Error):
                child.kill()
        process.wait()

    def stop(self) -> None:
        for name in list(self._nodes):
            self.kill(name)
        self._sockets.cleanup()


@pytest.fixture
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_API_SERVER_ADDRESS", "")
        # as the guide recommends
        patch.setenv("RAY_AUTH_MODE", "token")
        patch.setenv("RAY_AUTH_TOKEN", "a-token-of-this-cluster-0123456789abcdef")
        cluster = Nodes(tmp_path_factory.mktemp("ray"))
        try:
            assert cluster.wait(0)
            cluster.add("one", 1)
            cluster.add("two", 2)
            yield cluster
        finally:
            cluster.stop()


@contextlib.contextmanager
def measuring(nodes: Nodes, harness: Harness) -> Iterator["subprocess.Popen[str]"]:
    """Yield a run of two groups of one cell in two environments, which both nodes measure."""
    words = ["-s", "sleeper", "--rounds", "8", "--backend", "local", "--warmup", "0s", "--measure", "200ms"]
    with harness.start("matrix", *words, "--seed", "1", "--on", nodes.address) as process:
        assert process.stderr
        running = set[str]()
        while running != {"one", "two"}:
            running |= {read_until(process.stderr, "round 1").splitlines()[-1].split()[0]}
        yield process


def is_whole(folder: Path) -> bool:
    results = counts(folder)
    assert set(results.values()) == {1}, results
    return len(results) == 2 * 2 * 9


def kill_a_command_and_a_node(process, nodes, harness):
    assert process.stderr
    find_commands(nodes.folder)[0].kill()
    read_until(process.stderr, "The shard is measured again.")
    nodes.kill("one")
    _, output = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "The node has left the Ray cluster." in output
    assert is_whole(harness.run)
    nodes.add("one", 2)


def interrupt_and_continue(process, nodes, harness):
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert (harness.run / "report.md").exists()
    assert not find_commands(nodes.folder)
    earlier = {launch["started"] for launch in harness.launches}
    resumed = harness("matrix", "--resume", str(harness.run))
    assert resumed.returncode == 0, resumed.stderr
    assert is_whole(harness.run)
    assert earlier <= {launch["started"] for launch in harness.launches}
    for _ in range(60):
        if not list((nodes.home("two") / FOLDER).iterdir()):
            break
        time.sleep(0.5)
    else:
        pytest.fail("the folder of the finished shard is still on the node")


def fetch_after_the_dispatcher_is_killed(process, nodes, harness):
    process.kill()
    process.wait()
    commands = find_commands(nodes.folder)
    assert len(commands) == 2
    psutil.wait_procs(commands, timeout=60)
    resumed = harness("matrix", "--resume", str(harness.run), RAY_API_SERVER_ADDRESS="http://127.0.0.1:1")
    assert resumed.returncode == 0, resumed.stderr
    assert is_whole(harness.run)
    assert not find_commands(nodes.folder)


@pytest.mark.slow
def test_a_cluster_measures_each_cell_once_whatever_dies_or_is_interrupted(nodes, harness, write_scenario):
    # orphans become children of this process, which doesn't wait for them, as the first process in many containers
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    write_scenario("sleeper", SLEEPER)
    for step in (kill_a_command_and_a_node, interrupt_and_continue, fetch_after_the_dispatcher_is_killed):
        with measuring(nodes, harness) as process:
            step(process, nodes, harness)
        shutil.rmtree(harness.run.parent)


def test_a_cluster_that_does_not_answer_is_a_sentence(monkeypatch):
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "")
    with pytest.raises(CannotRunHereError, match=r"127\.0\.0\.1:1\.\nCheck it with `ray status`"):
        ray.open_cluster("http://127.0.0.1:1", b"", print)
    monkeypatch.setattr(ray, "_DASHBOARD_PORT", 1)
    with pytest.raises(CannotRunHereError, match=r"127\.0\.0\.1:1\."):
        ray.open_cluster("ray://127.0.0.1:10001", b"", print)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(CannotRunHereError, match="--on http://HEAD:8265"):
        ray.open_cluster("ray", b"", print)


def test_a_job_gets_a_whole_node_with_gpus_of_one_kind_or_an_equal_part_for_each_slot():
    def node(**resources: float) -> SimpleNamespace:
        total = {name.replace("__", ":"): value for name, value in resources.items()}
        return SimpleNamespace(node_name="one", node_id="a1", resources_total=total)

    small, large = node(CPU=8.0, GPU=1.0, accelerator_type__T4=1.0), node(CPU=64.0, GPU=8.0, accelerator_type__H100=1.0)
    nodes = [node(memory=1.0), node(CPU=4.0), small, large]
    assert ray._select_nodes(nodes, "", needs_gpus=False) == nodes[1:]
    assert ray._select_nodes(nodes, "T4", needs_gpus=True) == [small]
    with pytest.raises(UsageError, match=r"different GPUs: H100 and T4\..*\n.*8265#H100"):
        ray._select_nodes(nodes, "", needs_gpus=True)
    with pytest.raises(CannotRunHereError, match="No node of the Ray cluster has A100 GPUs"):
        ray._select_nodes(nodes, "A100", needs_gpus=True)
    whole = {"entrypoint_label_selector": {"ray.io/node-id": "a1"}, "entrypoint_num_cpus": 64.0}
    assert ray._describe_slot(large, 1, 1, needs_gpus=False) == ("one (a1)", whole)
    with_gpus = {**whole, "entrypoint_num_gpus": 8.0}
    assert ray._describe_slot(large, 1, 1, needs_gpus=True) == ("one (a1)", with_gpus)
    name, options = ray._describe_slot(node(CPU=6.0, GPU=1.0, slot=4.0), 2, 4, needs_gpus=True)
    assert name == "one (a1) slot 2"
    assert (options["entrypoint_num_cpus"], options["entrypoint_num_gpus"]) == (1.0, 0.25)
    assert options["entrypoint_resources"] == {"slot": 1}


def test_a_cluster_that_fails_ends_the_shard_and_then_the_place(monkeypatch, tmp_path):
    def fail(*_: object) -> None:
        raise ConnectionError("Failed to connect to Ray")

    monkeypatch.setattr(ray, "_PATIENCE", 0.0)
    job = SimpleNamespace(submission_id="raysubmit_1", metadata={"shard": "x-1"})
    client = SimpleNamespace(list_jobs=lambda: [job], get_job_info=fail)
    place = ray.RayPlace("one", {}, client, b"", print)
    code, message = place.measure("x-1", [], tmp_path, None)
    assert (code, message) == (Exit.DEFECT, "The Ray cluster doesn't answer: Failed to connect to Ray")
    client.list_jobs = fail
    with pytest.raises(CannotRunHereError, match="Failed to connect"):
        place.measure("x-1", [], tmp_path, None)


def test_each_line_of_a_job_is_reported_once(monkeypatch):
    monkeypatch.setattr(ray, "_PAUSE", 0.0)
    logs = iter(["a\n3 %\r", "a\n3 %\r100 %\nb\n", f"a\n3 %\r100 %\nb\n{ray._END} 0\n"])
    has_ended = iter([False, False, True])

    def get_job_info(_: str) -> SimpleNamespace:
        ended = next(has_ended)
        return SimpleNamespace(status=SimpleNamespace(is_terminal=lambda: ended), driver_exit_code=0)

    client = SimpleNamespace(get_job_info=get_job_info, get_job_logs=lambda _: f"{ray._BEGIN}\n{next(logs)}")
    said: list[str] = []
    ray.RayPlace("one", {}, client, b"", said.append)._follow("job")
    assert said == ["one: a", "one: 3 %\r100 %", "one: b"]
