import errno
import os
import signal
import sys
from contextlib import closing

import pytest

from harness.backends.local import process
from harness.backends.local.process import LocalProcess
from harness.backends.untrusted_text import Tail
from harness.backends.worker import Ending
from harness.machine import niceness
from harness.model.launch import Limits
from tests.lacking import ALL, lacking


def run(source, folder, seconds=30.0, cpus=None, move=(), **options):
    stdout, stderr = Tail(), Tail()
    command = [sys.executable, "-I", "-c", source]
    limits = Limits(cpus, seconds=seconds)
    with closing(LocalProcess(command, folder, {}, limits, takes_words=bool(move), **options)) as running:
        running.start(stdout.feed, stderr.feed)
        if move:
            running.move(move)
            running.send("moved")
        running.follow(seconds)
        ending = running.end()
    return ending, stdout.text(), stderr.text()


@pytest.mark.parametrize("is_told", [True, False], ids=["told of the end", "looks for the end"])
def test_it_ends_by_itself_or_at_its_deadline_and_both_streams_come_back(tmp_path, monkeypatch, is_told):
    """By both ways to learn of a process's end: not every system has the first."""
    if not is_told:

        def refuse(pid):
            raise OSError(errno.ENOSYS, "an old kernel")

        monkeypatch.setattr(process.os, "pidfd_open", refuse, raising=False)
    source = "import sys; print('out', repr(sys.stdin.read())); print('err', file=sys.stderr); sys.exit(3)"
    assert run(source, tmp_path) == (Ending(3), "out ''\n", "err\n")
    # streams that are held open do not hold the end
    assert run("import os, time; os.fork() or time.sleep(60)", tmp_path)[0] == Ending()
    assert run("import signal; signal.pause()", tmp_path, 0.2)[0] == Ending(seconds=0.2)


def test_an_orphan_that_may_not_be_killed_is_not_tried_again(tmp_path, monkeypatch):
    tried = []

    def refuse(pid, number):
        if number == signal.SIGKILL:  # psutil sends signal 0
            tried.append(pid)
        raise PermissionError

    source = """import os, signal
reading, writing = os.pipe()
if os.fork():
    os.read(reading, 1)
else:
    os.setsid()
    os.write(writing, b"x")
    signal.pause()
"""
    with monkeypatch.context() as patch:
        patch.setattr(process.os, "kill", refuse)
        assert run(source, tmp_path)[0] == Ending()
    (orphan,) = set(tried)
    os.kill(orphan, signal.SIGKILL)
    os.waitpid(orphan, 0)
    assert tried == [orphan] * 2  # by the end and by the closing


def test_on_its_prior_cpus_it_has_the_lowest_nice_value_and_the_harness_keeps_its_own(tmp_path):
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        with niceness.run_at_nice_value(niceness.LOWEST):
            pass
    except PermissionError:
        lacking("this user may not lower nice values", ALL)
    source = "import os; __import__('sys').stdin.read(1); print(os.getpriority(os.PRIO_PROCESS, 0))"
    for cpus, move, nice in ((0,), (), niceness.LOWEST), (None, (), before), (None, (0,), niceness.LOWEST):
        output = run(source, tmp_path, cpus=cpus, move=move, prior=(0,))[1]
        assert int(output) == nice, (cpus, move)
        assert os.getpriority(os.PRIO_PROCESS, 0) == before
