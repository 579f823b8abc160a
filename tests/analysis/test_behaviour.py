"""Which observations are shown, by what they part, and in how many lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.behaviour import NOT_OBSERVED, fold
from harness.analysis.observations import Observed
from harness.analysis.results import Results
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Unavailable
from harness.model.scenario import Cell
from tests.factories import launch, run, scenario

EXPERIMENTS = scenario(
    "behaviour", axes={"experiment": ["promotion", "indexing"], "kind": ["plain", "numpy"]}, default={}, compare=[]
)


def observer(environment, experiment="promotion", kind="plain"):
    return Cell("behaviour", environment, Device.CPU, {"experiment": experiment, "kind": kind})


def find_behaviours(observed, scenario_=EXPERIMENTS, **changes):
    """The experiments of cells that observe and time nothing."""
    launches = [launch(item, (), 0, observations=values) for item, values in observed.items()]
    return Results(run(observed, scenarios=[scenario_], **changes), launches).behaviours


def entries(behaviour):
    """(observation, its axis values, what each environment says) of every row."""
    return [
        (
            row.observation,
            dict(row.line.axes),
            [entry.values[0] if isinstance(entry, Observed) else entry for entry in row.line.entries],
        )
        for row in behaviour.rows
    ]


def test_each_value_of_the_first_axis_is_an_experiment_and_other_axes_part_only_rows_that_depend_on_them():
    behaviour = find_behaviours({observer("tf2.0", name): {name: 1} for name in ("promotion", "indexing")})
    assert [dict(entry.shared) for entry in behaviour] == [{"experiment": "promotion"}, {"experiment": "indexing"}]
    observed = {observer("tf2.0", kind=kind): {"same": 1, "other": kind} for kind in ("plain", "numpy")}
    (behaviour,) = find_behaviours(observed)
    assert entries(behaviour) == [
        ("same", {}, [1]),
        ("other", {"kind": "plain"}, ["plain"]),
        ("other", {"kind": "numpy"}, ["numpy"]),
    ]
    assert behaviour.axes == ["kind"]


def test_a_cell_that_did_not_see_it_is_told_apart_and_versions_are_no_behaviour():
    gone = [Unavailable(observer("tf2.1"), "why")]
    (behaviour,) = find_behaviours({observer("tf1.14"): {"a": 1}, observer("tf2.0"): {"b": 1}}, unavailable=gone)
    assert entries(behaviour)[0] == ("a", {}, [1, NOT_OBSERVED, Status.NOT_AVAILABLE])
    (behaviour,) = find_behaviours(
        {observer("tf2.0"): {"tensorflow": "2.0.0", "placed on": ["GPU:0"], "class": "tensor"}}
    )
    assert [row.observation for row in behaviour.rows] == ["class"]
    (behaviour,) = find_behaviours({observer("tf2.0"): {"tensorflow": "2.0.0"}})
    assert [row.observation for row in behaviour.rows] == ["tensorflow"]


def lines(entries_, axes, environments=("a", "b")):
    return [
        (dict(line.axes), list(line.entries))
        for line in fold(entries_, axes, environments, lambda entry: entry or None)
    ]


def test_an_axis_that_makes_no_difference_is_left_out():
    both = {((mode, call), e): mode + e for mode in ("graph", "eager") for call in ("fit", "tob") for e in "ab"}
    assert lines(both, ["mode", "call"]) == [
        ({"mode": "graph"}, ["grapha", "graphb"]),
        ({"mode": "eager"}, ["eagera", "eagerb"]),
    ]
    assert lines({((mode,), e): "x" for mode in ("1", "2") for e in "ab"}, ["mode"]) == [({}, ["x", "x"])]
    # who says nothing agrees with all, and an environment without such a cell has no entry
    assert lines({(("1",), "a"): "", (("2",), "a"): "x", (("1",), "b"): "y"}, ["mode"]) == [({}, ["x", "y"])]
    assert lines({(("1",), "a"): "x", (("2",), "a"): "y"}, ["mode"]) == [
        ({"mode": "1"}, ["x", None]),
        ({"mode": "2"}, ["y", None]),
    ]


@pytest.mark.slow
@given(
    st.dictionaries(st.tuples(st.tuples(*[st.sampled_from("12")] * 3), st.sampled_from("ab")), st.sampled_from("xy"))
)
def test_every_cell_finds_what_it_said_in_its_line(entries_):
    axes = ["p", "q", "r"]
    folded = fold(entries_, axes, "ab", str)
    for (values, environment), entry in entries_.items():
        point = dict(zip(axes, values, strict=True))
        matching = [line for line in folded if line.axes.items() <= point.items()]
        assert [line.entries["ab".index(environment)] for line in matching] == [entry]
