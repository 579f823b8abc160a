"""Ratios drawn with characters."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.statistics import Estimate, Interval
from harness.report import format
from harness.report.charts.axes import choose_ratio_domain

POSITIVE = st.floats(1e-6, 1e6)


def test_plots_of_ratios_and_curves():
    domain = Interval(0.5, 2.0)
    assert format.plot_ratio(Estimate(1.5, 5, Interval(1.4, 1.7)), domain) == "············│·····─●──···"
    assert format.plot_ratio(Estimate(1.0, 1), domain) == "············●············"
    # an interval that goes on beyond the plot says so
    assert format.plot_ratio(Estimate(1.5, 5, Interval(0.1, 1e300)), domain) == "◂──────────────────●────▸"
    assert format.plot_curve([1.0, 2.0, 4.0, 8.0]) == "▁▂▄█"
    assert format.plot_curve([3.0, 3.0]) == "▁▁"


@pytest.mark.slow
@given(st.lists(st.tuples(POSITIVE, POSITIVE, POSITIVE), min_size=1, max_size=8), st.floats(0.001, 0.5))
def test_plots_that_stand_below_one_another_are_as_wide_and_each_has_its_value(values, margin):
    estimates = [Estimate(middle, 5, Interval(low, high)) for low, middle, high in (sorted(three) for three in values)]
    domain = choose_ratio_domain(estimates, margin)
    for estimate in estimates:
        plot = format.plot_ratio(estimate, domain)
        assert len(plot) == format.PLOT_WIDTH
        assert plot.count(format.POINT) == 1
