"""`harness bisect`, as far as nothing is measured; tests/bisect has the searches."""

from pathlib import Path

from harness.bisect import run
from harness.bisect.request import BisectRequest
from harness.model.errors import CannotRunHereError
from harness.model.scenario import OWN


def test_a_search_knows_how_its_script_was_passed(harness, monkeypatch):
    requests: list[BisectRequest] = []

    def start(request: BisectRequest, folder: Path, *_: object, wait: bool) -> None:
        requests.append(request)
        raise CannotRunHereError("Nothing is measured in this test.")

    monkeypatch.setattr(run, "bisect", start)
    (harness.root / "train.py").write_text("print(1)\n")
    (harness.root / "data").write_text("")
    words = ["train.py", "--with", "data", "--", "--epochs", "3"]
    assert harness.call("bisect", "--good", "old", "--bad", "new", *words).returncode == 4
    (request,) = requests
    assert (request.script, request.of) == (words, OWN)
