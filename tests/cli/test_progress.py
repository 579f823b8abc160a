from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.cli.progress import Count, PlainProgress, describe
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
