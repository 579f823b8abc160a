"""Several modes in one launch."""

import pytest

from harness.analysis.shape import Share, modes, several_modes
from tests.factories import cell, launch

STEADY, JUMPING = [0.010, 0.0101, 0.0099], [0.007, 0.007, 0.007, 0.022, 0.022]


@pytest.mark.parametrize(("rates", "several"), [(STEADY, False), (JUMPING, True), ([0.01], False), ([], False)])
def test_mean_and_median_part_where_a_launch_has_several_modes(rates, several):
    assert several_modes(launch(cell(), rates)) is several


def test_the_share_of_a_cells_launches():
    assert modes([launch(cell(), STEADY), launch(cell(), JUMPING)]) == Share(1, 2)
