"""Searches with real launches of a scenario without TensorFlow: measured, stored, and resumed."""

import os
import signal
from types import SimpleNamespace

import pytest

from harness import session
from harness.analysis.results import Results
from harness.bisect import probe, run
from harness.bisect.folder import StepLog, create_folder, read_request
from harness.bisect.probe import Probe
from harness.bisect.request import BisectRequest
from harness.bisect.search import EqualEndpointsError, SearchEnd
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.launch import Status
from harness.paired.comparison import PairedRun
from harness.report import markdown
from tests import factories

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


class Counter(session.Listener):
    def __init__(self):
        self.launched = 0

    def end(self, launch):
        self.launched += 1


@pytest.fixture
def make_request(harness, write_scenario, monkeypatch):
    write_scenario("slower", SLOWER)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.setenv("HARNESS_MACHINE_LOCK", str(harness.root / "lock"))
    monkeypatch.chdir(harness.root)
    monkeypatch.setattr(probe, "SEARCH_WARMUP", 0.01)
    monkeypatch.setattr(probe, "SEARCH_MEASURE", 0.05)

    def make(work="changed", **changes):
        return BisectRequest(scenario="slower", axes={"work": work}, backend="local", **changes)

    return make


@pytest.mark.slow
def test_a_search_is_measured_kept_reported_and_taken_up_without_a_launch(make_request):
    request = make_request(good="old", bad="new")
    folder = create_folder(request)
    first = Counter()
    result = run.bisect(request, folder, first)
    assert result.search.ended is SearchEnd.CONFIRMED
    assert "between old and new: new takes ×" in result.sections[0].blocks[0].words
    # three rounds and a control, and no pilot; a round that others disturbed is made again
    assert (first.launched >= 9, first.launched % 3) == (True, 0)
    assert "# Bisect: slower" in (folder / "report.md").read_text()
    second = Counter()
    taken_up = run.bisect(read_request(folder), folder, second)
    assert second.launched == 0
    assert markdown.render_full(taken_up.sections) == markdown.render_full(result.sections)


@pytest.mark.slow
def test_a_search_measures_on_the_device_that_was_requested(make_request, monkeypatch, tmp_path):
    devices, requests = [], []

    def load_lock(project, environment, device, **_):
        devices.append(device)
        return SimpleNamespace(environment=environment)

    def plan(request):
        requests.append((request.gpu, request.gpus))
        raise CannotRunHereError("no GPU")

    monkeypatch.setattr(probe, "load_lock", load_lock)
    monkeypatch.setattr(session, "plan", plan)
    for options in ({}, {"gpu": True}, {"gpus": "1"}):
        with pytest.raises(CannotRunHereError, match="no GPU"):
            Probe(tmp_path, make_request(**options), Counter()).measure("ends", ["old", "new"], 1)
    assert devices == [Device.CPU] * 2 + [Device.GPU] * 4
    assert requests == [(False, ""), (True, ""), (False, "1")]


# the decision is tested in test_search.py; real launches beside other tests may differ by themselves
@pytest.mark.campaign
def test_ends_that_do_not_differ_leave_a_report_with_the_numbers(make_request):
    request = make_request("same", good="old", bad="new", margin=0.9)
    folder = create_folder(request)
    with pytest.raises(EqualEndpointsError) as raised:
        run.bisect(request, folder, Counter())
    assert raised.value.exit == 3
    assert "--good and --bad do not differ" in (folder / "report.md").read_text()


def test_ends_that_more_rounds_may_tell_apart_get_the_command_that_measures_them(make_request, monkeypatch):
    def fail(*_):
        raise EqualEndpointsError("old and new are not shown to differ.")

    monkeypatch.setattr(run, "narrow", fail)
    request = make_request(good="old", bad="new", budget=120.0)
    folder = create_folder(request)
    with pytest.raises(EqualEndpointsError) as raised:
        run.bisect(request, folder, Counter())
    assert raised.value.advice.endswith(f": harness bisect --resume {folder} --budget 4m")


@pytest.mark.slow
def test_a_cell_is_one_value_of_each_axis_and_nothing_is_left_of_what_is_refused(make_request):
    request = BisectRequest(scenario="slower", good="old", bad="new", backend="local")
    folder = create_folder(request)
    with pytest.raises(UsageError, match=r"2 cells .*: work") as raised:
        run.bisect(request, folder, Counter())
    assert "-a work=changed" in raised.value.advice
    assert not folder.exists()


def test_an_environment_that_cannot_be_had_is_told_why(make_request, tmp_path):
    listener = Counter()
    prober = Probe(tmp_path / "search", BisectRequest(scenario="slower", backend="local"), listener)
    why = prober.why_not("tf9")
    assert "Unknown environment: 'tf9'" in why
    assert prober.why_not("old") == ""


def test_steps_are_read_again_in_order_by_key_without_a_torn_line(tmp_path):
    log = StepLog(tmp_path)
    for number in range(3):
        log.append(("probe", number % 2), run=str(number))
    with (tmp_path / "steps.jsonl").open("a") as file:
        file.write('[]\n{}\n{"key": "torn')
    second = StepLog(tmp_path)
    assert [second.next(["probe", 0])["run"] for _ in range(2)] == ["0", "2"]
    assert second.next(["probe", 0]) is None
    assert second.next(["probe", 1])["run"] == "1"


@pytest.mark.slow
def test_a_comparison_continues_its_run_and_is_read_again_as_it_was_at_each_look(make_request, tmp_path):
    cell = BisectRequest(scenario="slower", axes={"work": "changed"}, backend="local")

    def compare_after_looks(listener):
        prober, run, seen = Probe(tmp_path / "search", cell, listener), None, []
        for rounds in (1, 3):
            run = prober.measure("ends", ["old", "new"], rounds, run)
            seen.append((run.differences("new", "old"), run.compare("new", "old", 0.05)))
        assert len(prober.runs) == 1
        assert run.differences("new", "old", after=1) == seen[1][0][1:]
        return seen, prober.spent

    measured = compare_after_looks(Counter())
    assert [len(values) for values, _ in measured[0]] == [1, 3]
    assert measured[0][1][1].what.startswith("new takes ×")
    again = Counter()
    assert compare_after_looks(again) == measured
    assert again.launched == 0


@pytest.mark.slow
def test_the_first_look_of_a_comparison_goes_on_after_an_interruption(make_request, tmp_path):
    class Interrupter(Counter):
        def end(self, launch):
            super().end(launch)
            if self.launched == 4:
                os.kill(os.getpid(), signal.SIGINT)

    cell, first, second = make_request(), Interrupter(), Counter()
    with pytest.raises(KeyboardInterrupt):
        Probe(tmp_path / "search", cell, first).measure("ends", ["old", "new"], 2)
    prober = Probe(tmp_path / "search", cell, second)
    prober.remove_leftovers()
    # the control, which comparisons have, makes them another step
    assert len(prober.measure("probe", ["old", "new"], 1).results.launches) == second.launched == 2
    assert len(prober.measure("ends", ["old", "new"], 2).differences("new", "old")) == 2
    # the interrupted launch is measured again
    assert first.launched + second.launched - 2 <= 2 * 3 + 1
    assert len(prober.runs) == 2


def test_a_side_that_fails_in_every_later_round_is_told():
    old, new = (factories.cell(name) for name in ("tf1.14", "tf2.0"))
    launches = [*factories.rounds({old: 0.01, new: 0.01}, 3)]
    launches += [factories.broken(new, Status.FAILED, number, error="it crashed.") for number in (4, 5)]
    run = PairedRun(Results(factories.run([old, new]), launches), {"old": "tf1.14", "new": "tf2.0"})
    assert (run.why_not("new"), run.why_not("new", after=3)) == ("", "it crashed")
