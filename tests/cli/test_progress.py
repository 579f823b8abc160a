from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.cli.progress import Count, LiveProgress, PlainProgress, describe
from harness.model.launch import Role, Status
from tests.runs import CELLS, launch, plan


def clock() -> Iterator[float]:
    """Seconds: every launch takes ten."""
    now = 0.0
    while True:
        yield now
        now += 10.0


def test_the_time_left_is_told_from_the_first_pilot_on() -> None:
    times = clock()
    count = Count(plan(rounds=2), lambda: next(times))
    assert count.left() == ""
    count.begin()
    count.end(launch(round=0, role=Role.PILOT))
    # one more pilot of 10 s, and four launches that warm up and measure 1.3 s longer
    assert count.left() == "55 s left"


def test_the_time_left_moves_while_a_launch_runs() -> None:
    now = 0.0
    count = Count(plan(rounds=2), lambda: now)
    count.begin()
    now = 10.0
    count.end(launch(round=0, role=Role.PILOT))
    count.begin()
    now = 16.0
    assert count.left() == "49 s left"
    # one that takes longer than those before it takes nothing from those after it
    now = 100.0
    assert count.left() == "45 s left"


def test_a_repeated_round_is_said_when_the_total_grows(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainProgress(plan(rounds=1), lambda: 0.0) as progress:
        progress.again(3, 2)
        progress.begin(CELLS[0], 3)
        progress.end(launch(round=3))
    said, line = capsys.readouterr().err.splitlines()
    assert said == "Round 3 is repeated, as other processes disturbed it: 2 more launches."
    assert line.startswith("[1/6] round 3: ")


def test_a_terminal_shows_the_time_left_and_says_why_the_total_grows(capsys: pytest.CaptureFixture[str]) -> None:
    with LiveProgress(plan(rounds=1), lambda: 0.0) as progress:
        progress.begin(CELLS[0], 1)
        progress.end(launch(round=1))
        progress.again(1, 2)
        progress.begin(CELLS[0], 1)
    told = capsys.readouterr().err
    assert "Round 1 is repeated" in told


def test_launches_of_the_rounds_tell_better_than_pilots() -> None:
    times = clock()
    count = Count(plan(rounds=7), lambda: next(times))
    for number in (0, 0, 1):
        count.begin()
        count.end(launch(round=number))
    assert count.left() == "2 min 10 s left"
    count.skip(13)
    assert count.left() == "0 s left"


def test_a_line_says_what_came_of_a_launch(capsys: pytest.CaptureFixture[str]) -> None:
    times = clock()
    with PlainProgress(plan(rounds=1), lambda: next(times)) as progress:
        progress.begin(CELLS[0], 1)
        progress.end(launch(round=1))
    assert capsys.readouterr().err == "[1/4] round 1: step old graph: 10 ms a step (30 s left)\n"


def test_a_launch_without_a_number_is_told_with_its_error() -> None:
    assert describe(replace(launch(), status=Status.OOM, error="killed")) == "oom: killed"
    assert describe(replace(launch(), status=Status.INTERRUPTED)) == "interrupted"
    assert describe(replace(launch(), samples=[], observations={"traces": 3})) == "1 observation"
    assert describe(replace(launch(), samples=[], observations={"traces": 3, "loop": "fit"})) == "2 observations"
