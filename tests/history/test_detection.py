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
from harness.history import levels as fitting
from harness.history.detection import LEAST, P, detect_changes, keep_significant
from harness.history.levels import CAP, FEWEST, Segments, fit_all_levels

NIGHTS = 60


def noise(nights=NIGHTS, spread=0.01, seed=0):
    return np.random.default_rng(seed).normal(size=nights) * spread


def find(values, spread=0.01, *, fewest=FEWEST, p=P, least=LEAST):
    (segments,) = fit_all_levels([(list(values), [spread] * len(values))], fewest=fewest, least=least)
    return keep_significant(segments, p=p, least=least)


def find_places(values, spread=0.01, **options):
    return [change.index for change in find(values, spread, **options)]


def stepped(*steps, nights=NIGHTS, seed=0):
    """Noise of 1 %, with steps (night, share) on it."""
    values = noise(nights, seed=seed)
    for night, share in steps:
        values[night:] += math.log1p(share)
    return values


def test_a_step_is_found_with_its_place_and_size():
    for seed in range(5):
        (change,) = find(stepped((40, 0.05), seed=seed))
        assert abs(change.index - 40) <= 1
        assert change.low <= 1.05 <= change.high
        assert change.ratio == pytest.approx(math.exp(change.after - change.before))
        assert change.p < P
    assert find_places(stepped((20, 0.10), (28, -0.08), (50, 0.20), seed=3)) == [20, 28, 50]
    # within five nights
    assert sum(bool(find(stepped((55, 0.05), seed=seed))) for seed in range(20)) >= 19


def test_noise_spikes_and_a_slope_are_no_change_and_hide_no_step():
    assert not any(find(noise(seed=seed)[:nights]) for seed in range(10) for nights in range(6, NIGHTS, 6))
    for size in (0.1, 1.0, -0.5):
        values = noise(seed=4)
        values[[10, 30, 31, 58, 59]] += size
        assert not any(find(values[:nights]) for nights in range(6, NIGHTS + 1, 2)), size
    assert not find(noise(seed=6) + np.linspace(0.0, 0.08, NIGHTS))
    values = stepped((40, 0.06), seed=5)
    values[[7, 21, 42, 55]] += 0.4
    (change,) = find(values)
    assert change.index in (40, 41)
    assert change.ratio == pytest.approx(1.06, abs=0.01)
    values = noise(seed=6) + np.linspace(0.0, 0.12, NIGHTS)
    values[57:] += 0.5
    assert find_places(values) == [57]


def test_margin_segment_length_and_significance_are_options_and_errors_count():
    values = stepped((30, 0.02), seed=7)
    assert not find(values)
    (place,) = find_places(values, least=math.log1p(0.01))
    assert place == pytest.approx(30, abs=2)
    values = stepped((57, 0.30), seed=9)
    assert find_places(values) == [57]
    assert not find(values, fewest=6)
    assert not find(values, p=1e-300)
    # the same nights, were they known to ± 20 % alone
    values = stepped((30, 0.06), seed=8)
    assert find(values)
    assert not find(values, 0.1)
    # values that are equal to the last digit are one level
    assert find([0.1] * 20, 0.0) == []
    assert find_places([0.1] * 20 + [0.2] * 5, 0.0) == [20]


def test_values_without_a_standard_error_each_are_refused():
    for values, errors in (([0.0], []), ([math.nan] * 9, [0.1] * 9), ([0.0] * 9, [-1.0] * 9), ([0.0], [math.inf])):
        with pytest.raises(ValueError, match="standard error"):
            detect_changes([(values, errors)])


logs = st.lists(st.floats(-5.0, 5.0), max_size=40)


@settings(max_examples=60)
@given(logs, st.floats(0.0, 1.0), st.integers(0, 6))
def test_changes_are_in_order_apart_significant_and_large(values, error, fewest):
    changes = find(values, error, fewest=fewest)
    edges = [0, *(change.index for change in changes), len(values)]
    if changes:
        assert all(end - start >= max(2, fewest) for start, end in pairwise(edges))
    for change in changes:
        assert change.p < P
        assert abs(change.after - change.before) > LEAST
        assert change.low <= change.ratio <= change.high


@settings(max_examples=25)
@given(st.integers(0, 1000), st.floats(-3.0, 3.0), st.integers(8, 52), st.floats(0.06, 1.0))
def test_a_level_more_or_less_and_the_other_direction_change_nothing(seed, level, night, size):
    values = stepped((night, size), seed=seed)
    plain, turned, moved = find(values), find(-values), find(values + level)
    # two places with nearly the same loss can change their order by rounding
    places = [change.index for change in plain]
    assert [change.index for change in turned] == pytest.approx(places, abs=1)
    assert [change.index for change in moved] == pytest.approx(places, abs=1)
    assert [change.ratio for change in turned] == pytest.approx([1.0 / change.ratio for change in plain], rel=0.02)


def compute_losses(y, spread):
    losses = np.minimum(((y[:, None] - fitting._make_grid(y, spread)) / spread[:, None]) ** 2, CAP**2)
    return np.vstack([np.zeros(losses.shape[1]), losses.cumsum(axis=0)])


def compute_least_loss(y, spread, fewest):
    """The least that any levels lose, with the penalty of each but one: by trying each beginning of each level."""
    sums, best = compute_losses(y, spread), [0.0, *[math.inf] * y.size]
    for end in range(fewest, y.size + 1):
        starts = [start for start in range(end - fewest + 1) if math.isfinite(best[start])]
        best[end] = min(
            best[start] + (start > 0) * fitting._PENALTY + (sums[end] - sums[start]).min() for start in starts
        )
    return best[-1]


courses = st.lists(
    st.tuples(st.floats(-0.2, 0.2), st.integers(1, 12), st.sampled_from([0.0, 0.01, 0.05])), min_size=1, max_size=5
)


def course(levels, seed):
    draw = np.random.default_rng(seed)
    return np.concatenate([level + spread * draw.normal(size=nights) for level, nights, spread in levels])


def fit(values, fewest):
    return fit_all_levels([(list(values), [0.01] * len(values))], fewest=fewest, least=LEAST)[0]


@settings(max_examples=30)
@given(courses, st.integers(0, 99), st.integers(2, 5))
def test_no_fittinglose_less_than_those_that_are_found(levels, seed, fewest):
    y = np.append(course(levels, seed), [0.0] * 2 * fewest)
    spread = np.full(y.size, 0.01)
    (places,) = fitting._find_places([y], [spread], fewest)
    sums = compute_losses(y, spread)
    parts = list(pairwise([0, *places, y.size]))
    assert all(end - start >= fewest for start, end in parts)
    total = sum((sums[end] - sums[start]).min() for start, end in parts) + fitting._PENALTY * len(places)
    assert total == pytest.approx(compute_least_loss(y, spread, fewest), rel=1e-9, abs=1e-9)


def find_anew(segments, p):
    """The changes that hold, each tested anew whenever one was taken away."""
    y, spread, places = segments.y, segments.spread, list(segments.places)
    while places:
        parts = list(pairwise(pairwise([0, *places, y.size])))
        steps = [detection._fit_step(y[a:b], spread[a:b], place - a) for (a, place), (_, b) in parts]
        inflation = detection._compute_inflation(detection._estimate_correlation(segments, places, steps))
        freedom = max(1, y.size - len(places) - 1)
        changes = [
            detection._make_change(step, place, b - a, freedom, inflation)
            for step, ((a, place), (_, b)) in zip(steps, parts, strict=True)
        ]
        failed = [change for change in changes if not (change.p < p and abs(change.after - change.before) > LEAST)]
        if not failed:
            return changes
        places.remove(max(failed, key=lambda change: (change.p, -abs(change.after - change.before))).index)
    return []


@settings(max_examples=40)
@given(courses, st.integers(0, 99), st.sampled_from([1e-3, P]))
def test_what_is_remembered_of_a_change_is_what_a_new_test_says(levels, seed, p):
    segments = fit(course(levels, seed), 2)
    assert keep_significant(segments, p=p, least=LEAST) == find_anew(segments, p)


def find_by_otava(values):
    times = np.exp(values).tolist()  # an array is not cut into windows
    changes, _ = compute_change_points(times, window_len=50, max_pvalue=P, min_magnitude=math.expm1(LEAST))
    return [change.index for change in changes]


def test_clear_steps_are_those_that_otava_finds_and_two_bad_nights_at_the_end_are_not():
    for steps in ([(30, 0.08)], [(15, 0.10), (40, -0.10)], [(20, 0.2), (35, 0.1)], []):
        for seed in range(6):
            values = stepped(*steps, seed=seed)
            assert find_places(values) == pytest.approx(find_by_otava(values), abs=1), (steps, seed)
    values = np.append(noise(40, seed=1), [0.3, 0.31])
    assert (find(values), find_by_otava(values)) == ([], [40])


def swinging(correlation, seed, nights=NIGHTS, spread=0.03):
    return spread * autoregression(np.random.default_rng(seed), correlation, nights)


def find_if_independent(values):
    return keep_significant(fit(values, FEWEST), p=P, least=LEAST, is_independent=True)


def test_errors_are_wider_among_slow_swings_and_no_narrower_if_nights_alternate():
    swings = [swinging(0.8, seed) for seed in range(20)]
    assert sum(bool(find_if_independent(values)) for values in swings) >= 8
    assert sum(bool(find(values)) for values in swings) <= 2
    values = swinging(0.5, seed=3, spread=0.01)
    values[40:] += math.log1p(0.15)
    (change,), (narrow,) = find(values), find_if_independent(values)
    assert change.index == pytest.approx(40, abs=1)
    assert change.low < narrow.low < narrow.high < change.high
    values = np.resize([0.02, -0.02], NIGHTS) + noise(spread=0.002)
    values[30:] += math.log1p(0.15)
    assert find(values) == find_if_independent(values)


def estimate(y, cut, spread=0.03):
    segments = Segments(y, np.full(y.size, spread), [cut])
    return detection._estimate_correlation(segments, [cut], [detection._fit_step(y, segments.spread, cut)])


def estimate_many(correlation, nights, cut):
    return np.array([estimate(swinging(correlation, seed, nights), cut) for seed in range(200)])


@pytest.mark.slow
def test_the_correlation_of_nights_is_estimated_without_much_bias_and_of_few_nights_it_is_not_wild():
    for correlation in (0.5, 0.8):
        assert estimate_many(correlation, 60, 45).mean() == pytest.approx(correlation, abs=0.05)
    inflations = [detection._compute_inflation(value) for value in estimate_many(0.0, 13, 10)]
    assert np.median(inflations) == 1.0
    assert np.quantile(inflations, 0.9) < 1.7


@settings(max_examples=12)
@given(st.lists(st.tuples(courses, st.integers(0, 99), st.sampled_from([0, 12, 30])), max_size=6))
def test_several_series_have_the_fittingof_each(drawn):
    several = []
    for levels, seed, nights in drawn:
        values = np.append(course(levels, seed), [0.0] * 30)[: nights or None].tolist()
        several.append((values, [0.01] * len(values)))
    together = fit_all_levels(several, fewest=2, least=LEAST)
    for segments, (values, _) in zip(together, several, strict=True):
        single = fit(values, 2)
        assert list(segments.places) == list(single.places)
        np.testing.assert_array_equal(segments.spread, single.spread)
    detected = detect_changes(several)
    assert detected == [changes for entry in several for changes in detect_changes([entry])]
    assert detected == [find(values) for values, _ in several]
