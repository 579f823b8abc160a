import json
from pathlib import Path

import pytest

from harness.bisect import run
from harness.bisect.claims import complete
from harness.bisect.folder import create_folder, read_request
from harness.bisect.request import BisectRequest
from harness.catalog.environments import load_environments
from harness.catalog.project import Project
from harness.model.errors import CannotRunHereError, UsageError
from harness.session import Listener
from harness.store.signature import sign
from tests.bisect.machine import Machine

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
    """Create a project with one scenario, which has two claims of an issue."""
    root = Path(__file__).parents[2]
    (tmp_path / "docker-bake.hcl").write_bytes((root / "docker-bake.hcl").read_bytes())
    (tmp_path / "scenarios" / "kit").mkdir(parents=True)
    (tmp_path / "scenarios" / "kit" / "__init__.py").write_text("")
    (tmp_path / "scenarios" / "one_call.py").write_text(SCENARIO)
    (tmp_path / "scenarios" / "suites.toml").write_text("")
    monkeypatch.setenv("HARNESS_PROJECT", str(tmp_path))
    return tmp_path


def asked(**changes):
    return complete(BisectRequest(**changes))


def test_an_issue_gives_the_cell_and_the_ends_of_the_claim_between_releases(project):
    found = asked(issue="https://github.com/tensorflow/tensorflow/issues/7")
    assert (found.issue, found.scenario, found.axes) == ("T#7", "one_call", {"call": "predict"})
    assert (found.good, found.bad) == ("tf2.0", "tf2.2")
    # the scan goes on to the newest, for whether it was mended since
    assert found.through.startswith("tf2.")
    assert found.through != "tf2.2"


def test_what_is_typed_goes_before_the_claim(project):
    found = asked(issue="T#7", good="tf1.15", bad="tf2.1")
    assert (found.good, found.bad, found.through) == ("tf1.15", "tf2.1", "")


def test_a_fix_is_searched_from_the_claimed_release_on(project):
    found = asked(issue="T#7", fix=True)
    assert (found.good, found.bad) == ("", "tf2.2")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({}, "Specify what to search for"),
        ({"issue": "T#8"}, "No scenario checks a claim of T#8"),
        ({"issue": "eight"}, "is not a valid issue name"),
        ({"issue": "T#7", "axes": {"call": "model(x)"}}, "No claim of T#7 matches"),
    ],
)
def test_what_names_no_cell_is_refused_with_what_to_type(project, changes, told):
    with pytest.raises(UsageError, match=told) as raised:
        asked(**changes)
    assert raised.value.advice


def test_a_search_is_taken_up_as_it_was_asked_for(tmp_path):
    request = BisectRequest(
        scenario="step", axes={"call": "fit"}, good="tf2.0", results=tmp_path, command=["harness"], script=[]
    )
    folder = create_folder(request)
    assert folder.parent == tmp_path
    assert read_request(folder) == request
    assert read_request(folder, 60.0).budget == 60.0


def test_a_search_of_another_version_is_told(tmp_path):
    document = json.dumps({"schema": 1, "scenario": "x", "other": 2}, indent=2) + "\n"
    (tmp_path / "bisect.json").write_bytes(sign(document.encode()))
    with pytest.raises(UsageError, match="is corrupt"):
        read_request(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", '{"schema": 1, "scenario": "x", "backend": "local"}'])
def test_a_search_that_someone_else_began_is_not_gone_on_with(tmp_path, text):
    (tmp_path / "bisect.json").write_text(text)
    with pytest.raises(UsageError, match="was not started by this user on this machine"):
        read_request(tmp_path)


def test_a_folder_that_is_no_searchs(tmp_path):
    with pytest.raises(UsageError, match=r"bisect\.json is missing"):
        read_request(tmp_path)


def test_the_request_is_json(tmp_path):
    folder = create_folder(BisectRequest(scenario="step", results=tmp_path))
    assert json.loads((folder / "bisect.json").read_text())["scenario"] == "step"


class Releases(Machine):
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
    with pytest.raises(CannotRunHereError, match=r"No release before tf2\.2 has a result\.") as raised:
        run.bisect(request, project / "search", Listener())
    assert "--find-fix" in raised.value.advice
    assert [kind for kind, *_ in machine.asked] == ["scan"]


def test_a_package_is_searched_between_two_ends(project):
    with pytest.raises(UsageError, match="--good is missing"):
        run.bisect(BisectRequest(scenario="one_call", bad="tf2.2", package="numpy"), project / "search", Listener())
