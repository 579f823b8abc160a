import sys
from contextlib import closing

import pytest

from harness.backends.local import process
from harness.backends.local.process import LocalProcess
from harness.backends.text import Tail
from harness.backends.worker import Ending
from harness.model.launch import Limits


def ran(source, folder, seconds=30.0):
    stdout, stderr = Tail(), Tail()
    command = [sys.executable, "-I", "-c", source]
    with closing(LocalProcess(command, folder, {}, Limits(seconds=seconds), takes_words=False)) as started:
        started.start(stdout.feed, stderr.feed)
        started.follow(seconds)
        ending = started.end()
    return ending, stdout.text(), stderr.text()


@pytest.fixture(params=[True, False], ids=["told of the end", "looks for the end"])
def pidfd(request, monkeypatch):
    """Both ways to learn of a process's end: not every system has the first."""
    if not request.param:
        monkeypatch.delattr(process.os, "pidfd_open", raising=False)


@pytest.mark.usefixtures("pidfd")
def test_both_streams_and_the_exit_code_come_back(tmp_path):
    source = "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"
    assert ran(source, tmp_path) == (Ending(3), "out\n", "err\n")


@pytest.mark.usefixtures("pidfd")
def test_streams_that_are_held_open_do_not_hold_the_end(tmp_path):
    assert ran("import os, time; os.fork() or time.sleep(60)", tmp_path)[0] == Ending()


@pytest.mark.usefixtures("pidfd")
def test_the_deadline_ends_it(tmp_path):
    assert ran("import signal; signal.pause()", tmp_path, 0.2)[0] == Ending(seconds=0.2)


def test_standard_input_is_empty(tmp_path):
    assert ran("import sys; print(repr(sys.stdin.read()))", tmp_path)[1] == "''\n"
