"""What a signal is answered with, stage by stage."""

import pytest

from harness.cli.running import Heard
from tests.runs import run


def test_before_the_first_launch_nothing_is_lost() -> None:
    assert Heard().interrupted(1) == "Stopping: nothing was launched yet."
    assert Heard().interrupted(2) == ""


def test_while_launches_run_the_rest_is_reported_and_a_second_signal_says_what_it_abandons() -> None:
    heard = Heard()
    with heard.launching(run()):
        first = heard.interrupted(1)
    assert first.startswith("Stopping: what runs is ended, and what was finished is reported.")
    assert first.endswith("Ctrl-C again abandons the report.")
    said = heard.interrupted(2)
    for told in ("The launches are kept: harness report ", "harness clean run", "harness matrix --resume "):
        assert told in said


def test_after_the_last_launch_only_the_report_is_abandoned(capsys: pytest.CaptureFixture[str]) -> None:
    heard = Heard()
    with heard.launching(run()):
        pass
    said = heard.interrupted(1)
    assert said.startswith("Stopping: the report is not written. The launches are kept: harness report ")
    assert "--resume" not in said
