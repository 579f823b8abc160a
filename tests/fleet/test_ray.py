"""A Ray cluster of several nodes, as processes of this machine, each of which takes itself for a machine of its own."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from harness import session
from harness.fleet import coordinator, engines
from harness.fleet.merge import merge
from harness.fleet.ray import RayCluster
from harness.machine.lock import is_held
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Launch, Status
from tests.cli.conftest import ROOT, Harness

#: Sleeps rather than computes: nodes share two cores.
SLEEPER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Sleeps"
# source = "https://example.org/question"
#
# [tool.harness.axes]
# size = ["1", "2", "3"]
# ///
import time


def scenario(bench, size):
    bench.measure(lambda: time.sleep(0.01))
"""

pytestmark = pytest.mark.filterwarnings("ignore")


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

    @property
    def project(self) -> str:
        return self._environ["HARNESS_PROJECT"]

    def data(self, name: str) -> Path:
        return self._folder / name / "data"

    def add(self, name: str) -> None:
        own = self._folder / name
        own.mkdir(exist_ok=True)
        variables = {
            "HARNESS_MACHINE_ID": name,
            "HARNESS_MACHINE_LOCK": str(own / "lock"),
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
    """Two nodes, `one` and `two`, with the project in a folder beside theirs."""
    folder = tmp_path_factory.mktemp("cluster")
    project = folder / "project"
    environ = {
        "HARNESS_PROJECT": str(project),
        "HARNESS_CACHE_DIR": str(folder / "cache"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    made = Nodes(folder, environ)
    try:
        made.add("one")
        made.add("two")
        yield made
    finally:
        made.stop()


@pytest.fixture
def planned(
    nodes: Nodes, harness: Harness, tmp_path: Path, write_scenario: Callable[[str, str], Path], monkeypatch: Any
) -> session.Planned:
    """Three groups of one cell in two environments and a control, in three rounds, of the nodes' own project."""
    write_scenario("sleeper", SLEEPER)
    project = nodes._folder / "project"
    shutil.copytree(harness.root, project, dirs_exist_ok=True)
    monkeypatch.setenv("HARNESS_PROJECT", str(project))
    monkeypatch.chdir(tmp_path)
    short = {"backend": "local", "warmup": 0.0, "measure": 0.1, "seed": 1, "on": "ray"}
    return session.plan(session.Request(scenarios=["sleeper"], rounds=3, results=tmp_path / "results", **short))


class Ears(session.Listener):
    """Does something after the first launches."""

    def __init__(self, act: Callable[[], None], after: int) -> None:
        self.said: list[str] = []
        self.ended: list[Launch] = []
        self._act, self._after = act, after

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def end(self, launch: Launch) -> None:
        self.ended.append(launch)
        if len(self.ended) == self._after:
            self._act()


def whole(launches: list[Launch], group: str) -> Counter[int]:
    """How many launches each round of a group has that count."""
    own = [each for each in launches if each.group == group and each.status is Status.OK]
    newest = {
        number: max(each.attempt for each in own if each.round == number) for number in {one.round for one in own}
    }
    return Counter(each.round for each in own if each.attempt == newest[each.round])


def units_left(nodes: Nodes) -> list[int]:
    """Processes of units that still run on these nodes: other tests may have units too."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if "harness.fleet.unit" in process.cmdline() and process.environ().get("HARNESS_PROJECT") == nodes.project:
                found.append(process.pid)
    return found


def until(is_so: Callable[[], object], what: str) -> None:
    for _ in range(600):
        if is_so():
            return
        time.sleep(0.1)
    pytest.fail(f"{what} within a minute")


def test_a_node_that_dies_in_mid_round_costs_a_new_attempt_and_an_interruption_stops_all_nodes(
    planned: session.Planned, nodes: Nodes
) -> None:
    # Ctrl-C: what was finished is kept, and nothing goes on
    def interrupt() -> None:
        raise KeyboardInterrupt

    ears = Ears(interrupt, after=3)
    ended = coordinator.run(planned, RayCluster(nodes.address), ears)
    assert ended.interrupted
    assert len([each for each in ended.results.launches if each.status is Status.OK]) >= 3
    assert (ended.folder / "report.md").exists()
    until(lambda: not units_left(nodes), "no unit's process is left")
    # a node dies: its group begins again on the other machine
    ears = Ears(lambda: nodes.kill("one"), after=5)
    ended = coordinator.run(planned, RayCluster(nodes.address), ears)
    assert not ended.interrupted
    assert [sentence for sentence in ears.said if sentence.startswith("Lost the group")]
    groups = ended.results.run.plan.groups
    assert len(groups) == len(planned.plan.groups)
    for group in groups:
        assert whole(list(ended.results.launches), group.name) == Counter({0: 2, 1: 3, 2: 3, 3: 3})
    assert not (nodes.data("two") / "fleet" / ended.folder.name).exists()
    nodes.add("one")


def test_a_coordinator_that_is_killed_loses_nothing(planned: session.Planned, nodes: Nodes, tmp_path: Path) -> None:
    words = ["-s", "sleeper", "--rounds", "3", "--backend", "local", "--warmup", "0s", "--measure", "100ms"]
    command = [sys.executable, "-m", "harness", "matrix", "--on", "ray", *words, "--results", str(tmp_path / "results")]
    environ = {**os.environ, "RAY_ADDRESS": nodes.address, "HARNESS_CACHE_DIR": nodes._environ["HARNESS_CACHE_DIR"]}
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    for line in process.stderr:
        if "round 1" in line:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stderr.close()
    (run,) = (tmp_path / "results").iterdir()
    stored = [json.loads(line) for line in (run / "launches.jsonl").read_text().splitlines()]
    assert stored
    until(lambda: not units_left(nodes), "no unit's process is left")
    # the nodes' own folders are runs, each of one group of the same plan, and have at least what was told of
    kept = [
        each.parent for name in ("one", "two") for each in (nodes.data(name) / "fleet" / run.name).rglob("run.json")
    ]
    # a process that ends has no command line any more, and its locks still
    until(lambda: not any(is_held(folder / ".lock") for folder in kept), "no unit's folder is locked")
    plans = [json.loads((folder / "run.json").read_text())["plan"]["shard"] for folder in kept]
    assert len({plan["plan"] for plan in plans}) == 1
    launches = [json.loads(line) for folder in kept for line in (folder / "launches.jsonl").read_text().splitlines()]
    there = {(each["group"], each["round"], each["order"]) for each in launches}
    assert {(each["group"], each["round"], each["order"]) for each in stored} <= there
    merged = merge(kept, tmp_path / "merged")
    assert not merged.left_out
    assert merged.unfinished
    assert len(merged.ended.results.launches) == len(launches)


def test_what_on_means(planned: session.Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engines.is_asked(planned.request)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    engine = engines.chosen(planned)
    assert isinstance(engine, RayCluster)
    assert engine._address == "local"
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert engines.chosen(planned)._address == "auto"  # type: ignore[attr-defined]
    asked = session.plan(session.Request(scenarios=["sleeper"], on="ray://head:10001", slots="2"))
    with pytest.raises(UsageError, match="--slots is of this machine"):
        engines.chosen(asked)
    with pytest.raises(
        CannotRunHereError,
        match=r"The Ray cluster 127\.0\.0\.1:1 does not answer: Connection refused\.\nType `ray status`",
    ):
        RayCluster("127.0.0.1:1").__enter__()
