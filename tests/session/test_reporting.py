"""What a gate finds in a run's verdicts, and how a run is read."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.model.run import Stop, StopReason
from harness.session import Gate, gate, is_torn, read
from harness.store.folder import RunFolder
from tests.factories import cell, cells, rounds, run, scenario
from tests.quantified import quantified, quantified_run

GRAPH = cells(modes=["graph"])


def judged(seconds, of=GRAPH, **changes):
    times = dict(zip(of, seconds, strict=True))
    return gate(Results(run(times, **changes), rounds(times, spread=0.0)))


@pytest.mark.parametrize(
    ("seconds", "found"), [([0.01, 0.02], Gate.SLOWER), ([0.01, 0.01], Gate.PASSED), ([0.02, 0.01], Gate.PASSED)]
)
def test_an_environment_is_slower_than_the_reference_or_not(seconds, found):
    assert judged(seconds) is found


def test_a_value_of_an_axis_that_is_slower_than_another_is_no_regression():
    assert judged([0.01, 0.02, 0.01, 0.02], cells()) is Gate.SLOWER, "each release's default mode"
    along = scenario(compare=[scenario().compare[0], scenario().compare[1]])
    assert judged([0.01, 0.02, 0.01, 0.02], cells(), scenarios=[along]) is Gate.PASSED


@pytest.mark.parametrize("count", [1, 2])
def test_a_gate_that_judged_nothing_does_not_pass(count):
    times = dict.fromkeys(GRAPH, 0.01)
    assert gate(Results(run(times), rounds(times, count=count))) is Gate.NOTHING_JUDGED


def test_a_run_of_one_environment_judges_nothing():
    times = {cell(): 0.01, cell(mode="eager"): 0.02}
    assert gate(Results(run(times), rounds(times))) is Gate.NOTHING_JUDGED


@pytest.mark.parametrize(("quantity", "found"), [("first call", Gate.SLOWER), ("peak memory", Gate.PASSED)])
def test_a_phase_that_takes_longer_is_slower_and_more_memory_is_not(quantity, found):
    assert gate(Results(quantified_run(quantity), quantified())) is found


def test_what_a_truncated_file_lacks_is_not_left_out_by_the_budget(tmp_path: Path):
    made = run()
    folder = RunFolder.create(tmp_path, made.id)
    folder.write_run(replace(made, stops={group.name: Stop(StopReason.BUDGET, 0) for group in made.plan.groups}))
    assert {entry.reason for entry in read(folder.path).missing} == {"the budget ended"}
    (folder.path / "launches.jsonl").write_text('{"group": "torn')
    assert is_torn(folder.path)
    assert "the budget ended" not in {entry.reason for entry in read(folder.path).missing}
