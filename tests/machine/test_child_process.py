import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.machine.child_process import guard_command, run

#: Starts another one, as a builder does, and waits for ever.
BUILDER = "sh -c 'sleep 1000; true' & echo $! begun; wait"


def test_a_command_that_takes_too_long_is_ended_and_it_is_reported():
    code, printed = run(["sh", "-c", BUILDER], os.environ, 0.1)
    assert code != 0
    assert "0.1 s" in printed.splitlines()[-1]
    assert run(["sh", "-c", "echo text; exit 3"], os.environ) == (3, "text")


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, None], ids=str)
def test_all_that_it_started_ends_where_it_is_asked_to_and_where_its_pipe_closes(how):
    with start(guard_command(["sh", "-c", BUILDER])) as process:
        assert process.stdout.readline().endswith("begun\n")
        if how is None:
            process.stdin.close()
        else:
            process.send_signal(how)
        # at the end of the pipe nobody holds it any more
        assert process.stdout.read() == ""
    assert process.returncode == 128 + signal.SIGTERM


def test_one_that_does_not_end_when_it_is_asked_to_is_killed(tmp_path):
    program = tmp_path / "guarded.py"
    source = Path(guard_command([])[2]).read_text()
    assert "PATIENCE = 10.0" in source
    program.write_text(source.replace("PATIENCE = 10.0", "PATIENCE = 0.01"))
    stubborn = "trap '' TERM; echo begun; while :; do sleep 1000; done"
    with start([sys.executable, program, "sh", "-c", stubborn]) as process:
        assert process.stdout.readline() == "begun\n"
        process.stdin.close()
        assert process.stdout.read() == ""
    assert process.returncode == 128 + signal.SIGKILL
