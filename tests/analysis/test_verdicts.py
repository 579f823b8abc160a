"""Verdicts of a table's comparisons against the margin."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from harness.analysis.moderation import moderate
from harness.analysis.statistics import RESOLUTION, Logs, half_widths, student
from harness.analysis.verdicts import ALPHA, FEWEST_ROUNDS, MOST_ROUNDS, Verdict, holm, judge, rounds_to_settle

MARGIN = math.log(1.03)
FASTER, SAME, SLOWER, UNCLEAR = Verdict.FASTER, Verdict.SAME, Verdict.SLOWER, Verdict.UNCLEAR

p_values = arrays.arrays(np.float64, st.integers(1, 30), elements=st.floats(0.0, 1.0))


def logs(mean, deviation=0.01, rounds=5.0):
    """Comparisons with these means, all of one standard deviation and so many rounds, nothing lent."""
    mean = np.asarray(mean, np.float64)
    return Logs(mean, np.full_like(mean, deviation**2), np.full_like(mean, rounds), np.full_like(mean, rounds - 1.0))


@st.composite
def families(draw, most=20):
    """Comparisons of every kind: far apart, alike, at the margin, tight and loose, of few rounds and many."""
    count = draw(st.integers(1, most))

    def part(elements):
        return draw(arrays.arrays(np.float64, count, elements=elements))

    mean = part(st.one_of(st.floats(-0.1, 0.1), st.floats(-3.0, 3.0), st.sampled_from([MARGIN, -MARGIN, 0.0])))
    rounds = part(st.integers(FEWEST_ROUNDS, 30).map(float))
    return Logs(mean, part(st.floats(1e-3, 0.3)) ** 2, rounds, rounds - 1.0 + part(st.floats(0.0, 20.0)))


def edges(family, judged):
    return family.mean - judged.half, family.mean + judged.half


# half the width of one comparison's interval: t(4) · 0.01 / √5
HALF = student(4) * 0.01 / math.sqrt(5.0)
NEAR = 1e-6


@pytest.mark.parametrize(
    ("mean", "verdict"),
    [
        (MARGIN + HALF + NEAR, FASTER),
        (MARGIN + HALF - NEAR, UNCLEAR),
        (MARGIN - HALF + NEAR, UNCLEAR),
        (MARGIN - HALF - NEAR, SAME),
        (0.0, SAME),
        (-MARGIN + HALF + NEAR, SAME),
        (-MARGIN + HALF - NEAR, UNCLEAR),
        (-MARGIN - HALF + NEAR, UNCLEAR),
        (-MARGIN - HALF - NEAR, SLOWER),
    ],
)
def test_the_verdict_changes_where_the_interval_leaves_the_margin(mean, verdict):
    judged = judge(logs([mean]), MARGIN)
    assert judged.verdicts == [verdict]
    assert judged.half == pytest.approx(HALF)


def test_an_interval_wider_than_the_margin_on_both_sides_is_unclear():
    assert judge(logs([0.0], deviation=0.1), MARGIN).verdicts == [UNCLEAR]


@pytest.mark.parametrize(
    ("chances", "levels", "verdicts"),
    [
        ([0.02, 0.001, 0.04], [0.05 / 2, 0.05 / 3, 0.05], [FASTER] * 3),
        # 0.03 is above 0.05 / 2, so 0.04 is not looked at with 0.05
        ([0.04, 0.001, 0.03], [0.05 / 2, 0.05 / 3, 0.05 / 2], [UNCLEAR, FASTER, UNCLEAR]),
        ([0.02, 0.02, 0.02], [0.05 / 3] * 3, [UNCLEAR] * 3),
    ],
)
def test_the_clearest_is_the_one_whose_interval_stays_off_the_margin_at_the_smallest_level(chances, levels, verdicts):
    # at a level of `chance` the interval would just touch the margin
    error = 0.01 / math.sqrt(5.0)
    judged = judge(logs([MARGIN + student(4, 1.0 - chance) * error for chance in chances]), MARGIN)
    assert judged.alpha == pytest.approx(levels)
    assert judged.half == pytest.approx([student(4, 1.0 - level) * error for level in levels])
    assert judged.verdicts == verdicts


def test_one_comparison_is_looked_at_as_if_alone_and_none_is_no_trouble():
    assert holm(np.array([0.9])).tolist() == [ALPHA]
    assert holm(np.empty(0)).size == 0
    assert judge(logs([]), MARGIN).verdicts == []
    assert rounds_to_settle(logs([]), np.empty(0), MARGIN).size == 0


@given(p_values)
def test_holm_lies_between_bonferroni_and_no_adjustment(values):
    levels = holm(values)
    assert (levels <= ALPHA).all()
    assert (levels >= ALPHA / values.size).all()


@given(p_values)
def test_holm_rejects_from_the_clearest_down_without_a_gap(values):
    rejected = values <= holm(values)
    if rejected.any() and not rejected.all():
        assert values[rejected].max() <= values[~rejected].min()


@given(families())
def test_the_interval_that_is_shown_is_the_one_that_the_verdict_was_taken_from(family):
    judged = judge(family, MARGIN)
    assert judged.half == pytest.approx(half_widths(family, judged.alpha))
    for low, high, verdict in zip(*edges(family, judged), judged.verdicts, strict=True):
        assert (verdict is FASTER) == (low > MARGIN)
        assert (verdict is SLOWER) == (high < -MARGIN)
        assert (verdict is SAME) == (low > -MARGIN and high < MARGIN)


@given(families())
def test_no_fewer_verdicts_than_by_bonferroni_and_no_more_than_one_by_one(family):
    def clear(half):
        low, high = family.mean - half, family.mean + half
        return (low > MARGIN) | (high < -MARGIN) | ((low > -MARGIN) & (high < MARGIN))

    found = np.array([verdict is not UNCLEAR for verdict in judge(family, MARGIN).verdicts])
    assert (found >= clear(half_widths(family, ALPHA / family.mean.size))).all()
    assert (found <= clear(half_widths(family, ALPHA))).all()


@given(families())
def test_verdicts_turn_with_the_sides(family):
    there = judge(family, MARGIN)
    back = judge(Logs(-family.mean, family.variance, family.rounds, family.freedom), MARGIN)
    assert back.verdicts == [verdict.turned for verdict in there.verdicts]
    assert back.half.tolist() == there.half.tolist()


@given(families(), st.randoms(use_true_random=False))
def test_the_order_of_the_comparisons_does_not_matter(family, draw):
    order = list(range(family.mean.size))
    draw.shuffle(order)
    turned = Logs(family.mean[order], family.variance[order], family.rounds[order], family.freedom[order])
    there, back = judge(family, MARGIN), judge(turned, MARGIN)
    assert back.verdicts == [there.verdicts[index] for index in order]


@given(families(most=1), st.floats(0.0, 0.5))
def test_a_wider_margin_takes_no_same_away_and_shows_no_new_difference(family, more):
    (narrow,), (wide,) = judge(family, MARGIN).verdicts, judge(family, MARGIN + more).verdicts
    assert narrow is not SAME or wide is SAME
    assert wide not in (FASTER, SLOWER) or narrow is wide


def test_a_comparison_that_joins_a_table_widens_the_others_interval():
    alone, joined = judge(logs([0.0]), MARGIN), judge(logs([0.0, MARGIN]), MARGIN)
    assert joined.half[0] > alone.half[0]


@pytest.mark.parametrize("truth", [MARGIN * 0.999, MARGIN * 1.001])
def test_a_table_at_the_margin_holds_a_wrong_verdict_at_most_once_in_twenty(truth):
    draw, tables = np.random.default_rng(11), 1000
    wrong = {FASTER, SLOWER} if truth < MARGIN else {SAME, SLOWER}
    seen = draw.normal(truth, 0.02, (tables, 4, 5))
    fives = np.full(4, 5.0)
    known = [Logs.measured(each.mean(axis=1), each.var(axis=1, ddof=1), fives) for each in seen]
    found = [judge(moderate(each), MARGIN).verdicts for each in known]
    assert sum(bool(wrong.intersection(verdicts)) for verdicts in found) / tables <= ALPHA


@settings(max_examples=40)
@given(families())
def test_with_the_rounds_that_settle_it_a_verdict_is_clear_and_with_one_fewer_it_is_not(family):
    alpha = np.full(family.mean.size, ALPHA / family.mean.size)
    needed = rounds_to_settle(family, alpha, MARGIN)
    distance = np.abs(np.abs(family.mean) - MARGIN)

    def half(rounds):
        freedom = family.freedom - family.rounds + rounds
        return half_widths(Logs(family.mean, family.variance, rounds.astype(float), freedom), alpha)

    unclear = half_widths(family, alpha) >= distance
    told = unclear & (needed > 0)
    assert (needed[told] > family.rounds[told]).all()
    assert (half(np.maximum(needed, 1)) < distance)[told].all()
    assert (half(np.maximum(needed - 1, 1)) >= distance)[told].all()
    untold = unclear & (needed == 0)
    assert (half(np.full(needed.shape, MOST_ROUNDS)) >= distance)[untold].all()


def test_rounds_that_settle_by_hand():
    # t(n - 1) · 0.05 / √n < 0.03: n = 14 gives 0.0289, n = 13 gives 0.0302
    family = logs([MARGIN + 0.03], deviation=0.05)
    assert rounds_to_settle(family, np.array([0.05]), MARGIN).tolist() == [14]


def test_what_moderation_lent_is_lent_to_more_rounds_too():
    own = logs([MARGIN + 0.03], deviation=0.05)
    lent = Logs(own.mean, own.variance, own.rounds, own.freedom + 100.0)
    assert rounds_to_settle(lent, np.array([0.05]), MARGIN) < rounds_to_settle(own, np.array([0.05]), MARGIN)


@pytest.mark.parametrize("mean", [MARGIN, -MARGIN, MARGIN + 1e-5])
def test_at_the_margin_itself_no_number_of_rounds_settles_it(mean):
    assert rounds_to_settle(logs([mean]), np.array([0.05]), MARGIN).tolist() == [0]


@pytest.mark.parametrize(
    ("verdict", "turned"), [(FASTER, SLOWER), (SLOWER, FASTER), (SAME, SAME), (Verdict.DIFFERENT_WORK,) * 2]
)
def test_seen_from_the_other_cell(verdict, turned):
    assert verdict.turned is turned


def test_times_that_are_equal_to_the_last_digit_are_the_same():
    family = moderate(Logs.measured(np.zeros(3), np.zeros(3), np.full(3, 5.0)))
    judged = judge(family, MARGIN)
    assert judged.verdicts == [SAME] * 3
    assert (judged.half < 10.0 * RESOLUTION).all()


@settings(max_examples=40)
@given(
    arrays.arrays(np.float64, st.integers(1, 30), elements=st.one_of(st.just(0.0), st.floats(0.0, 1e6))),
    st.floats(-1400.0, 1400.0),
)
def test_no_spread_and_no_ratio_upsets_the_arithmetic(variances, mean):
    # warnings are errors here
    family = moderate(Logs.measured(np.full_like(variances, mean), variances, np.full_like(variances, 4.0)))
    judged = judge(family, MARGIN)
    assert np.isfinite(judged.half).all()
    assert len(judged.verdicts) == variances.size
    assert (rounds_to_settle(family, judged.alpha, MARGIN) >= 0).all()


@pytest.mark.parametrize("without", [1, 8, 13])
def test_comparisons_without_any_spread_leave_the_others_as_they_are(without):
    variances = np.append(np.zeros(without), 4e-4 * np.exp(np.arange(14.0 - without) / 10.0))
    family = moderate(Logs.measured(np.zeros(14), variances, np.full(14, 5.0)))
    assert family.variance[without:] == pytest.approx(variances[without:], rel=0.15)
