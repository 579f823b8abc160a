"""How a run went, in words."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.launch import CPU_QUOTA, Limits, Protocol, Sample, Sampling
from harness.model.run import Stop, StopReason
from harness.model.scenario import CPUS
from harness.report.blocks import Items, Where
from harness.report.sections import timeline
from tests.factories import RESOURCES, cell, cells, groups, rounds, run, scenario
from tests.report.sections.reading import everything

MEMBERS = cells(calls=("fit", "train_on_batch"))
TIMES = dict.fromkeys(cells(), 0.01)


def describe_stops(*stops, suite="", **plan):
    members = cells(calls=["fit", "train_on_batch", "predict"][: len(stops)])
    ends = {group.name: stop for group, stop in zip(groups(members), stops, strict=True)}
    planned = run(members, stops=ends, asked=plan, suite=suite)
    return timeline.describe_stops(Results(planned, []).ended, planned)


def test_where_groups_stopped(snapshot):
    planned, by_budget, by_precision = (
        lambda count, reason=reason: Stop(reason, count)
        for reason in (StopReason.ROUNDS, StopReason.BUDGET, StopReason.PRECISION)
    )
    interrupted, no_numbers = Stop(StopReason.INTERRUPTED, 1), Stop(StopReason.NO_NUMBERS, 0)
    budget, wish = {"budget_seconds": 90.0}, {"budget_seconds": 90.0, "budget_is_wish": True}
    late = {"precision": 0.02, "budget_seconds": 600.0}
    going = run(MEMBERS, stops={groups(MEMBERS)[0].name: planned(5)})
    assert {
        "no stops": describe_stops(),
        "no stops, with a precision": describe_stops(precision=0.02),
        "as planned": describe_stops(planned(5), planned(5)),
        "as planned, with a precision": describe_stops(planned(5), planned(5), precision=0.02),
        "a precision, and a budget before it": describe_stops(by_precision(8), by_budget(2), **late),
        "a precision": describe_stops(by_precision(11), by_precision(8), precision=0.025),
        "an interruption, and no numbers": describe_stops(interrupted, no_numbers),
        "observations": describe_stops(Stop(StopReason.OBSERVED, 0), planned(5)),
        "claims": describe_stops(by_precision(3), by_precision(6), claims=["tensorflow/tensorflow#33487"]),
        "a budget": describe_stops(by_budget(3), by_budget(4), by_budget(5), **budget),
        "the budget of a suite": describe_stops(by_budget(3), suite="quick", **wish),
        "the default budget": describe_stops(by_budget(3), **wish),
        "one group goes on": timeline.describe_stops(Results(going, []).ended, going),
    } == snapshot


def test_rounds_sampling_and_pinning(snapshot):
    def describe_sampling(launches=None, planned=None, **changes):
        asked = planned or run(MEMBERS, asked={"sampling": Sampling(**changes)})
        timed = rounds(dict.fromkeys(MEMBERS, 0.01))
        return timeline.describe_sampling(Results(asked, timed if launches is None else launches))

    observed = {group.name: Stop(StopReason.OBSERVED, 0) for group in groups(MEMBERS)}
    controlled = run(MEMBERS, controlled=True)
    limits = {"limits": Limits(cpus=(0, 1, 2, 8))}
    scaled = scenario(axes={**scenario().axes, CPUS: ["1", "4"]}, settings=[CPUS])
    on_cores = run([cell(cpus=count) for count in scaled.axes[CPUS]], scenarios=[scaled], asked=limits)
    halved = rounds(TIMES, resources={CPU_QUOTA: 0.5, "steady_own_cpus": 1.0})
    once = rounds(TIMES, samples=[Sample(1.0, 1)])
    mixed = [*once, *(launch for launch in rounds(TIMES) if launch.cell != once[0].cell)]
    assert {
        "rounds": timeline.describe_rounds(Results(run(MEMBERS), [])),
        "rounds with a control": timeline.describe_rounds(Results(controlled, [])),
        "observations alone": timeline.describe_rounds(Results(run(MEMBERS, stops=observed), [])),
        "sampling": describe_sampling(warmup_seconds=0.5, measure_seconds=1.5),
        "sampling under a CPU quota of 50 %": describe_sampling(halved, warmup_seconds=0.5, measure_seconds=1.5),
        "sampling by the pilot": describe_sampling(),
        "sampling by a pilot to come": describe_sampling([]),
        "sampling as the source": describe_sampling(protocol=Protocol.DOCUMENT),
        "sampling as the scenario": describe_sampling(once, run(TIMES)),
        "sampling as one of two scenarios": describe_sampling(mixed, run(TIMES)),
        "one core": timeline.describe_pinning(run()),
        "four cores": timeline.describe_pinning(run(asked=limits)),
        "one or four cores": timeline.describe_pinning(on_cores),
        "slots": timeline.describe_pinning(run(host={"slots": ["0", "1"]})),
        "all cores": timeline.describe_pinning(run(asked={"limits": Limits()})),
    } == snapshot


# What disturbed it.


def list_noisy_rounds(launches):
    (section,) = timeline.make_sections(Results(run(), launches))
    assert section.shown(Where.PASTE) is None
    (items,) = [block.items for block in everything(section) if isinstance(block, Items)]
    return list(map(str, items))


def test_ten_disturbed_rounds_are_named_in_the_details():
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    items = list_noisy_rounds(rounds(TIMES, count=12, resources=noisy))
    assert items[9].startswith("Round 10 of step cpu call=fit dtype=float32: step tf1.14")
    assert items[10:] == ["and 2 more"]
    assert len(list_noisy_rounds(rounds(TIMES, count=10, resources=noisy))) == 10
    launches = rounds(TIMES, count=2, resources=RESOURCES)
    first = [replace(launch, resources=noisy) for launch in launches if launch.round == 2]
    repetition = [replace(launch, attempt=1) if launch.round == 2 else launch for launch in launches]
    (item,) = list_noisy_rounds([*first, *repetition])
    assert item.startswith("Round 2 of step cpu call=fit dtype=float32 (repeated): ")
    assert not list(timeline.make_sections(Results(run(), rounds(TIMES, resources=RESOURCES))))
