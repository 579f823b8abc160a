import os
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


def ran(source, folder, seconds=30.0, cpus=None, move=(), **options):
    stdout, stderr = Tail(), Tail()
    command = [sys.executable, "-I", "-c", source]
    limits = Limits(cpus, seconds=seconds)
    with closing(LocalProcess(command, folder, {}, limits, takes_words=bool(move), **options)) as started:
        started.start(stdout.feed, stderr.feed)
        if move:
            started.move(move)
            started.send("moved")
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


@pytest.mark.parametrize(("cpus", "move", "has"), [((0,), (), True), (None, (), False), (None, (0,), True)])
def test_on_its_prior_cpus_it_has_the_lowest_nice_value_and_the_harness_keeps_its_own(tmp_path, cpus, move, has):
    before = os.getpriority(os.PRIO_PROCESS, 0)
    try:
        with niceness.run_at_nice_value(niceness.LOWEST):
            pass
    except PermissionError:
        lacking("this user may not lower nice values", ALL)
    source = "import os; __import__('sys').stdin.read(1); print(os.getpriority(os.PRIO_PROCESS, 0))"
    told = ran(source, tmp_path, cpus=cpus, move=move, prior=(0,))[1]
    assert int(told) == (niceness.LOWEST if has else before)
    assert os.getpriority(os.PRIO_PROCESS, 0) == before
