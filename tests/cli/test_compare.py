"""`harness compare`."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import Result
from typer.testing import CliRunner

from harness.cli import app
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.launch import Clock, Status
from harness.store.folder import RunFolder
from tests.cli.conftest import Harness, stored
from tests.factories import broken, cell, scenario
from tests.two_runs import CELLS, Stored, all_but, first, second

ONE = CELLS[2]

Compare = Callable[..., Result]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """`harness compare` of two runs, in this process."""

    def command(one: Stored, other: Stored, *arguments: str) -> Result:
        folders = [str(stored(tmp_path, *value)) for value in (one, other)]
        return CliRunner().invoke(app, ["compare", *folders, *arguments], catch_exceptions=False)

    return command


def test_what_a_matrix_measured_can_be_compared(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    measured = RunFolder.open(harness.run)
    another = replace(measured.read_run(), id="another"), measured.read_launches()
    done = harness("compare", str(harness.run), str(stored(harness.root, *another)))
    assert done.returncode == 0, done.stderr
    assert "2 cells have a result in both runs. B vs A: 2 with no verdict." in done.stdout
    assert "Nothing else differs: machine, engine," in done.stdout


def test_runs_are_named_by_the_folders_that_were_passed(compare: Compare, tmp_path: Path) -> None:
    done = compare(first(), second())
    told = done.stdout.replace("\n", "")
    assert f"A: {tmp_path / first()[0].id}, started" in told
    assert f"B: {tmp_path / second()[0].id}, started" in told


def test_the_table_says_what_changed(compare: Compare) -> None:
    done = compare(first(), second(all_but(ONE, 1.3)))
    assert done.exit_code == 0
    assert "B vs A: 1 slower, 5 same." in done.stdout


def test_without_runs_the_newest_two_are_compared(harness: Harness) -> None:
    for number, each in enumerate((first(), second(all_but(ONE, 1.3)), second(all_but(ONE, 0.7)))):
        path = stored(harness.root / "results", replace(each[0], id=f"run{number}"), each[1])
        os.utime(path / "run.json", (number, number))
    done = harness("compare")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines() == ["The newest two runs: results/run1 and results/run2"]
    assert "B vs A: 1 faster, 5 same." in done.stdout
    alone = harness("compare", "results/run1")
    assert alone.returncode == 2
    assert (
        "A comparison needs two runs, but only results/run1 was passed.\nPass a second run, or omit both."
        in alone.stderr
    )


def test_json_is_on_stdout_alone(compare: Compare) -> None:
    done = compare(first(), second(all_but(ONE, 1.3)), "--json", "--margin", "40%")
    told = json.loads(done.stdout)
    assert told["margin"] == pytest.approx(0.4)
    assert {entry["change"]["verdict"] for entry in told["cells"]} == {"same"}


@pytest.mark.parametrize(
    ("seconds", "code"),
    [
        (all_but(ONE, 1.0), 0),
        (all_but(ONE, 0.7), 0),
        (all_but(ONE, 1.3), 5),
        # the machine's, as the software is the same: no cell is slower by itself
        (dict.fromkeys(CELLS, 0.013), 0),
    ],
)
def test_a_slower_cell_ends_a_gate_with_5(compare: Compare, seconds, code) -> None:
    assert compare(first(), second(seconds), "--fail-on", "slower").exit_code == code


def test_without_a_gate_a_slower_cell_is_no_failure(compare: Compare) -> None:
    assert compare(first(), second(all_but(ONE, 1.3))).exit_code == 0


def test_where_the_software_changed_a_shift_ends_a_gate_too(compare: Compare) -> None:
    changed = second(dict.fromkeys(CELLS, 0.013), sources={"step": "cd34"})
    assert compare(first(), changed, "--fail-on", "slower").exit_code == 5


def test_a_cell_that_broke_ends_a_gate_with_1_though_another_is_slower(compare: Compare) -> None:
    run, launches = second(all_but(ONE, 1.3))
    failed = [broken(CELLS[0], Status.FAILED, number) for number in range(6)]
    other = run, [*(launch for launch in launches if launch.cell != CELLS[0]), *failed]
    done = compare(first(), other, "--fail-on", "slower")
    assert done.exit_code == 1
    assert "No result in B (failed)" in done.stdout


def test_a_gate_that_judged_nothing_does_not_pass(compare: Compare) -> None:
    done = compare(first(count=2), second(), "--fail-on", "slower")
    assert done.exit_code == 3
    assert "No cell has a verdict, so --fail-on had nothing to check" in done.stderr


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    folder = str(stored(tmp_path, *first()))
    with pytest.raises(UsageError, match="are the same run"):
        CliRunner().invoke(app, ["compare", folder, folder], catch_exceptions=False)


def test_runs_without_a_cell_in_common_select_nothing(compare: Compare) -> None:
    with pytest.raises(NothingSelectedError, match="no cell in common"):
        compare(first({cell("tf2.0"): 0.01}, reference="tf2.0"), second({cell("tf2.1"): 0.01}, reference="tf2.1"))


def test_a_scenario_with_another_axis_has_no_cell_in_common_with_itself(compare: Compare) -> None:
    more = scenario(axes={**scenario().axes, "inputs": ["numpy"]})
    with pytest.raises(NothingSelectedError, match="The axes of step have changed"):
        compare(first(), second({cell(inputs="numpy"): 0.01}, scenarios=[more]))


def test_time_and_cpu_time_are_not_compared(compare: Compare) -> None:
    run, launches = second()
    told = [replace(launch, samples=[replace(s, cpu_seconds=s.seconds) for s in launch.samples]) for launch in launches]
    other = replace(run, plan=replace(run.plan, clock=Clock.CPU)), told
    with pytest.raises(UsageError, match=r"measured time, and .* CPU time: they cannot be compared\.") as refused:
        compare(first(), other)
    assert refused.value.advice == "Measure one of them again, with --clock cpu or --clock wall."


def test_another_machine_is_refused_unless_asked_for(compare: Compare, tmp_path: Path) -> None:
    run, launches = second()
    other = replace(run, host={**run.host, "cpu": "Another\x1b[31m CPU"}), launches
    with pytest.raises(UsageError, match=r"different machines: CPU Some CPU → Another CPU\.") as refused:
        compare(first(), other)
    assert "--any-host" in refused.value.advice
    folders = sorted(str(folder) for folder in tmp_path.iterdir())
    done = CliRunner().invoke(app, ["compare", *folders, "--any-host"])
    assert done.exit_code == 0
    assert "CPU Some CPU → Another CPU" in done.stdout
