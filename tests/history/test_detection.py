"""Change points: found where the level changes, and not where the nights are noise, spikes or a slope."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from otava.analysis import compute_change_points

from bench.simulation.correlated import autoregression
from harness.history import detection
from harness.history.change_cache import SearchOptions, search, search_all
from harness.history.detection import CAP, FEWEST, LEAST, P, Segments, fit_all_levels, fit_levels, keep_significant

NIGHTS = 60


def noise(nights=NIGHTS, spread=0.01, seed=0):
    return np.random.default_rng(seed).normal(size=nights) * spread


def found(values, spread=0.01, **options):
    return search(list(values), [spread] * len(values), SearchOptions(**options)).sure


def stepped(*steps, nights=NIGHTS, seed=0):
    """Noise of 1 %, with steps (night, share) on it."""
    values = noise(nights, seed=seed)
    for night, share in steps:
        values[night:] += math.log1p(share)
    return values


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_found_with_its_place_and_size(seed):
    (change,) = found(stepped((40, 0.05), seed=seed))
    assert abs(change.index - 40) <= 1
    assert change.low <= 1.05 <= change.high
    assert change.ratio == pytest.approx(math.exp(change.after - change.before))
    assert change.p < P


def test_a_step_is_found_within_five_nights():
    assert sum(bool(found(stepped((55, 0.05), seed=seed))) for seed in range(20)) >= 19


def test_steps_up_and_down_are_all_found():
    values = stepped((20, 0.10), (28, -0.08), (50, 0.20), seed=3)
    assert [entry.index for entry in found(values)] == [20, 28, 50]


def test_noise_is_no_change():
    assert not any(found(noise(seed=seed)[:nights]) for seed in range(10) for nights in range(6, NIGHTS, 6))


@pytest.mark.parametrize("size", [0.1, 1.0, -0.5])
def test_spikes_of_one_or_two_nights_are_no_change(size):
    values = noise(seed=4)
    values[[10, 30, 31, 58, 59]] += size
    assert not any(found(values[:nights]) for nights in range(6, NIGHTS + 1))


def test_a_step_is_found_among_spikes():
    values = stepped((40, 0.06), seed=5)
    values[[7, 21, 42, 55]] += 0.4
    (change,) = found(values)
    assert change.index in (40, 41)
    assert change.ratio == pytest.approx(1.06, abs=0.01)


def test_a_slope_is_no_step():
    assert not found(noise(seed=6) + np.linspace(0.0, 0.08, NIGHTS))


def test_a_step_after_a_slope_is_found_in_its_third_night():
    values = noise(seed=6) + np.linspace(0.0, 0.12, NIGHTS)
    values[57:] += 0.5
    assert [entry.index for entry in found(values)] == [57]


def test_what_is_within_the_margin_is_no_change_unless_asked():
    values = stepped((30, 0.02), seed=7)
    assert not found(values)
    (change,) = found(values, least=math.log1p(0.01))
    assert change.index == pytest.approx(30, abs=2)


def test_a_wide_interval_counts_for_less():
    values = stepped((30, 0.06), seed=8)
    errors = np.full(NIGHTS, 0.01)
    assert search(list(values), list(errors), SearchOptions()).sure
    # the same nights, were they known to ± 20 % alone
    assert not search(list(values), list(errors * 10.0), SearchOptions()).sure


def test_the_minimal_segment_and_the_significance_are_options():
    values = stepped((57, 0.30), seed=9)
    assert [entry.index for entry in found(values)] == [57]
    assert not found(values, fewest=6)
    assert not found(values, p=1e-300)


def test_values_that_are_equal_to_the_last_digit_are_one_level():
    assert found([0.1] * 20, 0.0) == []
    assert [entry.index for entry in found([0.1] * 20 + [0.2] * 5, 0.0)] == [20]


@pytest.mark.parametrize(
    ("values", "errors"), [([0.0], []), ([math.nan] * 9, [0.1] * 9), ([0.0] * 9, [-1.0] * 9), ([0.0], [math.inf])]
)
def test_what_is_no_series_is_refused(values, errors):
    with pytest.raises(ValueError, match="one standard error"):
        search(values, errors, SearchOptions())


logs = st.lists(st.floats(-5.0, 5.0), max_size=40)


@settings(max_examples=60, deadline=None)
@given(logs, st.floats(0.0, 1.0), st.integers(0, 6))
def test_changes_are_in_order_apart_significant_and_large(values, error, fewest):
    changes = search(values, [error] * len(values), SearchOptions(fewest=fewest)).sure
    edges = [0, *(change.index for change in changes), len(values)]
    if changes:
        assert all(b - a >= max(2, fewest) for a, b in pairwise(edges))
    for entry in changes:
        assert entry.p < P
        assert abs(entry.after - entry.before) > LEAST
        assert entry.low <= entry.ratio <= entry.high


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1000), st.floats(-3.0, 3.0), st.integers(8, 52), st.floats(0.06, 1.0))
def test_a_level_more_or_less_and_the_other_direction_change_nothing(seed, level, night, size):
    values = stepped((night, size), seed=seed)
    plain = found(values)
    moved = found(values + level)
    turned = found(-values)
    assert [entry.index for entry in plain] == [entry.index for entry in moved] == [entry.index for entry in turned]
    assert [entry.ratio for entry in turned] == pytest.approx([1.0 / entry.ratio for entry in plain], rel=1e-3)


def lost(y, spread):
    """What the first nights lose to each level of the grid."""
    losses = np.minimum(((y[:, None] - detection._make_grid(y, spread)) / spread[:, None]) ** 2, CAP**2)
    return np.vstack([np.zeros(losses.shape[1]), losses.cumsum(axis=0)])


def least(y, spread, fewest):
    """The least that any levels lose, with the penalty of each but one: by trying each beginning of each level."""
    sums, best = lost(y, spread), [0.0, *[math.inf] * y.size]
    for t in range(fewest, y.size + 1):
        starts = [s for s in range(t - fewest + 1) if math.isfinite(best[s])]
        best[t] = min(best[s] + (s > 0) * detection._PENALTY + (sums[t] - sums[s]).min() for s in starts)
    return best[-1]


courses = st.lists(
    st.tuples(st.floats(-0.2, 0.2), st.integers(1, 12), st.sampled_from([0.0, 0.01, 0.05])), min_size=1, max_size=5
)


def course(levels, seed):
    """Nights of one level after another, each as noisy as it says."""
    draw = np.random.default_rng(seed)
    return np.concatenate([level + spread * draw.normal(size=nights) for level, nights, spread in levels])


@settings(max_examples=60, deadline=None)
@given(courses, st.integers(0, 99), st.integers(2, 5))
def test_no_levels_lose_less_than_those_that_are_found(levels, seed, fewest):
    y = np.append(course(levels, seed), [0.0] * 2 * fewest)
    spread = np.full(y.size, 0.01)
    (places,) = detection._find_places([y], [spread], fewest)
    sums = lost(y, spread)
    parts = list(pairwise([0, *places, y.size]))
    assert all(b - a >= fewest for a, b in parts)
    total = sum((sums[b] - sums[a]).min() for a, b in parts) + detection._PENALTY * len(places)
    assert total == pytest.approx(least(y, spread, fewest), rel=1e-9, abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(courses, st.integers(0, 99))
def test_levels_that_are_long_enough_are_those_that_have_to_be(levels, seed):
    values = list(course(levels, seed))
    loose = fit_levels(values, [0.01] * len(values), fewest=2, least=LEAST)
    if loose.shortest >= 4 and len(values) >= 8:
        strict = fit_levels(values, [0.01] * len(values), fewest=4, least=LEAST)
        assert list(loose.places) == list(strict.places)
        np.testing.assert_array_equal(loose.spread, strict.spread)


def found_anew(of, p):
    """The changes that hold, each tested anew whenever one was taken away."""
    places = list(of.places)
    while places:
        parts = list(pairwise(pairwise([0, *places, of.y.size])))
        steps = [detection._fit_step(of.y[a:b], of.spread[a:b], at - a) for (a, at), (_, b) in parts]
        inflation = detection._compute_inflation(detection._estimate_correlation(of, places, steps))
        freedom = max(1, of.y.size - len(places) - 1)
        found = [
            detection._make_change(step, at, b - a, freedom, inflation)
            for step, ((a, at), (_, b)) in zip(steps, parts, strict=True)
        ]
        failed = [entry for entry in found if not (entry.p < p and abs(entry.after - entry.before) > LEAST)]
        if not failed:
            return found
        places.remove(max(failed, key=lambda each: (each.p, -abs(each.after - each.before))).index)
    return []


@settings(max_examples=40, deadline=None)
@given(courses, st.integers(0, 99), st.sampled_from([1e-3, P]))
def test_what_is_remembered_of_a_change_is_what_a_new_test_says(levels, seed, p):
    values = list(course(levels, seed))
    of = fit_levels(values, [0.01] * len(values), fewest=2, least=LEAST)
    assert keep_significant(of, p=p, least=LEAST) == found_anew(of, p)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 99), st.integers(4, 80))
def test_the_line_is_the_weighted_one_without_the_spikes(seed, nights):
    draw = np.random.default_rng(seed)
    spread = draw.uniform(0.005, 0.02, size=nights)
    y = 0.3 + 0.01 * np.arange(nights) + spread * np.clip(draw.normal(size=nights), -2.0, 2.0)
    straight = np.polyval(np.polyfit(np.arange(nights), y, 1, w=1.0 / spread), np.arange(nights))
    np.testing.assert_allclose(detection._fit_line(y, spread), straight, rtol=1e-7)


def test_a_level_of_very_many_nights_is_that_of_all():
    y = np.append(np.random.default_rng(1).normal(size=3000) * 0.01, [5.0] * 1000)
    assert detection._fit_level(y, np.full(y.size, 0.01)) == pytest.approx(0.0, abs=1e-3)


def otava(values):
    """What apache-otava finds, with the same significance and size."""
    times = np.exp(values).tolist()  # an array is not cut into windows
    changes, _ = compute_change_points(times, window_len=50, max_pvalue=P, min_magnitude=math.expm1(LEAST))
    return [change.index for change in changes]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("steps", [[(30, 0.08)], [(15, 0.10), (40, -0.10)], [(20, 0.2), (35, 0.1)], []])
def test_clear_steps_are_those_that_otava_finds(steps, seed):
    values = stepped(*steps, seed=seed)
    assert [entry.index for entry in found(values)] == pytest.approx(otava(values), abs=1)


def test_two_bad_nights_at_the_end_are_a_change_to_otava_alone():
    values = np.append(noise(40, seed=1), [0.3, 0.31])
    assert found(values) == []
    assert otava(values) == [40]


def swinging(correlation, seed, nights=NIGHTS, spread=0.03):
    """Nights that are correlated with their neighbors."""
    return spread * autoregression(np.random.default_rng(seed), correlation, nights)


def found_if_independent(values):
    of = fit_levels(list(values), [0.01] * len(values), fewest=FEWEST, least=LEAST)
    return keep_significant(of, p=P, least=LEAST, is_independent=True)


def test_slow_swings_of_a_machine_are_rarely_a_change():
    made = [swinging(0.8, seed) for seed in range(20)]
    assert sum(bool(found_if_independent(values)) for values in made) >= 8
    assert sum(bool(found(values)) for values in made) <= 2


@pytest.mark.parametrize("seed", range(10))
def test_allowing_for_correlation_costs_a_clear_step_at_most_a_night(seed):
    values = stepped((45, 0.05), seed=seed)
    nights = range(46, NIGHTS)
    before = next(night for night in nights if found_if_independent(values[:night]))
    now = next(night for night in nights if found(values[:night]))
    assert before <= now <= before + 1


def test_a_large_step_is_found_among_slow_swings():
    values = swinging(0.5, seed=3, spread=0.01)
    values[40:] += math.log1p(0.15)
    (change,) = found(values)
    assert change.index == pytest.approx(40, abs=1)
    (narrow,) = found_if_independent(values)
    assert change.low < narrow.low < narrow.high < change.high


def test_nights_that_alternate_do_not_shrink_errors():
    values = np.resize([0.02, -0.02], NIGHTS) + noise(spread=0.002)
    values[30:] += math.log1p(0.15)
    assert found(values) == found_if_independent(values)


def estimates(correlation, nights, cut):
    """The lag-1 correlations that many series show, of two levels."""
    found = []
    for seed in range(200):
        of = Segments(swinging(correlation, seed, nights), np.full(nights, 0.03), [cut], cut)
        found.append(detection._estimate_correlation(of, [cut], [detection._fit_step(of.y, of.spread, cut)]))
    return np.array(found)


@pytest.mark.parametrize("correlation", [0.5, 0.8])
def test_the_correlation_of_nights_is_estimated_without_much_bias(correlation):
    assert estimates(correlation, 60, 45).mean() == pytest.approx(correlation, abs=0.05)


def test_the_correlation_of_few_nights_is_not_wild():
    inflations = [detection._compute_inflation(estimate) for estimate in estimates(0.0, 13, 10)]
    assert np.median(inflations) == 1.0
    assert np.quantile(inflations, 0.9) < 1.7


def test_spikes_are_no_correlation():
    values = noise(seed=4)
    plain = Segments(values.copy(), np.full(NIGHTS, 0.01), [30], 30)
    values[[10, 11, 31, 50, 51]] += 1.0
    struck = Segments(values, plain.spread, [30], 30)
    one, other = (
        detection._estimate_correlation(of, [30], [detection._fit_step(of.y, of.spread, 30)]) for of in (plain, struck)
    )
    assert other == pytest.approx(one, abs=0.15)


@pytest.mark.parametrize("seed", range(5))
def test_a_step_is_found_in_its_third_night_or_when_otava_finds_it(seed):
    values = stepped((40, 0.05), seed=seed)
    nights = range(41, NIGHTS)
    ours = next(night for night in nights if found(values[:night]))
    theirs = next(night for night in nights if otava(values[:night]))
    # otava takes one night for a change, which may be a spike
    assert ours <= max(theirs, 40 + FEWEST) + 1


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(courses, st.integers(0, 99), st.sampled_from([0, 12, 30])), max_size=6))
def test_several_series_have_the_levels_of_each(made):
    """Some have the same length, and they have different numbers of levels in their grids."""
    several = []
    for levels, seed, nights in made:
        values = np.append(course(levels, seed), [0.0] * 30)[: nights or None].tolist()
        several.append((values, [0.01] * len(values)))
    together = fit_all_levels(several, fewest=2, least=LEAST)
    for fit, (values, errors) in zip(together, several, strict=True):
        alone = fit_levels(values, errors, fewest=2, least=LEAST)
        assert (list(fit.places), fit.shortest) == (list(alone.places), alone.shortest)
        np.testing.assert_array_equal(fit.spread, alone.spread)
    assert search_all(several, SearchOptions()) == [search(*entry, SearchOptions()) for entry in several]
