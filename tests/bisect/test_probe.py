"""Real launches of a scenario without TensorFlow: what a search measures, keeps, and takes up again."""

import json

import pytest

from harness import session
from harness.bisect import probe as probing
from harness.bisect import run as bisecting
from harness.bisect.request import BisectRequest
from harness.bisect.search import EndsError, SearchEnd
from harness.model.errors import UsageError

HEADER = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "Slower in the new one"
# source = "https://example.org/question"
#
# [tool.harness.axes]
# work = ["changed", "same"]
# ///
"""

SLOWER = (
    HEADER
    + """
def scenario(bench, work):
    count = 20000 if bench.environment == "new" and work == "changed" else 1000
    bench.measure(lambda: sum(range(count)))
"""
)


class Said(session.Listener):
    def __init__(self):
        self.lines = []
        self.launched = 0

    def say(self, sentence):
        self.lines.append(sentence)

    def end(self, launch):
        self.launched += 1


@pytest.fixture
def asked(harness, write_scenario, monkeypatch):
    """Asks for a search in launches as short as can be."""
    write_scenario("slower", SLOWER)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.setenv("HARNESS_MACHINE_LOCK", str(harness.root / "lock"))
    monkeypatch.chdir(harness.root)
    monkeypatch.setattr(probing, "SEARCH_WARMUP", 0.01)
    monkeypatch.setattr(probing, "SEARCH_MEASURE", 0.05)

    def ask(work="changed", **changes):
        return BisectRequest(scenario="slower", axes={"work": work}, backend="local", **changes)

    return ask


def test_a_search_is_measured_kept_reported_and_taken_up_without_a_launch(asked):
    request = asked(good="old", bad="new")
    folder = bisecting.begin(request)
    first = Said()
    found = bisecting.bisect(request, folder, first)
    assert found.search.ended is SearchEnd.CONFIRMED
    assert found.told.lines[0].startswith("the time per step rose between old and new: new takes ×")
    # three rounds and a control, and no pilot; a round that others disturbed is made again
    assert (first.launched >= 9, first.launched % 3) == (True, 0)
    assert "# Since when: slower" in (folder / "report.md").read_text()
    again = Said()
    taken_up = bisecting.bisect(bisecting.reopened(folder), folder, again)
    assert again.launched == 0
    assert taken_up.told == found.told


def test_ends_that_do_not_differ_leave_a_report_with_the_numbers(asked):
    request = asked("same", good="old", bad="new", margin=0.9)
    folder = bisecting.begin(request)
    with pytest.raises(EndsError, match="old and new do not differ: new takes ×") as raised:
        bisecting.bisect(request, folder, Said())
    assert raised.value.exit == 3
    assert "the ends do not differ" in (folder / "report.md").read_text()


def test_ends_that_more_rounds_may_tell_apart_are_told_with_the_command_that_measures_them(asked, monkeypatch):
    def unclear(*_):
        raise EndsError("old and new are not shown to differ.")

    monkeypatch.setattr(bisecting, "narrow", unclear)
    request = asked(good="old", bad="new", budget=120.0)
    folder = bisecting.begin(request)
    with pytest.raises(EndsError) as raised:
        bisecting.bisect(request, folder, Said())
    assert raised.value.advice == f"To go on: harness bisect --resume {folder} --budget 4m"


def test_a_cell_is_one_value_of_each_axis_and_nothing_is_left_of_what_is_refused(asked):
    request = BisectRequest(scenario="slower", good="old", bad="new", backend="local")
    folder = bisecting.begin(request)
    with pytest.raises(UsageError, match="these are 2: work is open") as raised:
        bisecting.bisect(request, folder, Said())
    assert "-a work=changed" in raised.value.advice
    assert not folder.exists()


def test_an_environment_that_cannot_be_had_is_told_why_and_kept(asked, tmp_path):
    said = Said()
    made = probing.Probing(tmp_path / "search", BisectRequest(scenario="slower", backend="local"), said)
    why = made.why_not("tf9")
    assert "There is no environment 'tf9'" in why
    (step,) = [json.loads(line) for line in (tmp_path / "search" / "steps.jsonl").read_text().splitlines()]
    assert step["why"] == why
    again = probing.Probing(tmp_path / "search", BisectRequest(scenario="slower", backend="local"), said)
    assert again.why_not("tf9") == why
    assert again.why_not("old") == ""


def test_a_torn_line_of_the_steps_is_passed_over(asked, tmp_path):
    (tmp_path / "steps.jsonl").write_text('{"key": "[\\"kept\\", \\"a\\"]", "value": 3}\n{"key": "torn')
    made = probing.Probing(tmp_path, BisectRequest(scenario="slower"), Said())
    assert made.knows("a")
    assert made.kept("a", 7) == 3


def test_rounds_of_several_runs_are_judged_together(asked, tmp_path):
    cell = BisectRequest(scenario="slower", axes={"work": "changed"}, backend="local")
    made = probing.Probing(tmp_path / "search", cell, Said())
    first, second = (made.measure("ends", ["old", "new"], rounds, verdict=True) for rounds in (1, 2))
    both = second.after(first)
    assert both.differences("new", "old") == first.differences("new", "old") + second.differences("new", "old")
    judged = both.judged("new", "old")
    assert judged.rounds == 3
    assert judged.what.startswith("new takes ×")
