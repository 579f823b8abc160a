"""What rows, columns and cells are called."""

from harness.report.names import label
from tests.factories import scenario


def test_a_value_that_says_nothing_alone_or_that_two_axes_have_is_named_by_its_axis():
    sizes = scenario(axes={"model": ["small", "large"], "data": ["small"]})
    labels = [
        label(scenario(), *pair)
        for pair in (("mode", "graph"), ("threads", "4"), ("xla", "on"), ("environment", "2024"))
    ]
    assert labels == ["graph", "threads=4", "xla=on", "2024"]
    assert [label(sizes, "model", value) for value in ("small", "large")] == ["model=small", "large"]
