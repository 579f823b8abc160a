"""What to type in place of what is no command and no option."""

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.model.errors import UsageError


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["measure"], "There is no command 'measure'. Use: harness matrix\nAll: harness --help"),
        (["resume"], "Use: harness matrix --resume RUN"),
        (["matrx"], "There is no command 'matrx'. Did you mean matrix?"),
        (["scenarios", "lst"], "Did you mean list?\nAll: harness scenarios --help"),
        (["scenarios", "run"], "There is no command 'run'."),
        (["xyzzy"], "There is no command 'xyzzy'.\nAll: harness --help"),
        (["matrix", "keras_step"], "keras_step is a scenario: type -s keras_step"),
        (["matrix", "-s", "keras_step", "mine.py"], "mine.py is a scenario: type -s mine.py"),
        (["profile", "-e", "tf1.14", "tf2.0"], "tf2.0 is an environment: type -e tf2.0"),
        (["matrix", "quick"], "quick is a suite: type --suite quick"),
        (["matrix", "something"], "Scenarios are named with -s, environments with -e"),
        (["report", "one", "two"], "Its options: harness report --help"),
    ],
)
def test_what_is_not_there_gets_what_is_meant(typed: list[str], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(app, typed, prog_name="harness", catch_exceptions=False)
    assert told in str(refused.value)
