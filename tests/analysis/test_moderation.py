"""What a group's launches scatter by, and moderated variances."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import polygamma

from harness.analysis.moderation import (
    PRIOR_FREEDOM,
    LaunchVariances,
    Residual,
    _inverse_trigamma,
    moderate,
    residual,
    weight,
)
from harness.analysis.statistics import RESOLUTION, Logs

#: With four degrees of freedom, and logs of the variances that lie ± this around their mean in a dozen of them, the
#: logs vary by π²/3 - 9/4, and that is ψ'(2) + ψ'(3): the first is sampling, and the second is d0 = 6.
LENDS_SIX = math.sqrt((math.pi**2 / 3.0 - 2.25) * 11.0 / 12.0)
#: The same of four variances: their logs vary by ψ'(2) + ψ'(1), and the second is d0 = 2.
LENDS_TWO = math.sqrt((math.pi**2 / 3.0 - 1.0) * 3.0 / 4.0)


def degrees(like, freedom_=4.0):
    return np.full(like.shape, freedom_)


def lent(variances, freedom_=4.0, scatter=None):
    """The moderated variances, and their degrees of freedom; all are of one group, which scatters like that."""
    variances = np.asarray(variances, np.float64)
    logs = Logs(np.zeros_like(variances), variances, np.ones_like(variances), degrees(variances, freedom_))
    moderated = moderate(logs, np.ones_like(variances), [scatter] * variances.size)
    return moderated.variance, moderated.freedom


def scattered(count, spread):
    """Variances whose logs lie alternately `spread` above and below that of 1e-4."""
    return 1e-4 * np.exp(spread * np.resize([1.0, -1.0], count))


def test_what_a_group_knows_is_lent_to_its_own_comparisons_four_degrees_at_most():
    variances, freedom = lent([1e-4, 4e-4, 2e-4], 2.0, Residual(3e-4, 8.0))
    assert variances == pytest.approx([14e-4 / 6.0, 20e-4 / 6.0, 16e-4 / 6.0])
    assert freedom.tolist() == [6.0] * 3
    for known_degrees, lends in ((1.0, 0.0), (2.0, 0.0), (3.0, 1.0), (6.0, PRIOR_FREEDOM), (100.0, PRIOR_FREEDOM)):
        variances, freedom = lent([1e-4], 2.0, Residual(3e-4, known_degrees))
        assert variances == pytest.approx([(lends * 3e-4 + 2.0 * 1e-4) / (lends + 2.0)]), known_degrees
        assert freedom.tolist() == [2.0 + lends], known_degrees
    assert [part.size for part in lent(np.empty(0))] == [0, 0]
    measured = np.full(3, 1e-4)
    groups = [Residual(2e-4, 12.0), None, Residual(3e-4, 5.0)]
    moderated = moderate(Logs(np.zeros(3), measured, np.ones(3), degrees(measured)), [2.0, 1.0, 1.0], groups)
    # a residual is of one launch, and weighed
    assert moderated.variance == pytest.approx([2.5e-4, 1e-4, 7e-4 / 5.0])
    assert moderated.freedom.tolist() == [8.0, 4.0, 5.0]


def test_otherwise_the_groups_residual_lends_less_where_variances_differ():
    for measured, freedom_ in [
        # three rounds are too few to estimate a weight from
        (np.full(12, 1e-4), 2.0),
        (np.full(11, 1e-4), 4.0),
        # one comparison and two rounds are too few to estimate even a smaller one from
        (np.full(1, 3e-4), 4.0),
        (np.array([0.01e-4, 4e-4]), 1.0),
    ]:
        variances, freedom = lent(measured, freedom_, Residual(2e-4, 100.0))
        assert variances == pytest.approx((PRIOR_FREEDOM * 2e-4 + freedom_ * measured) / (PRIOR_FREEDOM + freedom_))
        assert freedom.tolist() == [freedom_ + PRIOR_FREEDOM] * measured.size
    quiet, loud = (1e-4 * math.exp(sign * LENDS_TWO) for sign in (-1.0, 1.0))
    variances, freedom = lent([quiet, loud, quiet, loud], 4.0, Residual(1e-4, 100.0))
    assert freedom == pytest.approx(np.full(4, 4.0 + 2.0))
    # what is small may be so by chance: it is as large as with four degrees
    assert variances == pytest.approx(np.resize([(4e-4 + 4.0 * quiet) / 8.0, (2e-4 + 4.0 * loud) / 6.0], 4))


def test_a_variance_too_large_beside_the_groups_other_launches_stays_its_own():
    quiet, kept = Residual(1e-4, 12.0), PRIOR_FREEDOM * (1.0 - math.sqrt(0.5))
    for measured, group, variances, freedom in (
        # the others' ten degrees have 12 · 1e-4 less twice the variance: 6.94, F(2, 4) at 5 %, is reached at 3.49e-4
        ([3.4e-4, 3.6e-4], quiet, [(4e-4 + 6.8e-4) / 6.0, 3.6e-4], [6.0, 2.0 + kept]),
        # of the only comparison of a table F(2, 4) is above 4.32 once in ten times, which is at 2.78e-4
        ([2.7e-4], quiet, [9.4e-4 / 6.0], [6.0]),
        ([2.9e-4], quiet, [2.9e-4], [2.0]),
        # three rounds of a loud cell and its reference: of five degrees two are its own, so it is 2.4 times the mean
        ([12e-4], Residual(5e-4, 5.0), [12e-4], [2.0]),
    ):
        moderated, degrees_ = lent(measured, 2.0, group)
        assert (moderated.tolist(), degrees_.tolist()) == (pytest.approx(variances), pytest.approx(freedom)), measured
    logs = Logs(np.zeros(2), np.array([3.4e-4, 3.6e-4]), np.ones(2), degrees(np.zeros(2), 2.0))
    # (12 · 1e-4 - 7.2e-4) / 10 is the variance of the others
    assert moderate(logs, np.ones(2), [quiet] * 2).excess.tolist() == [0.0, pytest.approx(math.sqrt(3.6 / 0.48))]


@given(st.floats(-14.0, 14.0))
def test_trigamma_is_inverted(exponent):
    assert polygamma(1, _inverse_trigamma(10.0**exponent)) == pytest.approx(10.0**exponent, rel=1e-6)


def scatter(table, control=None, without=()):
    """The residual of a table of logs, a row for each round; `control` are the second launches of its first cell."""
    logs = {(number, place): log for number, row in enumerate(table) for place, log in enumerate(row)}
    launches = [(place, number, log) for (number, place), log in logs.items() if (number, place) not in without]
    launches += [(0, number, log) for number, log in enumerate(control or [])]
    return residual(*zip(*launches, strict=True))


#: Beside its rows' and columns' means: 1.5, 0 and -1.5, and the opposite.
TABLE = [[0.0, 0.0, 0.0], [0.0, 3.0, 6.0]]


def test_a_residual_that_can_be_computed_by_hand():
    assert scatter(TABLE) == Residual(pytest.approx(9.0 / 2.0), 2.0)
    # two launches of the control's cell, 1 and 3 apart: half of 1 and of 9
    assert scatter([[1.0], [1.0]], control=[2.0, -2.0]) == Residual(pytest.approx((0.5 + 4.5) / 2.0), 2.0)
    # a cell with one launch and a round with one tell nothing
    two = Residual(pytest.approx(scatter([row[:2] for row in TABLE]).variance), 1.0)
    assert scatter(TABLE, without=[(0, 2)]) == two
    assert scatter([*TABLE, [9.0] * 3], without=[(0, 2), (2, 0), (2, 1)]) == two
    # times that are equal scatter by what a clock tells
    assert scatter([[0.5] * 3] * 4) == Residual(RESOLUTION**2, 6.0)
    # where the cells and rounds explain all, there is none: one launch, round, or cell, and no round in common
    for table in ([[1.0]], [[1.0, 2.0, 4.0]], [[1.0], [2.0], [4.0]]):
        assert scatter(table) is None
    assert scatter([[1.0, 2.0], [3.0, 9.0]], without=[(0, 0), (1, 1)]) is None


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 7), st.floats(-1.0, 1.0)), min_size=1, max_size=60))
def test_it_is_what_least_squares_leave(launches):
    cells, rounds, logs = (np.array(entry) for entry in zip(*launches, strict=True))
    design = np.concatenate([np.eye(5)[cells], np.eye(8)[rounds]], axis=1)
    freedom = len(launches) - np.linalg.matrix_rank(design)
    moderated = residual(cells.tolist(), rounds.tolist(), logs.tolist())
    assert (moderated.freedom if moderated else 0) == freedom
    if moderated:
        left = logs - design @ np.linalg.lstsq(design, logs, rcond=None)[0]
        assert moderated.variance == pytest.approx(max(left @ left / freedom, RESOLUTION**2), rel=1e-6, abs=1e-14)


def of_group(within):
    """Three rounds of the cells a to d, whose launches scatter at random."""
    draw = np.random.default_rng(3)
    launches = [(cell, number) for number in range(3) for cell in "abcd"]
    cells, numbers = zip(*launches, strict=True)
    return LaunchVariances(cells, numbers, draw.normal(size=len(launches)).tolist(), within)


def of_cells(moderated, cells):
    launches = [
        entry for entry in zip(moderated.cells, moderated.rounds, moderated.logs, strict=True) if entry[0] in cells
    ]
    return residual(*zip(*launches, strict=True))


def test_a_comparison_learns_from_what_scatters_within_launches_as_the_louder_of_its_cells():
    for case, within, alike in (
        ("samples tell nothing", {}, "abcd"),
        ("twice and half as much", {"a": 0.02, "b": 0.01, "c": 0.01, "d": 0.04}, "abcd"),
        ("more and less than that", {"a": 0.02, "b": 0.01, "c": 0.009, "d": 0.041}, "ab"),
        ("not from the quieter one", {"a": 0.02, "b": 0.009, "c": 0.01, "d": 0.04}, "acd"),
        ("what is not known", {"a": 0.001, "b": 0.02, "d": 0.5}, "bc"),
        ("from nothing else", {"a": 0.2, "b": 0.02, "c": 0.02, "d": 0.02}, "a"),
        ("their own are not known", {"c": 0.01, "d": 0.5}, "abcd"),
    ):
        moderated = of_group(within)
        assert moderated.between("a", "b") == moderated.between("b", "a") == of_cells(moderated, alike), case
    assert LaunchVariances([], [], [], {}).between("a", "b") is None


def test_a_weight_that_can_be_computed_by_hand():
    assert weight(scattered(12, LENDS_SIX), np.full(12, 4.0)) == pytest.approx(6.0)
    # variances that scatter no more than samples do have no limit, and those of all sizes no weight
    assert weight(np.full(12, 4e-4), np.full(12, 4.0)) == math.inf
    assert weight(scattered(12, 0.3), np.resize([3.0, 7.0], 12)) == math.inf
    all_sizes = np.logspace(-12.0, 0.0, 13)
    assert weight(all_sizes, degrees(all_sizes)) < 0.5
    # that with which they were drawn is found again
    draw = np.random.default_rng(7)
    for freedom in (4.0, 8.0, 30.0):
        true = freedom / draw.chisquare(freedom, 5000)
        moderated = weight(true * draw.chisquare(4.0, 5000) / 4.0, np.full(5000, 4.0))
        assert moderated == pytest.approx(freedom, rel=0.25)


def test_a_dozen_variances_that_are_alike_give_their_residual_more_weight():
    for count, spread, known_degrees, degrees_lent in [
        # fewer than a dozen: four, whatever they look like
        (11, 0.1, 100.0, PRIOR_FREEDOM),
        (12, LENDS_SIX, 100.0, 6.0),
        # never more than the residual knows beyond the comparison's own
        (12, LENDS_SIX, 9.0, 5.0),
        (12, 0.1, 50.0, 46.0),
    ]:
        measured = scattered(count, spread)
        variances, freedom = lent(measured, 4.0, Residual(1e-4, known_degrees))
        lent_to = freedom > 4.0 + 0.9 * degrees_lent
        assert lent_to.any()
        assert freedom[lent_to] == pytest.approx(4.0 + degrees_lent), (count, spread, known_degrees)
        moderated = (degrees_lent * 1e-4 + 4.0 * measured[lent_to]) / (degrees_lent + 4.0)
        assert variances[lent_to] == pytest.approx(moderated), (count, spread, known_degrees)


@given(st.integers(0, 2**32))
def test_what_one_machine_measured_learns_nothing_from_another(seed):
    draw = np.random.default_rng(seed)
    logs = Logs(draw.normal(size=30), draw.gamma(2.0, 1e-4, 30), np.full(30, 5.0), degrees(np.zeros(30)))
    weights, residuals = np.full(30, 2.0), [Residual(1e-4, 12.0)] * 30
    machines = ["a", "b", "b"] * 10
    together = moderate(logs, weights, residuals, machines)
    for machine in "ab":
        places = [at for at, name in enumerate(machines) if name == machine]
        part = Logs(logs.mean[places], logs.variance[places], logs.rounds[places], logs.freedom[places])
        separate = moderate(part, weights[places], residuals[: len(places)])
        assert together.variance[places].tolist() == separate.variance.tolist()
        assert together.freedom[places].tolist() == separate.freedom.tolist()
