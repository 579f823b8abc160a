"""A Ray cluster of several nodes, as processes of this machine, each of which takes itself for a machine of its own."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness.fleet import ray
from harness.fleet.parcel import Parcel
from harness.model.errors import CannotRunHereError
from tests.cli.conftest import ROOT, Harness
from tests.fleet.conftest import counts, read_until

#: Sleeps rather than computes: nodes share two cores.
SLEEPER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "Sleeps"
# [tool.harness.axes]
# size = ["1", "2", "3"]
# ///
import time


def scenario(bench, size):
    bench.measure(lambda: time.sleep(0.01))
"""

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.slow]


class Nodes:
    """A cluster with a head that measures nothing, and nodes with one slot each."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        from ray.cluster_utils import Cluster

        quick = {"health_check_period_ms": 500, "health_check_failure_threshold": 3}
        head = {"num_cpus": 0, "include_dashboard": False, "_system_config": quick, "env_vars": dict(environ)}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._folder, self._environ = folder, environ
        self.nodes: dict[str, Any] = {}

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def data(self, name: str) -> Path:
        return self._folder / name / "data"

    def add(self, name: str) -> None:
        folder = self._folder / name
        folder.mkdir(exist_ok=True)
        variables = {
            "HARNESS_MACHINE_ID": name,
            "HARNESS_MACHINE_LOCK": str(folder / "lock"),
            "HARNESS_DATA_DIR": str(self.data(name)),
        }
        for tries_left in (2, 1, 0):
            try:
                self.nodes[name] = self._cluster.add_node(
                    num_cpus=0, resources={"slot": 1}, env_vars={**self._environ, **variables}
                )
                return
            except Exception:  # Ray gives a node 30 seconds to start, which on a busy machine may be too few
                if not tries_left:
                    raise

    def kill(self, name: str) -> None:
        self._cluster.remove_node(self.nodes.pop(name), allow_graceful=False)

    def stop(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nodes]:
    folder = tmp_path_factory.mktemp("cluster")
    environ = {
        "HARNESS_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    cluster = Nodes(folder, environ)
    try:
        cluster.add("one")
        cluster.add("two")
        yield cluster
    finally:
        cluster.stop()


@pytest.fixture
def process(
    nodes: Nodes, harness: Harness, write_scenario: Callable[[str, str], Path]
) -> Iterator["subprocess.Popen[str]"]:
    """Return a run of three groups of one cell in two environments, in its first round of three."""
    write_scenario("sleeper", SLEEPER)
    # another cache than the nodes': each machine has its own
    harness.environ |= {"RAY_ADDRESS": nodes.address}
    words = ["-s", "sleeper", "--rounds", "3", "--backend", "local", "--warmup", "0s", "--measure", "100ms"]
    with harness.start("matrix", *words, "--seed", "1", "--on", "ray") as process:
        assert process.stderr
        read_until(process.stderr, "round 1")
        yield process


def is_whole(folder: Path) -> bool:
    results = counts(folder)
    return len(results) == 3 * 2 * 4 and set(results.values()) == {1}


def left(nodes: Nodes) -> list[psutil.Process]:
    processes = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            of_node = process.environ().get("HARNESS_DATA_DIR", "").startswith(str(nodes._folder))
            if process.cmdline()[1:3] == ["-m", "harness"] and of_node:
                processes.append(process)
    return processes


def test_a_worker_and_a_node_that_die_lose_only_their_shards(process, nodes, harness):
    assert process.stderr
    left(nodes)[0].kill()
    read_until(process.stderr, "The shard is measured again.")
    read_until(process.stderr, "round 1")
    nodes.kill("one")
    _, output = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert is_whole(harness.run)
    nodes.add("one")


def test_an_interruption_stops_all_nodes_and_what_is_missing_is_measured_later(process, nodes, harness):
    process.send_signal(signal.SIGINT)
    _, output = process.communicate(timeout=120)
    assert process.returncode == 130, output
    assert (harness.run / "report.md").exists()
    assert not left(nodes)
    resumed = harness("matrix", "--resume", str(harness.run))
    assert resumed.returncode == 0, resumed.stderr
    assert is_whole(harness.run)


def test_if_the_cluster_is_lost_what_arrived_is_merged_and_the_rest_is_measured_later(process, harness):
    assert process.stderr
    # a third shard is measured, after the first one has arrived
    read_until(process.stderr, "Report: ")
    read_until(process.stderr, "round 1")
    # without its head, Ray ends every process that is connected to the cluster
    (driver,) = [
        child for child in psutil.Process(process.pid).children() if "harness.fleet.ray" in str(child.cmdline())
    ]
    driver.kill()
    _, output = process.communicate(timeout=120)
    assert process.returncode == 1, output
    assert "Measuring stopped on the Ray cluster auto: The cluster doesn't answer any more." in output
    assert f"harness matrix --resume {harness.run.relative_to(harness.root)}" in output
    arrived = counts(harness.run)
    assert arrived
    assert not is_whole(harness.run)
    resumed = harness("matrix", "--resume", str(harness.run))
    assert resumed.returncode == 0, resumed.stderr
    assert is_whole(harness.run)


def test_a_cluster_that_does_not_answer_is_a_sentence():
    with pytest.raises(
        CannotRunHereError,
        match=r"The Ray cluster 127\.0\.0\.1:1 does not answer: Connection refused\.\nCheck the cluster with",
    ):
        ray.RayExecutor("127.0.0.1:1", Parcel(b"", []), print).__enter__()
