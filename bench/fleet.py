"""The overhead of a Ray cluster: a plan whose launches sleep, on one node and on four nodes, all on this machine.

    python -m bench.fleet [NODES]

Each node acts as a separate machine. The plan is measured twice: with one node, and with NODES nodes (default: 4).
"""

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

from harness import session
from harness.fleet import dispatch

ROOT = Path(__file__).parents[1]

BAKE = """
variable "ENVIRONMENTS" {
  default = [{ name = "any", tensorflow = "2.0.0", python = "3.11", as_of = "2019-11-01T00:00:00Z" }]
}
"""

#: Launches sleep, because all nodes share the cores of this machine, which would otherwise limit them.
SCENARIO = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Sleeps"
# source = "https://example.org"
#
# [tool.harness.axes]
# number = ["1", "2", "3", "4", "5", "6", "7", "8"]
# ///
import time


def scenario(bench, number):
    bench.measure(lambda: time.sleep(0.5))
"""

#: The number of rounds of each of the eight groups, and the seconds that a launch sleeps.
ROUNDS, SECONDS = 4, 3.0


def main() -> None:
    """Print both times, their ratio, and the CPU time of this process."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4
    folder = Path(tempfile.mkdtemp(prefix="harness-bench-"))
    try:
        planned = project(folder)
        one, few, _ = measure(folder, planned, 1)
        many, launches, cost = measure(folder, planned, count)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    # rounds with interference are repeated, so the runs can have different numbers of launches
    ratio = (many / launches) / (one / few) * count
    print(f"one node: {few} launches that sleep for {SECONDS:g} s, in {one:.1f} s")
    print(f"{count} nodes: {launches} launches in {many:.1f} s; per launch, {ratio:.3f} times the ideal of 1/{count}")
    print(f"this process: {cost * 1e3:.1f} ms of CPU time per launch")


def project(folder: Path) -> session.Planned:
    """Write the project of the plan, which doesn't need TensorFlow."""
    root = folder / "project"
    shutil.copytree(ROOT / "images", root / "images", ignore=shutil.ignore_patterns("locks"))
    shutil.copytree(ROOT / "scenarios" / "kit", root / "scenarios" / "kit")
    (root / "images" / "locks").mkdir()
    (root / "images" / "locks" / "any-cpu.txt").write_text("# nothing\n")
    (root / "docker-bake.hcl").write_text(BAKE)
    (root / "scenarios" / "sleeps.py").write_text(SCENARIO)
    os.environ |= {"HARNESS_PROJECT": str(root), "HARNESS_CACHE_DIR": str(folder / "cache")}
    request = session.Request(
        scenarios=["sleeps"],
        backend="local",
        warmup=0.0,
        measure=SECONDS,
        rounds=ROUNDS,
        seed=1,
        on="ray",
        cpus="all",
        results=folder / "results",
    )
    return session.plan(request)


def measure(folder: Path, planned: session.Planned, count: int) -> tuple[float, int, float]:
    """Measure, and return seconds from the first shard to the merged run, the launches, and CPU seconds per launch."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    from ray.cluster_utils import Cluster  # noqa: PLC0415 - after that is said

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    try:
        for number in range(count):
            own = folder / f"nodes{count}" / str(number)
            own.mkdir(parents=True)
            names = {"HARNESS_MACHINE_ID": f"node-{number}", "HARNESS_MACHINE_LOCK": str(own / "lock")}
            variables = {**names, "HARNESS_DATA_DIR": str(own / "data"), "PYTHONPATH": str(ROOT)}
            cluster.add_node(num_cpus=0, resources={"slot": 1}, env_vars=variables)
        os.environ["RAY_ADDRESS"] = cluster.address
        begun, used = time.monotonic(), time.process_time()
        ended = dispatch.run(planned, session.Listener(), command=["harness"])
        seconds, used = time.monotonic() - begun, time.process_time() - used
    finally:
        cluster.shutdown()
    launches = ended.merged.ended.results.launches
    return seconds, len(launches), used / len(launches)


if __name__ == "__main__":
    main()
