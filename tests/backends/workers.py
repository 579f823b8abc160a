"""Workers that misbehave, and what must become of their launches on every backend."""

from dataclasses import dataclass

from harness.model.environment import Device
from harness.model.launch import Job, Limits, Sampling, Status
from harness.model.scenario import Cell

PRELUDE = """
import ctypes, json, os, signal, socket, sys, time
def say(event, **keys):
    os.write(1, (json.dumps(dict(keys, event=event)) + "\\n").encode())
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
    "raises": Behaviour("raise ValueError('boom')", Status.FAILED, "without saying how it went: exit code 1"),
    "exits": Behaviour("sys.exit(3)", Status.FAILED, "exit code 3"),
    "exits after the end": Behaviour("say('end', status='ok'); sys.exit(3)", Status.FAILED, "work was done"),
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
        "say('end', status='ok'); signal.pause()", Status.TIMEOUT, "its work was done", 1.0
    ),
    "ignores being asked to end": Behaviour(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass", Status.TIMEOUT, "still running", 1.0
    ),
    "leaves a child that holds its output": Behaviour(
        "os.fork() or (time.sleep(60), os._exit(0)); say('end', status='ok')", Status.OK
    ),
}


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
