"""How the report describes interleaving and its side effects."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.launch import Interleave
from harness.report.sections import interleaving, timeline
from tests.factories import cell, cells, in_turns, launch, rounds, run, scenario

MEMBERS = cells()
OLD, OLD_EAGER, NEW, NEW_EAGER = MEMBERS
TIMES = dict(zip(MEMBERS, [0.01, 0.02, 0.03, 0.05], strict=True))
RUN = run(MEMBERS, controlled=True)


def interleave(*arguments, **changes):
    return Results(RUN, in_turns(TIMES, *arguments, **{"within": 0.01, **changes}))


def test_how_launches_of_a_round_ran(snapshot):
    planned = run(MEMBERS, asked={"interleave": Interleave.TURNS})
    turns = in_turns(TIMES, 1, turns=12)
    short = replace(turns[0], samples=turns[0].samples[:9], places=turns[0].places[:9])
    second_block = [replace(turn, block=1) for turn in in_turns({OLD: 0.01}, 1, turns=12)[1:]]
    runs = {
        "in turns": interleave(turns=12),
        "in one turn": interleave(1, turns=1),
        "one after the other": Results(RUN, rounds(TIMES)),
        "in turns, planned": Results(planned, []),
        "in turns, but one after the other": Results(planned, rounds(TIMES)),
        "mixed": Results(RUN, [short, *turns[1:], *second_block, launch(NEW, number=2)]),
    }
    texts = {name: interleaving.describe_interleaving(results) for name, results in runs.items()}
    assert {**texts, "sampling": timeline.describe_sampling(interleave())} == snapshot
    assert timeline.describe_rounds(runs["in turns"]).endswith(f"; {texts['in turns']}")


def test_checks_and_warnings(snapshot):
    quiet, busy = ({"between_seconds": 10.0, "between_cpu_seconds": seconds} for seconds in (0.005, 0.4))
    both = run(
        [*MEMBERS, cell(of="other")], scenarios=[scenario(), scenario("other", title="Another")], controlled=True
    )
    biased = in_turns(TIMES, within=0.01, alone={NEW: 1.1})
    runs = {
        "without turns": Results(RUN, rounds(TIMES)),
        "nothing was found": interleave(resources=quiet),
        "a bias": interleave(alone={NEW: 1.1}),
        "a bias below the margin": interleave(within=0.0005, between=0.0001, alone={NEW: 1.02}),
        "work between turns": interleave(resources=busy),
        "two scenarios": Results(both, [*biased, launch(cell(of="other"))]),
        "more than a tenth is open": interleave(2, within=0.2, turns=6),
        "few turns": interleave(1, turns=3),
    }
    assert {
        name: [interleaving.describe_checks(results), *interleaving.list_warnings(results)]
        for name, results in runs.items()
    } == snapshot
