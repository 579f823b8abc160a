"""What cells observed, and statements of a source against that."""

import math

from harness.analysis.cell_index import lookup
from harness.analysis.observations import (
    GIT_VERSION,
    Observed,
    are_equal,
    find_commit,
    has_observations,
    is_version,
    observations,
)
from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.scenario import Expectation
from tests.factories import broken, cell, cells, launch, run, scenario


def observed_by(*launches):
    return {
        name: list(observed.values) for name, observed in observations(cell(), lookup(run([cell()]), launches)).items()
    }


def test_launches_that_agree_tell_one_value_and_others_all_in_their_order():
    assert observed_by(*(launch(cell(), number=n, observations={"traces": 3}) for n in (0, 1, 2))) == {"traces": [3]}
    assert observed_by(*(launch(cell(), number=n, observations={"traces": n % 2}) for n in (1, 2, 3))) == {
        "traces": [1, 0]
    }
    # what only the pilot looked at is its own
    pilot = launch(cell(), number=0, observations={"traces": 9, "loop": "fit"})
    assert observed_by(pilot, launch(cell(), observations={"traces": 3})) == {"traces": [3], "loop": ["fit"]}
    # without a number the pilot tells, unless it broke
    assert observed_by(launch(cell(), (), 0, observations={"traces": 3})) == {"traces": [3]}
    assert observed_by(broken(cell(), Status.FAILED, observations={"traces": 3})) == {}
    cases = ([launch(cell(), number=0)], True), ([broken(cell(), Status.FAILED)], False), ([], False)
    for launches, has in cases:
        assert has_observations(cell(), lookup(run([cell()]), launches)) is has, launches


def test_values_are_alike():
    for one, other, same in [
        (1, 1.0, True),
        (1, 2, False),
        ("a", "b", False),
        (True, 1, False),
        (1.0, 1.000001, True),
        (1.0, 1.0001, False),
        ("1", 1, False),
        ([1, 2.0], [1, 2.0000001], True),
        ([1, 2], [1, 2, 3], False),
        ({"a": 1}, {"b": 1}, False),
        (None, None, True),
        (None, 0, False),
        (math.nan, math.nan, True),
        (10**400, 1.0, False),
        (10**400, 10**400, True),
    ]:
        assert are_equal(one, other) is same
        assert are_equal(other, one) is same


def test_commits_and_versions_are_told_once():
    launches = [
        launch(cell(), observations={}),
        launch(cell(environment="tf2.0"), observations={GIT_VERSION: "v2.0.0-rc2"}),
        launch(cell(), observations={GIT_VERSION: "v1.14.0-rc1"}),
    ]
    assert find_commit(launches, "tf1.14") == "v1.14.0-rc1"
    assert find_commit(launches, "tf2.0") == "v2.0.0-rc2"
    assert find_commit(launches, "tf2.15") == ""
    pins = {"tensorflow-cpu": "2.15.1", "keras": "2.15.0"}
    assert is_version("tensorflow", Observed(["2.15.1"]), pins)
    assert is_version("keras", Observed(["2.2.4-tf"]), pins)
    assert not is_version("keras", Observed(["a class"]), pins)
    assert not is_version("release", Observed(["2.15.1"]), pins)


def checked(expectation, launches, planned=None):
    stated = scenario(expect=[expectation])
    planned_run = run(planned or [entry.cell for entry in launches], scenarios=[stated])
    return [check for statement in Results(planned_run, launches).statements for check in statement.checks]


def expectation(value, **changes):
    return Expectation("traces", value, **{"when": {}, "requires": (), **changes})


def test_a_statement_is_about_the_cells_with_its_axis_values_and_environments_that_satisfy_it():
    launches = [launch(entry, observations={"traces": 1}) for entry in cells()]
    eager = checked(expectation(1, when={"mode": "eager"}), launches)
    assert [check.cell for check in eager] == cells(modes=["eager"])
    newer = checked(expectation(1, requires=["tensorflow>=2"]), launches)
    assert [check.cell for check in newer] == cells(["tf2.0"])
