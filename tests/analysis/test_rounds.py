"""Which launches count, what others took of their time, and what rounds cost."""

import math
from dataclasses import replace

import pytest

from harness.analysis.rounds import (
    apply_clock,
    budget_seconds,
    compute_loss,
    compute_mean,
    compute_subtracted_share,
    find_granted_share,
    is_to_measure,
    pilots,
    seconds_per_round,
    select_counted,
    series,
    ticks_seconds,
    was_throttled,
)
from harness.model.launch import CPU_QUOTA, Clock, Role, Sample, Status
from tests.factories import broken, cell, cells, in_blocks, launch, run

GRAPH, EAGER, OTHER = cell(mode="graph"), cell(mode="eager"), cell("tf2.0")
PLANNED = run([GRAPH, EAGER]).plan
PLAN = replace(PLANNED, groups=[replace(PLANNED.groups[0], control=None)])
CONTROLLED = replace(PLANNED, groups=[replace(PLANNED.groups[0], control=GRAPH)])


def test_controls_count_and_pilots_and_groups_that_the_plan_lacks_do_not():
    control = launch(GRAPH, role=Role.CONTROL)
    others = [launch(GRAPH, number=0), launch(GRAPH, group="another")]
    assert select_counted(PLAN, [control, launch(EAGER), *others]) == [control, launch(EAGER)]


def test_of_a_round_begun_twice_the_latest_complete_attempt_counts():
    complete, control = [launch(GRAPH), launch(EAGER)], launch(GRAPH, role=Role.CONTROL)
    graph, eager, repeated = launch(GRAPH, attempt=1), launch(EAGER, attempt=1), replace(control, attempt=1)
    interrupted = broken(GRAPH, Status.INTERRUPTED, 1, attempt=1)
    with_control = [complete[0], control, complete[1]]
    no_control = broken(GRAPH, Status.OOM, 1, attempt=1, role=Role.CONTROL)
    cases = {
        "the third was not finished": (PLAN, complete, [graph, eager], [launch(GRAPH, 0.03, attempt=2)]),
        "none is complete": (PLAN, complete[:1], [eager], []),
        "an interrupted repeat of a cell that was given up": (PLAN, [], complete[:1], [interrupted]),
        "without a cell that its pilot broke": (PLAN, [broken(EAGER, Status.OOM), launch(GRAPH)], [graph], []),
        "with the control": (CONTROLLED, with_control, [graph, eager, repeated], []),
        "with a control that broke": (CONTROLLED, complete, [graph, no_control, eager], []),
        "a control is not its cell's own launch": (CONTROLLED, [], with_control, [repeated, eager]),
        "without the control that its pilot broke": (CONTROLLED, [broken(GRAPH, Status.OOM), complete[1]], [eager], []),
    }
    for case, (plan, before, counted, after) in cases.items():
        assert select_counted(plan, [*before, *counted, *after]) == counted, case


def test_the_latest_pilot_counts_and_a_series_has_the_centres_by_round():
    early, late = broken(GRAPH, Status.INTERRUPTED), launch(GRAPH, number=0, attempt=1)
    assert pilots([late, early, launch(GRAPH)]) == {GRAPH: late}
    launches = [launch(GRAPH, 0.01, 1), broken(GRAPH, Status.FAILED, 2), launch(GRAPH, (), 3), launch(GRAPH, 0.02, 4)]
    assert series(launches)[GRAPH] == pytest.approx({1: 0.01, 4: 0.02})
    assert series([launch(GRAPH, samples=[Sample(7.0, 1)])])[GRAPH] == pytest.approx({1: 7.0})
    # two launches in a round are joined by the mean of their logs
    joined = series([launch(GRAPH, 0.01), launch(GRAPH, 0.04, role=Role.CONTROL)])
    assert joined[GRAPH] == pytest.approx({1: 0.02})
    corrected = series([launch(GRAPH, 0.01, 1), launch(GRAPH, 0.0125, 2, resources=SHARED)])
    assert corrected[GRAPH] == pytest.approx({1: 0.01, 2: 0.01})


SIX = cells(["tf1.14", "tf2.0", "tf2.1"])


def test_a_reference_in_blocks_has_their_mean_and_its_attempts_are_complete():
    first = [launch(GRAPH, 0.01), launch(GRAPH, 0.04, role=Role.CONTROL), launch(EAGER, 0.02)]
    centres = series([*first, launch(GRAPH, 0.08, role=Role.CONTROL, block=1), launch(OTHER, 0.16, block=1)])
    assert (centres[GRAPH][1], centres[EAGER][1], centres[OTHER][1]) == pytest.approx((0.04, 0.04, 0.08))
    # a block whose reference gave no number is left as it was measured
    torn = broken(GRAPH, Status.OOM, 1, role=Role.CONTROL, block=1)
    centres = series([launch(GRAPH, 0.01), launch(EAGER, 0.02), torn, launch(OTHER, 0.16, block=1)])
    assert (centres[GRAPH][1], centres[EAGER][1], centres[OTHER][1]) == pytest.approx((0.01, 0.02, 0.16))
    complete = in_blocks(dict.fromkeys(SIX, 0.01), 1)
    assert select_counted(run(SIX, controlled=True).plan, complete) == complete
    torn = [replace(entry, attempt=1) for entry in complete[:-1]]
    assert select_counted(run(SIX, controlled=True).plan, [*complete, *torn]) == complete


#: Ten seconds on one CPU, of which the launch had eight, and others two.
SHARED = {
    "steady_seconds": 10.0,
    "steady_cpu_seconds": 8.0,
    "steady_own_cpus": 1.0,
    "steady_own_cpus_busy_seconds": 10.0,
    "steady_own_cpus_steal_seconds": 0.0,
}


NAMES = {"busy": "own_cpus_busy_seconds", "steal": "own_cpus_steal_seconds"}


def shared(without=(), **changes):
    """A launch that others took a fifth of the CPU from, but for the changes."""
    resources = {**SHARED, **{f"steady_{NAMES.get(name, name)}": value for name, value in changes.items()}}
    return launch(cell(), resources={name: value for name, value in resources.items() if name not in without})


def test_what_others_took_is_the_cpu_time_that_was_not_the_launchs_where_the_ticks_agree():
    for changes, share in [
        ({}, 0.2),
        ({"busy": 8.0, "steal": 2.0}, 0.2),
        # what is not shown to be over 3 %, which is a verdict's margin: two ticks may be off at each end
        ({"cpu_seconds": 9.67}, 0.0),
        ({"cpu_seconds": 9.65}, 0.035),
        # a step that waits by itself, and one beside others who took less than it waited
        ({"busy": 9.0}, 0.0),
        # the ticks may be 0.04 s and 1 % off
        ({"busy": 9.87}, 0.2),
        ({"busy": 9.85}, 0.0),
        ({"busy": 10.13}, 0.2),
        ({"busy": 10.15}, 0.0),
        # which in a short measurement is more than the 3 %
        ({"seconds": 0.25, "cpu_seconds": 0.21, "busy": 0.21}, 0.0),
        ({"own_cpus": 2.0}, 0.0),
        ({"seconds": 0.0}, 0.0),
        # the launch cannot have had nothing
        ({"cpu_seconds": 0.0}, 0.0),
    ]:
        launched = shared(**changes)
        assert compute_subtracted_share(launched) == pytest.approx(share), changes
        assert compute_mean(launched) == pytest.approx(0.01 * (1.0 - share)), changes


def test_without_what_it_rests_on_nothing_was_taken():
    shares = {name: compute_subtracted_share(shared(without=[name])) for name in SHARED}
    # where stolen time is not known, what others used still tells
    stolen = "steady_own_cpus_steal_seconds"
    assert shares == {name: pytest.approx(0.2) if name == stolen else 0.0 for name in SHARED}
    assert compute_subtracted_share(launch(cell())) == 0.0


def test_where_a_launch_tells_how_long_it_was_ready_that_was_taken():
    for changes, share in [
        ({"waited_seconds": 2.0}, 0.2),
        # the ticks need not agree: what it waited for by itself stays
        ({"waited_seconds": 1.0, "cpu_seconds": 5.0, "busy": 6.0}, 0.1),
        ({"waited_seconds": 0.31}, 0.031),
        ({"waited_seconds": 0.29}, 0.0),
        # threads wait for one another too: no more than it did not run, and than others used
        ({"waited_seconds": 9.0}, 0.2),
        ({"waited_seconds": 9.0, "cpu_seconds": 4.0, "busy": 5.0}, 0.104),
        ({"waited_seconds": 9.0, "cpu_seconds": 4.0, "busy": 4.0}, 0.0),
        # the hypervisor's part is not in the kernel's books of a thread
        ({"waited_seconds": 0.0, "busy": 8.0, "steal": 2.0}, 0.2),
        # where nobody else is shown to have run nothing is taken off, whatever the books say
        ({"waited_seconds": 2.0, "busy": 8.33}, 0.0),
        ({"waited_seconds": 2.0, "busy": 8.35}, 0.039),
        # in pieces a tick may be off in each
        ({"waited_seconds": 2.0, "busy": 8.35, "pieces": 25.0}, 0.0),
        ({"waited_seconds": 2.0, "busy": 8.40, "pieces": 25.0}, 0.049),
    ]:
        assert compute_subtracted_share(shared(**changes)) == pytest.approx(share), changes


def test_the_time_for_which_a_quota_stopped_a_launch_is_taken_off_and_is_no_contention():
    for quota, changes, share, contended in [
        # nobody else ran: a quota stopped it
        (0.5, {"busy": 8.0, "waited_seconds": 2.0}, 0.2, 0.0),
        # it also waited by itself
        (0.5, {"busy": 8.0, "waited_seconds": 1.0}, 0.1, 0.0),
        # others ran too, for half of that time
        (0.5, {"busy": 9.0, "waited_seconds": 2.0}, 0.2, 0.104),
        (0.5, {"busy": 8.0, "waited_seconds": 0.2}, 0.0, 0.0),
        # a quota that holds all that a launch can use stops nothing
        (1.0, {"busy": 8.0, "waited_seconds": 2.0}, 0.0, 0.0),
    ]:
        launched = shared(**changes)
        launched = replace(launched, resources={**launched.resources, CPU_QUOTA: quota})
        assert compute_subtracted_share(launched) == pytest.approx(share), (quota, changes)
        assert was_throttled(launched) == (share > 0.0), (quota, changes)
        assert compute_loss(launched) == pytest.approx(-math.log1p(-contended)), (quota, changes)


def beside(idle, waited, **changes):
    """A launch of ten samples of 1 s, in which its process ran for all but `idle`; no tick shows that others ran."""
    own_cpu = 10.0 - sum(idle)
    launched = shared(cpu_seconds=own_cpu, busy=own_cpu + 0.01, waited_seconds=waited, **changes)
    return replace(launched, samples=[Sample(1.0, 100, 1.0 - entry) for entry in idle])


def test_a_step_that_runs_all_the_time_in_most_samples_shows_by_itself_what_others_took():
    for idle, waited, share in (
        ([0.0] * 8 + [0.25, 0.25], 0.5, 0.05),
        # half of what ticks may be off allows no more
        ([0.009] * 6 + [0.4] * 4, 1.6, 0.055),
        # what it waits for by itself stays, and so does all of a step that waits in most samples
        ([0.0] * 8 + [0.25, 0.25], 0.0, 0.0),
        ([0.02] * 6 + [0.4] * 4, 1.6, 0.0),
    ):
        assert compute_subtracted_share(beside(idle, waited, pieces=3600.0)) == pytest.approx(share), idle
    # a few samples say nothing of most
    few = beside([0.0] * 8 + [0.25, 0.25], waited=0.5, pieces=3600.0)
    assert compute_subtracted_share(replace(few, samples=few.samples[-4:])) == 0.0
    # ticks are off in each piece of a timed part, and no less than in one
    pieces = {1.0: 0.04, 4.0: 0.04, 100.0: 0.18}
    assert {count: ticks_seconds({"steady_pieces": count}) for count in pieces} == pytest.approx(pieces)
    assert ticks_seconds({}) == 0.04


def test_by_cpu_time_the_samples_have_their_cpu_seconds_and_nothing_is_taken_off():
    samples = [Sample(0.125, 10, cpu_seconds=0.1), Sample(0.25, 10, cpu_seconds=0.0)]
    launched = launch(cell(), samples=samples, alone=samples[:1], resources={**SHARED, "steady_waited_seconds": 2.0})
    assert apply_clock(Clock.WALL, [launched]) == [launched]
    (converted,) = apply_clock(Clock.CPU, [launched])
    assert [sample.seconds for sample in [*converted.samples, *converted.alone]] == [0.1, 0.0, 0.1]
    shares = compute_subtracted_share(launched), compute_subtracted_share(converted)
    assert (*shares, compute_mean(converted)) == (pytest.approx(0.2), 0.0, 0.005)
    assert apply_clock(Clock.CPU, [converted]) == [converted]
    # what broke or only observes stays as it is
    others = [broken(cell(), Status.OOM, error="killed"), launch(cell(), (), observations={"loop": "fit"})]
    assert apply_clock(Clock.CPU, others) == others


def test_a_launch_without_cpu_time_gives_no_number_by_it_and_says_why(snapshot):
    messages = {}
    for used in (0.0, None):
        launched = launch(cell(), samples=[Sample(0.1, 10, cpu_seconds=used)], observations={"loop": "fit"})
        (converted,) = apply_clock(Clock.CPU, [launched])
        assert (converted.status, converted.steps, converted.only_observed, series([converted])) == (
            Status.FAILED,
            0,
            False,
            {},
        )
        messages[f"CPU seconds: {used}"] = [converted.error, converted.advice]
    assert messages == snapshot


def taking(seconds, number=1, **changes):
    return replace(launch(cell(), number=number), seconds=seconds, **changes)


def test_what_a_round_costs_and_what_a_cpu_quota_adds_to_a_budget():
    group = launch(cell()).group
    control = taking(2.0, role=Role.CONTROL)
    for launches, costs in (
        ([taking(3.0), taking(4.0, cell=cell(mode="eager")), control], {group: 9.0}),
        ([taking(3.0), taking(5.0, number=2), taking(7.0, group="another")], {group: 4.0, "another": 7.0}),
        ([taking(3.0), taking(5.0, attempt=1)], {group: 4.0}),  # two rounds
        ([launch(cell())], {group: 0.0}),
    ):
        assert seconds_per_round(launches) == pytest.approx(costs), launches

    def under(quota):
        return launch(cell(), resources={CPU_QUOTA: quota, "steady_own_cpus": 2.0})

    assert find_granted_share([under(1.5), under(1.0), launch(cell())]) == 0.5
    assert find_granted_share([under(4.0)]) == find_granted_share([]) == 1.0
    plans = [replace(PLAN, budget_seconds=10.0, budget_is_wish=is_wish) for is_wish in (True, False)]
    assert [budget_seconds(plan, [under(1.0)]) for plan in plans] == [20.0, 10.0]
    assert budget_seconds(PLAN, [under(1.0)]) is None


def test_a_cell_is_measured_if_its_pilot_ended_ok_and_timed_something():
    observed = launch(cell(), (), 0, observations={"loop": "fit"}, phases={"import": 1.0})
    assert is_to_measure(launch(cell(), number=0))
    assert not is_to_measure(broken(cell(), Status.OOM), ["peak memory"])
    # what only observes is for its peak memory, or a phase that it has
    quantities = [], ["peak memory"], ["import"], ["build", "step"]
    assert [is_to_measure(observed, names) for names in quantities] == [False, True, True, False]
