"""`harness bisect`, as far as it says what is wrong before anything is measured."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.bisect import run
from harness.bisect.request import BisectRequest
from harness.cli import app
from harness.model.errors import CannotRunHereError
from harness.model.scenario import OWN
from tests.cli.conftest import Harness


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Specify what to search for"),
        (["seven"], "'seven' is not a valid issue name.\nFor a scenario: harness bisect -s seven."),
        (["T#x"], "'T#x' is not a valid issue name.\nUse "),
        (["-s", "ways", "-a", "way=a,b"], "the axis way has 2 values"),
        (["-s", "ways", "--budget", "5"], "Invalid --budget '5': the unit is missing"),
        (["absent.py"], "The script absent.py cannot be read"),
        (["absent.py", "-s", "ways"], "absent.py and -s ways are two scenarios"),
        (["-s", "ways", "--with", "data"], "Arguments and --with need a plain script"),
        (["-s", "ways", "--good", "tf9", "--bad", "new"], "Unknown environment: 'tf9'"),
        (["-s", "ways", "--good", "new", "--bad", "new"], "--good and --bad are both new"),
        (
            ["-s", "ways", "--bad", "old"],
            "no release before old, so there are no releases to search.\nPass another environment with --good. To",
        ),
        (["-s", "ways", "--good", "new"], "no release after new, so there are no releases to search.\nPass another"),
        (["-s", "ways", "--bad", "new", "--find-fix"], "no release after new"),
        (["-s", "ways", "--good", "new", "--package", "numpy"], "--bad is missing"),
        (["--resume", "elsewhere"], "elsewhere isn't the folder of a search"),
        (["T#7", "--resume", "elsewhere"], "--resume continues the search with its original options"),
    ],
)
def test_what_cannot_be_searched_is_told_and_leaves_no_folder(
    harness: Harness, arguments: list[str], told: str
) -> None:
    done = harness("bisect", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert not list(harness.root.glob("results/bisect-*"))


def test_a_search_knows_how_its_script_was_passed(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[BisectRequest] = []

    def start(request: BisectRequest, folder: Path, *_: object, wait: bool) -> None:
        started.append(request)
        raise CannotRunHereError("Nothing is measured in this test.")

    monkeypatch.setattr(run, "bisect", start)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    Path("train.py").write_text("print(1)\n")
    Path("data").write_text("")
    words = ["train.py", "--with", "data", "--", "--epochs", "3"]
    CliRunner().invoke(app, ["bisect", "--good", "old", "--bad", "new", *words])
    (request,) = started
    assert (request.script, request.of) == (words, OWN)
