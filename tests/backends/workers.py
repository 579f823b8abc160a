"""Workers that misbehave, and what must become of their launches on every backend."""

import pickle
import signal
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.model.backend import Backend, LaunchHandle
from harness.model.environment import Device, Requirement
from harness.model.launch import Job, Limits, Outcome, Sample, Sampling, Status
from harness.model.scenario import Cell
from tests.conftest import ROOT

PRELUDE = """
import ctypes, json, os, signal, socket, sys, time
def line(event, **keys):
    return (json.dumps(dict(keys, event=event)) + "\\n").encode()
def say(event, **keys):
    os.write(1, line(event, **keys))
def sample(seconds):
    return [{"seconds": seconds, "steps": 1, "cpu_seconds": seconds / 2}]
def word():
    return sys.stdin.readline().strip() or sys.exit(130)
"""


@dataclass(frozen=True)
class Behaviour:
    """A worker's source, and the status and a part of the error that its launch gets."""

    source: str
    status: Status
    error: str = ""
    seconds: float = 60.0


WORKERS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def read_behaviours(kind: str) -> dict[str, Behaviour]:
    return {name: Behaviour(**{**keys, "status": Status(keys["status"])}) for name, keys in WORKERS[kind].items()}


#: What workers do by themselves, and what one does that waits once, and is then told `turn`, and again.
BEHAVIOURS, IN_TURNS = read_behaviours("behaviours"), read_behaviours("in_turns")

#: One or two of each way to end, which are tried first; the others repeat that.
SOME_BEHAVIOURS = ("ends well", "raises", "is killed", "is not available", "stays after the end")

#: A worker that takes its turns; its samples count them.
TAKES_TURNS = """
say("turn", samples=[])
turns = 0
while (request := word()) != "end":
    turns += 1
    say("turn", samples=sample(turns) + sample(0.5) * (int(request[5:] or 1) - 1))
say("end", status="ok")
"""

#: A worker that starts beside others, with a thread and a child. It says on which CPUs each of them may run.
STARTS = (
    """
import subprocess, threading
threading.Thread(target=threading.Event().wait, daemon=True).start()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
def cpus():
    tasks = [task for pid in (os.getpid(), child.pid) for task in os.listdir("/proc/%d/task" % pid)]
    return sorted({tuple(os.sched_getaffinity(int(task))) for task in tasks})
say("observation", name="before", value=cpus())
say("ready")
assert word() == "measure"
say("observation", name="after", value=cpus())
child.kill()
"""
    + TAKES_TURNS
)

#: A harness that is killed between turns.
KILLED = """
import os, pickle, signal, sys
kind, root, run, requirement, job = pickle.load(sys.stdin.buffer)
with kind(root, run).hold(requirement, job) as handle:
    assert handle.resume()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def check_behaviours(backend: Backend, requirement: Requirement, names: Iterable[str]) -> list[Outcome]:
    """Whatever workers do, their launches get the status and the error that they should."""
    outcomes = {
        name: backend.launch(requirement, job(BEHAVIOURS[name].source, BEHAVIOURS[name].seconds)) for name in names
    }
    statuses = {name: outcome.status for name, outcome in outcomes.items()}
    assert statuses == {name: BEHAVIOURS[name].status for name in outcomes}
    errors = {name: outcome.error for name, outcome in outcomes.items()}
    assert {name: error for name, error in errors.items() if BEHAVIOURS[name].error not in error} == {}
    assert max(len(outcome.stderr) for outcome in outcomes.values()) < 70_000
    return list(outcomes.values())


def in_turns(launch: Job) -> Job:
    """The job, of a launch that takes turns."""
    return replace(launch, sampling=replace(launch.sampling, turns=20))


def check_turns(backend: Backend, requirement: Requirement) -> None:
    """Several held at once get each its own words and answers, one of them beside each that misbehaves."""
    with ExitStack() as stack:
        first, second = (stack.enter_context(backend.hold(requirement, in_turns(job(TAKES_TURNS)))) for _ in range(2))
        assert first.resume()
        assert second.resume()
        words = [(first, "turn"), (second, "turn"), (second, "turn"), (first, "turn"), (second, "turn")]
        assert all(handle.resume(word) for handle, word in words)
        for handle, seconds in ((second, [1.0, 2.0, 3.0, 4.0]), (first, [1.0, 2.0, 3.0])):
            assert handle.resume("turn 4")
            assert not handle.resume("end")
            assert not handle.resume("turn")
            outcome = handle.outcome()
            assert (outcome.status, outcome.error) == (Status.OK, "")
            assert outcome.samples == tuple(Sample(value, 1, value / 2) for value in seconds)
            assert outcome.alone == (Sample(0.5, 1, 0.25),) * 3
            assert outcome.follows == (len(seconds) - 1,) * 3


def check_misbehaviour(backend: Backend, requirement: Requirement, behaviour: Behaviour) -> None:
    """One that misbehaves in its turns loses itself alone."""
    with ExitStack() as stack:
        jobs = [in_turns(job(TAKES_TURNS)), in_turns(job(behaviour.source, behaviour.seconds))]
        good, bad = (stack.enter_context(backend.hold(requirement, entry)) for entry in jobs)
        assert good.resume()
        waits = bad.resume()
        while waits:
            assert good.resume("turn")
            waits = bad.resume("turn")
        assert not good.resume("end")
        assert good.outcome().status is Status.OK
        assert bad.outcome().status is behaviour.status
        assert behaviour.error in bad.outcome().error


def check_start(backend: Backend, requirement: Requirement, cpus: Sequence[int]) -> None:
    """Launches start on these CPUs at the same time, one on each, and all of each is moved to the first."""
    with ExitStack() as stack:
        jobs = [replace(in_turns(job(STARTS)), waits=True, limits=Limits(cpus=(cpu,), seconds=60.0)) for cpu in cpus]
        handles = [stack.enter_context(backend.hold(requirement, entry)) for entry in jobs]
        for handle in handles:
            handle.start()
        assert all(handle.resume() for handle in handles)
        for handle in handles:
            handle.move(cpus[:1])
        assert all(handle.resume("measure") for handle in handles)
        assert all(handle.resume("turn") for handle in handles)
        assert not any(handle.resume("end") for handle in handles)
        outcomes = [handle.outcome() for handle in handles]
    assert [outcome.error for outcome in outcomes] == [""] * len(cpus)
    affinities = [(outcome.observations["before"], outcome.observations["after"]) for outcome in outcomes]
    assert affinities == [([[cpu]], [[cpus[0]]]) for cpu in cpus]


def interrupt_the_start(backend: Backend, requirement: Requirement) -> None:
    """What Ctrl-C does while several start, of which one has ended."""
    with ExitStack() as stack:
        jobs = [in_turns(job(source)) for source in ("sys.exit(3)", TAKES_TURNS, "signal.pause()")]
        handles = [stack.enter_context(backend.hold(requirement, entry)) for entry in jobs]
        for handle in handles:
            handle.start()
        assert not handles[0].resume()
        handles[0].move([0])
        raise KeyboardInterrupt


def interrupt_between_turns(handle: LaunchHandle) -> None:
    """What Ctrl-C does while a launch waits for its turn."""
    assert handle.resume()
    raise KeyboardInterrupt


def kill_between_turns(backend: Any, requirement: Requirement, source: str) -> None:
    """Have a harness killed that holds a launch of its own."""
    data = pickle.dumps((type(backend), ROOT, backend._run, requirement, in_turns(job(source))))
    process = subprocess.run([sys.executable, "-c", KILLED], input=data, check=False)
    assert process.returncode == -signal.SIGKILL


def job(source: str, seconds: float = 60.0, memory_bytes: int | None = None, **environ: str) -> Job:
    """A job whose worker runs `source`."""
    return Job(
        cell=Cell("fake", "test", Device.CPU, {"axis": "value"}),
        script="fake.py",
        files={"kit/__main__.py": (PRELUDE + source).encode(), "fake.py": b""},
        sampling=Sampling(),
        limits=Limits(cpus=(0,), memory_bytes=memory_bytes, seconds=seconds),
        environ=environ,
    )
