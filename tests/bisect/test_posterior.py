import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.simulation.bisection import End, SearchKind, search
from harness.bisect.posterior import Round
from harness.bisect.posterior import posterior as posterior_of

TWICE = math.log(2.0)


def posterior(count, rounds, unknown=(), **options):
    return posterior_of([entry for entry in range(count) if entry not in unknown], rounds, **options)


def of_ends(count, step=TWICE):
    return [Round(0, count - 1, step)] * 3


counts = st.integers(2, 40)
steps = st.floats(0.05, 3.0)


@given(count=counts, step=st.floats(0.2, 3.0), data=st.data())
def test_exact_rounds_of_both_neighbours_find_the_step(count, step, data):
    place = data.draw(st.integers(0, count - 2))
    probes = [Round(0, value, step * (value > place)) for value in (place, place + 1)]
    result = posterior(count, of_ends(count, step) + probes * 10)
    assert result.likeliest == (place, place + 1)
    assert result.is_found
    assert math.isclose(result.step, step, rel_tol=0.05)


@given(
    count=counts,
    values=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39), st.floats(-3.0, 3.0)), max_size=20),
    unknown=st.sets(st.integers(1, 38)),
)
def test_shares_are_a_distribution_over_the_pairs_of_what_can_be_measured(count, values, unknown):
    unknown = {entry for entry in unknown if entry < count - 1}
    rounds = [Round(fixed % count, probe % count, value) for fixed, probe, value in values]
    result = posterior(count, [*of_ends(count), *rounds], unknown)
    assert math.isclose(result.shares.sum(), 1.0)
    assert len(result.pairs) == len(result.shares) == len(result.candidates) - 1
    assert result.spread > 0.0
    assert set(result.candidates).isdisjoint(unknown)
    assert len(result.candidates) == 2 or result.next_probe() in result.candidates[1:-1]


@given(count=st.integers(3, 30), step=steps, data=st.data())
def test_the_order_of_rounds_and_the_sign_of_the_step_do_not_matter(count, step, data):
    numbers = st.integers(0, count - 1)
    rounds = data.draw(st.lists(st.builds(Round, numbers, numbers, st.floats(-1.0, 1.0)), max_size=12))
    rounds = [*of_ends(count, step), *rounds]
    shuffled = data.draw(st.permutations(rounds))
    turned = [Round(entry.fixed, entry.probe, -entry.value) for entry in rounds]
    result = posterior(count, rounds)
    assert np.allclose(posterior(count, shuffled).shares, result.shares)
    assert np.allclose(posterior(count, turned).shares, result.shares)
    assert math.isclose(posterior(count, turned).step, -result.step, abs_tol=1e-9)


@pytest.mark.slow
@given(count=st.integers(4, 40), data=st.data())
def test_with_the_ends_alone_the_middle_is_next(count, data):
    unknown = data.draw(st.sets(st.integers(1, count - 2), max_size=count - 3))
    result = posterior(count, of_ends(count), unknown)
    first = result.next_probe()
    # what is nearest to half of the places, of those that can be measured
    inner = result.candidates[1:-1]
    assert abs(first - (count - 1) / 2.0) == min(abs(entry - (count - 1) / 2.0) for entry in inner)


@given(count=st.integers(3, 30), data=st.data())
def test_a_pair_with_unknown_candidates_between_has_their_chance_too(count, data):
    gap = data.draw(st.integers(1, count - 2))
    result = posterior(count, of_ends(count), {gap})
    shares = dict(zip(result.pairs, result.shares, strict=True))
    assert math.isclose(shares[gap - 1, gap + 1], 2.0 / (count - 1))


def test_how_many_rounds_a_step_needs_and_the_likely_range():
    assert posterior(5, of_ends(5, math.log(10.0))).rounds() == 1
    assert posterior(5, of_ends(5, math.log(1.02))).rounds() == 3
    assert posterior(5, of_ends(5, 0.0)).rounds() == 3
    unclear = posterior(10, [*of_ends(10), *[Round(0, 4, 0.35)] * 3, *[Round(0, 3, 0.0), Round(0, 5, TWICE)] * 9])
    assert not unclear.is_found
    assert unclear.likely_range == (3, 5)
    result = posterior(10, [*of_ends(10), *[Round(3, 4, TWICE)] * 3])
    assert result.likely_range == result.likeliest


def test_a_search_has_two_measured_ends_whose_numbers_need_not_start_at_0():
    rounds = [*of_ends(6), Round(0, 3, 0.0)]
    moved = [Round(entry.fixed + 20, entry.probe + 20, entry.value) for entry in rounds]
    result, other = posterior(6, rounds), posterior_of(range(20, 26), [*moved, Round(0, 22, 9.0)])
    assert np.allclose(result.shares, other.shares)
    assert other.next_probe() == result.next_probe() + 20
    for count in (0, 1):
        with pytest.raises(ValueError, match="ends"):
            posterior(count, of_ends(2))
    for probes in ([], [1], [1, 2, 3]):
        with pytest.raises(ValueError, match="ends"):
            posterior(5, [Round(0, probe, 1.0) for probe in probes])


def test_a_candidate_of_many_rounds_stays_uncertain_and_gains_little_by_one_more():
    near = [Round(0, 4, 0.035)] * 20 + [Round(0, 3, 0.0)] * 20
    result = posterior(10, [*of_ends(10, 0.05), *near])
    # 3.5 % of a step of 5 %: measured often, and still of either side
    assert result.likeliest == (3, 4)
    assert not result.is_found
    assert posterior(10, [*of_ends(10, 0.05), *near], unit=1e-6).is_found
    rounds = [*of_ends(7, 0.05), *[Round(0, 3, 0.025)] * 6]
    gains = posterior(7, rounds).gains
    assert gains[3] < 0.5 * gains[2]
    # of candidates that differ by nothing of their own, all rounds add as much
    assert posterior(7, rounds, unit=1e-6).gains == pytest.approx(1.0)


def test_rounds_of_a_scan_share_a_launch_and_so_tell_less_of_the_step_together():
    values = [0.0, 0.04, 0.04, 0.04, 0.04]
    apart, scanned = (
        posterior(6, [Round(0, at, value, is_scan=is_scan) for at, value in enumerate(values, start=1)])
        for is_scan in (False, True)
    )
    # what they have in common may be the one launch's noise: the step is as likely between the first two
    assert scanned.shares[0] != pytest.approx(apart.shares[0])
    assert scanned.likeliest == apart.likeliest == (1, 2)


@pytest.mark.slow
def test_a_simulated_search_names_no_wrong_pair_without_a_warning():
    for kind in (SearchKind(26, scanned=True), SearchKind(26, heavy=True), SearchKind(166)):
        stepped = replace(kind, step=math.log(1.1))
        result = search(stepped, 20, seed=1)
        assert result.ends[End.WRONG] == 0.0
        assert result.ends[End.RIGHT] >= 0.9
        assert result.right >= search(stepped, 20, seed=1, plain=3).right
