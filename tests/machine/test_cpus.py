import os

import pytest

from harness.machine.cpus import choose, keeping_off
from harness.model.errors import UsageError


@pytest.mark.parametrize(
    ("wish", "cpus"), [("1", (3,)), ("2", (2, 3)), ("all", None), ("0,2-3", (0, 2, 3)), ("1,", (1,)), ("1-1", (1,))]
)
def test_what_cpus_means(wish: str, cpus: tuple[int, ...] | None) -> None:
    assert choose(wish, {0, 1, 2, 3}) == cpus


@pytest.mark.parametrize("wish", ["0", "5", "4,5", "x", "1-", "-1", "3-1", "0-99999999", ""])
def test_a_wish_that_cannot_be_met_gets_a_sentence(wish: str) -> None:
    with pytest.raises(UsageError, match="--cpus"):
        choose(wish, {0, 1, 2, 3})


def test_the_harness_keeps_off_the_cpus_it_measures_and_comes_back() -> None:
    before = os.sched_getaffinity(0)
    with keeping_off((max(before),)):
        assert os.sched_getaffinity(0) == (before - {max(before)} or before)
    assert os.sched_getaffinity(0) == before


def test_with_no_cpu_left_it_stays_where_it_is() -> None:
    before = os.sched_getaffinity(0)
    with keeping_off(tuple(before)):
        assert os.sched_getaffinity(0) == before
