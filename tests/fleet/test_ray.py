"""A Ray cluster of several nodes, as processes of this machine, each of which takes itself for a machine of its own."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from harness.fleet import ray
from harness.fleet.places import FOLDER
from harness.machine.uv import find_uv
from harness.model.errors import CannotRunHereError, Exit
from tests.cli.conftest import Harness
from tests.fleet.conftest import counts, find_commands, read_until

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
    """A cluster with a head that measures nothing, and nodes with one slot each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._nodes = folder, dict[str, subprocess.Popen[bytes]]()
        self._port, dashboard = find_port(), find_port()
        self.address = f"http://127.0.0.1:{dashboard}"
        options = ("--head", "--port", str(self._port), "--dashboard-port", str(dashboard))
        self.start("head", *options, "--temp-dir", str(folder / "ray"))

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
        command = [Path(sys.executable).with_name("ray"), "start", "--block", "--num-cpus=0", *port, *options]
        with (self.home(name) / "log").open("wb") as log:
            process = subprocess.Popen(command, env={**os.environ, **environ}, stdout=log, stderr=log)
        self._nodes[name] = process

    def add(self, name: str, count: int) -> None:
        """Start a node with a slot, and wait for a number of nodes. On a busy machine, a start can fail."""
        for _ in range(3):
            self.start(name, f"--address=127.0.0.1:{self._port}", "--resources", '{"slot": 1}', "--node-name", name)
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


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_API_SERVER_ADDRESS", "")
        cluster = Nodes(tmp_path_factory.mktemp("ray"))
        try:
            assert cluster.wait(0)
            cluster.add("one", 1)
            cluster.add("two", 2)
            yield cluster
        finally:
            cluster.stop()


@pytest.fixture
def process(
    nodes: Nodes, harness: Harness, write_scenario: Callable[[str, str], Path]
) -> Iterator["subprocess.Popen[str]"]:
    """Return a run of two groups of one cell in two environments, which both nodes measure."""
    write_scenario("sleeper", SLEEPER)
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


@pytest.mark.slow
def test_a_command_that_dies_is_continued_and_another_node_measures_the_shard_of_a_node_that_dies(
    process, nodes, harness
):
    assert process.stderr
    find_commands(nodes.folder)[0].kill()
    read_until(process.stderr, "The shard is measured again.")
    nodes.kill("one")
    _, output = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert "The node has left the Ray cluster." in output
    assert is_whole(harness.run)
    nodes.add("one", 2)


@pytest.mark.slow
def test_an_interruption_stops_all_nodes_and_they_continue_later(process, nodes, harness):
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


@pytest.mark.slow
def test_jobs_continue_without_the_process_that_started_them_and_their_results_are_fetched_later(
    process, nodes, harness
):
    process.kill()
    process.wait()
    commands = find_commands(nodes.folder)
    assert len(commands) == 2
    psutil.wait_procs(commands, timeout=60)
    resumed = harness("matrix", "--resume", str(harness.run), RAY_API_SERVER_ADDRESS="http://127.0.0.1:1")
    assert resumed.returncode == 0, resumed.stderr
    assert is_whole(harness.run)
    assert not find_commands(nodes.folder)


def test_a_cluster_that_does_not_answer_is_a_sentence(monkeypatch):
    monkeypatch.setenv("RAY_API_SERVER_ADDRESS", "")
    with pytest.raises(CannotRunHereError, match=r"127\.0\.0\.1:1\.\nCheck it with `ray status`"):
        ray.open_cluster("http://127.0.0.1:1", b"", print)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(CannotRunHereError, match="--on http://HEAD:8265"):
        ray.open_cluster("ray", b"", print)


def test_a_cluster_that_fails_ends_the_shard_and_then_the_place(monkeypatch, tmp_path):
    def fail(*_: object) -> None:
        raise ConnectionError("Failed to connect to Ray")

    monkeypatch.setattr(ray, "_PATIENCE", 0.0)
    job = SimpleNamespace(submission_id="raysubmit_1", metadata={"shard": "x-1"})
    client = SimpleNamespace(list_jobs=lambda: [job], get_job_info=fail)
    place = ray.RayPlace(SimpleNamespace(node_id="a" * 56, node_name="one"), 0, client, b"", print)
    code, message = place.measure("x-1", [], tmp_path, None)
    assert (code, message) == (Exit.DEFECT, "The Ray cluster doesn't answer: Failed to connect to Ray")
    client.list_jobs = fail
    with pytest.raises(CannotRunHereError, match="Failed to connect"):
        place.measure("x-1", [], tmp_path, None)
