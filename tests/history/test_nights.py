"""Change points on simulated nights: a short, seeded version of a part of `make simulate`."""

import math

import numpy as np
import pytest

from bench.simulation.correlated import Course, false_suspicions, found_after, rates, shares
from bench.simulation.nights import RULES, SOON, Kind, at_most, between, delay, delays, false_alarms, nights, whole


@pytest.mark.parametrize("kind", Kind)
def test_nothing_is_suspected_where_nothing_changes(kind):
    draw = np.random.default_rng(3)
    made = nights(kind, draw)
    assert false_alarms(RULES["harness"], made, made.ratios) == 0


@pytest.mark.parametrize("kind", [Kind.DRIFT, Kind.SPIKES])
def test_five_percent_are_suspected_within_five_nights(kind):
    assert all(entry and entry <= SOON for entry in delays("harness", (kind, 0.05, 1.0), 4, range(4)))


@pytest.mark.parametrize("kind", [Kind.DRIFT, Kind.REPLACED])
def test_a_change_is_suspected_confirmed_and_has_one_issue(kind):
    of = whole(kind, 6, 0, cells=2)
    assert (of.changes, of.soon, of.confirmed, of.alarmed) == (1, 1, 1, 1)
    assert (of.false_suspicions, of.false_alarms) == (0, 0)


def test_bounds_of_counts_are_those_of_tables():
    # none of n: at most 3 / n, and 1 - 0.025 ** (1 / n) of a share
    assert at_most(0) == pytest.approx(-math.log(0.05))
    assert between(10, 10) == pytest.approx((0.025**0.1, 1.0))
    assert between(0, 10) == pytest.approx((0.0, 1.0 - 0.025**0.1))


@pytest.mark.parametrize("name", [rule for rule in RULES if rule != "harness"])
def test_each_rule_sees_a_step_that_is_plain(name):
    made = nights(Kind.STILL, np.random.default_rng(5), step=math.log(1.3), at=50)
    assert delay(RULES[name], made, made.ratios, 50) is not None


def test_the_rules_of_one_night_take_a_spike_for_a_change():
    draw = np.random.default_rng(6)
    made = [nights(Kind.SPIKES, draw) for _ in range(5)]
    assert (
        sum(false_alarms(RULES["5 % slower than the previous nightly run"], entry, entry.ratios) for entry in made) > 0
    )


def test_allowing_for_correlation_leaves_few_false_suspicions_of_correlated_nights():
    before, now = (
        false_suspicions(name, Course(0.03, 0.8), 7, range(12)) for name in ("harness without the factor", "harness")
    )
    assert now <= 2 < before


def test_a_plain_step_of_independent_nights_is_found_in_its_first_nights():
    assert found_after("harness", Course(0.01), 0.10, 8, range(4)) == [3] * 4


def test_rates_and_shares_are_those_of_the_counts():
    assert rates(3, 600) == ["0.2", "2.5", "25", "200.0"]
    assert rates(0, 300) == ["0 (at most 0.5)", "0 (at most 5.0)", "0 (at most 50)", "-"]
    assert shares([3, None, 7, 16]) == "25 / 50 % (7)"
    assert shares([None]) == "0 / 0 %"
