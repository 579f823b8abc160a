import io

import pytest
from rich.console import Console

from harness.cli.building import LiveBuilding, PlainBuilding, show
from harness.model.backend import Stage, Step


def steps(count):
    """Of `count` environments the first is worked on and the others wait."""
    waiting = [Step(f"tf{number}", "waiting", Stage.WAITING) for number in range(count)]
    return [*waiting, Step("tf0", f"environment 4/4: {'sh install ' * 20}")]


def drawn(taken, height=24):
    """What a terminal of 60 columns showed at last, after 31 s, and what was left above."""
    file = io.StringIO()
    console = Console(file=file, width=60, height=height, force_terminal=True, color_system=None)
    seconds = iter([0.0] + [31.0] * 1000)
    display = LiveBuilding(console, clock=lambda: next(seconds))
    with display:
        for step in taken:
            display(step)
    with console.capture() as capture:
        console.print(display._table())
    return [line.rstrip() for line in capture.get().splitlines()], file.getvalue()


def test_away_from_a_terminal_each_step_is_a_line(capsys):
    assert isinstance(show(), PlainBuilding)
    with PlainBuilding() as display:
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
