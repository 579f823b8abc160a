"""What a gate finds in a run's verdicts, and how a run is read."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.run import Stop, StopReason
from harness.session import Gate, export, gate, is_torn, read
from harness.store.folder import RunFolder
from tests.factories import cell, cells, rounds, run, scenario
from tests.quantified import quantified, quantified_run

GRAPH = cells(modes=["graph"])


def judge(seconds, of=GRAPH, **changes):
    times = dict(zip(of, seconds, strict=True))
    return gate(Results(run(times, **changes), rounds(times, spread=0.0)))


def test_what_is_slower_than_the_reference_fails_the_gate_and_what_was_not_judged_too():
    assert judge([0.01, 0.02]) is Gate.SLOWER
    assert judge([0.01, 0.01]) is Gate.PASSED
    assert judge([0.02, 0.01]) is Gate.PASSED
    assert judge([0.01, 0.02, 0.01, 0.02], cells()) is Gate.SLOWER, "each release's default mode"
    along = scenario(compare=[scenario().compare[0], scenario().compare[1]])
    assert judge([0.01, 0.02, 0.01, 0.02], cells(), scenarios=[along]) is Gate.PASSED
    times = dict.fromkeys(GRAPH, 0.01)
    for count in (1, 2):
        assert gate(Results(run(times), rounds(times, count=count))) is Gate.NOTHING_JUDGED
    one_environment = {cell(): 0.01, cell(mode="eager"): 0.02}
    assert gate(Results(run(one_environment), rounds(one_environment))) is Gate.NOTHING_JUDGED
    verdicts = {name: gate(Results(quantified_run(name), quantified())) for name in ("first call", "peak memory")}
    assert verdicts == {"first call": Gate.SLOWER, "peak memory": Gate.PASSED}


def test_what_a_truncated_file_lacks_is_not_left_out_by_the_budget(tmp_path):
    stored = run()
    folder = RunFolder.create(tmp_path, stored.id)
    folder.write_run(replace(stored, stops={group.name: Stop(StopReason.BUDGET, 0) for group in stored.plan.groups}))
    assert {entry.reason for entry in read(folder.path).missing} == {"the budget ended"}
    (folder.path / "launches.jsonl").write_text('{"group": "torn')
    assert is_torn(folder.path)
    assert "the budget ended" not in {entry.reason for entry in read(folder.path).missing}


def test_an_export_of_a_moved_run_names_its_new_folder(tmp_path):
    folder = RunFolder.create(tmp_path, "old")
    folder.write_run(run(GRAPH, folder=str(folder.path)))
    for launch in rounds(dict.fromkeys(GRAPH, 0.01)):
        folder.append(launch)
    moved = folder.path.rename(tmp_path / "moved")
    for format in ("md", "summary", "html"):
        text = export(moved, format).decode()
        assert f"harness report {moved}" in text
        assert str(folder.path) not in text
