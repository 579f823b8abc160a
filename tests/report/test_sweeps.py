"""Crossings as text, in Markdown and in the terminal."""

import io

import pytest
from rich.console import Console

from harness.model.scenario import Sweep
from harness.report.document import build
from harness.report.escape import plain
from harness.report.markdown import render
from harness.report.sweeps import size
from harness.report.templates import environment
from harness.report.terminal import show
from tests.factories import rounds
from tests.swept import CROSSING, SIZES, cell, seconds, swept, swept_run

SAY = environment(plain).get_template("sentences.j2").module


def view(ratios=CROSSING, **changes):
    (made,) = build(*swept_run(seconds(ratios), **changes)).sweeps
    return made


def sentence(made):
    return str(SAY.race(made, made.races[0]))


def test_a_crossing_says_who_takes_less_time_from_where_on():
    told = sentence(view(spread=0.001))
    assert told.startswith("From about 9,3")
    assert " values (9," in told
    assert told.endswith(" on, compiled takes less time than numpy (tf1.14).")


def test_without_a_unit_the_axis_stands_before_the_size():
    made = view(of=swept(sweeps={"size": Sweep()}), spread=0.001)
    assert sentence(made).startswith("From about size 9,3")


def test_a_unit_that_is_called_as_its_axis_stands_behind_the_size_all_the_same():
    made = view(of=swept(sweeps={"size": Sweep("size")}), spread=0.001)
    assert sentence(made).startswith("From about 9,3")
    assert " size (9,2" in sentence(made)


def test_one_round_has_no_interval():
    made = view(count=1)
    assert " values (one round, so no interval) on, compiled takes" in sentence(made)
    assert str(SAY.race_remarks(made, made.races[0])) == "one round: no interval"


def test_a_crossing_that_may_lie_beyond_the_sweep_says_from_where():
    made = view(dict(zip(SIZES, (0.05, 0.2, 0.5, 1.02), strict=True)), spread=0.1)
    assert "(at least " in sentence(made)


@pytest.mark.parametrize(("ratio", "winner", "loser"), [(2.0, "compiled", "numpy"), (0.5, "numpy", "compiled")])
def test_where_nothing_crosses_it_is_said_who_is_ahead(ratio, winner, loser):
    made = view(dict.fromkeys(SIZES, ratio))
    assert sentence(made) == (f"{winner} takes less time than {loser} at every size from 1 to 32,768 values (tf1.14).")
    assert str(SAY.race_remarks(made, made.races[0])) == "not within the sweep, 1 to 32,768"


def test_what_is_unclear_everywhere_is_said_to_be():
    made = view(dict.fromkeys(SIZES, 1.0), spread=0.1)
    assert sentence(made) == "Whether compiled or numpy takes less time (tf1.14) is unclear from 1 to 32,768 values."


def test_sizes_have_three_digits_and_no_needless_decimals():
    of = view().sweep
    assert [size(value, of) for value in (1.0, 3.271, 70.34, 2098765.0, 32768.0)] == [
        "1",
        "3.27",
        "70",
        "2,100,000",
        "32,768",
    ]


def test_the_report_has_a_table_of_crossings_with_the_picture_over_it():
    run, launches = swept_run(seconds(CROSSING, ("tf1.14", "tf2.0")))
    text = render(run, launches)
    assert text.index("![Chart of the time per step of sigmoid by size") < text.index("| crossing, values |")
    (line,) = [line for line in text.splitlines() if line.startswith("| compiled against numpy, tf2.0")]
    cells = [each.strip() for each in line.strip("|").split("|")]
    assert cells[1] == "numpy"
    assert cells[4] == "compiled"
    assert "None" not in text


def test_a_run_that_calls_a_thing_different_from_itself_tells_no_crossing():
    times = seconds(CROSSING)
    run, launches = swept_run(times, controlled=True)
    first = {group.control: times[group.control] for group in run.plan.groups}
    launches = rounds(times, 5, 0.001, controls={of: 2.0 * each for of, each in first.items()})
    (made,) = build(run, launches).sweeps
    assert made.withheld
    assert made.races == []
    assert "No crossings are told" in render(run, launches)


def test_the_terminal_tells_each_comparison_in_a_sentence():
    out = io.StringIO()
    show(*swept_run(seconds(CROSSING), spread=0.001), Console(file=out, width=200))
    assert "Along size:\nFrom about 9,3" in out.getvalue()


def test_a_scenario_without_a_sweep_has_no_section():
    run, launches = swept_run(seconds(CROSSING), of=swept(sweeps={}))
    assert "## Sweeps" not in render(run, launches)
    assert cell("numpy", "1") in run.plan.cells
