"""Two runs side by side, as JSON values."""

import json
from dataclasses import replace

import pytest

from harness.report.changes import build
from harness.report.changes_json import document
from tests.factories import cell
from tests.two_runs import CELLS, MARGIN, all_but, first, found, second

ONE = CELLS[2]


def made(one, other):
    both = found(one, other)
    # what is not JSON raises here
    return json.loads(json.dumps(document(build(one[0], other[0], both, MARGIN), both)))


def test_a_cell_has_its_times_its_ratio_and_what_is_said_of_it():
    told = made(first(), second(all_but(ONE, 1.3)))
    (of,) = (each for each in told["cells"] if each["verdict"] == "slower")
    assert {name: of[name] for name in ("scenario", "environment", "device", "axes")} == {
        "scenario": "step",
        "environment": "tf1.14",
        "device": "cpu",
        "axes": dict(ONE.axes),
    }
    assert of["first"]["value"] == pytest.approx(0.01, rel=0.01)
    assert of["ratio"]["value"] == pytest.approx(1 / 1.3, rel=0.01)
    assert of["ratio"]["interval"][0] < of["ratio"]["value"] < of["ratio"]["interval"][1]
    assert (of["ratio"]["rounds"], of["withheld"], of["same_software"]) == (5, None, True)
    assert of["less_the_shift"]["verdict"] == "slower"
    assert of["work"] == {"is": "not checked", "reason": ""}


def test_it_names_the_runs_and_their_shift():
    told = made(first(), second())
    assert (told["schema"], told["margin"]) == (1, MARGIN)
    assert [told[name]["id"] for name in ("first", "second")] == [first()[0].id, second()[0].id]
    assert (told["shift"]["verdict"], told["shift"]["cells"], told["shift"]["same_software"]) == ("same", 6, True)
    assert told["differences"] == told["other_machine"] == told["only_first"] == told["only_second"] == []


def test_it_tells_all_that_differs():
    asked, launches = second()
    host = {**asked.host, "cpu": "Another CPU"}
    more = {**dict.fromkeys(CELLS, 0.01), cell("tf2.1"): 0.01}
    told = made(first(more, count=1), (replace(asked, host=host), launches))
    difference = {"part": "machine", "subject": "", "name": "cpu", "first": "Some CPU", "second": "Another CPU"}
    assert told["other_machine"] == told["differences"] == [difference]
    assert told["shift"] is None
    assert told["cells"][0]["withheld"] == "few rounds"
    assert [(each["environment"], each["status"]) for each in told["only_first"]] == [("tf2.1", None)]
