"""The line on the quality of the measurement, and the details behind it."""

import pytest

from harness.analysis.interference import NoisyRound, RunInterference
from harness.analysis.results import Results
from harness.report.blocks import Callout, Code
from harness.report.sections import measurement, summary
from tests.factories import RESOURCES, cell, cells, rounds, run

TIMES = dict(zip(cells(modes=["graph"]), [0.01, 0.02], strict=True))


def measure(second=0.01, spread=0.001, count=5, **resources):
    launches = rounds(TIMES, count, spread=spread, controls={cell(): second}, resources={**RESOURCES, **resources})
    return Results(run(TIMES, controlled=True), launches)


def test_the_line_names_rounds_interference_and_the_control(snapshot):
    assert {
        "idle": measurement.describe(measure()),
        "another process": measurement.describe(measure(steady_cpu_seconds=0.4)),
        "one round": measurement.describe(measure(count=1)),
        "a biased control": measurement.describe(measure(0.011)),
        "no control": measurement.describe(Results(run(TIMES), rounds(TIMES))),
        "nothing was timed": measurement.describe(Results(run(TIMES), [])),
    } == snapshot


def test_only_a_poor_measurement_is_a_warning_with_a_command():
    def find_warnings(results, **options):
        return [block for block in summary.make_first_screen(results, **options) if isinstance(block, Callout)]

    poor = measure(steady_cpu_seconds=0.4)
    (warning,) = find_warnings(poor)
    assert [block.text for block in warning.blocks if isinstance(block, Code)] == ["harness matrix -s step --seed 7"]
    assert find_warnings(measure()) == []
    # the command of a job that nobody has reviewed isn't in its summary
    (warning,) = find_warnings(poor, is_report=False)
    assert not any(isinstance(block, Code) for block in warning.blocks)


@pytest.mark.parametrize("prints", [False, True])
def test_what_others_did(prints, snapshot, monkeypatch):
    def describe(*repeated, contended=(), stopped=(), is_known=True):
        noisy = [NoisyRound("group", number, "why", is_repeated) for number, is_repeated in enumerate(repeated, 1)]
        results = measure()
        results.disturbance = RunInterference(is_known, 9, noisy, 30, list(contended), list(stopped))
        monkeypatch.setattr(measurement, "is_printed", lambda _: prints)
        return measurement.explain_interference(results)

    assert {
        "none": describe(),
        "one repeated": describe(True),
        "one of two repeated": describe(True, False),
        "time": describe(contended=[0.04, 0.1, 0.215]),
        "a quota": describe(stopped=[0.4, 0.5]),
        "unknown": describe(is_known=False),
    } == snapshot
