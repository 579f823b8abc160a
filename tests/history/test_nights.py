"""Change points on simulated nights: a short, seeded version of a part of `make simulate` (docs/simulation.md)."""

import math

import numpy as np
import pytest

from bench.simulation.nights import RULES, Kind, found_share, nights, said


@pytest.mark.parametrize("kind", Kind)
def test_nothing_is_suspected_where_nothing_changes(kind):
    draw = np.random.default_rng(3)
    made = nights(kind, draw)
    assert said(RULES["harness"], made, made.ratios).false == 0


@pytest.mark.parametrize("kind", [Kind.DRIFT, Kind.SPIKES])
def test_five_percent_are_suspected_within_five_nights(kind):
    soon, ever, delay = found_share("harness", kind, 0.05, 2, seed=4)
    assert (soon, ever) == (1.0, 1.0)
    assert delay <= 5


@pytest.mark.parametrize("name", [each for each in RULES if each != "harness"])
def test_each_rule_sees_a_step_that_is_plain(name):
    made = nights(Kind.STILL, np.random.default_rng(5), step=math.log(1.3), at=50)
    assert said(RULES[name], made, made.ratios, 50).delay is not None


def test_the_rules_of_one_night_take_a_spike_for_a_change():
    draw = np.random.default_rng(6)
    made = [nights(Kind.SPIKES, draw) for _ in range(5)]
    assert sum(said(RULES["5 % slower than the night before"], each, each.ratios).false for each in made) > 0
