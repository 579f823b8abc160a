"""What rounds cost."""

from dataclasses import replace

import pytest

from harness.analysis.rounds import seconds_per_round
from harness.model.launch import Role
from tests.factories import cell, launch


def taking(seconds, number=1, **changes):
    return replace(launch(cell(), number=number), seconds=seconds, **changes)


def test_a_round_costs_what_its_launches_took_the_controls_too():
    control = taking(2.0, role=Role.CONTROL)
    assert seconds_per_round([taking(3.0), taking(4.0, cell=cell(mode="eager")), control]) == {control.group: 9.0}


def test_it_is_the_mean_over_rounds_by_group():
    launches = [taking(3.0), taking(5.0, number=2), taking(7.0, group="another")]
    assert seconds_per_round(launches) == {launches[0].group: pytest.approx(4.0), "another": 7.0}


def test_a_round_done_again_is_two_rounds():
    assert seconds_per_round([taking(3.0), taking(5.0, attempt=1)]) == {taking(0.0).group: pytest.approx(4.0)}


def test_nothing_costs_nothing_and_what_was_not_recorded_is_0():
    assert seconds_per_round([]) == {}
    assert seconds_per_round([launch(cell())]) == {launch(cell()).group: 0.0}
