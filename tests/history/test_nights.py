"""Change points on simulated nights: a short, seeded version of a part of `make simulate`."""

import math

import numpy as np
import pytest

from bench.simulation.correlated import Course, found_after, rates, shares
from bench.simulation.nights import RULES, SOON, Kind, at_most, between, delays, false_alarms, nights
from bench.simulation.whole_nights import whole


@pytest.mark.slow
def test_nothing_is_suspected_where_nothing_changes():
    for kind in Kind:
        simulated = nights(kind, np.random.default_rng(3))
        assert false_alarms(RULES["harness"], simulated, simulated.ratios) == 0, kind


def test_a_step_is_found_in_its_first_nights():
    for kind in (Kind.DRIFT, Kind.SPIKES):
        assert all(night and night <= SOON for night in delays("harness", (kind, 0.05, 1.0), 4, range(2))), kind
    # of independent nights
    assert found_after("harness", Course(0.01), 0.10, 8, range(4)) == [3] * 4


@pytest.mark.parametrize(
    "kind", [pytest.param(Kind.DRIFT, marks=pytest.mark.slow), pytest.param(Kind.REPLACED, marks=pytest.mark.campaign)]
)
def test_a_change_is_suspected_confirmed_and_has_one_issue(kind):
    simulated = whole(kind, 6, 0, cells=2)
    assert (simulated.changes, simulated.soon, simulated.confirmed, simulated.alarmed) == (1, 1, 1, 1)
    assert (simulated.false_suspicions, simulated.false_alarms) == (0, 0)


def test_bounds_rates_and_shares_are_those_of_the_counts():
    # none of n: at most 3 / n, and 1 - 0.025 ** (1 / n) of a share
    assert at_most(0) == pytest.approx(-math.log(0.05))
    assert between(10, 10) == pytest.approx((0.025**0.1, 1.0))
    assert between(0, 10) == pytest.approx((0.0, 1.0 - 0.025**0.1))
    assert rates(3, 600) == ["0.2", "2.5", "25", "200.0"]
    assert rates(0, 300) == ["0 (at most 0.5)", "0 (at most 5.0)", "0 (at most 50)", "-"]
    assert shares([3, None, 7, 16]) == "25 / 50 % (7)"
    assert shares([None]) == "0 / 0 %"
