"""What the header sets side by side."""

from dataclasses import replace

from harness.analysis.columns import columns
from harness.analysis.environments import pins
from harness.model.run import StandIn
from harness.model.scenario import Comparison, Pick
from tests.factories import cell, cells, run, scenario


def pairs(heads, name):
    return [
        ((c.side.environment, c.side.axes["mode"]), (c.other.environment, c.other.axes["mode"]))
        for c in heads
        if c.comparison and c.comparison.name == name
    ]


def test_along_an_axis_plus_stands_against_the_other_value_in_each_environment():
    heads = columns(run(), scenario(), cells())
    assert pairs(heads, "graph against eager") == [
        (("tf1.14", "graph"), ("tf1.14", "eager")),
        (("tf2.0", "graph"), ("tf2.0", "eager")),
    ]
    # a pick chooses values by what an environment has installed, and a nightly counts as TensorFlow
    nightly = run(pins={"tf1.14": {"tensorflow-gpu": "1.14.0"}, "tf2.0": {"tf-nightly": "2.22.0.dev20261101"}})
    for planned in (run(), nightly):
        heads = columns(planned, scenario(), cells())
        assert pairs(heads, "each release's default mode") == [(("tf2.0", "eager"), ("tf1.14", "graph"))]
    # what no pick fits is not compared
    entry = Comparison("default", along="environment", pick=[Pick(["tensorflow<2"], {"mode": "graph"})])
    assert pairs(columns(run(), scenario(compare=[entry]), cells()), "default") == []
    # without recorded packages the catalogue's line stands in
    assert pins(run(pins={}), "tf1.14") == {"tensorflow": "1.14.0", "keras": "2.2.5"}
    assert pins(run(pins={}), "unheard of") == {}


def test_without_against_plus_stands_against_every_other_value_and_alike_entries_have_one_column():
    entry = Comparison("graph", along="mode", plus="graph")
    axes = {**scenario().axes, "mode": ["graph", "eager", "op by op", "xla"]}
    members = [cell(mode=mode) for mode in ("graph", "eager", "op by op")]
    heads = columns(run(members), scenario(axes=axes, compare=[entry]), members)
    assert [other for _, (_, other) in pairs(heads, "graph")] == ["eager", "op by op"]
    # from one TensorFlow 2 to the next, the default mode of both releases is eager
    members = cells(["tf2.0", "tf2.1"])
    reversed_ = replace(scenario(), compare=[*reversed(scenario().compare)])
    heads = columns(run(members, reference="tf2.0"), reversed_, members)
    assert pairs(heads, "each release's default mode") == [(("tf2.1", "eager"), ("tf2.0", "eager"))]
    assert pairs(heads, "TF 2 against TF 1") == [(("tf2.1", "graph"), ("tf2.0", "graph"))]


def test_a_pick_takes_a_stand_in_for_what_it_stands_in_for():
    members = cells(["tf2.0", "tf2.1"])

    def picked(*stand_ins):
        planned = run(members, reference="tf2.0")
        planned = replace(planned, plan=replace(planned.plan, stand_ins=stand_ins))
        picks = [entry for entry in scenario().compare if entry.pick]
        return pairs(columns(planned, scenario(compare=picks), members), "each release's default mode")

    assert picked() == [(("tf2.1", "eager"), ("tf2.0", "eager"))]
    stand_in = StandIn("tf2.0", "tf1.14", "A card", "it has no code", pins={"tensorflow": "1.14.0"})
    assert picked(stand_in) == [(("tf2.1", "eager"), ("tf2.0", "graph"))]
    assert picked(replace(stand_in, is_itself_too=True)) == [
        (("tf2.1", "eager"), ("tf2.0", "graph")),
        (("tf2.1", "eager"), ("tf2.0", "eager")),
    ]
