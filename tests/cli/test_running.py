"""What a signal is answered with, stage by stage."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness import session
from harness.analysis.results import Results
from harness.cli.options import FailOn
from harness.cli.running import ProgressPrinter, _record, _report_missing_shards, choose_exit_code, show
from harness.history.folder import History
from harness.model.errors import Exit
from harness.model.launch import Launch, Role, Status
from harness.model.run import Shard, Stop, StopReason
from tests import factories
from tests.runs import launch, run

WRITTEN = session.Written([Path("results/run/report.md")], [])


def test_a_signal_is_answered_with_what_it_ends_and_loses(snapshot):
    answers = {}
    progress = ProgressPrinter()
    answers["before the first launch"] = [progress.announce_stop(count) for count in (1, 2)]
    with progress.launching(run()):
        answers["during launches"] = [progress.announce_stop(count) for count in (1, 2)]
    progress = ProgressPrinter()
    with progress.launching(run()):
        pass
    answers["after the last launch"] = [progress.announce_stop(1)]
    assert answers == snapshot


def end_run(launches: Sequence[Launch], **of_plan: Any) -> session.Ended:
    """Return a run that ended with these launches."""
    stored = factories.run()
    stored = replace(stored, plan=replace(stored.plan, **of_plan))
    return session.Ended(Path("results", "run"), Results(stored, launches), session.Written([], []), False, {})


def test_a_run_without_a_number_an_observation_or_a_profile_has_failed():
    pilot = {"round": 0, "role": Role.PILOT, "samples": []}
    profile = {"role": Role.PROFILE, "samples": []}
    for launches, of_plan, code in (
        (factories.rounds(dict.fromkeys(factories.cells(), 0.01)), {}, Exit.OK),
        ([], {}, Exit.CELLS_FAILED),
        ([launch(status=Status.NOT_AVAILABLE, samples=[])], {}, Exit.CELLS_FAILED),
        ([launch(status=Status.CPU_FALLBACK, samples=[])], {}, Exit.CELLS_FAILED),
        # observed, and nothing timed
        ([launch(**pilot, observations={"seen": 1})], {}, Exit.OK),
        ([launch(**pilot)], {}, Exit.CELLS_FAILED),
        ([launch(**profile)], {"profile_calls": 5}, Exit.OK),
        ([launch(**profile, status=Status.NOT_AVAILABLE)], {"profile_calls": 5}, Exit.CELLS_FAILED),
    ):
        completed = end_run(launches, **of_plan)
        assert choose_exit_code(completed, None) is code
        nothing_judged = session.gate(completed.results) is session.Gate.NOTHING_JUDGED
        gated = Exit.NOTHING_SELECTED if nothing_judged and code is Exit.OK else code
        assert choose_exit_code(completed, FailOn.SLOWER) is gated


def test_a_run_without_some_shards_has_failed_whatever_its_verdict():
    codes = (Exit.OK, Exit.SLOWER, Exit.VERDICT_SAME, Exit.INTERRUPTED)
    failed = [Exit.CELLS_FAILED] * 3
    assert [_report_missing_shards(["Shard 2/2 is missing."], code) for code in codes] == [*failed, Exit.INTERRUPTED]
    assert [_report_missing_shards([], code) for code in codes] == list(codes)


def test_a_history_gets_whole_runs_only_because_it_keeps_the_first_results(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_RECORD", "1")
    monkeypatch.setenv("HARNESS_HISTORY", str(tmp_path))
    ended = end_run(factories.rounds(dict.fromkeys(factories.cells(), 0.01)))
    whole = ended.results.run
    stops = {group.name: Stop(StopReason.ROUNDS, 5) for group in whole.plan.groups}
    interrupted = {name: replace(stop, reason=StopReason.INTERRUPTED) for name, stop in stops.items()}
    counts = []
    of_run: tuple[dict[str, Any], ...] = (
        {"stops": interrupted},
        {"stops": stops, "absent": {"2/2": ["group"]}},
        {"stops": stops, "plan": replace(whole.plan, shard=Shard(1, 2))},
        {"stops": stops},
    )
    for changes in of_run:
        _record(replace(ended, results=Results(replace(whole, **changes), ended.results.launches)))
        counts.append(len(History.open().runs()))
    assert counts == [0, 0, 0, 1]


def test_an_error_is_shown_with_the_scenarios_own_frame_and_the_command_that_writes_a_script(capsys):
    scenario = replace(factories.scenario(), path=Path("scenarios/step.py"))
    cell = factories.cell()
    stored = factories.run([cell], scenarios=[scenario])
    trace = """
Traceback (most recent call last):
  File "/scenarios/kit/worker.py", line 9, in run
    scenario(bench)
  File "/scenarios/step.py", line 31, in step
    model.fit(x)
  File "/site-packages/keras/fit.py", line 7, in fit
    raise ValueError("boom")
ValueError: boom
"""
    lost = factories.broken(cell, Status.FAILED, error="ValueError: boom", stderr=f"noise{trace}")
    results = Results(stored, [lost])
    show(session.Ended(Path("results", "run"), results, WRITTEN, False, {}), json=False, fail_on=None)
    lines = capsys.readouterr().err.splitlines()
    at = lines.index("scenarios/step.py:31: in step: ValueError: boom")
    assert lines[at + 2].startswith(f"    harness bundle {stored.shown_folder} -s step -e tf1.14 -a call=fit ")


def test_an_error_of_a_plain_script_has_its_name_and_what_raised_nothing_no_frame():
    path = Path("/home/me/.cache/harness/scripts/82a84e04d11b53bd/train.py")
    generated = replace(factories.scenario(), path=path, script="train.py")
    trace = 'Traceback (most recent call last):\n  File "/scenarios/train.py", line 4, in <module>\n'
    lost = factories.broken(factories.cell(), Status.FAILED, error="ValueError: boom", stderr=trace)
    (error,) = session.find_raised_errors(Results(factories.run([factories.cell()], scenarios=[generated]), [lost]))
    assert (error.path, error.line) == (Path("train.py"), 4)
    for other in (launch(), launch(status=Status.OOM, samples=[], stderr="Killed")):
        assert session.find_raised_errors(end_run([other]).results) == []
