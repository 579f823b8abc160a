"""How long the launches of a group warm up and measure, and which groups are measured well enough."""

import math
import random
from dataclasses import replace

import pytest

from harness.analysis import claims
from harness.analysis.cell_index import Lookup
from harness.analysis.interval_widths import log_intervals, widths
from harness.analysis.looks import FIRST_LOOK
from harness.analysis.sizing import (
    ASSUMED_DEVIATION,
    INTERLEAVED_DEVIATION,
    TURNS,
    WEIGHT,
    PilotEstimate,
    count_settled,
    samplings,
    suggest_lengths,
)
from harness.analysis.statistics import Difference, Interval, student
from harness.model.defaults import MEASURE, WARMUP
from harness.model.issues import parse
from harness.model.launch import (
    CPU_QUOTA,
    FEWEST_TURNS,
    SHORTEST_SAMPLE,
    USUAL_TURNS,
    Protocol,
    Role,
    Sample,
    Sampling,
    Status,
)
from harness.model.run import RULES
from harness.model.scenario import Claim, ClaimSide
from tests.analysis.paired import around, family
from tests.factories import broken, cell, launch, rounds, run
from tests.quantified import quantified, quantified_run

OPEN = Sampling()
#: Samples alternate by this share around 10 ms a step, sixteen of them, each 0.1 s long.
SCATTER, COUNT, EACH = 0.1, 16, 0.1
#: What launches of one thing vary by, and what a launch costs, so that twenty samples are the best.
BETWEEN = 4e-4
WITHIN = SCATTER**2 * COUNT / (COUNT - 1)
COST = 20**2 * EACH * BETWEEN / WITHIN


def pilot(rates=None, *, member=None, cost=COST, warm_up=0.5, scatter=SCATTER, **changes):
    """A pilot that took `cost` seconds beside its samples, which by default need no more warm-up."""
    rates = [0.01 * (1.0 + scatter * (-1) ** index) for index in range(COUNT)] if rates is None else rates
    measured = launch(member or cell(), rates, number=0, phases={"warm up": warm_up}, **changes)
    return replace(measured, seconds=cost + sum(sample.seconds for sample in measured.samples))


def test_a_slow_start_belongs_to_the_warm_up():
    alike = [0.01 + 0.00001 * (-1) ** index for index in range(40)]
    draw = random.Random(1)
    for slow in (0, 1, 10):
        noise = [0.03 * (1.0 + draw.gauss(0.0, 0.02)) for _ in range(slow)]
        assert count_settled(noise + alike[slow:]) == slow
    # one that costs less than a twentieth of the error stays: without it the error is less by 3.6 %, and by 14 %
    for slower, left_out in ((1.02, 0), (1.03, 1)):
        assert count_settled([slower] + [1.0 + 0.01 * (-1) ** index for index in range(19)]) == left_out
    # no more than half, and of fewer than four samples none
    for count in (4, 5, 10, 41):
        assert count_settled([2.0**-index for index in range(count)]) == count // 2
    assert [count_settled(few) for few in ([1.0], [2.0, 1.0], [9.0, 1.0, 1.0])] == [0, 0, 0]


def test_the_best_number_of_samples_by_the_formula():
    plain = suggest_lengths(pilot(), BETWEEN)
    assert (plain.warmup, plain.measure) == (0.5, pytest.approx(20 * EACH))
    # four times the variance or the cost take twice the samples, and longer samples take longer by the root
    longer = [4.0 * 0.01 * (1.0 + SCATTER * (-1) ** index) for index in range(COUNT)]
    for changes, between, factor in (
        ({"scatter": 2.0 * SCATTER}, BETWEEN, 2.0),
        ({"cost": 4.0 * COST}, BETWEEN, 2.0),
        ({"rates": longer}, BETWEEN, 2.0),
        ({}, 4.0 * BETWEEN, 0.5),
    ):
        assert suggest_lengths(pilot(**changes), between).measure == pytest.approx(factor * 20 * EACH), changes
    # times are taken by the step, however many steps a sample holds
    samples = zip(pilot().samples, [5, 5, 15, 15] * 4, strict=True)
    uneven = replace(pilot(), samples=[Sample(sample.seconds / 10 * steps, steps) for sample, steps in samples])
    assert suggest_lengths(uneven, BETWEEN) == suggest_lengths(pilot(), BETWEEN)
    # and rounded up to a twentieth of a second
    rounded = suggest_lengths(pilot(warm_up=0.51, cost=1.02**2 * COST), BETWEEN)
    assert (rounded.warmup, rounded.measure) == (0.55, pytest.approx(2.05))


def test_the_best_number_of_turns_by_what_neighbours_differ_by():
    rates = [0.01 * (1.0 + SCATTER * (-1) ** (index // 2)) for index in range(COUNT)]
    # of fifteen differences seven are of two scatters
    apart = 7 / 15 * (2.0 * SCATTER) ** 2 / 2.0
    cost = (30 * INTERLEAVED_DEVIATION) ** 2 * (EACH * 1.1) / apart
    assert suggest_lengths(pilot(rates, cost=cost, calls_per_sample=10), BETWEEN).turns in (30, 31)
    slow = [0.01 * (1.0 + SCATTER * (-1) ** (index // 8)) for index in range(COUNT)]
    assert suggest_lengths(pilot(slow, cost=cost, calls_per_sample=10), BETWEEN).turns < 20
    wave = [0.01 * (1.0 + SCATTER * math.sin(index * math.tau / 32.0)) for index in range(64)]
    mixed = random.Random(5).sample(wave, 64)
    assert suggest_lengths(pilot(wave), BETWEEN).measure > 1.5 * suggest_lengths(pilot(mixed), BETWEEN).measure


def test_lengths_have_limits_and_a_launch_costs_at_least_a_sample():
    for changes, estimate in (
        ({"scatter": 0.0, "warm_up": 0.0}, PilotEstimate(WARMUP[0], MEASURE[0], TURNS[0])),
        ({"cost": 1e6, "warm_up": 1e6}, PilotEstimate(WARMUP[1], MEASURE[1], TURNS[1])),
        ({"rates": [0.01]}, PilotEstimate(0.5, MEASURE[0], TURNS[0])),
    ):
        assert suggest_lengths(pilot(**changes), BETWEEN) == estimate, changes
    assert suggest_lengths(replace(pilot(), phases={}), BETWEEN).warmup == WARMUP[0]
    unknown = replace(pilot(scatter=0.9), seconds=0.0)
    assert suggest_lengths(unknown, BETWEEN).measure == suggest_lengths(pilot(scatter=0.9, cost=EACH), BETWEEN).measure


def test_what_was_measured_too_early_is_warmed_up_and_a_group_takes_its_longest_lengths():
    rates = [0.03] * 4 + [0.01 * (1.0 + SCATTER * (-1) ** index) for index in range(COUNT)]
    estimate = suggest_lengths(pilot(rates, warm_up=0.5), BETWEEN)
    # four samples of ten steps
    assert (estimate.warmup, estimate.measure) == pytest.approx((0.5 + 4 * 0.3, 20 * EACH))
    long_warm_up, long_measure = pilot(warm_up=2.0), pilot(member=cell(mode="eager"), scatter=2.0 * SCATTER)
    other_group = pilot(member=cell(call="train_on_batch"), scatter=4.0 * SCATTER, warm_up=9.0)
    both = samplings(OPEN, [long_warm_up.group, other_group.group], [long_warm_up, long_measure, other_group])
    lengths, other = both[long_warm_up.group], both[other_group.group]
    assert (other.warmup_seconds, other.measure_seconds) == (WARMUP[1], MEASURE[1])
    assert lengths.warmup_seconds == pytest.approx(2.0)
    assert lengths.measure_seconds == pytest.approx(4.0)
    assert replace(lengths, warmup_seconds=None, measure_seconds=None) == OPEN


def sampling_of(planned, *launches):
    """The sampling of the pilot's group."""
    return samplings(planned, [pilot().group], launches)[pilot().group]


def test_what_is_planned_wins_over_what_the_pilot_suggests():
    for planned in (Sampling(warmup_seconds=0.3, measure_seconds=0.7), Sampling(protocol=Protocol.DOCUMENT)):
        assert sampling_of(planned, pilot()) is planned
    measured = sampling_of(Sampling(measure_seconds=77.0), pilot())
    assert (measured.warmup_seconds, measured.measure_seconds) == (0.5, 77.0)
    cold = sampling_of(Sampling(warmup_seconds=0.0), pilot())
    assert (cold.warmup_seconds, cold.measure_seconds) == (0.0, pytest.approx(2.0))
    # under a CPU quota it takes longer by the clock
    halved = pilot(resources={CPU_QUOTA: 1.0, "steady_own_cpus": 2.0})
    slowed = sampling_of(Sampling(warmup_seconds=0.3, measure_seconds=0.7, turns=15), halved)
    assert (slowed.warmup_seconds, slowed.measure_seconds, slowed.turns) == pytest.approx((0.6, 1.4, 30))


def test_without_a_pilot_that_gave_a_number_it_is_the_shortest():
    useless = [
        broken(cell(), Status.FAILED),
        pilot(samples=()),
        replace(pilot(), role=Role.MEASURE),
        pilot(member=cell(call="train_on_batch")),
    ]
    shortest = sampling_of(OPEN, *useless)
    assert (shortest.warmup_seconds, shortest.measure_seconds) == (WARMUP[0], MEASURE[0])
    # where nothing was launched twice, launches are believed to differ by 2 %
    assert BETWEEN == ASSUMED_DEVIATION**2
    assert sampling_of(OPEN, pilot()).measure_seconds == pytest.approx(20 * EACH)


def test_what_pilots_tell_of_launches_and_that_fixed_calls_ask_for_no_length():
    apart = 0.2
    for member in (cell(), cell(call="train_on_batch")):
        twins = [pilot([0.01 * math.exp(sign * apart / 2.0)] * 9, member=member) for sign in (-1, 1)]
        expected = (WEIGHT * ASSUMED_DEVIATION**2 + apart**2 / 2.0) / (WEIGHT + 1)
        eager = pilot(member=cell(mode="eager"))
        lengths = samplings(OPEN, [eager.group], [eager, *twins])[eager.group]
        assert lengths.measure_seconds == suggest_lengths(eager, expected).measure < 20 * EACH, member
    slow = replace(pilot(), samples=[Sample(5.0, 1)], calls_per_sample=None, phases={"warm up": 9.0})
    leaky = replace(slow, samples=[Sample(5.0, 50)] * 20, memory=[(0, 1), (1000, 2)])
    other = pilot()
    assert samplings(OPEN, [other.group], [other, slow, leaky]) == samplings(OPEN, [other.group], [other])


def test_a_group_has_as_many_turns_as_a_cell_asks_for_but_none_for_percentiles():
    one, planned = pilot(), replace(OPEN, turns=15)
    lengths = samplings(planned, [one.group, "other"], [one], [one.group])
    assert (lengths[one.group].calls_per_sample, lengths[one.group].turns) == (1, None)
    assert lengths[one.group].measure_seconds == min(5.0, max(suggest_lengths(one, BETWEEN).measure, 1000 * one.mean))
    assert lengths["other"] == samplings(planned, ["other"], [one])["other"]
    fixed = Sampling(warmup_seconds=0.1, measure_seconds=0.3, turns=5)
    assert samplings(fixed, [one.group], [], [one.group])[one.group] == replace(fixed, calls_per_sample=1, turns=None)
    few, many = pilot(), pilot(member=cell(mode="eager"), scatter=2.0 * SCATTER)
    planned = Sampling(turns=USUAL_TURNS)
    assert samplings(planned, [few.group], [few])[few.group].turns == suggest_lengths(few, BETWEEN).turns
    turns = samplings(planned, [few.group], [few, many])[few.group].turns
    assert turns == suggest_lengths(many, BETWEEN).turns > suggest_lengths(few, BETWEEN).turns
    assert samplings(planned, [few.group], [])[few.group].turns == USUAL_TURNS
    assert samplings(OPEN, [few.group], [few])[few.group].turns is None
    assert samplings(Sampling(measure_seconds=0.5, turns=10), [few.group], [few])[few.group].turns == 10


def test_a_length_that_was_asked_for_is_so_many_turns_and_no_more():
    for seconds, turns, sample in [
        (None, USUAL_TURNS, 0.05),
        (0.5, 10, 0.05),
        (0.51, 11, 0.05),
        (0.01, FEWEST_TURNS, 0.003333),
        (0.0001, FEWEST_TURNS, SHORTEST_SAMPLE),
    ]:
        sampling = Sampling(measure_seconds=seconds).sampled(in_turns=True)
        assert (sampling.turns, sampling.sample_seconds) == (turns, sample), seconds
        assert Sampling(measure_seconds=seconds).sampled(in_turns=False) == replace(sampling, turns=None)


ENOUGH = FIRST_LOOK

#: A difference at the margin, whose verdict no rounds settle.
AT_MARGIN = math.log(1.03)


def width_by_group(one):
    return widths(one.run, one.launches)


def only(one):
    (width,) = width_by_group(one).values()
    return width


def of_times(member, launches):
    logs = [math.log(entry.mean) for entry in launches if entry.cell == member]
    mean = math.fsum(logs) / len(logs)
    deviation = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (len(logs) - 1))
    return student(len(logs) - 1) * deviation / math.sqrt(len(logs))


def test_a_width_is_half_the_interval_from_the_first_look_on_and_the_level_is_divided():
    assert only(family([AT_MARGIN] * (ENOUGH - 1))) == math.inf
    one = family(around(AT_MARGIN, 0.01, ENOUGH))
    assert only(one) == pytest.approx(student(5) * math.sqrt(6.0 / 5.0) * 0.01 / math.sqrt(6.0))
    # the rounds are those of the best measured cell
    torn = [entry for entry in one.launches if entry.cell != one.pairs[0][1] or entry.round < ENOUGH]
    assert only(replace(one, launches=torn)) < math.inf
    one = family(around(0.0, 0.01, 9), around(0.0, 0.04, 9))
    narrow, wide = width_by_group(one).values()
    assert wide == pytest.approx(4.0 * narrow)
    assert [narrow, wide] == pytest.approx([half for _, half, _ in log_intervals(one.pairs, one.found)])
    assert narrow > only(family(around(0.0, 0.01, 9)))


def test_without_a_comparison_a_group_has_the_widest_of_its_times_and_without_a_number_none():
    launches = rounds({cell(): 0.01}, count=9)
    assert list(widths(run([cell()]), launches).values()) == pytest.approx([of_times(cell(), launches[1:])])
    assert list(widths(run([cell()]), [launch(cell())]).values()) == [math.inf]
    one = family(around(0.0, 0.05, 9))
    slow = one.pairs[0][1]
    launches = [replace(entry, fingerprint={"parameters": int(entry.cell == slow)}) for entry in one.launches]
    # the times of the first are all equal
    assert only(replace(one, launches=launches)) == pytest.approx(of_times(slow, launches))
    one = family(around(0.0, 0.01, 9), [])
    assert list(width_by_group(one)) == [one.run.plan.groups[0].name]
    assert widths(run(), []) == widths(run([cell()]), [broken(cell(), Status.FAILED, 1)]) == {}


def test_the_widths_of_other_quantities_that_are_compared_count_too():
    launches = quantified(count=FIRST_LOOK, spread=0.001)
    # in the newer release, the first call takes twice as long in every other round
    cold = [
        replace(entry, phases={"first call": 0.3 * (1.0 + entry.round % 2 * (entry.cell.environment == "tf2.0"))})
        for entry in launches
    ]
    (step,) = widths(quantified_run("step"), launches).values()
    (both,) = widths(quantified_run("step", "first call"), cold).values()
    assert both > 10.0 * step
    # of growth alone they are those of the times
    assert all(0.0 < width < math.inf for width in widths(quantified_run("memory growth"), launches).values())


def claim(low, member="step", **changes):
    """The claim that the first environment's `fit` takes `low` times as long as the second's, or more."""
    claim_ = Claim(
        issue=parse("T#1"),
        reported="fit is slow",
        worse=ClaimSide("tf1.14", {"call": "0"}),
        better=ClaimSide("tf2.0", {"call": "0"}),
        ratio=(low, 2.0 * low),
        of=member,
    )
    return replace(claim_, **changes)


def claiming(one, *claims, claiming_=("T#1",), rules=RULES):
    """The family as a run of the claims that were asked for."""
    claimed_scenario = replace(one.run.scenarios[0], claims=claims, axes={**one.run.scenarios[0].axes, "call": ["0"]})
    plan = replace(one.run.plan, claims=claiming_, rounds=30)
    return replace(one, run=replace(one.run, scenarios=[claimed_scenario], plan=plan, rules=rules))


def test_a_claim_needs_half_of_the_way_from_the_margin_within_bounds_and_one_of_seconds_a_quarter():
    shares = {1.04: 0.03, 1.1: 0.0334, 1.5: 0.2068, 10.0: 0.25}
    assert {low: math.expm1(claim(low).needed(0.03)) for low in shares} == pytest.approx(shares, abs=1e-4)
    by_itself = claim(1.0, better=None, ratio=None, seconds=(5.0, 20.0))
    assert by_itself.needed(0.03) == pytest.approx(math.log(1.25))


def test_a_run_of_claims_is_as_wide_as_they_need():
    one = family(around(0.8, 1.0, 6))
    assert only(claiming(one, claim(2.9), rules=7)) == pytest.approx(only(one) / math.log(1.25))
    assert only(claiming(one, claim(2.9), claim(1.1), rules=7)) == pytest.approx(only(one) / claim(1.1).needed(0.03))
    # a second look has half of the level
    assert only(claiming(one, claim(2.9), rules=8)) > 1.2 * only(claiming(one, claim(2.9), rules=7))
    # what is not asked or not measured keeps nobody waiting
    one = family(around(1.0, 0.05, 9))
    assert only(claiming(one, claim(10.0), claiming_=("T#2",))) == 0.0
    assert only(claiming(replace(one, launches=[]), claim(10.0))) == 0.0
    # with a precision they are as wide as any comparison
    precise = claiming(one, claim(10.0))
    precise = replace(precise, run=replace(precise.run, plan=replace(precise.run.plan, precision=0.02)))
    assert only(precise) == only(one)


def test_when_claims_are_looked_at_and_when_one_round_is_enough():
    logs = around(0.2, 3.0, 12)
    for low, looks in ((2.9, [3, 6, 12]), (3.0, [2, 4, 8])):
        counts = [n for n in range(1, 13) if only(claiming(family(logs[:n]), claim(low))) < math.inf]
        assert counts == looks, low
    for log, width in ((4.0, 0.0), (-4.0, 0.0), (3.0, math.inf)):
        assert only(claiming(family([log]), claim(3.0))) == width, log
    vast = claiming(family([4.0]), claim(3.0))
    failed = replace(vast.launches[0], status=Status.FAILED, samples=[])
    assert only(replace(vast, launches=[*vast.launches, failed])) == math.inf


def test_a_group_ends_when_the_outcomes_of_its_claims_are_clear():
    for logs, low, is_clear in (
        (around(1.0, 0.01, 4), 1.1, True),  # confirmed, or of another size
        (around(-1.0, 0.01, 4), 1.1, True),  # opposite
        (around(0.0, 0.01, 4), 1.1, True),  # the same
        (around(0.2, 0.01, 3), 2.9, True),  # far below the claim
        (around(0.04, 0.01, 4), 1.05, False),
        (around(1.0, 0.01, 3), 2.0, True),
        (around(1.0, 0.01, 3), 1.9, False),  # claims near the margin are checked later
        (around(0.35, 0.0001, 2), 3.0, True),
        (around(0.3, 0.1, 2), 3.0, False),
    ):
        assert (only(claiming(family(logs), claim(low))) == 0.0) is is_clear, (logs, low)


def test_an_outcome_that_the_control_or_the_correction_for_contention_may_change_is_not_clear(monkeypatch):
    logs = around(0.4, 0.01, 4)
    claiming_ = claiming(family(logs), claim(1.1))
    assert only(claiming_) == 0.0
    lost = claiming(family(logs, control=around(0.1, 0.001, 4)), claim(1.1))
    (width,) = (width for name, width in width_by_group(lost).items() if "control" not in name)
    assert width > 0.0
    monkeypatch.setattr(Lookup, "contention", lambda *_: 0.5)
    assert 0.0 < only(claiming_) < math.inf


def test_a_group_that_was_clear_stays_so_and_one_early_failure_ends_none():
    claiming_ = claiming(family(around(0.4, 0.04, 8)), claim(1.1))
    assert only(claiming_) == 0.0
    (name,) = width_by_group(claiming_)
    shorter = replace(claiming_.run, plan=replace(claiming_.run.plan, rounds=10))
    assert only(replace(claiming_, run=shorter)) == math.inf
    assert only(replace(claiming_, run=replace(shorter, looks=[{name: 8}]))) == 0.0
    claiming_ = claiming(family(around(0.4, 0.01, 2)), claim(1.1))
    worse = claiming_.pairs[0][1]
    launches = [broken(worse, Status.FAILED, 1) if entry.cell == worse else entry for entry in claiming_.launches]
    assert only(replace(claiming_, launches=launches)) == math.inf


def test_a_claim_of_seconds_or_growth_ends_its_group_when_it_is_clear(monkeypatch):
    one = family(around(1.0, 0.001, 3))

    def width(claim_, growth):
        memory = [
            replace(x, phases={"import": 1.5}, memory=[(at, at * growth(x)) for at in range(9)]) for x in one.launches
        ]
        return only(claiming(replace(one, launches=memory), claim_))

    seconds = claim(10.0, "import", better=None, ratio=None, seconds=(1.0, 2.0))
    growing = claim(1.0, "memory growth", better=None, ratio=None, bytes=(500.0, 900.0))
    assert [width(logs_, lambda _: 1000) for logs_ in (seconds, growing)] == [0.0, 0.0]
    # growth that an identical cell may have too is not clear
    assert width(growing, lambda entry: 2680 + 160 * entry.round) == 0.0
    control = Difference(2500.0, 3, Interval(2400.0, 2600.0))
    monkeypatch.setattr(claims, "control_of_growth", lambda cell, lookup: control)
    assert width(growing, lambda entry: 2680 + 160 * entry.round) > 1.0


def test_claims_of_phases_and_of_growth_have_widths_of_their_own():
    one = family(around(1.0, 0.001, 6))
    launches = [replace(entry, phases={"import": math.exp(entry.round)}) for entry in one.launches]
    claiming_ = claiming(replace(one, launches=launches), claim(2.9, "import"))
    # both sides of a round take as long, so the ratio is 1 throughout
    assert only(claiming_) < 1e-6
    seconds = claim(10.0, "import", better=None, ratio=None, seconds=(1.0, 20.0))
    by_itself = claiming(replace(one, launches=launches), seconds, rules=7)
    spread = math.sqrt(sum((number - 3.5) ** 2 for number in range(1, 7)) / 5.0)
    assert only(by_itself) == pytest.approx(student(5, 0.975) * spread / math.sqrt(6.0) / math.log(1.25))
    one = family(around(1.0, 0.001, 6))
    memory = [
        replace(entry, memory=[(at, at * (200 + 400 * (-1) ** entry.round)) for at in range(9)])
        for entry in one.launches
    ]
    growing = claim(1.0, "memory growth", better=None, ratio=None, bytes=(500.0, 900.0))
    spread = math.sqrt(6 * 400.0**2 / 5.0)
    for rules, level in ((7, 0.975), (8, 0.9875)):
        width = only(claiming(replace(one, launches=memory), growing, rules=rules))
        assert width == pytest.approx(student(5, level) * spread / math.sqrt(6.0) / 250.0), rules
