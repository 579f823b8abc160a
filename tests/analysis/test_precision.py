"""Which groups are measured well enough."""

import math
from dataclasses import replace

import pytest

from harness.analysis.comparisons import half_widths_of
from harness.analysis.sizing import FIRST_LOOK, widths
from harness.analysis.statistics import student
from harness.model.launch import Status
from tests.analysis.paired import around, family
from tests.factories import broken, cell, cells, launch, rounds, run

ENOUGH = FIRST_LOOK


def found(one):
    return widths(one.run, one.launches)


def only(one):
    (width,) = found(one).values()
    return width


def of_times(of, launches):
    logs = [math.log(each.centre) for each in launches if each.cell == of]
    mean = math.fsum(logs) / len(logs)
    deviation = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1))
    return student(len(logs) - 1) * deviation / math.sqrt(len(logs))


@pytest.mark.parametrize("count", [1, 2, 4, ENOUGH - 1])
def test_before_round_eight_nothing_is_precise_however_narrow(count):
    assert only(family([0.5] * count)) == math.inf


def test_from_round_eight_on_it_is_half_the_interval_on_the_log_scale():
    one = family(around(0.5, 0.01, ENOUGH))
    assert only(one) == pytest.approx(student(7) * math.sqrt(8.0 / 7.0) * 0.01 / math.sqrt(8.0))


def test_rounds_are_those_of_the_best_measured_cell():
    one = family(around(0.0, 0.01, ENOUGH))
    other = one.pairs[0][1]
    torn = [each for each in one.launches if each.cell != other or each.round < ENOUGH]
    assert only(replace(one, launches=torn)) < math.inf


def test_it_falls_with_the_rounds():
    found = [only(family(around(0.0, 0.01, count))) for count in (8, 10, 20, 50)]
    assert found == sorted(found, reverse=True)
    assert found[-1] < found[0] / 2.0


@pytest.mark.parametrize("mean", [-0.5, 0.0, math.log(1.03), 2.0])
def test_what_the_intervals_say_does_not_matter(mean):
    assert only(family(around(mean, 0.01, 9))) == pytest.approx(only(family(around(0.3, 0.01, 9))))


def test_each_group_has_its_own_and_the_level_is_divided_among_all_of_the_table():
    one = family(around(0.0, 0.01, 9), around(0.0, 0.04, 9))
    narrow, wide = found(one).values()
    assert wide == pytest.approx(4.0 * narrow)
    assert [narrow, wide] == pytest.approx(half_widths_of(one.pairs, one.found))
    assert narrow > only(family(around(0.0, 0.01, 9)))


def test_the_widest_comparison_of_a_group_counts():
    quiet = dict.fromkeys(cells(), 0.01)
    launches = rounds(quiet, count=9, spread=0.001)
    noisy = [each for each in rounds(quiet, count=9, spread=0.2) if each.cell == cell("tf2.0", mode="eager")]
    mixed = [each for each in launches if each.cell != cell("tf2.0", mode="eager")] + noisy
    (before,), (after,) = (widths(run(), each).values() for each in (launches, mixed))
    assert after > 20.0 * before


def test_a_group_in_which_nothing_is_compared_has_its_times():
    launches = rounds({cell(): 0.01}, count=9)
    assert list(widths(run([cell()]), launches).values()) == pytest.approx([of_times(cell(), launches[1:])])


def test_a_group_that_did_different_work_has_the_widest_of_its_times():
    one = family(around(0.0, 0.05, 9))
    slow = one.pairs[0][1]
    launches = [replace(each, fingerprint={"parameters": int(each.cell == slow)}) for each in one.launches]
    # the times of the first are all equal
    assert only(replace(one, launches=launches)) == pytest.approx(of_times(slow, launches))


def test_one_round_of_times_is_not_precise():
    assert list(widths(run([cell()]), [launch(cell())]).values()) == [math.inf]


def test_a_group_with_a_comparison_of_too_few_rounds_is_not_precise():
    one = family(around(0.0, 0.001, 9))
    other = one.pairs[0][1]
    launches = [
        broken(other, Status.FAILED, each.round) if each.cell == other and each.round > 3 else each
        for each in one.launches
    ]
    assert only(replace(one, launches=launches)) == math.inf


def test_a_group_without_a_number_is_left_out():
    one = family(around(0.0, 0.01, 9), [])
    assert list(found(one)) == [one.run.plan.groups[0].name]
    assert widths(run(), []) == {}
    assert widths(run([cell()]), [broken(cell(), Status.FAILED, 1)]) == {}
