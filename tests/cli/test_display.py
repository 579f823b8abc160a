import io
import sys
from collections.abc import Iterator
from dataclasses import replace

import pyte
from rich.console import Console

from harness.cli.display import LiveLaunches, LivePreparation, show_launches, show_preparation
from harness.cli.launch_counter import LaunchCounter, PlainLaunches, describe, describe_estimate
from harness.model.backend import PreparationStep, Stage
from harness.model.launch import ON_DEVICE, UNDER_WAY, Clock, Role, Sample, Status
from harness.runner.schedule import RunEstimate
from tests.runs import CELLS, launch, plan, run


def steps(count):
    """Of `count` environments the first is worked on and the others wait."""
    waiting = [PreparationStep(f"tf{number}", "waiting", Stage.WAITING) for number in range(count)]
    return [*waiting, PreparationStep("tf0", f"environment 4/4: {'sh install ' * 20}")]


def draw(*entries, height=24):
    """What a terminal of 60 columns showed at last, after 31 s, and what was left above."""
    file = io.StringIO()
    console = Console(file=file, width=60, height=height, force_terminal=True, color_system=None)
    seconds = iter([0.0] + [31.0] * 1000)
    display = LivePreparation(console, clock=lambda: next(seconds))
    with display.live:
        for step in entries:
            display(step)
    with console.capture() as capture:
        console.print(display._table())
    return [line.rstrip() for line in capture.get().splitlines()], file.getvalue()


def test_away_from_a_terminal_each_step_is_a_line(capsys):
    with show_preparation() as display:
        for step in [*steps(1), PreparationStep("tf0", "built in 3 s", Stage.READY)]:
            display(step)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert [line[:20] for line in printed.err.splitlines()] == ["tf0: environment 4/4", "tf0: built in 3 s"]


def test_on_a_terminal_each_environment_has_a_line_until_it_ends():
    lines, _ = draw(*steps(3))
    assert lines[0].startswith("tf0  31 s  environment 4/4: sh install")
    assert lines[0].endswith("…")
    assert [line.split() for line in lines[1:]] == [["tf1", "waiting"], ["tf2", "waiting"]]
    lines, output = draw(*steps(2), PreparationStep("tf0", "failed in 3 s", Stage.FAILED))
    assert [line.split() for line in lines] == [["tf1", "waiting"]]
    assert "tf0: failed in 3 s" in output
    # markup is shown as it is
    lines, _ = draw(PreparationStep("tf0", "[red]x[/red] [uv 1/2]"))
    assert lines == ["tf0  31 s  [red]x[/red] [uv 1/2]"]
    # a small terminal counts those that wait
    for height in (1, 6):
        lines, _ = draw(*steps(27), height=height)
        assert lines[0].startswith("tf0 ")
        assert lines[-1].split() == ["and", str(26 - (len(lines) - 2)), "more", "waiting"]


def planned(rounds=2, *, groups=1, **changes):
    """A run of two cells in each of its groups, whose plan has these changes."""
    return replace(run(), plan=replace(plan(rounds, groups), **changes))


class Terminal(pyte.Screen):
    """A terminal, to be written to. Made narrower, it wraps its lines, as most terminals do."""

    def __init__(self, columns, lines):
        super().__init__(columns, lines)
        self.set_mode(pyte.modes.LNM)
        self._stream = pyte.Stream(self)

    def write(self, text):
        self._stream.feed(text)

    def flush(self): ...

    @property
    def content(self):
        """Its lines, without empty ones at the end."""
        return "\n".join(line.rstrip() for line in self.display).rstrip().splitlines()

    def narrow(self, columns):
        wrapped = [line[at : at + columns] for line in self.content for at in range(0, len(line) or 1, columns)]
        self.reset()
        self.set_mode(pyte.modes.LNM)
        self.resize(self.lines, columns)
        self.write("\n".join(wrapped))


def watch(run_, columns=80, lines=24, now=lambda: 0.0):
    """The progress of a run on a terminal of this size, and that terminal."""
    terminal = Terminal(columns, lines)
    console = Console(file=terminal, width=columns, height=lines, force_terminal=True, color_system=None)
    return LiveLaunches(run_, now, console), terminal


def read_screen(progress, columns=80, lines=24):
    """What it draws on a terminal of this size, line by line."""
    console = Console(width=columns, height=lines)
    with console.capture() as capture:
        console.print(progress)
    return capture.get().rstrip().splitlines()


def measure(progress, run_, rounds=1, seconds=0.01):
    """The pilot and rounds of all cells; each takes 1 % longer than the one before it."""
    for number in range(rounds + 1):
        for group in run_.plan.groups:
            for place, cell in enumerate(group.cells):
                progress.begin(cell, number)
                role = Role.MEASURE if number else Role.PILOT
                samples = [Sample(seconds * 1.01**place, 1)]
                progress.end(launch(cell=cell, group=group.name, round=number, role=role, samples=samples, seconds=5.0))


LONG = ["a_value_that_is_long_enough_to_fill_a_line", "another_value_that_is_as_long_as_the_first_one"]


def long_names():
    """A run of two cells in each of four groups, whose names are longer than a narrow terminal is wide."""
    groups = [
        replace(group, cells=[replace(cell, axes={"mode": str(place), "way": LONG[place % 2]}) for cell in CELLS])
        for place, group in enumerate(plan(groups=4).groups)
    ]
    return replace(run(), plan=replace(plan(3), groups=groups))


def test_a_terminal_shows_bar_count_time_left_and_what_runs_on_two_lines():
    for columns, lines in ((60, 20), (80, 24), (120, 40)):
        of, seconds = long_names(), iter(range(0, 1000, 5))
        progress, terminal = watch(of, columns, lines, lambda seconds=seconds: next(seconds))
        with progress.live:
            measure(progress, of, rounds=1)
            progress.begin(of.plan.groups[3].cells[1], 2)
            progress.live.refresh()
            *_, bar, now = terminal.content
            assert bar.startswith("━━━━━━")
            assert " 16/32  1 min " in bar
            assert bar.endswith(" so far")
            assert now.startswith("round 2 of 3: new mode=3 ")
            assert now.endswith("first_one")
            assert ("…" in now) == (columns < 80)
            assert max(map(len, terminal.content)) < columns


def test_above_it_each_cell_has_its_last_time_its_mean_and_the_ratio_to_the_first_of_its_group():
    of = planned(groups=2)
    progress, terminal = watch(of)
    with progress.live:
        measure(progress, of, rounds=2)
        old, new = of.plan.groups[0].cells
        progress.begin(old, 3)
        progress.end(launch(cell=old, round=3, samples=[Sample(0.02, 1)]))
        progress.begin(new, 3)
        progress.end(launch(cell=new, round=3, samples=[], status=Status.FAILED, error="gone"))
        progress.live.refresh()
        lines = [line.split() for line in terminal.content]
        assert lines[:6] == [
            ["new", "mode=0:", "failed:", "gone"],
            ["cell", "last", "mean", "ratio", "rounds"],
            ["old", "mode=0", "20.0", "ms", "12.6", "ms", "baseline", "3"],
            ["new", "mode=0", "failed", "10.1", "ms", "1.01×", "2"],
            ["old", "mode=1", "10.0", "ms", "10.0", "ms", "baseline", "2"],
            ["new", "mode=1", "10.1", "ms", "10.1", "ms", "1.01×", "2"],
        ]
    # the report follows
    assert terminal.content == ["new mode=0: failed: gone"]


def test_a_cell_without_rounds_has_the_time_of_its_pilot_and_no_mean():
    of = planned()
    progress, _ = watch(of)
    measure(progress, of, rounds=0)
    assert [line.split() for line in read_screen(progress)[1:3]] == [
        ["old", "10.0", "ms", "pilot"],
        ["new", "10.1", "ms", "pilot"],
    ]


def test_a_terminal_shows_a_table_and_another_output_a_line_for_each_launch(monkeypatch):
    for is_terminal, kind in ((True, LiveLaunches), (False, PlainLaunches)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda value=is_terminal: value)
        with show_launches(run()) as launches:
            assert type(launches) is kind


def test_of_more_cells_than_there_are_lines_the_most_recent_are_shown():
    of = planned(groups=20)
    progress, terminal = watch(of, 60, 20)
    with progress.live:
        measure(progress, of)
        progress.live.refresh()
        assert len(terminal.content) <= 20
        head, *rows = terminal.content[:-2]
        assert head.startswith("cell (16 of 40) ")
        assert [row.split()[:2] for row in rows[-2:]] == [["old", "mode=19"], ["new", "mode=19"]]
    for lines in range(1, 7):  # the bar and what runs come before any cell
        progress, _ = watch(planned())
        measure(progress, planned())
        assert len(read_screen(progress, 60, lines)) <= max(2, lines)


def test_a_terminal_that_is_made_narrower_keeps_no_line_of_what_it_showed():
    of = long_names()
    progress, terminal = watch(of, 120, 40)
    with progress.live:
        progress.tell("A line above.")
        measure(progress, of)
        progress.live.refresh()
        before = terminal.content
        terminal.narrow(60)
        assert len(terminal.content) > len(before)
        progress.live.console.size = (60, 40)
        progress.live.refresh()
        assert len(terminal.content) == len(before)
        assert [line[:13] for line in terminal.content[:2]] == ["A line above.", "cell         "]
        assert sum("━" in line for line in terminal.content) == 1


def test_the_count_is_of_what_the_estimate_expects_and_skipped_launches_are_not_counted(capsys):
    of = planned(rounds=100, budget_seconds=300.0)
    progress = PlainLaunches(of, lambda: 0.0)
    old, new = of.plan.groups[0].cells
    for cell in (old, new):
        progress.begin(cell, 0)
        progress.end(launch(cell=cell, round=0, role=Role.PILOT, seconds=10.0))
    # of the budget are left 280 s, and a launch is estimated to take 11.3 s
    assert progress.total == 2 + 25
    progress.estimate(RunEstimate(22.6, 4, 110.4, launches=8))
    assert progress.total == 10
    assert progress.format_time_left() == "1 min 30 s left"
    progress.begin(old, 1)
    progress.end(launch(cell=old, round=1, seconds=10.0))
    assert capsys.readouterr().err.splitlines()[-1] == "[3/10] round 1: old: 10.0 ms per step (1 min 10 s left)"
    progress.skip(196)
    assert progress.total == 6


def test_with_a_budget_that_is_spent_the_time_left_is_that_of_what_is_launched_all_the_same():
    # a suite makes three rounds on a slow machine too
    count = LaunchCounter(planned(rounds=8, budget_seconds=10.0, budget_is_wish=True), lambda: 0.0)
    for _ in range(2):
        count.begin(CELLS[0], 0)
        count.end(launch(round=0, role=Role.PILOT, seconds=10.0))
    assert (count.done, count.total) == (2, 8)
    assert count.format_time_left() == "at most 1 min 08 s left"


def test_how_long_a_run_takes_is_said_after_its_pilots_and_after_the_first_round_alone(capsys):
    progress = PlainLaunches(planned(rounds=3), lambda: 0.0)
    for number in range(4):
        progress.begin(CELLS[0], number)
        progress.end(launch(round=number, role=Role.MEASURE if number else Role.PILOT))
        progress.estimate(RunEstimate(10.0, 3, 40.0, launches=3 - number))
    printed = capsys.readouterr().err.splitlines()
    assert [line[:5] for line in printed] == ["[1/8]", "A rou", "[2/4]", "A rou", "[3/4]", "[4/4]"]


def test_what_a_run_will_reach_is_said_in_its_own_time(snapshot):
    estimate = RunEstimate(20.0, 3, 70.0)
    too_small = RunEstimate(20.0, 3, 60.0, needed=70.0, left_out=CELLS[:1])
    sentences = [
        describe_estimate(value, planned(**changes).plan)
        for value, changes in (
            (estimate, {"rounds": 3}),
            (estimate, {"rounds": 100, "precision": 0.02}),
            (estimate, {"rounds": 100, "precision": 0.02, "budget_seconds": 300.0}),
            (estimate, {"rounds": 30, "claims": ["T#1"], "budget_seconds": 300.0}),
            (too_small, {"rounds": 8, "budget_seconds": 60.0}),
        )
    ]
    assert sentences == snapshot


def clock() -> Iterator[float]:
    """Seconds: every launch takes ten."""
    now = 0.0
    while True:
        yield now
        now += 10.0


class Counting:
    """A run of two rounds on a clock that the test sets."""

    def __init__(self, rounds=2):
        self.now = 0.0
        self.count = LaunchCounter(planned(rounds=rounds), lambda: self.now)

    def left(self, now):
        self.now = now
        return self.count.format_time_left()

    def launch(self, number=0):
        self.count.begin(CELLS[0], number)
        self.now += 10.0
        self.count.end(launch(round=number, role=Role.MEASURE if number else Role.PILOT, seconds=10.0))


def test_the_time_left_is_told_from_the_first_pilot_on_and_moves_while_a_launch_runs():
    run_ = Counting()
    assert run_.left(0.0) == ""
    run_.launch()
    # one more pilot of 10 s, and four launches that warm up and measure 1.3 s longer
    assert run_.left(10.0) == "55 s left"
    run_.count.begin(CELLS[0], 0)
    assert run_.left(16.0) == "49 s left"
    # one that takes longer than those before it takes nothing from those after it
    assert run_.left(100.0) == "45 s left"


def test_launches_that_take_turns_run_together():
    run_ = Counting()
    run_.launch()
    run_.launch()
    for cell in CELLS[:2]:
        run_.count.begin(cell, 1)
    assert run_.left(32.0) == "33 s left"
    for _ in range(2):
        run_.count.end(launch(round=1, seconds=6.0))
    assert run_.left(32.0) == "12 s left"


def test_launches_of_the_rounds_tell_better_than_pilots():
    run_ = Counting(rounds=7)
    for number in (0, 0, 1):
        run_.launch(number)
    assert run_.left(30.0) == "2 min 10 s left"
    run_.count.skip(13)
    assert run_.left(30.0) == "0 s left"


def test_a_terminal_shows_which_turn_is_taken():
    progress = LiveLaunches(planned(rounds=3), lambda: 0.0)
    progress.begin(CELLS[0], 1)
    progress.turn(4, 20)
    assert read_screen(progress)[-1] == "round 1 of 3: turn 4 of 20"


def test_a_repeated_round_is_said_when_the_total_grows(capsys, snapshot):
    of = planned(rounds=1)
    plain, live = PlainLaunches(of, lambda: 0.0), LiveLaunches(of, lambda: 0.0)
    plain.again(3, 2)
    plain.begin(CELLS[0], 3)
    plain.end(launch(round=3))
    sentence, line = capsys.readouterr().err.splitlines()
    assert sentence == snapshot
    assert line.startswith("[1/6] round 3: ")
    with live.live:
        live.again(3, 2)
    assert sentence[:30] in capsys.readouterr().err


def test_a_line_says_what_came_of_a_launch(capsys):
    times = clock()
    progress = PlainLaunches(planned(rounds=1), lambda: next(times))
    cell = replace(CELLS[0], axes={"mode": "0"})
    progress.begin(cell, 1)
    progress.end(launch(cell=cell, round=1, seconds=10.0))
    assert capsys.readouterr().err == "[1/4] round 1: old: 10.0 ms per step (30 s left)\n"
    PlainLaunches(planned(clock=Clock.CPU)).end(launch(samples=[Sample(0.2, 10, cpu_seconds=0.125)]))
    assert ": 12.5 CPU ms per step (" in capsys.readouterr().err


def test_a_launch_that_ended_under_tensorflow_s_profiler_is_made_again_and_not_counted(capsys, snapshot):
    progress = PlainLaunches(planned(rounds=1), lambda: 0.0)
    progress.end(launch(status=Status.FAILED, round=0, error="exit code 142", observations={ON_DEVICE: UNDER_WAY}))
    progress.end(launch(round=0))
    assert capsys.readouterr().err.splitlines() == snapshot


def test_a_launch_is_described_by_its_step_its_observations_or_its_error(snapshot):
    descriptions = [describe(launch(samples=[Sample(seconds, 1)])) for seconds in (3.75e-7, 0.01234, 0.9994, 72.345)]
    without_samples = replace(launch(), samples=[])
    descriptions += [
        describe(replace(launch(), status=Status.OOM, error="killed")),
        describe(replace(launch(), status=Status.INTERRUPTED)),
        describe(replace(without_samples, observations={"traces": 3})),
        describe(replace(without_samples, observations={"traces": 3, "loop": "fit"})),
        describe(launch(), Clock.CPU),
    ]
    assert descriptions == snapshot
