"""Speed-up and efficiency over cores."""

import pytest

from harness.analysis.results import Results
from harness.model.launch import Clock
from harness.model.scenario import CPUS
from tests.factories import rounds, run
from tests.scaled import scaled_run


def points(seconds, **changes):
    tables = Results(*scaled_run(seconds, **changes)).scaling
    return [point for _, of_table in tables for point in of_table]


def test_speed_up_is_over_the_fewest_cores_and_of_the_same_work():
    one, two, four = points({"1": 0.08, "2": 0.05, "4": 0.04})
    assert [point.cores for point in (one, two, four)] == [1, 2, 4]
    assert one.speed_up is one.efficiency is None
    assert two.speed_up.value == pytest.approx(1.6, rel=0.03)
    assert four.efficiency.value == pytest.approx(0.5, rel=0.03)
    # both have the interval of the ratio, here on three times as many cores
    _, two = points({"2": 0.08, "6": 0.04})
    interval = two.speed_up.interval
    assert interval.low < 2.0 < interval.high
    assert two.compared.ratio.inverse == two.speed_up
    assert two.efficiency.interval.high == pytest.approx(interval.high / 3.0)
    _, two = points({"1": 0.08, "2": 0.05}, outputs={"1": 1.0, "2": 2.0})
    assert two.speed_up is two.efficiency is None
    assert points({"1": 0.08, "2": 0.05}, asked={"clock": Clock.CPU}) == points({"2": 0.08}) == []
    # an axis of a scenario's own is no number of cores
    planned, launches = scaled_run({"1": 0.08, "2": 0.05})
    (scenario,) = planned.scenarios
    assert CPUS in scenario.settings
    assert Results(run([launch.cell for launch in launches]), rounds({})).scaling == []
