"""The screen of the newest runs: the increases that it finds, and how often it is wrong."""

import math

import numpy as np
import pytest

from harness.history.screen import Past, find_threshold, screen

NIGHTS = 40


def normal(nights=NIGHTS, spread=0.03, seed=0):
    return np.random.default_rng(seed).normal(size=nights) * spread


@pytest.mark.slow
@pytest.mark.parametrize(("count", "planned"), [(4, 4), (40, 8)])
def test_noise_is_suspected_about_as_often_as_planned(count, planned):
    threshold = find_threshold(count, planned)
    months, suspected = 300, 0
    for seed in range(months):
        values, past = normal(60, seed=seed), Past()
        for night in range(31, 61):
            if found := screen(values[:night], threshold, past):
                suspected += 1
                past = Past(0, night, found.change.index)
    # normal values have fewer spikes than real ones
    assert planned / 4 < suspected / months * count < planned


def test_a_step_is_found_in_the_window_that_it_fills_and_spikes_and_decreases_are_not():
    threshold = find_threshold(10)

    def find(step, nights):
        values = normal(spread=0.02, seed=1)
        values[NIGHTS - nights :] += math.log1p(step)
        found = screen(values, threshold, Past())
        return found and (found.change.index, found.is_drift)

    assert find(0.30, 1) == (NIGHTS - 1, False)
    assert find(0.08, 3) == (NIGHTS - 3, False)
    assert [find(0.0, 0), find(0.06, 1), find(-0.3, 3)] == [None] * 3


def test_the_same_step_is_not_suspected_again_and_one_on_top_of_it_is():
    values = normal(spread=0.02, seed=2)
    values[NIGHTS - 8 :] += 0.08
    refuted = Past(0, NIGHTS - 5, NIGHTS - 8)
    assert screen(values, 2.0, Past())
    assert screen(values, 2.0, refuted) is None
    assert screen(values, 2.0, Past(NIGHTS - 8, NIGHTS - 5)) is None
    values[NIGHTS - 3 :] += 0.15
    assert screen(values, 2.0, refuted)
    # the nights of an earlier measurement are no news
    assert screen(values, 2.0, Past(0, NIGHTS)) is None


def test_a_drift_is_against_the_month_before_last_and_few_nights_are_no_level():
    drift = normal(80, 0.015, seed=3) + np.maximum(0.0, np.arange(80) - 30) * 0.01 / 7
    found = [screen(drift[:night], find_threshold(4), Past()) for night in range(45, 81)]
    assert any(entry and entry.is_drift for entry in found)
    assert screen([0.0] * 5, 1.5, Past()) is None
    assert screen([0.0] * 5 + [1.0], 1.5, Past())
