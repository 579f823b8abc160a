"""What a report says of upstream issues' claims."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.results import Results
from harness.model.launch import Clock, Launch, Status
from harness.model.scenario import DEVICE, MACHINE, Cell, Claim
from harness.report import sections
from harness.report.blocks import REPORT, Code, Items, Link, Text, Where
from harness.report.sections import claims, summary
from tests.claims import BETTER, CLAIM, LEAK, WORSE, claimed_scenario
from tests.factories import ENVIRONMENTS, broken, cell, launch, rounds, run
from tests.report.sections import reading

SAID = "T#33487 reports: fit takes three times as long in eager mode. "


def made(launches: Sequence[Launch], *said: Claim, **changes: Any) -> Results:
    planned = list(dict.fromkeys(entry.cell for entry in launches))
    return Results(run(planned, scenarios=[claimed_scenario(*said)], **changes), launches)


def releases(ratios: Mapping[str, float], **changes: Any) -> Results:
    """The claim of tf1.14, with these ratios by environment, to the digit."""
    sides = {name: replace(getattr(CLAIM, name), environment="tf1.14") for name in ("worse", "better")}
    seconds = {cell(name, mode="eager"): 0.01 * ratio for name, ratio in ratios.items()}
    seconds |= {cell(name, mode="graph"): 0.01 for name in ratios}
    known = [environment for environment in ENVIRONMENTS if environment.name in ratios]
    return made(rounds(seconds, spread=0.0), replace(CLAIM, **sides, **changes), environments=known)


def sentence(results: Results) -> str:
    (result,) = results.claims
    return claims.format_claim(results, result)


@pytest.mark.parametrize(
    ("ratio", "told"),
    [
        (
            3.0,
            "Confirmed: in tf1.14, eager takes 3.00× (3.00 to 3.00) as long as graph (fit); claimed: 2 to 4×",
        ),
        (1.5, "Confirmed, but smaller: in tf1.14, eager takes 1.50× "),
        (9.0, "Confirmed, but larger: in tf1.14, eager takes 9.00× "),
        (1.0, "Not seen here: in tf1.14, eager takes 1.00× "),
        (0.5, "The opposite: in tf1.14, eager takes 0.500× "),
    ],
)
def test_the_outcome_stands_first_with_its_interval_and_what_is_claimed(ratio: float, told: str) -> None:
    said = sentence(releases({"tf1.14": ratio}))
    assert said.startswith(SAID + told)
    assert said.endswith("; claimed: 2 to 4× (Colab CPU). Reported as fixed in 2.1.")


def test_where_it_is_fixed_and_what_is_so_elsewhere() -> None:
    assert sentence(releases({"tf1.14": 3.0, "tf2.0": 1.5, "tf2.1": 1.0}, fixed="")).endswith(
        " Not seen in tf2.1, 1.00× (1.00 to 1.00); fixed between tf2.0 and tf2.1. In tf2.0: confirmed, but smaller, "
        "1.50× (1.50 to 1.50)."
    )


def test_a_fix_has_the_command_that_finds_its_release() -> None:
    results = releases({"tf1.14": 3.0, "tf2.0": 1.5, "tf2.1": 1.0})
    command = "harness bisect 'T#33487' --find-fix --bad tf2.0 --good tf2.1"
    assert Code(command, where=REPORT) in list(claims.make_head(results))
    assert claims.list_bisect_commands(releases({"tf1.14": 3.0, "tf2.1": 3.0})) == []
    # of an issue with claims about several cells, the cell
    other = replace(CLAIM, when={"call": "train_on_batch"})
    two = Results(replace(results.run, scenarios=[claimed_scenario(results.claims[0].claim, other)]), results.launches)
    assert claims.list_bisect_commands(two) == [command]
    cells = {cell(name, call="train_on_batch", mode=mode): 0.01 for name in ("tf2.0",) for mode in ("eager", "graph")}
    several = Results(
        run(
            [*results.run.plan.cells, *cells],
            scenarios=two.run.scenarios,
            environments=results.run.environments,
        ),
        [*results.launches, *rounds(cells)],
    )
    assert claims.list_bisect_commands(several) == [
        "harness bisect 'T#33487' -s step -a call=fit -a dtype=float32 -a mode=eager --find-fix --bad tf2.0 "
        "--good tf2.1"
    ]


def test_the_command_that_finds_a_fix_has_no_axis_of_a_merged_run_or_of_a_run_on_both_devices() -> None:
    one = releases({"tf1.14": 3.0, "tf2.0": 1.5, "tf2.1": 1.0})
    (planned,) = one.run.scenarios
    seconds = {
        replace(each, axes={MACHINE: machine, DEVICE: "cpu", **each.axes, "call": call}): series[1]
        for machine in "ab"
        for call in ("fit", "train_on_batch")
        for each, series in one.found.series.items()
    }
    axes = {MACHINE: ["a", "b"], DEVICE: ["cpu"], **planned.axes}

    def merged(*said: Claim) -> list[str]:
        made = run(seconds, scenarios=[replace(planned, axes=axes, claims=said)], environments=one.run.environments)
        return claims.list_bisect_commands(Results(made, rounds(seconds, spread=0.0)))

    # two machines measured the same cell
    ends = "--find-fix --bad tf2.0 --good tf2.1"
    assert merged(*planned.claims) == [f"harness bisect 'T#33487' {ends}"]
    # claims about two cells need the axes of the scenario
    assert merged(*planned.claims, replace(planned.claims[0], when={"call": "train_on_batch"})) == [
        f"harness bisect 'T#33487' -s step -a call={call} -a dtype=float32 -a mode=eager {ends}"
        for call in ("fit", "train_on_batch")
    ]


def test_two_environments_are_named_on_both_sides() -> None:
    worse, better = (replace(CLAIM.worse, environment=name) for name in ("tf2.0", "tf1.14"))
    seconds = {cell("tf1.14", mode="eager"): 0.01, cell("tf2.0", mode="eager"): 0.03}
    results = made(rounds(seconds, spread=0.0), replace(CLAIM, worse=worse, better=better, hardware=""))
    assert "Confirmed: tf2.0 takes 3.00× (3.00 to 3.00) as long as tf1.14 (fit); claimed: 2 to 4×." in sentence(results)


def test_a_change_of_python_is_said_in_the_same_line() -> None:
    worse, better = (replace(CLAIM.worse, environment=name) for name in ("tf2.0", "tf1.14"))
    claim = replace(CLAIM, worse=worse, better=better, hardware="")
    known = [replace(ENVIRONMENTS[0], python="3.6"), ENVIRONMENTS[1]]
    for seconds in (0.03, 0.01):
        launches = rounds({cell("tf1.14", mode="eager"): 0.01, cell("tf2.0", mode="eager"): seconds})
        results = made(launches, claim, environments=known)
        assert "as long as tf1.14 (fit); Python 3.7 vs 3.6; claimed: 2 to 4×" in sentence(results)
        (table,) = reading.tables(next(claims.make_sections(results)), Where.PASTE)
        assert "Python 3.7 vs 3.6" in reading.rows(table)[0][-1]


def test_what_is_unclear_says_what_would_settle_it_and_what_it_is_below() -> None:
    said = sentence(made(rounds({WORSE: 0.0115, BETTER: 0.01}, spread=0.2), CLAIM))
    assert "Unclear: in tf2.0, " in said
    assert "; at most 1.56×, below the claimed 2; 17 rounds in total would probably give a verdict." in said


def test_unclear_results_are_counted_as_results_because_a_claim_has_one_in_each_environment() -> None:
    clear = {cell("tf1.14", mode=mode): seconds for mode, seconds in (("eager", 0.1), ("graph", 0.01))}
    launches = [*rounds({WORSE: 0.0115, BETTER: 0.01}, spread=0.2), *rounds(clear, spread=0.0)]
    told, _ = summary.suggest_rounds(made(launches, CLAIM))
    assert isinstance(told, Text)
    assert str(told.words).startswith("1 of 2 results of claims is unclear. With ")
    assert str(told.words).endswith(" for this result:")


def test_the_level_of_the_intervals_is_said_once_for_all_claims() -> None:
    words = [
        block.words
        for block in claims.make_head(made(rounds({WORSE: 0.03, BETTER: 0.01}), CLAIM))
        if isinstance(block, Text)
    ]
    assert words.count("Each interval in brackets has 95 % confidence.") == 1


def test_what_cannot_run_says_why() -> None:
    launches = [*rounds({BETTER: 0.01}), broken(WORSE, Status.FAILED, error="ValueError: no.")]
    assert sentence(made(launches, CLAIM)).startswith(f"{SAID}Cannot run here: failed in tf2.0: ValueError: no. Rep")


def test_bytes_and_seconds_are_those_of_one_side() -> None:
    points = [(100.0 * at, 1e9 + 5000.0 * 100.0 * at) for at in range(21)]
    leak = [launch(WORSE, 0.01, number, memory=points) for number in range(1, 4)]
    assert sentence(made(leak, LEAK)) == (
        "K#13118 reports: fit leaks. Confirmed: in tf2.0, each call of eager keeps 5,000 B (5,000 to 5,000) (fit); "
        "claimed: 1,000 to 20,000 B per call."
    )
    claim = replace(CLAIM, better=None, ratio=None, seconds=(5.0, 20.0), of="import", fixed="")
    slow = [launch(WORSE, 0.01, number, phases={"import": 6.0}) for number in range(1, 4)]
    assert sentence(made(slow, claim)).endswith(
        "in tf2.0, import of eager takes 6.00 s (6.00 to 6.00) (fit); claimed: 5 to 20 s (Colab CPU)."
    )


def test_a_phase_and_cpu_time_are_named() -> None:
    slow = [
        launch(each, 0.01, number, phases={"import": seconds})
        for number in range(1, 4)
        for each, seconds in ((WORSE, 3.0), (BETTER, 1.0))
    ]
    assert "in tf2.0, import of eager is 3.00× (3.00 to 3.00) the value of graph (fit)" in sentence(
        made(slow, replace(CLAIM, of="import"))
    )
    by_cpu = [
        replace(entry, samples=[replace(sample, cpu_seconds=sample.seconds) for sample in entry.samples])
        for entry in rounds({WORSE: 0.03, BETTER: 0.01}, spread=0.0)
    ]
    assert "as much CPU time as graph" in sentence(made(by_cpu, CLAIM, asked={"clock": Clock.CPU}))


def test_claims_stand_before_all_else_with_a_link_to_the_issue() -> None:
    results = releases({"tf1.14": 3.0})
    head = sections.build(results)[0].blocks[0]
    assert isinstance(head, Items)
    assert head.where == ~Where(0)
    assert head.items[0][0] == Link("T#33487", "https://github.com/tensorflow/tensorflow/issues/33487")


def test_several_are_counted_and_the_table_has_every_place() -> None:
    results = releases({"tf1.14": 3.0, "tf2.0": 1.0})
    both = Results(replace(results.run, scenarios=[claimed_scenario(*[results.claims[0].claim] * 7)]), results.launches)
    (section,) = claims.make_sections(both)
    (table,) = reading.tables(section)
    assert reading.heads(table) == ["issue", "claim", "where", "claimed", "measured", "outcome", "remarks"]
    assert [row[2] for row in reading.rows(table)] == ["tf1.14", "tf2.0"] * 7
    assert reading.rows(table)[1][4:6] == ["1.00× (1.00 to 1.00)", "not seen here"]
    assert reading.told(next(summary.make_sections(both)), Where.PASTE)[0] == (
        "Of 7 claims of upstream issues: 7 confirmed; 7 of them not seen in a later release."
    )
    items = [
        block
        for value in (next(summary.make_sections(both)), section)
        for block in value.blocks
        if isinstance(block, Items)
    ]
    assert [len(block.items) for block in items] == [5, 2]


def test_a_terminal_shows_all_places_of_a_few_claims_and_only_the_own_place_of_many() -> None:
    results = releases({"tf1.14": 3.0, "tf2.0": 1.0})

    def show(count: int) -> tuple[list[list[str]], list[str]]:
        scenario = claimed_scenario(*[results.claims[0].claim] * count)
        (section,) = claims.make_sections(Results(replace(results.run, scenarios=[scenario]), results.launches))
        (table,) = reading.tables(section, Where.TERMINAL)
        return reading.rows(table.shown(Where.TERMINAL)), reading.told(section, Where.TERMINAL)

    rows, told = show(7)
    assert [row[1] for row in rows] == ["tf1.14", "tf2.0"] * 7
    assert told == []
    rows, told = show(claims.ROWS + 10)
    assert [row[1] for row in rows] == ["tf1.14"] * claims.ROWS
    assert told == [f"{claims.ROWS + 20} more results are in details.md and in report.html."]


def test_a_run_without_claims_says_nothing_of_them() -> None:
    results = made(rounds({WORSE: 0.03, BETTER: 0.01}), replace(CLAIM, when={"call": "train_on_batch"}))
    assert list(claims.make_sections(results)) == list(claims.make_head(results)) == []


def test_a_claims_cells_are_no_pair_that_lacks_a_comparison() -> None:
    compared = claimed_scenario(replace(CLAIM, hardware=""))
    launches = rounds({WORSE: 0.03, BETTER: 0.01})
    results = Results(run([WORSE, BETTER], scenarios=[replace(compared, compare=[])]), launches)
    told = reading.told(next(summary.make_sections(results)), Where.PASTE, notes=True)
    assert not any("Nothing is compared" in entry for entry in told)
    assert any("A/A control" in entry for entry in told)


def other_cells(results: Results) -> list[Cell]:
    return [place.worse for result in results.claims for place in result.elsewhere]


def test_an_environment_more_than_the_sentence_has_room_for_is_in_the_table() -> None:
    many = [replace(ENVIRONMENTS[1], name=f"tf2.{minor}", tensorflow=f"2.{minor}.0") for minor in range(6)]
    seconds = {cell(entry.name, mode=mode): took for entry in many for mode, took in (("eager", 0.03), ("graph", 0.01))}
    results = made(rounds(seconds, spread=0.0), CLAIM, environments=many)
    assert len(other_cells(results)) == 5
    assert sentence(results).endswith(" 2 more environments are in the table.")
