import json
from pathlib import Path

import pytest

from harness.bisect import run
from harness.bisect.claims import complete
from harness.bisect.folder import create_folder, read_request
from harness.bisect.request import BisectRequest
from harness.environments.catalog import load_environments
from harness.model.errors import CannotRunHereError
from harness.project import Project
from harness.session import Listener
from harness.store.signature import sign
from tests.bisect.machine import SearchedMachine
from tests.errors import read_refusal

SCENARIO = """# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "One call"
# source = "https://github.com/tensorflow/tensorflow/issues/7"
# tags   = ["upstream", "calls"]
#
# [tool.harness.axes]
# call = ["predict", "model(x)"]
#
# [[tool.harness.claim]]
# issue    = "T#7"
# reported = "predict takes 50 times as long as calling the model"
# worse    = { environment = "tf2.2", call = "predict" }
# better   = { environment = "tf2.2", call = "model(x)" }
# ratio    = [40, 60]
#
# [[tool.harness.claim]]
# issue    = "T#7"
# reported = "predict takes 20 times as long in 2.2"
# worse    = { environment = "tf2.2", call = "predict" }
# better   = { environment = "tf2.0", call = "predict" }
# ratio    = [15, 25]
# ///
def scenario(bench, call):
    pass
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    (tmp_path / "docker-bake.hcl").write_bytes((root / "docker-bake.hcl").read_bytes())
    (tmp_path / "scenarios" / "kit").mkdir(parents=True)
    (tmp_path / "scenarios" / "kit" / "__init__.py").write_text("")
    (tmp_path / "scenarios" / "one_call.py").write_text(SCENARIO)
    (tmp_path / "scenarios" / "suites.toml").write_text("")
    monkeypatch.setenv("HARNESS_PROJECT", str(tmp_path))
    return tmp_path


def complete_request(**changes):
    return complete(BisectRequest(**changes))


def test_an_issue_gives_the_cell_and_the_ends_of_the_claim_between_releases(project):
    request = complete_request(issue="https://github.com/tensorflow/tensorflow/issues/7")
    assert (request.issue, request.scenario, request.axes) == ("T#7", "one_call", {"call": "predict"})
    assert (request.good, request.bad) == ("tf2.0", "tf2.2")
    # the scan goes on to the newest, for whether it was mended since
    assert request.through.startswith("tf2.")
    assert request.through != "tf2.2"
    # what is typed goes before the claim
    request = complete_request(issue="T#7", good="tf1.15", bad="tf2.1")
    assert (request.good, request.bad, request.through) == ("tf1.15", "tf2.1", "")
    # a fix is searched from the claimed release on
    request = complete_request(issue="T#7", fix=True)
    assert (request.good, request.bad) == ("", "tf2.2")


def test_what_names_no_search_is_refused_with_what_to_type(project, tmp_path, snapshot):
    cases = {
        "nothing": {},
        "an issue without a claim": {"issue": "T#8"},
        "no issue": {"issue": "eight"},
        "no cell of a claim": {"issue": "T#7", "axes": {"call": "model(x)"}},
    }
    refusals = {
        name: read_refusal(lambda changes=changes: complete_request(**changes)) for name, changes in cases.items()
    }
    without_good = BisectRequest(scenario="one_call", bad="tf2.2", package="numpy")
    refusals["one end"] = read_refusal(lambda: run.bisect(without_good, tmp_path / "search", Listener()))
    refusals["a folder without a search"] = read_refusal(lambda: read_request(tmp_path), tmp_path)
    document = json.dumps({"schema": 1, "scenario": "x", "other": 2}, indent=2) + "\n"
    path = tmp_path / "bisect.json"
    path.write_bytes(sign(document.encode()))
    refusals["of another version"] = read_refusal(lambda: read_request(tmp_path), tmp_path)
    for text in ("", "[]", '{"schema": 1, "scenario": "x", "backend": "local"}'):
        path.write_text(text)
        refusal = read_refusal(lambda: read_request(tmp_path), tmp_path)
        assert refusals.setdefault("of somebody else", refusal) == refusal
    assert refusals == snapshot


def test_a_search_is_taken_up_as_it_was_requested(tmp_path):
    request = BisectRequest(
        scenario="step", axes={"call": "fit"}, good="tf2.0", results=tmp_path, command=["harness"], script=[]
    )
    folder = create_folder(request)
    assert folder.parent == tmp_path
    assert read_request(folder) == request
    assert read_request(folder, 60.0).budget == 60.0
    assert json.loads((folder / "bisect.json").read_text())["scenario"] == "step"


class Releases(SearchedMachine):
    """Measures the releases of the catalog, of which those in `broken` have no result."""

    runs, launched, folder = (), 0, Path("search")

    def __init__(self, broken):
        super().__init__([])
        self.values = dict.fromkeys(load_environments(Project.find()), 1.0)
        self.broken = broken

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def remove_leftovers(self):
        pass

    def commits(self):
        return {}


def test_a_release_is_not_compared_with_itself_if_no_earlier_one_has_a_result(project, monkeypatch):
    machine = Releases(dict.fromkeys(["tf1.14", "tf1.15", "tf2.0", "tf2.1"], "needs TensorFlow 2.2"))
    monkeypatch.setattr(run, "Probe", lambda *_, **__: machine)
    request = BisectRequest(scenario="one_call", axes={"call": "predict"}, bad="tf2.2", through="tf2.5")
    with pytest.raises(CannotRunHereError, match=r"before tf2\.2 ") as raised:
        run.bisect(request, project / "search", Listener())
    assert "--find-fix" in raised.value.advice
    assert [kind for kind, *_ in machine.asked] == ["scan"]
