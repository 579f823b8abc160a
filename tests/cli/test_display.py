import io
import sys
from dataclasses import replace

from rich.console import Console

from harness.cli.display import LiveLaunches, LivePreparation, show_launches, show_preparation
from harness.cli.launch_counter import PlainLaunches, describe, describe_estimate
from harness.model.backend import PreparationStep, Stage
from harness.model.environment import Device
from harness.model.launch import ON_DEVICE, UNDER_WAY, Clock, Role, Sample, Status
from harness.model.scenario import Cell
from harness.runner.schedule import RunEstimate
from tests import factories
from tests.runs import CELLS, launch, plan, run


def steps(count):
    """Of `count` environments the first is worked on and the others wait."""
    waiting = [PreparationStep(f"tf{number}", "waiting", Stage.WAITING) for number in range(count)]
    return [*waiting, PreparationStep("tf0", f"environment 4/4: {'sh install ' * 20}")]


def draw(*entries):
    """What a terminal of 60 columns showed at last, and what was left above."""
    file = io.StringIO()
    console = Console(file=file, width=60, force_terminal=True, color_system=None)
    display = LivePreparation(console)
    with display.live:
        for step in entries:
            display(step)
    with console.capture() as capture:
        console.print(display.live.get_renderable())
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
    assert lines[0].startswith("tf0 0:00:00 environment 4/4: sh install")
    assert lines[0].endswith("…")
    assert [line.split() for line in lines[1:]] == [["tf1", "-:--:--", "waiting"], ["tf2", "-:--:--", "waiting"]]
    lines, output = draw(*steps(2), PreparationStep("tf0", "failed in 3 s", Stage.FAILED))
    assert [line.split()[0] for line in lines] == ["tf1"]
    assert "tf0: failed in 3 s" in output
    # markup is shown as it is
    lines, _ = draw(PreparationStep("tf0", "[red]x[/red] [uv 1/2]"))
    assert lines == ["tf0 0:00:00 [red]x[/red] [uv 1/2]"]


def planned(rounds=2, *, groups=1, **changes):
    """A run of two cells in each of its groups, whose plan has these changes."""
    return replace(run(), plan=replace(plan(rounds, groups), **changes))


def watch(run_, columns=80):
    """The progress of a run on a terminal of this width, and the file to which the terminal writes."""
    file = io.StringIO()
    return LiveLaunches(run_, Console(file=file, width=columns, force_terminal=True, color_system=None)), file


def read_line(progress, columns=80):
    """What it draws on a terminal of this width."""
    console = Console(file=io.StringIO(), width=columns)
    with console.capture() as capture:
        console.print(progress.live)
    return capture.get().rstrip()


def measure(progress, run_, rounds=1, seconds=0.01):
    """The pilot and rounds of all cells; each takes 1 % longer than the one before it."""
    for number in range(rounds + 1):
        for group in run_.plan.groups:
            for place, cell in enumerate(group.cells):
                progress.begin(cell, number)
                role = Role.MEASURE if number else Role.PILOT
                samples = [Sample(seconds * 1.01**place, 1)]
                progress.end(launch(cell=cell, group=group.name, round=number, role=role, samples=samples, seconds=5.0))


def test_a_terminal_shows_a_bar_the_count_the_time_left_and_what_runs():
    of = planned(rounds=2)
    progress, _ = watch(of)
    measure(progress, of, rounds=1)
    progress.begin(of.plan.groups[0].cells[1], 2)
    line = read_line(progress)
    assert line.startswith("━━━━━━")
    assert line.endswith("4/6  10 s left  round 2: new")
    # a narrow terminal shows the start
    assert "4/6  10 s" in read_line(progress, 40)
    progress.turn(4, 20)
    assert read_line(progress).endswith("round 2: turn 4 of 20")


def test_a_launch_without_a_result_leaves_a_line_on_a_terminal():
    progress, file = watch(planned())
    with progress.live:
        progress.begin(CELLS[0], 1)
        progress.end(launch(round=1))
        progress.end(launch(round=1, samples=[], status=Status.FAILED, error="[red]gone[/red]"))
    assert [line for line in file.getvalue().splitlines() if "gone" in line][-1].endswith("failed: [red]gone[/red]")


def test_a_terminal_shows_a_bar_and_another_output_a_line_for_each_launch(monkeypatch):
    for is_terminal, kind in ((True, LiveLaunches), (False, PlainLaunches)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda value=is_terminal: value)
        with show_launches(run()) as launches:
            assert type(launches) is kind


def test_the_count_is_known_from_the_start_and_with_a_budget_after_the_pilots_without_skipped_launches(capsys):
    of = planned(rounds=100, budget_seconds=300.0)
    progress = PlainLaunches(of)
    for cell in of.plan.groups[0].cells:
        progress.end(launch(cell=cell, round=0, role=Role.PILOT, seconds=10.0))
    progress.skip(20)
    progress.estimate(RunEstimate(22.6, 4, 110.4, launches=8))
    progress.end(launch(cell=CELLS[0], round=1, seconds=10.0))
    progress.skip(196)
    progress.again(1, 2)
    progress.end(launch(cell=CELLS[0], round=1, seconds=20.0))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("[")]
    assert [line.partition(":")[0] for line in lines] == ["[1] pilot", "[2] pilot", "[3/10] round 1", "[4/12] round 1"]
    assert lines[1].endswith("per step")
    assert lines[2].endswith("per step (1 min 10 s left)")
    assert lines[3].endswith("per step (2 min 00 s left)")
    progress = PlainLaunches(planned(rounds=7))
    progress.skip(6)
    progress.end(launch(round=0, role=Role.PILOT, seconds=10.0))
    assert capsys.readouterr().err.endswith("per step (1 min 30 s left)\n")


def test_how_long_a_run_takes_is_said_after_its_pilots_and_after_the_first_round_alone(capsys):
    progress = PlainLaunches(planned(rounds=3))
    for number in range(4):
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
            (replace(too_small, seconds=90.0), {"rounds": 8, "budget_seconds": 60.0}),
        )
    ]
    assert sentences == snapshot


def test_a_repeated_round_is_said_when_the_total_grows(capsys, snapshot):
    progress = PlainLaunches(planned(rounds=1))
    progress.again(3, 2)
    progress.end(launch(round=3))
    sentence, line = capsys.readouterr().err.splitlines()
    assert sentence == snapshot
    assert line.startswith("[1/6] round 3: ")


def test_a_launch_that_ended_under_tensorflow_s_profiler_is_made_again_and_not_counted(capsys, snapshot):
    progress = PlainLaunches(planned(rounds=1))
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


def test_the_first_launches_of_a_script_are_a_preliminary_answer(capsys):
    old, new, newest = (Cell("mine", name, Device.CPU, {}) for name in ("tf1.14", "tf2.0", "tf2.1"))
    script_run = factories.run([old, new, newest], scenarios=[factories.scenario("mine", axes={}, script="mine.py")])
    progress = PlainLaunches(script_run)
    for cell, seconds in ((new, 2.0), (old, 1.0), (newest, 3.0), (newest, 4.0)):
        progress.end(factories.launch(cell, (seconds,), round=0, role=Role.PILOT))
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("Preliminary")]
    assert [line.partition("the time is ")[2] for line in lines] == [
        "2.00× in tf2.0, relative to tf1.14.",
        "3.00× in tf2.1, relative to tf1.14.",
    ]
    # a continued run has more than these
    continued = PlainLaunches(script_run)
    for cell in (old, new):
        continued.end(factories.launch(cell, (1.0,), round=4))
    assert "Preliminary" not in capsys.readouterr().err
