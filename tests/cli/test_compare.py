"""`harness compare`."""

import itertools
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
from tests.cli.conftest import stored
from tests.factories import broken, cell, scenario
from tests.two_runs import CELLS, Stored, all_but, first, second

ONE = CELLS[2]

Compare = Callable[..., Result]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """`harness compare` of two runs, in this process."""

    numbers = itertools.count()

    def command(one: Stored, other: Stored, *arguments: str) -> Result:
        results = tmp_path / str(next(numbers))
        folders = [str(stored(results, *value)) for value in (one, other)]
        return CliRunner().invoke(app, ["compare", *folders, *arguments], catch_exceptions=False)

    return command


def test_without_runs_the_newest_two_are_compared(harness):
    for number, (run, launches) in enumerate((first(), second(all_but(ONE, 1.3)), second(all_but(ONE, 0.7)))):
        path = stored(harness.root / "results", replace(run, id=f"run{number}"), launches)
        os.utime(path / "run.json", (number, number))
    process = harness("compare")
    assert process.returncode == 0, process.stderr
    assert process.stderr.splitlines() == ["The newest two runs: results/run1 and results/run2"]
    assert "B vs A: 1 faster, 5 same." in process.stdout


def test_a_comparison_names_its_folders_and_says_what_changed(compare, tmp_path):
    result = compare(first(), second(all_but(ONE, 1.3)))
    output = result.stdout.replace("\n", "")
    assert (result.exit_code, "B vs A: 1 slower, 5 same." in output) == (0, True)
    for letter, (run, _) in zip("AB", (first(), second()), strict=True):
        assert f"{letter}: {tmp_path / '0' / run.id}, started" in output
    document = json.loads(compare(first(), second(all_but(ONE, 1.3)), "--json", "--margin", "40%").stdout)
    assert document["margin"] == pytest.approx(0.4)
    assert {entry["change"]["verdict"] for entry in document["cells"]} == {"same"}


def test_a_gate_ends_by_what_is_slower_or_broken(compare):
    run, launches = second(all_but(ONE, 1.3))
    failures = [broken(CELLS[0], Status.FAILED, number) for number in range(6)]
    with_failure = run, [*(launch for launch in launches if launch.cell != CELLS[0]), *failures]
    shift = dict.fromkeys(CELLS, 0.013)
    others = {
        "same": second(all_but(ONE, 1.0)),
        "faster": second(all_but(ONE, 0.7)),
        "slower": second(all_but(ONE, 1.3)),
        # the machine's, as the software is the same: no cell is slower by itself
        "a shift": second(shift),
        "a shift with other software": second(shift, sources={"step": "cd34"}),
        "slower and broken": with_failure,
    }
    codes = {case: compare(first(), other, "--fail-on", "slower").exit_code for case, other in others.items()}
    assert codes == {
        "same": 0,
        "faster": 0,
        "slower": 5,
        "a shift": 0,
        "a shift with other software": 5,
        "slower and broken": 1,
    }
    result = compare(first(count=2), second(), "--fail-on", "slower")
    assert (result.exit_code, "--fail-on" in result.stderr) == (3, True)


def test_what_cannot_be_compared_is_refused(compare, tmp_path, snapshot):
    run, launches = second()
    by_cpu = [
        replace(launch, samples=[replace(sample, cpu_seconds=sample.seconds) for sample in launch.samples])
        for launch in launches
    ]
    axis = scenario(axes={**scenario().axes, "inputs": ["numpy"]})
    elsewhere = replace(run, host={**run.host, "cpu": "Another\x1b[31m CPU"}), launches
    errors = {}
    for case, one, other in (
        (
            "no cell in common",
            first({cell("tf2.0"): 0.01}, reference="tf2.0"),
            second({cell("tf2.1"): 0.01}, reference="tf2.1"),
        ),
        ("another axis", first(), second({cell(inputs="numpy"): 0.01}, scenarios=[axis])),
        ("another clock", first(), (replace(run, plan=replace(run.plan, clock=Clock.CPU)), by_cpu)),
        ("another machine", first(), elsewhere),
    ):
        with pytest.raises((NothingSelectedError, UsageError)) as error:
            compare(one, other)
        errors[case] = [error.value.exit, str(error.value).replace(str(tmp_path), "TMP")]
    assert errors == snapshot
    result = compare(first(), elsewhere, "--any-host")
    assert (result.exit_code, "CPU Some CPU → Another CPU" in result.stdout) == (0, True)
