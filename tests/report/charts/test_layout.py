import math

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.statistics import Estimate, Interval
from harness.report.charts import layout


@given(st.lists(st.text(max_size=200), max_size=20))
def test_names_of_lines_are_short_plain_and_all_different(texts):
    names = layout.make_distinct_names(texts)
    assert len(set(names)) == len(texts)
    assert all(len(name) <= layout.NAME_CHARACTERS + len(" (20)") for name in names)
    assert all(name.isprintable() for name in names)


def test_names_and_legends_fit_and_intervals_that_leave_the_picture_are_counted():
    (name,) = layout.make_distinct_names(["model large, " * 10 + "tf2.0 vs tf1.14"])
    assert name.startswith("model large")
    assert name.endswith("tf2.0 vs tf1.14")
    assert layout.make_legend(["a"]) is None
    names = ["graph", "eager", "a function"]
    assert [layout.make_legend(names, width)["columns"] for width in (1000, 180, 10)] == [3, 2, 1]

    def note(*halves):
        intervals = [None if half is None else Interval(math.exp(-half), math.exp(half)) for half in halves]
        return layout.note_cut([Estimate(1.0, 5, interval) for interval in intervals], Interval(0.5, 2.0))

    assert note(None, 0.1) == ""
    assert note(None, 0.1, 1.0) == "1 interval extends beyond the chart."
    assert note(0.1, 1.0, 3.0) == "2 intervals extend beyond the chart."
