"""What a signal is answered with, stage by stage."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness import session
from harness.analysis.results import Results
from harness.cli.options import FailOn
from harness.cli.running import ProgressPrinter, choose_exit_code, show
from harness.model.errors import Exit
from harness.model.launch import Launch, Role, Status
from tests import factories
from tests.runs import launch, run

WRITTEN = session.Written([Path("results/run/report.md")], [])


def test_before_the_first_launch_nothing_is_lost() -> None:
    assert ProgressPrinter().announce_stop(1) == "Stopping: the run hasn't started yet."
    assert ProgressPrinter().announce_stop(2) == ""


def test_while_launches_run_the_rest_is_reported_and_a_second_signal_says_what_it_abandons() -> None:
    heard = ProgressPrinter()
    with heard.launching(run()):
        first = heard.announce_stop(1)
    assert first.startswith("Stopping: ending the running launches and reporting the finished ones.")
    assert first.endswith("To skip the report, press Ctrl-C again.")
    said = heard.announce_stop(2)
    for told in (
        "The launches are saved. To write the report: harness report ",
        "harness clean run",
        "harness matrix --resume ",
    ):
        assert told in said


def test_after_the_last_launch_only_the_report_is_abandoned(capsys: pytest.CaptureFixture[str]) -> None:
    heard = ProgressPrinter()
    with heard.launching(run()):
        pass
    said = heard.announce_stop(1)
    assert said.startswith("Stopping without a report. The launches are saved. To write the report: harness report ")
    assert "--resume" not in said


def ended(launches: Sequence[Launch], **of_plan: Any) -> session.Ended:
    """A run that ended with these launches."""
    made = factories.run()
    made = replace(made, plan=replace(made.plan, **of_plan))
    return session.Ended(Path("results", "run"), Results(made, launches), session.Written([], []), False, {})


@pytest.mark.parametrize(
    ("launches", "of_plan", "code"),
    [
        (factories.rounds(dict.fromkeys(factories.cells(), 0.01)), {}, Exit.OK),
        ([], {}, Exit.CELLS_FAILED),
        ([launch(status=Status.NOT_AVAILABLE, samples=[])], {}, Exit.CELLS_FAILED),
        ([launch(status=Status.CPU_FALLBACK, samples=[])], {}, Exit.CELLS_FAILED),
        # observed, and nothing timed
        ([launch(round=0, role=Role.PILOT, samples=[], observations={"seen": 1})], {}, Exit.OK),
        ([launch(round=0, role=Role.PILOT, samples=[])], {}, Exit.CELLS_FAILED),
        ([launch(role=Role.PROFILE, samples=[])], {"profile_calls": 5}, Exit.OK),
        ([launch(role=Role.PROFILE, status=Status.NOT_AVAILABLE, samples=[])], {"profile_calls": 5}, Exit.CELLS_FAILED),
    ],
)
@pytest.mark.parametrize("fail_on", [None, FailOn.SLOWER])
def test_a_run_without_a_number_an_observation_or_a_profile_has_failed(
    launches: Sequence[Launch], of_plan: dict[str, Any], code: Exit, fail_on: FailOn | None
) -> None:
    found = ended(launches, **of_plan)
    nothing_to_judge = fail_on and session.gate(found.results) is session.Gate.NOTHING_JUDGED
    wanted = Exit.NOTHING_SELECTED if nothing_to_judge and code is Exit.OK else code
    assert choose_exit_code(found, fail_on) is wanted


def test_an_error_is_shown_with_the_scenarios_own_frame_and_the_command_that_writes_a_script(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = replace(factories.scenario(), path=Path("scenarios/step.py"))
    cell = factories.cell()
    made = factories.run([cell], scenarios=[named])
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
    results = Results(made, [lost])
    show(session.Ended(Path("results", "run"), results, WRITTEN, False, {}), json=False, fail_on=None)
    told = capsys.readouterr().err.splitlines()
    at = told.index("scenarios/step.py:31: in step: ValueError: boom")
    assert told[at + 1] == "To write a script that runs the cell without harness:"
    assert told[at + 2].startswith(f"    harness bundle {made.shown_folder} -s step -e tf1.14 -a call=fit ")


def test_an_error_of_a_plain_script_is_shown_with_the_scripts_name() -> None:
    path = Path("/home/me/.cache/harness/scripts/82a84e04d11b53bd/train.py")
    generated = replace(factories.scenario(), path=path, script="train.py")
    trace = 'Traceback (most recent call last):\n  File "/scenarios/train.py", line 4, in <module>\n'
    lost = factories.broken(factories.cell(), Status.FAILED, error="ValueError: boom", stderr=trace)
    (error,) = session.find_raised_errors(Results(factories.run([factories.cell()], scenarios=[generated]), [lost]))
    assert (error.path, error.line) == (Path("train.py"), 4)


@pytest.mark.parametrize("launch_", [launch(), launch(status=Status.OOM, samples=[], stderr="Killed")])
def test_what_raised_nothing_has_no_frame(launch_: Launch) -> None:
    assert session.find_raised_errors(ended([launch_]).results) == []
