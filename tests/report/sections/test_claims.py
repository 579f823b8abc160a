"""What a report says of upstream issues' claims."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from harness.analysis.results import Results
from harness.model.launch import Clock, Launch, Status
from harness.model.scenario import DEVICE, MACHINE, Claim
from harness.report.blocks import REPORT, Code, Items, Where
from harness.report.sections import claims, summary
from tests.claims import BETTER, CLAIM, LEAK, WORSE, claimed_scenario
from tests.factories import ENVIRONMENTS, broken, cell, launch, rounds, run
from tests.report.sections import reading

#: A claim about two environments.
RELEASES = replace(
    CLAIM,
    hardware="",
    **{name: replace(CLAIM.worse, environment=member) for name, member in (("worse", "tf2.0"), ("better", "tf1.14"))},
)


def measure(launches: Sequence[Launch], *claims_made: Claim, **changes: Any) -> Results:
    planned = list(dict.fromkeys(launch.cell for launch in launches))
    return Results(run(planned, scenarios=[claimed_scenario(*claims_made)], **changes), launches)


def measure_releases(ratios: Mapping[str, float], **changes: Any) -> Results:
    """The claim of tf1.14, with these ratios by environment, to the digit."""
    sides = {name: replace(getattr(CLAIM, name), environment="tf1.14") for name in ("worse", "better")}
    seconds = {cell(name, mode="eager"): 0.01 * ratio for name, ratio in ratios.items()}
    seconds |= {cell(name, mode="graph"): 0.01 for name in ratios}
    environments = [environment for environment in ENVIRONMENTS if environment.name in ratios]
    return measure(rounds(seconds, spread=0.0), replace(CLAIM, **sides, **changes), environments=environments)


def measure_often(count: int) -> Results:
    results = measure_releases({"tf1.14": 3.0, "tf2.0": 1.0})
    scenario = claimed_scenario(*[results.claims[0].claim] * count)
    return Results(replace(results.run, scenarios=[scenario]), results.launches)


def test_sentences(snapshot):
    def measure_three(member: Claim, **fields: Any) -> Results:
        return measure([launch(WORSE, 0.01, number, **fields) for number in (1, 2, 3)], member)

    two = {cell("tf1.14", mode="eager"): 0.01, cell("tf2.0", mode="eager"): 0.03}
    older = [replace(ENVIRONMENTS[0], python="3.6"), ENVIRONMENTS[1]]
    leak = [(100.0 * at, 1e9 + 5000.0 * 100.0 * at) for at in range(21)]
    import_seconds = replace(CLAIM, better=None, ratio=None, seconds=(5.0, 20.0), of="import", fixed="")
    imports = [
        launch(member, 0.01, number, phases={"import": seconds})
        for number in (1, 2, 3)
        for member, seconds in ((WORSE, 3.0), (BETTER, 1.0))
    ]
    by_cpu = [
        replace(launch, samples=[replace(sample, cpu_seconds=sample.seconds) for sample in launch.samples])
        for launch in rounds({WORSE: 0.03, BETTER: 0.01}, spread=0.0)
    ]
    failed = [*rounds({BETTER: 0.01}), broken(WORSE, Status.FAILED, error="ValueError: no.")]
    minors = [replace(ENVIRONMENTS[1], name=f"tf2.{minor}", tensorflow=f"2.{minor}.0") for minor in range(6)]
    many = {cell(minor.name, mode=mode): at for minor in minors for mode, at in (("eager", 0.03), ("graph", 0.01))}
    runs = {
        **{f"{ratio} times": measure_releases({"tf1.14": ratio}) for ratio in (3.0, 1.5, 9.0, 1.0, 0.5)},
        "fixed in a later release": measure_releases({"tf1.14": 3.0, "tf2.0": 1.5, "tf2.1": 1.0}, fixed=""),
        "two environments": measure(rounds(two, spread=0.0), RELEASES),
        "two Pythons": measure(rounds(two, spread=0.0), RELEASES, environments=older),
        "unclear": measure(rounds({WORSE: 0.0115, BETTER: 0.01}, spread=0.2), CLAIM),
        "cannot run": measure(failed, CLAIM),
        "bytes": measure_three(LEAK, memory=leak),
        "seconds": measure_three(import_seconds, phases={"import": 6.0}),
        "a phase": measure(imports, replace(CLAIM, of="import")),
        "CPU time": measure(by_cpu, CLAIM, asked={"clock": Clock.CPU}),
        "six environments": measure(rounds(many, spread=0.0), CLAIM, environments=minors),
    }
    assert {
        name: [claims.format_claim(results, result) for result in results.claims] for name, results in runs.items()
    } == snapshot


def test_a_fix_has_the_command_that_finds_its_release():
    results = measure_releases({"tf1.14": 3.0, "tf2.0": 1.5, "tf2.1": 1.0})
    command = "harness bisect 'T#33487' --find-fix --bad tf2.0 --good tf2.1"
    assert Code(command, where=REPORT) in list(claims.make_head(results))
    assert claims.list_bisect_commands(measure_releases({"tf1.14": 3.0, "tf2.1": 3.0})) == []


def test_the_command_that_finds_a_fix_has_no_axis_of_a_merged_run_or_of_a_run_on_both_devices():
    one = measure_releases({"tf1.14": 3.0, "tf2.0": 1.5, "tf2.1": 1.0})
    (planned,) = one.run.scenarios
    seconds = {
        replace(member, axes={MACHINE: machine, DEVICE: "cpu", **member.axes, "call": call}): series[1]
        for machine in "ab"
        for call in ("fit", "train_on_batch")
        for member, series in one.found.series.items()
    }
    axes = {MACHINE: ["a", "b"], DEVICE: ["cpu"], **planned.axes}

    def list_commands(*claims_made: Claim) -> list[str]:
        merged = run(
            seconds, scenarios=[replace(planned, axes=axes, claims=claims_made)], environments=one.run.environments
        )
        return claims.list_bisect_commands(Results(merged, rounds(seconds, spread=0.0)))

    # two machines measured the same cell
    ends = "--find-fix --bad tf2.0 --good tf2.1"
    assert list_commands(*planned.claims) == [f"harness bisect 'T#33487' {ends}"]
    # claims about two cells need the axes of the scenario
    assert list_commands(*planned.claims, replace(planned.claims[0], when={"call": "train_on_batch"})) == [
        f"harness bisect 'T#33487' -s step -a call={call} -a dtype=float32 -a mode=eager {ends}"
        for call in ("fit", "train_on_batch")
    ]


def test_several_are_counted_and_the_table_has_every_place(snapshot):
    often = measure_often(7)
    (section,) = claims.make_sections(often)
    (table,) = reading.tables(section, Where.DETAILS)
    assert [row[2] for row in reading.rows(table)] == ["tf1.14", "tf2.0"] * 7
    assert reading.rows(table)[1][4:6] == ["1.00× (1.00 to 1.00)", "not seen here"]
    assert claims.count_outcomes(often.claims) == snapshot
    blocks = [*next(summary.make_sections(often)).blocks, *section.blocks]
    assert [len(block.items) for block in blocks if isinstance(block, Items)] == [5, 2]


def test_a_terminal_shows_all_places_of_a_few_claims_and_only_the_own_place_of_many():
    def show(count: int) -> tuple[list[str], list[str]]:
        (section,) = claims.make_sections(measure_often(count))
        (table,) = reading.tables(section, Where.TERMINAL)
        rows = reading.rows(table.shown(Where.TERMINAL))
        return [row[1] for row in rows], reading.texts(section, Where.TERMINAL)

    assert show(claims.ROWS // 2) == (["tf1.14", "tf2.0"] * (claims.ROWS // 2), [])
    rows, (text,) = show(claims.ROWS + 10)
    assert rows == ["tf1.14"] * claims.ROWS
    assert text.startswith(f"{claims.ROWS + 20} more results ")


def test_without_claims_nothing_is_said_and_their_cells_lack_no_comparison():
    results = measure(rounds({WORSE: 0.03, BETTER: 0.01}), replace(CLAIM, when={"call": "train_on_batch"}))
    assert list(claims.make_sections(results)) == list(claims.make_head(results)) == []
    compared = claimed_scenario(replace(CLAIM, hardware=""))
    launches = rounds({WORSE: 0.03, BETTER: 0.01})
    results = Results(run([WORSE, BETTER], scenarios=[replace(compared, compare=[])]), launches)
    texts = reading.texts(next(summary.make_sections(results)), Where.PASTE)
    assert not any("Nothing is compared" in text for text in texts)
    assert any("A/A control" in text for text in texts)
