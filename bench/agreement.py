"""Whether a launch's mean agrees with a plain script that follows the same protocol in the same environment."""

import math
import os
import statistics
from pathlib import Path

from bench.overhead import AXES
from bench.pairs import run
from harness.backends.local.backend import LocalBackend
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock
from harness.machine.cpus import choose
from harness.model.environment import Device, Requirement
from harness.model.launch import Limits, Protocol, Sampling, Status
from harness.model.scenario import Cell
from harness.project import Project
from harness.scenarios.catalog import load_scenario
from harness.session.jobs import JobMaker

SCRIPT = Path(__file__).with_name("plain_step.py")


def figures(count: int = 7) -> list[tuple[str, str]]:
    """Return the name and the value of each figure: launch mean / plain script, as the geometric mean over pairs."""
    project = Project.find()
    environments = load_environments(project)
    requirements = [load_lock(project, environments[name], Device.CPU) for name in ("tf1.14", "tf2.0")]
    backend = LocalBackend(project.root, "bench")
    backend.prepare(requirements, print)
    rows = []
    for requirement in requirements:
        for mode in ("graph", "eager"):
            for call in ("train_on_batch", "fit"):
                cell = Cell(
                    "keras_step", requirement.environment.name, Device.CPU, {**AXES, "call": call, "mode": mode}
                )
                logs = _ratios(project, backend, requirement, cell, count)
                ratio, spread = math.exp(statistics.fmean(logs)), statistics.stdev(logs) / math.sqrt(count)
                name = f"{requirement.environment.name}, {mode}, {call}: launch / plain script"
                rows.append((name, f"{ratio:.3f} (standard error {spread:.3f}, {count} pairs)"))
                print(rows[-1], flush=True)
    return rows


def _ratios(project: Project, backend: LocalBackend, requirement: Requirement, cell: Cell, count: int) -> list[float]:
    cpus = choose("1", os.sched_getaffinity(0))
    jobs = JobMaker(project, {"keras_step": load_scenario(project.scenarios / "keras_step.py")}, Limits(cpus=cpus))
    python = backend.environments.python(requirement)
    plain = ["taskset", "-c", ",".join(map(str, cpus or ())), str(python), str(SCRIPT)]
    plain += [cell.axes["mode"], cell.axes["call"]]
    variables = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "TF_CPP_MIN_LOG_LEVEL": "2"}
    logs = []
    for number in range(count):
        measured = {}
        for which in ("launch", "script") if number % 2 == 0 else ("script", "launch"):
            if which == "launch":
                outcome = backend.launch(requirement, jobs(cell, Sampling(protocol=Protocol.DOCUMENT)))
                assert outcome.status is Status.OK, outcome
                measured[which] = sum(s.seconds for s in outcome.samples) / sum(s.steps for s in outcome.samples)
            else:
                measured[which] = float(run(plain, env=variables).stdout.split()[-1])
        logs.append(math.log(measured["launch"] / measured["script"]))
    return logs
