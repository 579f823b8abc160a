import io
from collections.abc import Iterator
from dataclasses import replace

import pytest
from rich.console import Console

from harness.cli.display import Count, LiveLaunches, LivePreparation, PlainLaunches, describe, preparing
from harness.model.backend import Stage, Step
from harness.model.launch import ON_DEVICE, UNDER_WAY, Clock, Role, Sample, Status
from tests.runs import CELLS, launch, plan


def steps(count):
    """Of `count` environments the first is worked on and the others wait."""
    waiting = [Step(f"tf{number}", "waiting", Stage.WAITING) for number in range(count)]
    return [*waiting, Step("tf0", f"environment 4/4: {'sh install ' * 20}")]


def drawn(taken, height=24):
    """What a terminal of 60 columns showed at last, after 31 s, and what was left above."""
    file = io.StringIO()
    console = Console(file=file, width=60, height=height, force_terminal=True, color_system=None)
    seconds = iter([0.0] + [31.0] * 1000)
    display = LivePreparation(console, clock=lambda: next(seconds))
    with display.live:
        for step in taken:
            display(step)
    with console.capture() as capture:
        console.print(display._table())
    return [line.rstrip() for line in capture.get().splitlines()], file.getvalue()


def test_away_from_a_terminal_each_step_is_a_line(capsys):
    with preparing() as display:
        for step in [*steps(1), Step("tf0", "built in 3 s", Stage.READY)]:
            display(step)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line[:20] for line in printed.err.splitlines()] == ["tf0: environment 4/4", "tf0: built in 3 s"]


def test_on_a_terminal_each_environment_has_a_line():
    lines, _ = drawn(steps(3))
    assert lines[0].startswith("tf0  31 s  environment 4/4: sh install")
    assert lines[0].endswith("…")
    assert [line.split() for line in lines[1:]] == [["tf1", "waiting"], ["tf2", "waiting"]]


def test_what_has_ended_leaves_its_line_above():
    lines, printed = drawn([*steps(2), Step("tf0", "failed in 3 s", Stage.FAILED)])
    assert [line.split() for line in lines] == [["tf1", "waiting"]]
    assert "tf0: failed in 3 s" in printed


@pytest.mark.parametrize("height", [1, 6])
def test_a_small_terminal_counts_those_that_wait(height):
    lines, _ = drawn(steps(27), height)
    assert lines[0].startswith("tf0 ")
    assert lines[-1].split() == ["and", str(26 - (len(lines) - 2)), "more", "wait"]


def test_markup_in_a_step_is_shown_as_it_is():
    lines, _ = drawn([Step("tf0", "[red]x[/red] [uv 1/2]")])
    assert lines == ["tf0  31 s  [red]x[/red] [uv 1/2]"]


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
    count.begin(CELLS[0], 0)
    count.end(launch(round=0, role=Role.PILOT, seconds=10.0))
    # one more pilot of 10 s, and four launches that warm up and measure 1.3 s longer
    assert count.left() == "55 s left"


def test_the_time_left_moves_while_a_launch_runs() -> None:
    now = 0.0
    count = Count(plan(rounds=2), lambda: now)
    count.begin(CELLS[0], 0)
    now = 10.0
    count.end(launch(round=0, role=Role.PILOT, seconds=10.0))
    count.begin(CELLS[0], 0)
    now = 16.0
    assert count.left() == "49 s left"
    # one that takes longer than those before it takes nothing from those after it
    now = 100.0
    assert count.left() == "45 s left"


def test_two_slots_halve_the_time_left_and_have_the_budget_each() -> None:
    planned = replace(plan(rounds=2), budget_seconds=100.0, piloted=False)
    for slots, left in ((1, 30), (2, 15)):
        count = Count(planned, lambda: 0.0, slots)
        count.begin(CELLS[0], 1)
        count.end(launch(seconds=10.0, round=1))
        told = count.left()
        assert told == f"at most {left} s left"
    count = Count(replace(planned, rounds=50), lambda: 0.0, 2)
    count.begin(CELLS[0], 1)
    count.end(launch(seconds=10.0, round=1))
    assert count.left() == "at most 1 min 35 s left"


def test_launches_that_take_turns_run_together() -> None:
    now = 0.0
    count = Count(plan(rounds=2), lambda: now)
    for number in (0, 0):
        count.begin(CELLS[0], number)
        count.end(launch(round=0, role=Role.PILOT, seconds=10.0))
    count.begin(CELLS[0], 1)
    count.begin(CELLS[1], 1)
    now = 12.0
    assert count.left() == "33 s left"
    count.end(launch(round=1, seconds=6.0))
    count.end(launch(round=1, seconds=6.0))
    assert count.left() == "12 s left"


def test_a_terminal_shows_which_turn_is_taken() -> None:
    progress = LiveLaunches(plan(rounds=3), lambda: 0.0)
    progress.begin(CELLS[0], 1)
    progress.turn(4, 20)
    assert progress.live.tasks[0].description == "round 1 of 3: turn 4 of 20"


def test_a_repeated_round_is_said_when_the_total_grows(capsys: pytest.CaptureFixture[str]) -> None:
    progress = PlainLaunches(plan(rounds=1), lambda: 0.0)
    progress.again(3, 2)
    progress.begin(CELLS[0], 3)
    progress.end(launch(round=3))
    said, line = capsys.readouterr().err.splitlines()
    assert said == "Round 3 is repeated, as other processes disturbed it: 2 more launches."
    assert line.startswith("[1/6] round 3: ")


def test_a_terminal_shows_the_time_left_and_says_why_the_total_grows(capsys: pytest.CaptureFixture[str]) -> None:
    progress = LiveLaunches(plan(rounds=1), lambda: 0.0)
    with progress.live:
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
        count.begin(CELLS[0], 0)
        count.end(launch(round=number, seconds=10.0))
    assert count.left() == "2 min 10 s left"
    count.skip(13)
    assert count.left() == "0 s left"


def test_a_line_says_what_came_of_a_launch(capsys: pytest.CaptureFixture[str]) -> None:
    times = clock()
    progress = PlainLaunches(plan(rounds=1), lambda: next(times))
    progress.begin(CELLS[0], 1)
    progress.end(launch(round=1, seconds=10.0))
    assert capsys.readouterr().err == "[1/4] round 1: step old graph: 10 ms a step (30 s left)\n"


def test_a_launch_that_ended_under_tensorflow_s_profiler_is_made_again_and_not_counted(capsys):
    progress = PlainLaunches(plan(rounds=1), lambda: 0.0)
    progress.end(launch(status=Status.FAILED, round=0, error="exit code 142", observations={ON_DEVICE: UNDER_WAY}))
    progress.end(launch(round=0))
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("[0/4] ")
    assert "failed: exit code 142; TensorFlow's profiler ran, so it is made again without" in first
    assert second.startswith("[1/4] ")


@pytest.mark.parametrize(
    ("seconds", "told"), [(0.01234, "12.3 ms a step"), (0.9994, "999 ms a step"), (72.345, "72,345 ms a step")]
)
def test_a_long_step_is_told_without_an_exponent(seconds, told):
    assert describe(launch(samples=[Sample(seconds, 1)])) == told


def test_of_a_run_by_cpu_time_the_line_has_that_and_says_so(capsys):
    told = launch(samples=[Sample(0.2, 10, cpu_seconds=0.125)])
    PlainLaunches(replace(plan(), clock=Clock.CPU)).end(told)
    assert ": 12.5 CPU ms a step (" in capsys.readouterr().err
    assert describe(launch(), Clock.CPU) == "failed: It did not tell what its samples used of CPUs."


def test_a_launch_without_a_number_is_told_with_its_error() -> None:
    assert describe(replace(launch(), status=Status.OOM, error="killed")) == "oom: killed"
    assert describe(replace(launch(), status=Status.INTERRUPTED)) == "interrupted"
    assert describe(replace(launch(), samples=[], observations={"traces": 3})) == "1 observation"
    assert describe(replace(launch(), samples=[], observations={"traces": 3, "loop": "fit"})) == "2 observations"
