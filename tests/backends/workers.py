"""Workers that misbehave, and what must become of their launches on every backend."""

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

from harness.model.backend import Backend, LaunchHandle
from harness.model.environment import Device, Requirement
from harness.model.launch import Job, Limits, Outcome, Sample, Sampling, Status
from harness.model.scenario import Cell

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


BEHAVIOURS = {
    "ends well": Behaviour("say('end', status='ok')", Status.OK),
    "raises": Behaviour("raise ValueError('boom')", Status.FAILED, "without reporting an outcome: exit code 1"),
    "exits": Behaviour("sys.exit(3)", Status.FAILED, "exit code 3"),
    "exits after the end": Behaviour("say('end', status='ok'); sys.exit(3)", Status.FAILED, "work was finished"),
    "is killed": Behaviour("os.kill(os.getpid(), signal.SIGKILL)", Status.FAILED, "killed by signal 9 (SIGKILL)"),
    "crashes": Behaviour("ctypes.string_at(0)", Status.FAILED, "killed by signal 11 (SIGSEGV)"),
    "says that it failed": Behaviour(
        "say('end', status='failed', reason='no such op', traceback='Traceback: …')", Status.FAILED, "no such op"
    ),
    "is not available": Behaviour(
        "say('end', status='not available', reason='needs keras<2.4')", Status.NOT_AVAILABLE, "needs keras<2.4"
    ),
    "ran on the CPU": Behaviour(
        "say('end', status='cpu fallback', reason='lists no GPU'); sys.exit(1)", Status.CPU_FALLBACK, "lists no GPU"
    ),
    "writes garbage where events go": Behaviour(
        "os.write(1, b'\\xff\\x00\\x1b[31m\\n'); time.sleep(60)", Status.FAILED, r"not JSON: \xff\x00\x1b[31m"
    ),
    "writes megabytes without a line's end": Behaviour(
        "[os.write(1, b'x' * 2**16) for _ in range(2**20)]", Status.FAILED, "longer than 1 MiB: xxx"
    ),
    "writes megabytes of lines": Behaviour(
        "[say('?', padding='x' * 2**16) for _ in range(2**20)]", Status.FAILED, "more than 16 MiB"
    ),
    "prints megabytes": Behaviour(
        "[os.write(2, b'y' * 2**16) for _ in range(400)]; say('end', status='ok')", Status.OK
    ),
    "never ends": Behaviour("while True: pass", Status.TIMEOUT, "still running after 1 s", 1.0),
    "closes its output and stays": Behaviour(
        "os.close(1); os.close(2); signal.pause()", Status.TIMEOUT, "still running after 1 s", 1.0
    ),
    "stays after the end": Behaviour(
        "say('end', status='ok'); signal.pause()", Status.TIMEOUT, "its work was finished", 1.0
    ),
    "ignores being asked to end": Behaviour(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", Status.TIMEOUT, "still running", 1.0
    ),
    "leaves a child that holds its output": Behaviour(
        "os.fork() or (time.sleep(60), os._exit(0)); say('end', status='ok')", Status.OK
    ),
}


#: One or two of each way to end, which are tried first; the others repeat that.
SOME_BEHAVIOURS = ("ends well", "raises", "is killed", "is not available", "stays after the end")

#: A worker that takes its turns; its samples count them.
TAKES_TURNS = """
say("turn", samples=[])
turns = 0
while (request := word()) != "end":
    turns += request == "turn"
    say("turn", samples=sample(turns) if request == "turn" else sample(0.5) * int(request.split()[1]))
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

#: What a worker does that waits once, and what becomes of its launch when it is then told `turn`, and again.
IN_TURNS = {
    "dies while it waits": Behaviour(
        "say('turn', samples=[]); os.kill(os.getpid(), signal.SIGKILL)", Status.FAILED, "killed by signal 9"
    ),
    "dies in its turn": Behaviour("say('turn', samples=[]); word(); sys.exit(3)", Status.FAILED, "exit code 3"),
    "hangs in its turn": Behaviour(
        "say('turn', samples=[]); word(); signal.pause()", Status.TIMEOUT, "still running after 1 s", 1.0
    ),
    "answers twice": Behaviour(
        "say('turn', samples=[]); word(); os.write(1, line('turn', samples=sample(1)) * 2); signal.pause()",
        Status.FAILED,
        "it wrote a line while it waited for an answer: {",
    ),
    "answers unasked": Behaviour(
        "os.write(1, line('turn', samples=[]) + line('turn', samples=sample(1))); signal.pause()",
        Status.FAILED,
        "while it waited",
    ),
    "answers with garbage": Behaviour(
        "say('turn', samples=[]); word(); os.write(1, b'garbage\\n'); signal.pause()", Status.FAILED, "JSON: garbage"
    ),
    "answers without its sample": Behaviour(
        "say('turn', samples=[]); word(); say('turn', samples=[]); signal.pause()",
        Status.FAILED,
        "the 1 requested sample",
    ),
    "has samples that aren't from a turn": Behaviour(
        "say('turn', samples=[]); word(); say('samples', name='step', samples=sample(1)); signal.pause()",
        Status.FAILED,
        "a line has samples that aren't from a turn",
    ),
    "takes turns after its samples": Behaviour(
        "say('samples', name='step', samples=sample(1)); say('turn', samples=[]); signal.pause()",
        Status.FAILED,
        "samples before the first turn",
    ),
    "takes no turns": Behaviour("say('samples', name='step', samples=sample(1)); say('end', status='ok')", Status.OK),
    "ends early": Behaviour("say('turn', samples=[]); word(); say('end', status='ok')", Status.OK),
    "only observes": Behaviour("say('end', status='ok')", Status.OK),
}

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
        for handle, seconds in ((second, [1.0, 2.0, 3.0]), (first, [1.0, 2.0])):
            assert handle.resume("alone 2")
            assert handle.resume("alone 1")
            assert not handle.resume("end")
            assert not handle.resume("turn")
            outcome = handle.outcome()
            assert (outcome.status, outcome.error) == (Status.OK, "")
            assert outcome.samples == tuple(Sample(value, 1, value / 2) for value in seconds)
            assert outcome.alone == (Sample(0.5, 1, 0.25),) * 3


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
    data = pickle.dumps((type(backend), backend._root, backend._run, requirement, in_turns(job(source))))
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
