"""Runs of one plan as one: whose numbers a row has, what is refused, what is missing, and what is said of it."""

import fcntl
import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict, Withheld
from harness.fleet.merge import Merged, merge
from harness.model.errors import UsageError
from harness.model.issues import parse
from harness.model.launch import CPU_QUOTA, Launch, Role
from harness.model.run import Machine, Run, Shard, Stop, StopReason
from harness.model.scenario import MACHINE, Claim, ClaimSide
from harness.report import markdown, sections
from harness.report.formats import render
from harness.session import compare, read
from harness.session.reporting import Written
from harness.session.running import resume
from tests import factories
from tests.cli.conftest import stored
from tests.errors import read_refusal

CALLS = ("fit", "train_on_batch")


def run(machine: str = "m-1", name: str = "", calls: tuple[str, ...] = CALLS, **changes: Any) -> Run:
    planned = factories.cells(calls=calls, modes=("graph",))
    one_run = factories.run(planned, controlled=True, id=f"{machine}-{'-'.join(calls)}", machine=Machine(machine, name))
    stops = {group.name: Stop(StopReason.ROUNDS, 5) for group in one_run.plan.groups}
    return replace(one_run, stops=stops, **changes)


def launches(of: Run, slower: float = 2.0, again: float = 1.0, seed: int = 1) -> list[Launch]:
    """Five rounds of a run, TF 2 `slower` than TF 1, whose control takes `again` times as long as its like."""
    result = []
    for place, group in enumerate(of.plan.groups):
        seconds = {cell: 0.01 * (slower if cell.environment == "tf2.0" else 1.0) for cell in group.cells}
        controls = {group.control: 0.01 * again} if group.control else {}
        result += factories.rounds(seconds, spread=0.004, seed=seed + place, controls=controls, group=group.name)
    return result


def sharded(of: Run, number: int, count: int, elsewhere: Mapping[str, int], digest: str = "abc") -> Run:
    return replace(of, id=f"{of.id}-{number}", plan=replace(of.plan, shard=Shard(number, count, digest, elsewhere)))


def merge_runs(tmp_path: Path, *runs: Run | tuple[Run, list[Launch]]) -> Merged:
    both = [
        one_run if isinstance(one_run, tuple) else (one_run, launches(one_run, seed=3 * place))
        for place, one_run in enumerate(runs)
    ]
    return merge([stored(tmp_path / "runs", *entry) for entry in both], tmp_path / "merged")


def render_text(result: Merged) -> str:
    return markdown.render_full(sections.build(result.ended.results))


@pytest.fixture(autouse=True)
def _reports(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write no reports, which take seconds and have other tests."""
    monkeypatch.setattr("harness.fleet.merge.report", lambda *_: Written([], []))


def verdicts(results: Results) -> dict[tuple[str, str], Verdict | None]:
    return {
        (row.machine, row.axes["call"]): value.compared.verdict
        for table in results.tables
        for row in table.rows
        for head, value in table.values(row)
        if value.compared and head.comparison and not head.comparison.pick
    }


def test_shards_of_one_machine_are_the_run_that_it_would_have_made(tmp_path):
    single, (first, second) = run(), [run(calls=(call,)) for call in CALLS]
    names = [group.name for group in single.plan.groups]
    merged = merge_runs(
        tmp_path,
        (sharded(first, 1, 2, {names[1]: 2}), launches(first)),
        (sharded(second, 2, 2, {names[0]: 1}), launches(second, seed=2)),
    )
    results = merged.ended.results
    expected = Results(single, launches(single))
    assert not merged.lacks
    assert [group.name for group in results.run.plan.groups] == names
    assert (results.run.machines, results.run.machine, results.run.host) == ([], single.machine, single.host)
    assert results.run.plan.shard is None
    assert results.tables[0].rows == expected.tables[0].rows
    assert results.found.control == expected.found.control
    assert read(merged.ended.folder).tables == results.tables
    # and of continued shards, the continued run
    looks = [[{names[0]: 3}], [{names[1]: 3}, {names[1]: 4}]]
    first, second = (replace(one_run, looks=value) for one_run, value in zip((first, second), looks, strict=True))
    shards = sharded(first, 1, 2, {names[1]: 2}), sharded(second, 2, 2, {names[0]: 1})
    results = merge_runs(tmp_path / "continued", *shards).ended.results
    assert results.run.looks == [dict.fromkeys(names, 3), {names[1]: 4}]
    shares = [results.found.look(group.cells[0]).share for group in results.run.plan.groups]
    assert shares == pytest.approx([1.0 - 3 / 5, 3 / 4 - 3 / 5])


def test_a_group_of_several_machines_has_a_row_for_each_and_nothing_is_learnt_of_two(tmp_path):
    one, two = run("m-1", "office"), run("m-2")
    parts = {"m-2": (two, launches(two, slower=1.2, seed=9)), "office": (one, launches(one, slower=2.0))}
    results = merge_runs(tmp_path, *parts.values()).ended.results
    assert [(row.machine, row.axes["call"]) for row in results.tables[0].rows] == [
        (machine, call) for call in CALLS for machine in ("m-2", "office")
    ]
    for name, (one_run, measured) in parts.items():
        single = Results(one_run, measured)
        part = results.machines[name]
        control = results.found.controls[one_run.machine.id if one_run.machine else ""]
        controls = (part.found.control, control, single.found.control)
        assert len({(pooled.estimate, pooled.groups) for pooled in controls}) == 1
        assert part.disturbance == replace(single.disturbance, disturbed=part.disturbance.disturbed)
        assert part.run.host == one_run.host
        # the effects, which are judged together, are of one machine's cells
        (effects,) = [attribution for attribution in results.attributions if attribution.machine == name]
        assert effects.effects == single.attributions[0].effects
        assert MACHINE not in effects.axes
        series = {cell.anywhere: values for cell, values in results.found.series.items() if cell.axes[MACHINE] == name}
        assert series == single.found.series
    machines = [{finding.row.machine for finding in answer.findings} for answer in results.answers]
    assert {name for names in machines for name in names} == {"m-2", "office"}
    assert set(map(len, machines)) == {1}
    assert results.found.control is None


def test_groups_with_fewer_rounds_keep_them_beside_other_machines(tmp_path):
    one, two = run("m-1", "office"), run("m-2")
    one = replace(one, plan=replace(one.plan, settled={one.plan.groups[0].name: 2}))
    plan = merge_runs(tmp_path, one, two).ended.results.run.plan
    short = [group for group in plan.groups if group.name in plan.settled]
    assert [(group.axes[MACHINE], plan.settled[group.name]) for group in short] == [("office", 2)]
    assert plan.slots(short[0], 3) == []


def test_the_lengths_of_launches_are_those_of_each_machine(tmp_path):
    one, two = run("m-1", "office"), run("m-2")
    half = {CPU_QUOTA: 0.5, "steady_own_cpus": 1.0}
    slow = [replace(one_launch, resources=half) for one_launch in launches(two)]
    results = merge_runs(tmp_path, one, (two, slow)).ended.results
    assert sorted({sampling.measure_seconds for sampling in results.samplings}) == [1.0, 2.0]


def test_a_control_that_is_beyond_the_margin_takes_the_verdicts_of_its_own_machine(tmp_path):
    one, two = run("m-1", "runner"), run("m-2", "runner")
    results = merge_runs(tmp_path, (one, launches(one, again=1.3)), two).ended.results
    # two machines of one name are told apart
    names = ["runner (m-1)", "runner (m-2)"]
    assert list(results.machines) == names
    expected = dict(zip(names, (None, Verdict.SLOWER), strict=True))
    assert verdicts(results) == {(name, call): verdict for name, verdict in expected.items() for call in CALLS}
    withheld = [value.compared.withheld for row in results.tables[0].rows for value in row.values if value.compared]
    assert set(withheld) == {Withheld.CONTROL, None}


def read_machines(merged: Merged) -> str:
    lines = [
        line for line in render_text(merged).splitlines() if re.search("^(?!harness ).*(machines|m-1 |shards)", line)
    ]
    return "\n".join(lines)


@pytest.mark.slow
def test_whether_machines_agree_is_said(tmp_path, snapshot):
    one, two = run("m-1"), run("m-2")
    texts = {}
    for slower, agrees in ((2.1, True), (0.5, False), (1.03, None)):
        parts = (one, launches(one, slower=2.0)), (two, launches(two, slower=slower))
        merged = merge_runs(tmp_path / str(slower), *parts)
        assert {agreement.agrees for agreement in merged.ended.results.agreements} == {agrees}
        data = json.loads(render("json", merged.ended.results))
        assert [entry["name"] for entry in data["machines"]] == ["m-1", "m-2"]
        assert all(entry["control"]["groups"] == 2 for entry in data["machines"])
        assert [entry["agrees"] for entry in data["agreements"]] == [agrees, agrees]
        texts[f"agrees: {agrees}"] = read_machines(merged)
    other = merge_runs(tmp_path / "other", one, run("m-2", host={"cpu": "Another CPU", "cores": 64}))
    assert "Another CPU" in render_text(other)
    texts["other models"] = read_machines(other)
    assert texts == snapshot


def test_claims_are_judged_machine_by_machine(tmp_path):
    claim = Claim(
        issue=parse("T#1001"),
        reported="TF 2 is twice as slow",
        worse=ClaimSide("tf2.0"),
        better=ClaimSide("tf1.14"),
        ratio=(1.5, 3.0),
        when={"call": "fit", "mode": "graph"},
    )
    runs = [replace(run(machine), scenarios=[factories.scenario(claims=[claim])]) for machine in ("m-1", "m-2")]
    results = merge_runs(tmp_path, *((one_run, launches(one_run)) for one_run in runs)).ended.results
    (on_one, on_two), (single,) = results.claims, Results(runs[0], launches(runs[0])).claims
    assert (on_one.machine, on_two.machine) == ("m-1", "m-2")
    assert on_one.at.estimate == single.at.estimate
    assert on_one.at.worse == replace(single.at.worse, axes={MACHINE: "m-1", **single.at.worse.axes})


def test_missing_shards_and_interrupted_runs_are_named(tmp_path, snapshot):
    gone = {"step cpu call=train_on_batch dtype=float32": 3}
    merged = merge_runs(tmp_path / "one", sharded(run(calls=("fit",)), 1, 3, gone))
    assert read(merged.ended.folder).run.absent == {"3/3": list(gone)}
    one_run = run()
    stops = {**one_run.stops, next(iter(one_run.stops)): Stop(StopReason.INTERRUPTED, 2)}
    interrupted = merge_runs(tmp_path / "two", replace(one_run, stops=stops))
    assert {
        "missing": [*merged.lacks, read_machines(merged)],
        "interrupted": [text.replace(str(tmp_path), "FOLDER") for text in interrupted.lacks],
    } == snapshot


def test_runs_of_different_plans_are_refused_with_what_differs(tmp_path, snapshot):
    changes: dict[str, dict[str, Any]] = {
        "version": {"harness": "9.9"},
        "sources": {"sources": {"step": "ab" * 32}},
        "reference": {"reference": "tf2.0"},
        "pins": {"pins": {"tf1.14": {"six": "1.13.0"}}},
        "groups": {"calls": ("fit",)},
    }
    others = {name: run("m-2", **change) for name, change in changes.items()}
    plan = run("m-2").plan
    for change in ({"seed": 8}, {"rounds": 6}):
        others[next(iter(change))] = replace(run("m-2"), plan=replace(plan, **change))
    elsewhere = [{f"step cpu call={call} dtype=float32": 2} for call in CALLS]
    one = sharded(run(calls=("fit",)), 1, 2, elsewhere[1])
    shards = {
        f"shards of another {what}": sharded(run("m-2", calls=CALLS[1:]), 2, count, elsewhere[0], "other")
        for what, count in (("plan", 2), ("count", 3))
    }
    cases = {name: (run(), other) for name, other in others.items()} | {
        name: (one, shard) for name, shard in shards.items()
    }
    refusals = {}
    for place, (name, runs) in enumerate(cases.items()):
        folder = tmp_path / str(place)
        refusals[name] = read_refusal(lambda runs=runs, folder=folder: merge_runs(folder, *runs), folder)  # type: ignore[misc]
        assert not (folder / "merged").exists()
    assert refusals == snapshot


def test_the_same_rounds_of_one_machine_twice_are_refused_and_others_are_joined(tmp_path):
    one_run = run()
    later = [
        replace(launch, round=launch.round + 5) for launch in launches(one_run, seed=7) if launch.role is not Role.PILOT
    ]
    with pytest.raises(UsageError, match=r"round \d of step cpu call="):
        merge_runs(tmp_path / "a", one_run, replace(one_run, id="again"))
    results = merge_runs(tmp_path / "b", one_run, (replace(one_run, id="later"), later)).ended.results
    assert results.tables[0].rounds == 10
    assert {stop.rounds for stop in results.run.stops.values()} == {10}
    path = stored(tmp_path, run(), launches(run()))
    with pytest.raises(UsageError, match="once"):
        merge([path, path.parent / "." / ".." / path.parent.name / path.name], tmp_path)


def test_what_is_damaged_still_measured_or_of_nobody_is_left_out_and_named(tmp_path, snapshot):
    good = stored(tmp_path, run(), launches(run()))
    damaged, newer, going_on = (stored(tmp_path, run(f"m-{number}"), []) for number in (2, 3, 5))
    nobody = stored(tmp_path, replace(run("m-4"), machine=None), [])
    (damaged / "run.json").write_text("{")
    (newer / "run.json").write_text((good / "run.json").read_text().replace('"schema": 1', '"schema": 99'))
    with (going_on / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        merged = merge([good, damaged, newer, nobody, going_on, tmp_path / "nothing"], tmp_path / "merged")
    assert merged.ended.results.tables
    folder = merged.ended.folder
    of_two = merge_runs(tmp_path / "two", run(), run("m-2")).ended.folder
    assert {
        "left out": [text.replace(str(tmp_path), "FOLDER").split(": EOF")[0] for text in merged.lacks],
        "nothing to merge": read_refusal(lambda: merge([nobody], tmp_path / "merged"), tmp_path),
        # a merged run is not one of a machine
        "merged again": read_refusal(lambda: merge([folder], tmp_path / "again"), folder),
        "resumed": read_refusal(lambda: resume(folder), folder),
        "compared": read_refusal(lambda: compare(of_two, good), of_two),
    } == snapshot


def test_artifacts_come_along_and_do_not_meet(tmp_path):
    folders = []
    for one_run in (run("m-1", calls=("fit",)), run("m-2", calls=("fit",))):
        first, *others = launches(one_run)
        names = [f"artifacts/ab-round0/{name}" for name in ("inner/log.txt", "gone.txt", "link.txt")]
        folder = stored(tmp_path, one_run, [replace(first, artifacts=names), *others])
        (folder / "artifacts" / "ab-round0" / "inner").mkdir(parents=True)
        (folder / names[0]).write_text(one_run.id)
        (folder / names[2]).symlink_to("/etc/hostname")
        folders.append(folder)
    result = merge(folders, tmp_path / "merged").ended
    artifacts = [name for launch in result.results.launches for name in launch.artifacts]
    assert sorted((result.folder / name).read_text() for name in artifacts) == [folder.name for folder in folders]
    assert [line for launch in result.results.launches for line in launch.not_kept] == 2 * [
        "artifacts/ab-round0/gone.txt: No such file or directory",
        "artifacts/ab-round0/link.txt: it is a link",
    ]


@pytest.mark.slow
def test_the_command_makes_two_shards_one_run(harness):
    words = ("-s", "ways", "-a", "way=fine,exits", "-e", "old", "--rounds", "1")
    for number in (1, 2):
        process = harness.matrix(*words, "--shard", f"{number}/2", HARNESS_MACHINE_ID=f"m-{number}")
        assert f"Shard {number}/2 of the plan " in process.stderr
    folders = sorted(map(str, (harness.root / "results").iterdir()))
    process = harness("merge", *folders, "--results", "merged", "--json")
    assert process.returncode == 1  # one way fails
    merged = [json.loads(line) for line in process.stdout.splitlines()]
    assert {launch["cell"]["axes"]["way"] for launch in merged} == {"fine", "exits"}
    if len(folders) == 2:
        process = harness("merge", folders[0], "--results", "lone")
        assert process.returncode == 1
        assert "is missing, with 1 group" in process.stderr
