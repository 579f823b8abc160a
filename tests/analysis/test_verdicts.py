"""Verdicts of a table's comparisons against the margin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import stdtr

from bench.simulation import machine
from harness.analysis.moderation import Residual, moderate
from harness.analysis.statistics import RESOLUTION, Logs, half_widths, student
from harness.analysis.verdicts import (
    ALPHA,
    LARGE,
    MOST_ROUNDS,
    MOST_TIMES,
    ONE_ROUND,
    POWER,
    VAST,
    Verdict,
    Withheld,
    chance_to_settle,
    compute_holm_levels,
    half_widths_after,
    judge,
    judgements,
    make_unjudged,
    rounds_to_settle,
)
from harness.model.defaults import FEWEST_ROUNDS

MARGIN = math.log(1.03)
FASTER, SAME, SLOWER, UNCLEAR = Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNCLEAR


def logs(mean, deviation=0.01, rounds=5.0):
    """Comparisons with these means, all of one standard deviation and so many rounds, nothing lent."""
    mean = np.asarray(mean, np.float64)
    return Logs(mean, np.full_like(mean, deviation**2), np.full_like(mean, rounds), np.full_like(mean, rounds - 1.0))


@st.composite
def families(draw):
    count = draw(st.integers(1, 20))

    def part(elements):
        return draw(arrays.arrays(np.float64, count, elements=elements))

    mean = part(st.one_of(st.floats(-0.1, 0.1), st.floats(-3.0, 3.0), st.sampled_from([MARGIN, -MARGIN, 0.0])))
    rounds = part(st.integers(FEWEST_ROUNDS, 30).map(float))
    return Logs(mean, part(st.floats(1e-3, 0.3)) ** 2, rounds, rounds - 1.0 + part(st.floats(0.0, 20.0)))


def moderated(measured, scatter=None):
    """The comparisons of two launches a round each, in a group that scatters like that."""
    return moderate(measured, np.full_like(measured.mean, 2.0), [scatter] * measured.mean.size)


# half the width of one comparison's interval: t(4) · 0.01 / √5
HALF = student(4) * 0.01 / math.sqrt(5.0)
NEAR = 1e-6


def test_the_verdict_changes_where_the_interval_leaves_the_margin():
    for mean, verdict in [
        (MARGIN + HALF + NEAR, SLOWER),
        (MARGIN + HALF - NEAR, UNCLEAR),
        (MARGIN - HALF + NEAR, UNCLEAR),
        (MARGIN - HALF - NEAR, SAME),
        (-MARGIN + HALF + NEAR, SAME),
        (-MARGIN - HALF + NEAR, UNCLEAR),
        (-MARGIN - HALF - NEAR, FASTER),
    ]:
        judged = judge(logs([mean]), MARGIN)
        assert judged.verdicts == [verdict], mean
        assert judged.half == pytest.approx(HALF), mean


def test_a_comparison_is_judged_by_its_own_margin_and_bias_and_alone_where_it_is_alone():
    log = math.log
    three = judge(logs([log(1.2), log(1.2), log(1.6)]), np.array([MARGIN, LARGE, LARGE]))
    assert three.verdicts == [SLOWER, SAME, SLOWER]
    assert judge(logs([log(1.2), log(1.2)]), MARGIN, np.array([0.0, 0.2])).verdicts == [SLOWER, UNCLEAR]
    # an interval wider than the margin on both sides is unclear
    assert judge(logs([0.0], deviation=0.1), MARGIN).verdicts == [UNCLEAR]
    assert compute_holm_levels(np.array([0.9])).tolist() == [ALPHA]
    assert compute_holm_levels(np.empty(0)).size == 0
    assert judge(logs([]), MARGIN).verdicts == []
    assert [entry.size for entry in rounds_to_settle(logs([]), np.empty(0), MARGIN)] == [0, 0]


def test_the_clearest_is_the_one_whose_interval_stays_off_the_margin_at_the_smallest_level():
    for chances, levels, verdicts in [
        ([0.02, 0.001, 0.04], [0.05 / 2, 0.05 / 3, 0.05], [SLOWER] * 3),
        # 0.03 is above 0.05 / 2, so 0.04 is not looked at with 0.05
        ([0.04, 0.001, 0.03], [0.05 / 2, 0.05 / 3, 0.05 / 2], [UNCLEAR, SLOWER, UNCLEAR]),
        ([0.02, 0.02, 0.02], [0.05 / 3] * 3, [UNCLEAR] * 3),
    ]:
        # at a level of `chance` the interval would just touch the margin
        error = 0.01 / math.sqrt(5.0)
        judged = judge(logs([MARGIN + student(4, 1.0 - chance) * error for chance in chances]), MARGIN)
        assert judged.alpha == pytest.approx(levels), chances
        assert judged.verdicts == verdicts, chances
        assert judged.half == pytest.approx([student(4, 1.0 - 0.05 / 3) * error] * 3), chances
        assert judged.levels == pytest.approx([1.0 - 0.05 / 3] * 3), chances


def test_a_verdict_that_the_shown_interval_leaves_open_has_the_interval_that_decides():
    # the second is judged after the first, by a narrower interval than the shown one
    family = logs([1.0, MARGIN + 1.1 * HALF, 0.0])
    outcomes = judgements(family, judge(family, MARGIN), [5, 5, 5], lost=False)
    assert [outcome.verdict for outcome in outcomes] == [SLOWER, SLOWER, SAME]
    clear, second, same = outcomes
    assert (clear.deciding, same.deciding) == (None, None)
    assert second.ratio.interval.low < 1.03 < second.deciding.interval.low
    assert second.deciding.level < second.level
    (_, lost, _) = judgements(family, judge(family, MARGIN), [5, 5, 5], lost=True)
    assert (lost.verdict, lost.deciding) == (None, None)


@pytest.mark.slow
@settings(max_examples=40)
@given(families())
def test_one_round_fewer_than_suggested_is_less_likely_to_settle_it_than_power(family):
    alpha = np.full(family.mean.size, ALPHA / family.mean.size)
    totals, chances = rounds_to_settle(family, alpha, MARGIN)
    assert ((chances >= 0.0) & (chances <= 1.0 + 1e-9)).all()
    limits = np.minimum(MOST_ROUNDS, MOST_TIMES * family.rounds)
    assert ((totals > family.rounds) & (totals <= limits)).all()
    assert (totals == limits)[chances < POWER].all()
    one_fewer = chance_to_settle(family, np.maximum(totals - 1.0, family.rounds + 0.5), alpha, MARGIN)
    assert (one_fewer[totals - 1.0 > family.rounds] < POWER).all()


def test_the_probability_of_a_verdict_by_hand_and_the_rounds_that_settle_it():
    rounds, alpha = np.array([20.0]), np.array([0.05])
    # five rounds, 20 in all: half a width of t(19) · 0.05 / √20, and a mean that moves by 0.05 · √(1/5 - 1/20)
    half, scale = student(19) * 0.05 / math.sqrt(20.0), 0.05 * math.sqrt(0.15)
    chance = chance_to_settle(logs([0.2], deviation=0.05), rounds, alpha, MARGIN)
    assert chance == pytest.approx(stdtr(4.0, (0.2 - MARGIN - half) / scale), abs=1e-3)
    # those of the same and of a difference add up
    half, scale = student(19) * 0.02 / math.sqrt(20.0), 0.02 * math.sqrt(0.15)
    same, different = 1.0 - 2.0 * stdtr(4.0, (half - MARGIN) / scale), 2.0 * stdtr(4.0, (-half - MARGIN) / scale)
    chance = chance_to_settle(logs([0.0], deviation=0.02), rounds, alpha, MARGIN)
    assert chance == pytest.approx(same + different)
    alpha = np.array([0.05])
    # measured at the margin, the true difference is elsewhere
    (rounds,), (chance,) = rounds_to_settle(logs([MARGIN], deviation=0.05), alpha, MARGIN)
    assert (rounds, 0.5 < chance < POWER) == (MOST_TIMES * 5, True)
    # no number of rounds takes a bias away
    two = logs([0.1, 0.1], deviation=0.05)
    (plain, biased), chances = rounds_to_settle(two, np.array([0.05, 0.05]), MARGIN, np.array([0.0, 0.1]))
    assert (plain < MOST_TIMES * 5, chances[0] >= POWER) == (True, True)
    assert (biased, chances[1] < 0.5) == (MOST_TIMES * 5, True)


@pytest.mark.slow
@given(families(), st.floats(0.001, 0.2))
def test_the_width_after_no_more_rounds_is_todays_and_falls_with_more(family, alpha):
    assert half_widths_after(family, family.rounds, alpha) == pytest.approx(half_widths(family, alpha))
    assert (half_widths_after(family, family.rounds + 1.0, alpha) < half_widths(family, alpha)).all()
    # five rounds with two degrees lent; 45 rounds have 46 degrees
    measured = logs([0.0])
    lent = Logs(measured.mean, measured.variance, measured.rounds, measured.freedom + 2.0)
    assert half_widths_after(lent, np.array([45.0]), 0.05) == pytest.approx(student(46) * 0.01 / math.sqrt(45.0))


def test_seen_from_the_other_cell():
    turned = {FASTER: SLOWER, Verdict.LESS: Verdict.MORE, SAME: SAME, Verdict.DIFFERENT_WORK: Verdict.DIFFERENT_WORK}
    turned |= {back: there for there, back in turned.items()}
    assert {verdict: verdict.turned for verdict in turned} == turned


@pytest.mark.slow
@settings(max_examples=40)
@given(
    arrays.arrays(np.float64, st.integers(1, 30), elements=st.one_of(st.just(0.0), st.floats(0.0, 1e6))),
    st.floats(-1400.0, 1400.0),
    st.sampled_from([2.0, 3.0, 4.0]),
    st.sampled_from([None, Residual(RESOLUTION**2, 12.0), Residual(1e6, 12.0)]),
)
def test_no_spread_and_no_ratio_upsets_the_arithmetic(variances, mean, rounds, scatter):
    # warnings are errors here
    family = moderated(
        Logs.measured(np.full_like(variances, mean), variances, np.full_like(variances, rounds)), scatter
    )
    judged = judge(family, MARGIN)
    assert np.isfinite(judged.half).all()
    assert len(judged.verdicts) == variances.size
    assert (rounds_to_settle(family, judged.alpha, MARGIN)[0] > rounds).all()


@pytest.mark.parametrize(("factor", "verdict"), [(40.0, Verdict.SLOWER), (1 / 40.0, Verdict.FASTER), (25.0, None)])
def test_one_round_settles_a_vast_effect_and_gives_a_bound(factor, verdict):
    judgement = make_unjudged(math.log(factor), None, 1, 0.95)
    assert judgement.verdict is verdict
    assert judgement.withheld is (None if verdict else Withheld.FEW_ROUNDS)
    if verdict:
        interval = judgement.ratio.interval
        assert (interval.low, interval.high) == (pytest.approx(factor / 2.0), pytest.approx(factor * 2.0))
    for change in ({"different_work": True}, {"why": Withheld.TREND}):
        assert make_unjudged(math.log(factor), None, 1, 0.95, **change).ratio.interval is None


@pytest.mark.slow
def test_no_kind_of_noise_makes_a_vast_effect_and_its_bound_holds_in_95_of_100_rounds():
    for name, changes in machine.UNEXPECTED.items():
        own_changes = dict(changes)
        sigma = own_changes.pop("sigma", 0.03)
        for worse in (1.0, 3.0):
            table = machine.table(16, sigma * worse, **own_changes)
            rng = np.random.default_rng(7)
            logs = np.array([machine.launches(table, 1, rng)[0] for _ in range(400)])
            errors = np.abs(logs[:, :, :-2, 0] - logs[:, :, -2:-1, 0] - table.truth)
            errors = errors[~np.isnan(errors)]
            assert np.mean(errors > ONE_ROUND) <= 0.05, (name, worse)
            assert np.mean(errors > VAST) == 0.0, (name, worse)
