"""Lines that say what cells say, and no more of them than there are differences."""

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.behaviour import fold


def lines(said, axes, environments=("a", "b")):
    return [
        (dict(line.axes), list(line.entries)) for line in fold(said, axes, environments, lambda entry: entry or None)
    ]


def test_an_axis_that_makes_no_difference_is_left_out():
    said = {((mode, call), e): mode + e for mode in ("graph", "eager") for call in ("fit", "tob") for e in "ab"}
    assert lines(said, ["mode", "call"]) == [
        ({"mode": "graph"}, ["grapha", "graphb"]),
        ({"mode": "eager"}, ["eagera", "eagerb"]),
    ]


def test_where_all_say_the_same_there_is_one_line():
    assert lines({((mode,), e): "x" for mode in ("1", "2") for e in "ab"}, ["mode"]) == [({}, ["x", "x"])]


def test_who_says_nothing_agrees_with_all():
    said = {(("1",), "a"): "", (("2",), "a"): "x", (("1",), "b"): "y"}
    assert lines(said, ["mode"]) == [({}, ["x", "y"])]


def test_an_environment_without_such_a_cell_has_no_entry():
    assert lines({(("1",), "a"): "x", (("2",), "a"): "y"}, ["mode"]) == [
        ({"mode": "1"}, ["x", None]),
        ({"mode": "2"}, ["y", None]),
    ]


@given(
    st.dictionaries(st.tuples(st.tuples(*[st.sampled_from("12")] * 3), st.sampled_from("ab")), st.sampled_from("xy"))
)
def test_every_cell_finds_what_it_said_in_its_line(said):
    axes = ["p", "q", "r"]
    folded = fold(said, axes, "ab", str)
    for (values, environment), entry in said.items():
        own = dict(zip(axes, values, strict=True))
        matching = [line for line in folded if line.axes.items() <= own.items()]
        assert [line.entries["ab".index(environment)] for line in matching] == [entry]
