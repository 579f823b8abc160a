"""Steps whose time depends on how many came before, and what follows for their comparisons."""

import math
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis import runs, trends
from harness.analysis.cell_index import lookup
from harness.analysis.comparisons import compare
from harness.analysis.interval_widths import log_intervals
from harness.analysis.results import Results
from harness.analysis.rounds import compute_mean
from harness.analysis.sample_logs import divide
from harness.analysis.statistics import Interval
from harness.analysis.step_ranges import compute_within, count_before, find_common_steps, restrict_steps
from harness.analysis.trends import compute_changes, has_trend
from harness.analysis.verdicts import Verdict, Withheld
from harness.model.launch import Sample
from tests.factories import cell, cells, contended, in_blocks, launch, run

MARGIN = math.log(1.03)
FLAT, GROWING = cells(modes=["graph"])
NOISE = [0.002, -0.001, 0.0, 0.001, -0.002]


def level(seconds=0.01, samples=20, start=0, step=0.0):
    """Seconds per step of samples of ten steps each: what the steps take that come after `start`, `step` more each."""
    return [seconds + step * (start + 10 * at + 4.5) for at in range(samples)]


def launches(member, rates, rounds=5, warmup=50, **changes_):
    """Launches of one cell, each with some noise of its own."""
    resources = {} if warmup is None else {"warmup_steps": float(warmup)}
    return [
        launch(member, [rate * math.exp(NOISE[number % 5]) for rate in rates], number, resources=resources, **changes_)
        for number in range(1, rounds + 1)
    ]


def find_trends(*launched):
    members = {entry.cell for entry in launched}
    return trends.find_trends(
        {member: [entry for entry in launched if entry.cell == member] for member in members}, MARGIN
    )


def test_a_step_that_grows_has_a_trend_and_one_beside_it_has_none():
    launched = [*launches(FLAT, level()), *launches(GROWING, level(step=1e-4, start=50))]
    (growing,) = find_trends(*launched).items()
    assert growing[0] == GROWING
    # from 0.0155 at the first part's middle to 0.0345 at the last one's
    assert growing[1].factor == pytest.approx((0.01 + 1e-4 * 239.5) / (0.01 + 1e-4 * 59.5), rel=0.1)
    assert [stage.step for stage in growing[1].stages] == pytest.approx([50 + 20 * at + 10 for at in range(10)])
    assert growing[1].counted


def test_what_is_no_trend():
    assert find_trends(*launches(FLAT, level(step=-2e-5)))[FLAT].factor < 1.0
    for rates in (
        level(),
        # a tail of the warm-up
        [0.011, 0.0105, *level(samples=18)],
        # by less than the margin
        level(step=0.0002 / 200),
        # one sample that collects garbage
        [*level(samples=19), 0.05],
        [0.0] * 10,
    ):
        assert find_trends(*launches(FLAT, rates)) == {}, rates
    # a machine that goes now up and now down
    up, down = level(step=5e-5), level(step=5e-5)[::-1]
    assert find_trends(*(launch(FLAT, up if number % 2 else down, number) for number in range(1, 7))) == {}


def test_few_launches_tell_of_what_is_large_and_goes_one_way():
    rates = level(step=1e-4)
    assert FLAT in find_trends(launch(FLAT, rates))
    assert find_trends(launch(FLAT, level(step=2e-5))) == {}
    # a load that came in the middle doubles the time, and is no growth
    assert find_trends(launch(FLAT, [*level(samples=10), *level(0.02, 10)])) == {}
    assert find_trends(launch(FLAT, rates), launch(FLAT, rates[::-1], 2)) == {}
    # three slow samples a launch tell of what doubles: a step that builds layers, on a busy machine
    slow = [[1.37, 2.09, 2.10], [1.22, 1.83, 3.33], [1.55, 2.41, 2.90], [1.57, 3.52, 4.00]]
    slow = [launch(FLAT, rates, number) for number, rates in enumerate(slow, 1)]
    assert (FLAT in find_trends(*slow), find_trends(*slow[:2])) == (True, {})


def test_in_turns_what_the_machine_does_is_no_trend_of_a_cell():
    slower, places = level(step=5e-5), [0] * 20
    launched = [*launches(FLAT, slower, places=places), *launches(GROWING, slower, places=places)]
    launched = [replace(entry, group="one") for entry in launched]
    assert find_trends(*launched) == {}
    # one after the other, both do so in each launch
    assert find_trends(*(replace(entry, places=()) for entry in launched)) == {}
    # of a cell alone nothing tells it from the step
    (trend,) = find_trends(*(replace(entry, places=()) for entry in launched if entry.cell == FLAT)).values()
    assert trend.unsure
    # a step that grows makes no trend of its neighbour
    launched = [*launches(FLAT, level(), places=places), *launches(GROWING, slower, places=places)]
    assert list(find_trends(*(replace(entry, group="one") for entry in launched))) == [GROWING]


FALLING = [0.01 * math.exp(0.06 * at / 19) for at in range(20)]
THREE = [cell(environment) for environment in ("tf1.14", "tf2.0", "tf2.1")]


def test_a_clock_that_falls_in_every_launch_is_no_trend_of_a_step():
    assert find_trends(*(entry for member in THREE for entry in launches(member, FALLING))) == {}
    # even if launches had fewer samples
    few = [math.exp(0.06 * at / 3) for at in range(4)]
    beside_few = [entry for member in THREE[1:] for entry in launches(member, FALLING)]
    assert find_trends(*launches(THREE[0], few), *beside_few) == {}
    # beside one other cell it may be the machine's
    (trend,) = find_trends(*launches(THREE[0], FALLING), *launches(THREE[1], level())).values()
    assert trend.unsure


def test_a_step_that_grows_is_seen_beside_a_clock_that_falls_and_what_doubles_is_no_clock():
    steeper = [rate * (1.0 + 0.2 * at / 19) for at, rate in enumerate(FALLING)]
    doubling = level(step=1e-4)
    for growing, rates in ((2, [steeper, steeper, FALLING]), (2, [doubling] * 2)):
        trending = find_trends(
            *(entry for member, rates_ in zip(THREE, rates, strict=False) for entry in launches(member, rates_))
        )
        assert set(trending) == set(THREE[:growing])
        assert not any(trend.unsure for trend in trending.values())


def test_samples_slower_than_the_warm_up_are_growth_and_faster_ones_are_none():
    def warmed(seconds):
        return [replace(entry, phases={"warm up": 50 * seconds}) for entry in launches(FLAT, level(samples=3))]

    grown = find_trends(*warmed(0.004))[FLAT]
    assert grown.factor == pytest.approx(2.5, rel=0.01)
    assert (grown.stages[0].step, grown.stages[0].seconds) == (25.0, pytest.approx(0.004))
    assert find_trends(*warmed(0.008)) == {}


@given(st.lists(st.floats(-5.0, 5.0), min_size=3, max_size=40), st.floats(-3.0, 3.0))
def test_the_change_does_not_depend_on_the_speed_and_turns_over_with_the_order(logs, by):
    member = divide(np.array(logs))
    assert member.size == min(10, len(logs))
    plain, faster, reversed_ = compute_changes([member, member + by, member[::-1]])
    assert faster == pytest.approx(plain, abs=1e-9)
    assert reversed_ == pytest.approx(-plain, abs=1e-9)
    assert not has_trend([[]], MARGIN)


def test_how_many_steps_came_before():
    for fields, before in (
        ({"resources": {"warmup_steps": 70.0}}, 70.0),
        ({"fingerprint": {"steps_called": 41}}, 11.0),
        ({"fingerprint": {"steps_called": 2}}, None),
        ({}, None),
    ):
        assert count_before(launch(cell(), [0.01] * 3, **fields)) == before, fields


def test_a_part_of_a_launch_counts_samples_in_part():
    member = launch(cell(), [0.01, 0.02, 0.03], resources={"warmup_steps": 5.0})
    assert compute_within(member, Interval(5.0, 35.0)) == pytest.approx((0.02, 3.0))
    assert compute_within(member, Interval(10.0, 25.0)) == pytest.approx(((5 * 0.01 + 10 * 0.02) / 15, 1.5))
    assert math.isnan(compute_within(member, Interval(0.0, 5.0))[0])
    # untimed steps before each turn move the samples apart
    turns = replace(member, resources={"warmup_steps": 5.0, "between_steps": 6.0})
    assert compute_within(turns, Interval(7.0, 19.0)) == pytest.approx((0.01, 1.0))
    # and so do the samples that follow one of them
    longer = replace(turns, alone=[Sample(1.0, 100)] * 2, follows=[0, 0])
    assert compute_within(longer, Interval(19.0, 231.0)) == pytest.approx((0.02, 1.0))


def test_what_launches_have_in_common():
    near, far = launch(cell(), [0.01] * 6, resources={"warmup_steps": 0.0}), launch(cell(), [0.01] * 9)
    far = replace(far, resources={"warmup_steps": 30.0})
    assert find_common_steps([near, far]) == Interval(30.0, 60.0)
    assert find_common_steps([near, replace(far, resources={"warmup_steps": 31.0})]) is None
    assert find_common_steps([near, replace(far, resources={})]) is None
    (part,) = restrict_steps([near], Interval(30.0, 60.0))
    assert part.samples == [Sample(pytest.approx(0.3), 30, pytest.approx(0.3))]
    # contention is subtracted in the range, too
    member = launch(FLAT, samples=[Sample(0.1, 10, 0.0995)] * 10, resources={**contended(0.08), "warmup_steps": 0.0})
    (part,) = restrict_steps([member], Interval(0.0, 30.0))
    assert compute_mean(part) == pytest.approx(compute_mean(member)) == pytest.approx(0.0092)


def compared(*launched, pair=(GROWING, FLAT)):
    results = Results(run(list(pair)), launched)
    (comparison,) = [value.compared for row in results.tables[0].rows for value in row.values if value.compared]
    return results, comparison


def test_a_verdict_is_of_the_steps_that_both_have():
    """Both take 10 ms and 0.1 ms more for each step before; one launches into it later."""
    early, late = level(step=1e-4, start=50), level(step=1e-4, start=150)
    launched = [*launches(FLAT, early), *launches(GROWING, late, warmup=150)]
    results, comparison = compared(*launched)
    # from 25 to 40 ms is what the machine may do to both; ×2.5 is not
    assert set(results.found.trends) == {FLAT}
    assert comparison.steps == Interval(150.0, 250.0)
    assert comparison.ratio.value == pytest.approx(1.0, abs=0.005)
    assert comparison.verdict is Verdict.SAME
    assert results.tables[0].cells()[FLAT].estimate.value < 0.9 * results.tables[0].cells()[GROWING].estimate.value


def in_blocks_with_growth(six, seed=1):
    """Return rounds of two blocks with different interference. The steps of the second and the last cell grow.

    The two cells are in different blocks. The last one takes twice as long, and is measured after more steps.
    """
    rates = {
        six[1]: (50, level(step=1e-4, start=50)),
        six[-1]: (150, [2.0 * entry for entry in level(step=1e-4, start=150)]),
    }
    launched = []
    for block in in_blocks(dict.fromkeys(six, 1.0), seed=seed):
        warmup, rates_ = rates.get(block.cell, (50, level()))
        samples = [Sample(block.mean * rate * 10, 10) for rate in rates_]
        launched.append(replace(block, samples=samples, resources={"warmup_steps": float(warmup)}))
    return launched


def test_what_slows_a_block_is_no_difference_of_steps_that_both_have():
    six = cells(["tf1.14", "tf2.0", "tf2.15"])
    planned = run(six, controlled=True)
    index = lookup(planned, in_blocks_with_growth(six))
    assert set(index.trends) == {six[1], six[-1]}
    one, beside = compare([(six[-1], six[1]), (six[-1], six[2])], index, 0.03)
    # the blocks differ by 30 % in each round, and in the control cell just as much
    assert one.steps == Interval(150.0, 250.0)
    assert (one.ratio.value, one.ratio.interval.high) == pytest.approx((2.0, 2.0))
    # each of the two, and the control cell's launches: two in one block and one in the other
    assert index.weight(six[-1], six[1]) == 1 + 1 + 1 / 2 + 1
    # a steady cell of the first block, too
    assert beside.ratio.value == pytest.approx(2.0 * (0.01 + 1e-4 * 199.5) / 0.01)
    # and from one run to the next
    both = (Results(planned, in_blocks_with_growth(six, seed)) for seed in (1, 2))
    changed = {entry.cell: entry for entry in runs.compare(*both, 0.03).cells}
    growing, steady = changed[six[-1]], changed[six[2]]
    assert growing.steps == Interval(150.0, 350.0)
    # they are in different blocks, so each has the mean of what slows the two
    assert growing.change.ratio.value == pytest.approx(steady.change.ratio.value)
    assert growing.change.ratio.interval.high == pytest.approx(steady.change.ratio.interval.high)


def test_without_steps_in_common_there_is_no_verdict_and_a_step_that_changes_accounts_for_nothing():
    for warmup in [500, None]:
        launched = [*launches(FLAT, level()), *launches(GROWING, level(step=1e-4), warmup=warmup)]
        results, comparison = compared(*launched)
        assert (comparison.verdict, comparison.withheld, comparison.steps) == (None, Withheld.TREND, None), warmup
        assert log_intervals([(GROWING, FLAT)], lookup(results.run, launched)) == [None], warmup
    four = cells()
    number = count()
    launched = [entry for member in four for entry in launches(member, level(), order=next(number))]
    assert Results(run(four), launched).attributions
    growing = [*(entry for entry in launched if entry.cell != four[0]), *launches(four[0], level(step=1e-4))]
    assert not Results(run(four), growing).attributions


def test_cpu_time_shows_what_others_load_hides_where_the_time_goes_the_same_way():
    def loaded(cpu):
        draw = np.random.default_rng(3)
        launched = launches(FLAT, level(step=2e-5))
        return [
            replace(
                entry,
                samples=[
                    replace(sample, seconds=sample.seconds * draw.uniform(1.0, 8.0), cpu_seconds=used * 10)
                    for sample, used in zip(entry.samples, cpu, strict=True)
                ],
            )
            for entry in launched
        ]

    assert FLAT in find_trends(*loaded(level(step=2e-5)))
    assert find_trends(*loaded(level(step=-2e-5))) == find_trends(*loaded(level())) == {}
