"""Effects of axes: recovered where they are known, and how sure."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.control import pool_control
from harness.analysis.effects import effects
from harness.analysis.statistics import student
from harness.analysis.verdicts import Verdict, Withheld

MARGIN = 0.03
MODES = {"environment": ["tf1.14", "tf2.0"], "mode": ["graph", "eager"]}
#: The means of docs/examples/headline/report.md, in ms; docs/reference/report.md works them out by hand.
HEADLINE = np.log([[12.0, 12.1], [13.1, 33.3]])


def repeated(cells, rounds=5):
    """The same logs in every round, but for what slows a whole round."""
    return np.stack([cells + 0.3 * number for number in range(rounds)])


def named(effects_):
    return {tuple(change.level for change in effect.changes): effect for effect in effects_}


@st.composite
def factorials(draw):
    """Axes of two to four levels, and any log time for each of their combinations."""
    sizes = draw(st.lists(st.integers(2, 4), min_size=2, max_size=3))
    axes = {f"axis{place}": [f"{place}{level}" for level in "abcd"[:size]] for place, size in enumerate(sizes)}
    count = math.prod(sizes)
    logs = draw(st.lists(st.floats(-8.0, 8.0), min_size=count, max_size=count))
    return axes, np.reshape(logs, sizes)


def by_definition(axes, logs, changes):
    """The effect as the documentation words it: the mean of differences over all combinations of the other axes."""

    def at(point):
        return logs[tuple(axes[axis].index(level) for axis, level in point.items())]

    def change(point, change):
        return {**point, change.axis: change.level}

    others = [axis for axis in axes if axis not in [change.axis for change in changes]]
    differences = []
    for levels in product(*(axes[axis] for axis in others)):
        base = {change.axis: change.base for change in changes}
        point = {axis: {**dict(zip(others, levels, strict=True)), **base}[axis] for axis in axes}
        if len(changes) == 1:
            differences.append(at(change(point, changes[0])) - at(point))
        else:
            first, second = changes
            beside = at(change(change(point, first), second)) - at(change(point, second))
            differences.append(beside - (at(change(point, first)) - at(point)))
    return sum(differences) / len(differences)


@settings(max_examples=40)
@given(factorials())
def test_effects_are_what_the_documentation_says(factorial):
    axes, logs = factorial
    effects_ = effects(repeated(logs), axes, MARGIN)
    singles = [levels[1:] for levels in axes.values()]
    pairs = [pair for one, other in combinations(singles, 2) for pair in product(one, other)]
    assert [tuple(change.level for change in effect.changes) for effect in effects_] == [
        *((level,) for levels in singles for level in levels),
        *pairs,
    ]
    for effect in effects_:
        assert math.log(effect.estimate.value) == pytest.approx(by_definition(axes, logs, effect.changes), abs=1e-9)
        if effect.parts:
            assert effect.estimate.value == pytest.approx(effect.parts.with_second / effect.parts.alone)
            assert effect.parts.alone in effect.parts.alone_interval
            assert effect.parts.together in effect.parts.together_interval


def test_two_rounds_or_a_biased_control_give_effects_no_verdict():
    noise = np.random.default_rng(5).normal(0.0, 0.02, (2, 2, 2))
    for effect in effects(noise, MODES, MARGIN):
        assert (effect.verdict, effect.withheld) == (None, Withheld.FEW_ROUNDS)
        assert effect.level == pytest.approx(1.0 - 0.05 / 3)
        assert effect.estimate.value in effect.estimate.interval
    effects_ = named(effects(repeated(HEADLINE, rounds=1), MODES, MARGIN))
    assert effects_["tf2.0", "eager"].estimate.interval is effects_["tf2.0", "eager"].parts.alone_interval is None
    assert effects_["tf2.0", "eager"].estimate.value == pytest.approx(2.521, abs=0.001)
    assert effects_["eager",].withheld is Withheld.FEW_ROUNDS
    control = pool_control([[0.15, 0.16, 0.15, 0.14, 0.15]])
    for effect in effects(repeated(HEADLINE), MODES, MARGIN, control):
        assert (effect.verdict, effect.withheld) == (None, Withheld.CONTROL)
    # one that only reaches beyond the margin takes nothing
    reaching = pool_control([[-0.3, 0.4, -0.2, 0.3, 0.1]])
    effects_ = named(effects(repeated(np.log([[1.0, 1.1], [1.0, 1.1]])), MODES, MARGIN, reaching))
    assert [effect.verdict for effect in effects_.values()] == [Verdict.SAME, Verdict.SLOWER, Verdict.SAME]


def test_an_effects_variance_is_lent_by_what_the_cells_scatter_by():
    # in three rounds four cells leave (3 - 1) · (4 - 1) = 6 degrees, of which an effect knows two itself
    noise = np.random.default_rng(5).normal(0.0, 0.05, (3, 2, 2))
    change = (noise[:, 1] - noise[:, 0]).mean(axis=1)
    left = noise - noise.mean(axis=0) - noise.mean(axis=(1, 2), keepdims=True) + noise.mean()
    # half of each of two differences: four launches with a quarter of a launch's variance each
    variance = (4.0 * (left**2).sum() / 6.0 + 2.0 * change.var(ddof=1)) / 6.0
    ends = effects(noise, MODES, MARGIN)[0].estimate.interval
    half = math.log(ends.high / ends.low) / 2.0
    assert half == pytest.approx(student(6, 1.0 - 0.05 / 3) * math.sqrt(variance / 3.0))


def test_effects_are_no_more_certain_than_what_was_subtracted_for_cpu_contention():
    logs = repeated(HEADLINE)
    alike = np.full_like(logs, math.log(2.0))
    # of eager mode alone nothing was taken
    unlike = alike * np.array([1.0, 0.0])
    plain, *others = (
        named(effects(logs, MODES, MARGIN, contention=part)) for part in (None, (alike, 1.0), (unlike, 1.0))
    )

    def widths(effects_):
        return {
            levels: math.log(effect.estimate.interval.high / effect.estimate.value)
            for levels, effect in effects_.items()
        }

    quiet, (same, different) = widths(plain), map(widths, others)
    # a main effect is a mean over two pairs of cells, and an additional factor a difference between two
    assert same["eager",] - quiet["eager",] == pytest.approx(0.12 * math.log(2.0))
    assert same["tf2.0", "eager"] - quiet["tf2.0", "eager"] == pytest.approx(2.0 * 0.12 * math.log(2.0))
    assert different["eager",] - quiet["eager",] == pytest.approx((1.0 + 0.12 / math.sqrt(2.0)) * math.log(2.0))
    assert different["tf2.0",] < same["tf2.0",]
    # of three levels, only one lost CPU time, so the effect of another has no such error
    axes = {"mode": ["graph", "eager", "jit"], "dtype": ["float32", "float64"]}
    modes = repeated(np.zeros((3, 2)))
    losses = np.full_like(modes, math.log(2.0)) * np.array([[0.0], [1.0], [0.0]])
    quiet, lost = (widths(named(effects(modes, axes, MARGIN, contention=part))) for part in (None, (losses, 0.0)))
    assert lost["eager",] - quiet["eager",] == pytest.approx(0.12 / math.sqrt(2.0) * math.log(2.0))
    assert lost["jit",] == quiet["jit",]
    # a part is a difference between two single cells
    ends = [math.log(result["tf2.0", "eager"].parts.alone_interval.high) for result in (plain, others[0])]
    assert ends[1] - ends[0] == pytest.approx(math.sqrt(2.0) * 0.12 * math.log(2.0))


@pytest.mark.slow
def test_seldom_has_a_table_a_wrong_verdict_and_its_intervals_hold_the_truth():
    draw, tables = np.random.default_rng(12), 300
    # 5 %, and three standard errors of so many tables
    most = 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / tables)
    at_the_edge = math.log1p(MARGIN) * np.array([[0.0, 1.0], [0.0, 1.0]])
    differences = {Verdict.SLOWER, Verdict.FASTER}
    for truth, ratio, wrong in ((0.0, 1.0, differences), (at_the_edge, 1.0 + MARGIN, {Verdict.SAME})):
        errors, misses = 0, 0
        for _ in range(tables):
            scatter = draw.uniform(0.01, 0.04, (2, 2))
            logs = truth + draw.normal(0.0, 0.1, (3, 1, 1)) + scatter * draw.normal(size=(3, 2, 2))
            effect = effects(logs, MODES, MARGIN)[1]
            errors += effect.verdict in wrong
            misses += ratio not in effect.estimate.interval
        assert max(errors, misses) <= most * tables, wrong
