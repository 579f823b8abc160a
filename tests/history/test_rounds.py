"""The rounds of nightly runs, as the variation of their history asks."""

from dataclasses import replace

import pytest

from harness.history.rounds import find_rounds, plan_rounds
from tests.factories import cell, run
from tests.history.series import KEY, noise, series


def of_rounds(logs, rounds, error=0.0):
    one_series = series(logs)
    points = [
        point._replace(rounds=rounds, low=point.log_ratio - error, high=point.log_ratio + error)
        for point in one_series.points
    ]
    return replace(one_series, points=points)


def test_a_series_has_rounds_by_its_noise_and_a_group_those_of_its_noisiest():
    assert find_rounds(of_rounds(noise(30, spread=0.01), 2)) == 1
    assert find_rounds(of_rounds(noise(30, spread=0.04), 2)) == pytest.approx(8, abs=3)
    # a step is no variation
    assert find_rounds(of_rounds([*noise(15, spread=0.01), *noise(15, 0.5, spread=0.01)], 2)) == 1
    # rounds that agree don't help against variation between runs
    assert find_rounds(of_rounds(noise(30, spread=0.06), 5, error=0.002)) == 1
    assert find_rounds(of_rounds(noise(9, spread=0.06), 5)) == 0
    cells = [cell(name, call="fit") for name in ("tf1.14", "tf2.1")]
    planned = run(cells).plan
    key = replace(KEY, scenario=cells[0].scenario, axes=tuple(sorted(cells[0].axes.items())))
    quiet, noisy = (replace(of_rounds(noise(30, spread=spread), 2), key=key) for spread in (0.01, 0.06))
    assert plan_rounds(planned, [quiet], KEY.machine) == {planned.groups[0].name: 1}
    assert plan_rounds(planned, [quiet, noisy], KEY.machine) == plan_rounds(planned, [quiet], "another") == {}
