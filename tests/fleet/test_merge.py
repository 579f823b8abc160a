"""Runs of one plan as one: whose numbers a row has, what is refused, what is missing, and what is said of it."""

import fcntl
import json
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
from harness.model.launch import Launch, Role
from harness.model.run import Machine, Run, Shard, Stop, StopReason
from harness.model.scenario import MACHINE, Claim, ClaimSide
from harness.report.formats import render
from harness.session import compare, read
from harness.session.running import resume
from tests import factories
from tests.cli.conftest import Harness, stored

CALLS = ("fit", "train_on_batch")


def run(machine: str = "m-1", name: str = "", calls: tuple[str, ...] = CALLS, **changes: Any) -> Run:
    planned = factories.cells(calls=calls, modes=("graph",))
    made = factories.run(planned, controlled=True, id=f"{machine}-{'-'.join(calls)}", machine=Machine(machine, name))
    stops = {group.name: Stop(StopReason.ROUNDS, 5) for group in made.plan.groups}
    return replace(made, stops=stops, **changes)


def launches(of: Run, slower: float = 2.0, again: float = 1.0, seed: int = 1) -> list[Launch]:
    """Five rounds of a run, TF 2 `slower` than TF 1, whose control takes `again` times as long as its like."""
    made = []
    for at, group in enumerate(of.plan.groups):
        seconds = {cell: 0.01 * (slower if cell.environment == "tf2.0" else 1.0) for cell in group.cells}
        controls = {group.control: 0.01 * again} if group.control else {}
        made += factories.rounds(seconds, spread=0.004, seed=seed + at, controls=controls, group=group.name)
    return made


def sharded(of: Run, number: int, count: int, elsewhere: Mapping[str, int], digest: str = "abc") -> Run:
    return replace(of, id=f"{of.id}-{number}", plan=replace(of.plan, shard=Shard(number, count, digest, elsewhere)))


def merged(tmp_path: Path, *runs: Run | tuple[Run, list[Launch]]) -> Merged:
    both = [each if isinstance(each, tuple) else (each, launches(each, seed=3 * at)) for at, each in enumerate(runs)]
    return merge([stored(tmp_path / "runs", *entry) for entry in both], tmp_path / "merged")


def verdicts(results: Results) -> dict[tuple[str, str], Verdict | None]:
    return {
        (row.machine, row.axes["call"]): value.compared.verdict
        for table in results.tables
        for row in table.rows
        for head, value in table.values(row)
        if value.compared and head.comparison and not head.comparison.pick
    }


def test_shards_of_one_machine_are_the_run_that_it_would_have_made(tmp_path: Path) -> None:
    whole, (first, second) = run(), [run(calls=(call,)) for call in CALLS]
    names = [group.name for group in whole.plan.groups]
    found = merged(
        tmp_path,
        (sharded(first, 1, 2, {names[1]: 2}), launches(first)),
        (sharded(second, 2, 2, {names[0]: 1}), launches(second, seed=2)),
    )
    made = found.ended.results
    alone = Results(whole, launches(whole))
    assert not found.lacks
    assert [group.name for group in made.run.plan.groups] == names
    assert (made.run.machines, made.run.machine, made.run.host) == ([], whole.machine, whole.host)
    assert made.run.plan.shard is None
    assert made.tables[0].rows == alone.tables[0].rows
    assert made.found.control == alone.found.control
    assert read(found.ended.folder).tables == made.tables


def test_continued_shards_are_judged_as_the_continued_run_that_they_would_have_made(tmp_path: Path) -> None:
    first, second = [run(calls=(call,)) for call in CALLS]
    (one,), (other,) = ([group.name for group in value.plan.groups] for value in (first, second))
    first, second = replace(first, looks=[{one: 3}]), replace(second, looks=[{other: 3}, {other: 4}])
    result = merged(tmp_path, sharded(first, 1, 2, {other: 2}), sharded(second, 2, 2, {one: 1})).ended.results
    assert result.run.looks == [{one: 3, other: 3}, {other: 4}]
    shares = [result.found.look(group.cells[0]).share for group in result.run.plan.groups]
    assert shares == pytest.approx([1.0 - 3 / 5, 3 / 4 - 3 / 5])


def test_a_group_of_several_machines_has_a_row_for_each_and_nothing_is_learnt_of_two(tmp_path: Path) -> None:
    one, two = run("m-1", "office"), run("m-2")
    parts = {"m-2": (two, launches(two, slower=1.2, seed=9)), "office": (one, launches(one, slower=2.0))}
    made = merged(tmp_path, *parts.values()).ended.results
    assert [(row.machine, row.axes["call"]) for row in made.tables[0].rows] == [
        (machine, call) for call in CALLS for machine in ("m-2", "office")
    ]
    for name, (of, own) in parts.items():
        alone = Results(of, own)
        on = made.machines[name]
        assert on.found.control == made.found.controls[of.machine.id if of.machine else ""] == alone.found.control
        assert on.disturbance == replace(alone.disturbance, disturbed=on.disturbance.disturbed)
        assert on.run.host == of.host
        # the effects, which are judged together, are of one machine's cells
        (effects,) = [attribution for attribution in made.attributions if attribution.machine == name]
        assert effects.effects == alone.attributions[0].effects
        assert MACHINE not in effects.axes
        own_axes = {cell.anywhere: series for cell, series in made.found.series.items() if cell.axes[MACHINE] == name}
        assert own_axes == alone.found.series
    assert {row.machine for answer in made.answers for row in [finding.row for finding in answer.findings][:1]} == {
        "m-2",
        "office",
    }
    for answer in made.answers:
        assert len({finding.row.machine for finding in answer.findings}) == 1
    assert made.found.control is None


def test_a_control_that_is_beyond_the_margin_takes_the_verdicts_of_its_own_machine(tmp_path: Path) -> None:
    one, two = run("m-1"), run("m-2")
    made = merged(tmp_path, (one, launches(one, again=1.3)), two).ended.results
    assert verdicts(made) == {
        **{("m-1", call): None for call in CALLS},
        **{("m-2", call): Verdict.SLOWER for call in CALLS},
    }
    withheld = [value.compared.withheld for row in made.tables[0].rows for value in row.values if value.compared]
    assert set(withheld) == {Withheld.CONTROL, None}


@pytest.mark.parametrize(
    ("second", "agrees", "said"),
    [
        (2.1, True, "m-1 and m-2 measured 2 comparisons each: they agree on 2."),
        (0.5, False, "m-1 and m-2 measured 2 comparisons each: they differ on 2."),
        (1.03, None, "m-1 and m-2 measured 2 comparisons each: some have no clear verdict on 2."),
    ],
)
def test_whether_machines_agree_is_said(tmp_path: Path, second: float, agrees: bool | None, said: str) -> None:
    one, two = run("m-1"), run("m-2")
    found = merged(tmp_path, (one, launches(one, slower=2.0)), (two, launches(two, slower=second)))
    assert {agreement.agrees for agreement in found.ended.results.agreements} == {agrees}
    report = (found.ended.folder / "report.md").read_text()
    assert said in report
    assert ("is slower on m-1 and faster on m-2." in report) == (agrees is False)
    assert "are the same model" in report
    data = json.loads(render("json", found.ended.results))
    assert [entry["name"] for entry in data["machines"]] == ["m-1", "m-2"]
    assert all(entry["control"]["groups"] == 2 for entry in data["machines"])
    assert [entry["agrees"] for entry in data["agreements"]] == [agrees, agrees]
    assert "m-2" in (found.ended.folder / "report.html").read_text()


def test_machines_of_other_models_are_merged_and_that_is_said(tmp_path: Path) -> None:
    other = run("m-2", host={"cpu": "Another CPU", "cores": 64})
    report = (merged(tmp_path, run(), other).ended.folder / "report.md").read_text()
    assert "The machines are different models." in report
    assert "Another CPU" in report


def test_two_machines_of_one_name_are_told_apart(tmp_path: Path) -> None:
    made = merged(tmp_path, run("m-1", "runner"), run("m-2", "runner")).ended.results
    assert list(made.machines) == ["runner (m-1)", "runner (m-2)"]


def test_claims_are_judged_machine_by_machine(tmp_path: Path) -> None:
    claim = claim_of_issue()
    runs = [replace(run(machine), scenarios=[factories.scenario(claims=[claim])]) for machine in ("m-1", "m-2")]
    made = merged(tmp_path, *((entry, launches(entry)) for entry in runs)).ended.results
    alone = Results(runs[0], launches(runs[0]))
    (on_one, on_two), (by_itself,) = made.claims, alone.claims
    assert (on_one.machine, on_two.machine) == ("m-1", "m-2")
    assert on_one.at.estimate == by_itself.at.estimate
    assert on_one.at.worse == replace(by_itself.at.worse, axes={MACHINE: "m-1", **by_itself.at.worse.axes})


def claim_of_issue() -> Claim:
    return Claim(
        issue=parse("T#1001"),
        reported="TF 2 is twice as slow",
        worse=ClaimSide("tf2.0"),
        better=ClaimSide("tf1.14"),
        ratio=(1.5, 3.0),
        when={"call": "fit", "mode": "graph"},
    )


def test_a_missing_shard_is_named_with_its_groups(tmp_path: Path) -> None:
    first = run(calls=("fit",))
    gone = {"step cpu call=train_on_batch dtype=float32": 3}
    found = merged(tmp_path, sharded(first, 1, 3, gone))
    assert found.missing == {"3/3": list(gone)}
    assert found.lacks == [f"Shard 3/3 is missing, with 1 group: {next(iter(gone))}."]
    assert read(found.ended.folder).run.absent == found.missing
    report = (found.ended.folder / "report.md").read_text()
    assert "The plan is incomplete: the runs of these shards are missing: 3/3 (1 group)." in report


def test_a_run_that_was_interrupted_is_told(tmp_path: Path) -> None:
    of = run()
    stops = {**of.stops, next(iter(of.stops)): Stop(StopReason.INTERRUPTED, 2)}
    found = merged(tmp_path, replace(of, stops=stops))
    assert found.lacks == [f"{tmp_path}/runs/{of.id} was interrupted: 1 group of this run may have fewer rounds."]


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"harness": "9.9"}, "the version of harness (0.1.0 and 9.9)"),
        ({"sources": {"step": "ab" * 32}}, "the scenarios or the kit (step: none and abababababab…)"),
        ({"reference": "tf2.0"}, "the reference (tf1.14 and tf2.0)"),
        (
            {"pins": {"tf1.14": {"six": "1.13.0"}}},
            "the locks (tf1.14: keras: 2.2.5 and none; numpy: 1.17.4 and none; tensorflow: 1.14.0 and none",
        ),
        ({"asked": {"seed": 8}}, "the seed (7 and 8)"),
        ({"asked": {"rounds": 6}}, "the rounds (5 and 6)"),
        ({"calls": ("fit",)}, "the groups (step cpu call=train_on_batch dtype=float32)"),
    ],
)
def test_runs_of_different_plans_are_refused_with_what_differs(
    tmp_path: Path, change: dict[str, Any], differs: str
) -> None:
    asked = change.pop("asked", {})
    other = run("m-2", **change)
    other = replace(other, plan=replace(other.plan, **asked))
    with pytest.raises(UsageError) as refused:
        merged(tmp_path, run(), other)
    assert differs in refused.value.message
    assert f"{tmp_path}/runs/m-1" in refused.value.message
    change.update({"asked": asked} if asked else {})
    assert not (tmp_path / "merged").exists()


def test_shards_of_other_plans_and_of_another_count_are_refused(tmp_path: Path) -> None:
    one = sharded(run(calls=("fit",)), 1, 2, {"step cpu call=train_on_batch dtype=float32": 2})
    other = sharded(run("m-2", calls=("train_on_batch",)), 2, 2, {"step cpu call=fit dtype=float32": 1}, "other")
    with pytest.raises(UsageError, match="have different plans: the cells of a group"):
        merged(tmp_path / "a", one, other)
    other = sharded(run("m-2", calls=("train_on_batch",)), 2, 3, {"step cpu call=fit dtype=float32": 1}, "other")
    with pytest.raises(UsageError, match=r"have different plans: the number of shards \(2 and 3\)"):
        merged(tmp_path / "b", one, other)


def test_the_same_rounds_of_one_machine_twice_are_refused_and_others_are_joined(tmp_path: Path) -> None:
    of = run()
    later = [
        replace(launch, round=launch.round + 5) for launch in launches(of, seed=7) if launch.role is not Role.PILOT
    ]
    with pytest.raises(UsageError, match=r"both contain round \d of step cpu call=.*, measured on the same machine"):
        merged(tmp_path / "a", of, replace(of, id="again"))
    made = merged(tmp_path / "b", of, (replace(of, id="later"), later)).ended.results
    assert made.tables[0].rounds == 10
    assert {stop.rounds for stop in made.run.stops.values()} == {10}


def test_one_run_twice_is_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, run(), launches(run()))
    with pytest.raises(UsageError, match=r" are the same run\.\nPass each run once\."):
        merge([path, path.parent / "." / ".." / path.parent.name / path.name], tmp_path)


def test_what_is_damaged_still_measured_or_of_nobody_is_left_out_and_named(tmp_path: Path) -> None:
    good = stored(tmp_path, run(), launches(run()))
    damaged = stored(tmp_path, run("m-2"), [])
    (damaged / "run.json").write_text("{")
    newer = stored(tmp_path, run("m-3"), [])
    (newer / "run.json").write_text((good / "run.json").read_text().replace('"schema": 1', '"schema": 99'))
    nobody = stored(tmp_path, replace(run("m-4"), machine=None), [])
    going_on = stored(tmp_path, run("m-5"), [])
    with (going_on / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        found = merge([good, damaged, newer, nobody, going_on, tmp_path / "nothing"], tmp_path / "merged")
    assert [
        next(path.name for path in (damaged, newer, nobody, going_on, tmp_path / "nothing") if str(path) in entry)
        for entry in found.left_out
    ] == [
        "m-2-fit-train_on_batch",
        "m-3-fit-train_on_batch",
        "m-4-fit-train_on_batch",
        "m-5-fit-train_on_batch",
        "nothing",
    ]
    assert "is being measured" in found.left_out[3]
    assert found.ended.results.tables
    with pytest.raises(UsageError, match=r"^No run can be merged\."):
        merge([damaged], tmp_path / "merged")


def test_a_merged_run_is_not_merged_resumed_or_compared_as_one_of_a_machine(tmp_path: Path) -> None:
    folder = merged(tmp_path, run(), run("m-2")).ended.folder
    with pytest.raises(UsageError, match="is a merged run"):
        merge([folder], tmp_path / "again")
    with pytest.raises(UsageError, match="was merged from other runs"):
        resume(folder)
    with pytest.raises(UsageError, match="contains results from several machines"):
        compare(folder, tmp_path / "runs" / run().id)


def test_artifacts_come_along_and_do_not_meet(tmp_path: Path) -> None:
    runs = [run("m-1", calls=("fit",)), run("m-2", calls=("fit",))]
    folders = []
    for of in runs:
        made = launches(of)
        made[0] = replace(made[0], artifacts=["artifacts/ab-round0/inner/log.txt"])
        folders.append(stored(tmp_path, of, made))
        (folders[-1] / "artifacts" / "ab-round0" / "inner").mkdir(parents=True)
        (folders[-1] / "artifacts" / "ab-round0" / "inner" / "log.txt").write_text(of.id)
    ended = merge(folders, tmp_path / "merged").ended
    kept = [name for launch in ended.results.launches for name in launch.artifacts]
    assert sorted((ended.folder / name).read_text() for name in kept) == [of.id for of in runs]


def test_an_artifact_that_does_not_come_along_is_told(tmp_path: Path) -> None:
    of = run("m-1", calls=("fit",))
    made = launches(of)
    made[0] = replace(made[0], artifacts=["artifacts/ab-round0/gone.txt", "artifacts/ab-round0/link.txt"])
    folder = stored(tmp_path, of, made)
    (folder / "artifacts" / "ab-round0").mkdir(parents=True)
    (folder / "artifacts" / "ab-round0" / "link.txt").symlink_to("/etc/hostname")
    told = [line for launch in merge([folder], tmp_path / "merged").ended.results.launches for line in launch.not_kept]
    assert told == [
        "artifacts/ab-round0/gone.txt: No such file or directory",
        "artifacts/ab-round0/link.txt: it is a link",
    ]


def test_the_command_makes_two_shards_one_run(harness: Harness) -> None:
    typed = ("-s", "ways", "-a", "way=fine,exits", "-e", "old", "--rounds", "1")
    for number in (1, 2):
        done = harness.matrix(*typed, "--shard", f"{number}/2", HARNESS_MACHINE_ID=f"m-{number}")
        assert f"Shard {number}/2 of the plan " in done.stderr
    folders = sorted(map(str, (harness.root / "results").iterdir()))
    done = harness("merge", *folders, "--results", "merged", "--json")
    assert done.returncode == 1  # one way fails
    made = [json.loads(line) for line in done.stdout.splitlines()]
    assert {launch["cell"]["axes"]["way"] for launch in made} == {"fine", "exits"}
    if len(folders) == 2:
        lone = harness("merge", folders[0], "--results", "lone")
        assert lone.returncode == 1
        assert "is missing, with 1 group" in lone.stderr
