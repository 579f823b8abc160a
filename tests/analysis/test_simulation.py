"""The statistics on simulated machines: a short, seeded version of `make simulate` (docs/simulation.md)."""

import math

import pytest

from bench.simulation import others
from bench.simulation.machine import Drift, Mixture, Spread, table
from bench.simulation.ours import MARGIN, outcome

TABLES = 300
#: Three standard errors of a share of 5 % in so many tables.
SLACK = 3.0 * math.sqrt(0.05 * 0.95 / TABLES)

machines = pytest.mark.parametrize(
    ("sigma", "spread", "drift"),
    [
        (0.01, Spread.EQUAL, Drift.LINEAR),
        (0.02, Spread.UNEQUAL, Drift.STEPS),
        (0.05, Spread.EQUAL, Drift.PERIODIC),
        (0.10, Spread.UNEQUAL, Drift.NONE),
        (0.10, Spread.EQUAL, Drift.LINEAR),
    ],
)
sizes = pytest.mark.parametrize(("comparisons", "rounds"), [(1, 4), (4, 5), (16, 5), (32, 8), (128, 4), (128, 20)])


@machines
@sizes
def test_equal_cells_are_seldom_called_different_and_intervals_hold_the_truth(
    sigma, spread, drift, comparisons, rounds
):
    found = outcome(table(comparisons, sigma, spread=spread, drift=drift), rounds, TABLES, seed=1)
    assert found.false_alarms <= 0.05 + SLACK
    assert 0.93 - SLACK <= found.coverage <= 0.97 + SLACK


@machines
@sizes
def test_cells_at_the_margins_edge_are_seldom_called_the_same(sigma, spread, drift, comparisons, rounds):
    kind = table(comparisons, sigma, spread=spread, drift=drift, effect=MARGIN)
    assert outcome(kind, rounds, TABLES, seed=2).false_same <= 0.05 + SLACK


@pytest.mark.parametrize("comparisons", [1, 4, 16])
@pytest.mark.parametrize("sigma", [0.02, 0.03, 0.05])
def test_stopping_by_width_keeps_the_coverage(sigma, comparisons):
    kind = table(comparisons, sigma, spread=Spread.UNEQUAL, drift=Drift.LINEAR)
    found = outcome(kind, 40, TABLES, seed=3, precision=0.02)
    assert 0.93 - SLACK <= found.coverage <= 0.97 + SLACK
    assert found.false_alarms <= 0.05 + SLACK
    assert 8.0 <= found.rounds <= 40.0


def test_wide_machines_get_more_rounds_than_quiet_ones():
    rounds = [outcome(table(1, sigma), 60, 50, seed=4, precision=0.02).rounds for sigma in (0.01, 0.03, 0.05)]
    assert rounds == sorted(rounds)
    assert rounds[0] < rounds[-1]


def test_a_tenth_is_found_among_32_comparisons_in_five_rounds():
    kind = table(32, 0.03, effect=-math.log(1.10))
    # without what the comparisons lend one another: 16 to 35 %
    assert outcome(kind, 5, TABLES, seed=5).found > 0.5


def test_launches_in_two_modes_are_told_though_their_intervals_may_miss_the_truth():
    quiet = outcome(table(4, 0.02), 8, TABLES, seed=6)
    mixed = outcome(table(4, 0.02, mixture=Mixture(0.1, 0.3)), 20, TABLES, seed=6)
    assert mixed.outlying > 0.7
    assert mixed.coverage < quiet.coverage


def test_two_blocks_call_equal_cells_different_where_the_machine_drifts():
    drifting = table(1, 0.02, drift=Drift.LINEAR)
    called = others.shares(drifting, 10, 100, seed=7)
    assert called["Student's t over two blocks (pyperf)"] > 0.9
    assert called["Mann-Whitney at 0.002 over two blocks (asv)"] > 0.9
    assert outcome(drifting, 10, 100, seed=7).false_alarms <= 0.05
