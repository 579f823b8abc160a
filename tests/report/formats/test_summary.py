"""The job summary."""

import re
from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.results import Results
from harness.model.launch import Role, Status
from harness.report.formats.summary import ABSENCES, COMPARISONS, render
from tests.factories import broken, cells, rounds, run, scenario
from tests.quantified import quantified, quantified_run
from tests.report.formats.examples import example, hostile, nothing, one_launch


def rows(text: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[part.strip() for part in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


@pytest.mark.parametrize("made", [example, hostile, nothing, one_launch])
def test_it_is_short(made: Any) -> None:
    assert len(render(Results(*made())).splitlines()) < 60


def test_the_answer_comes_first_and_the_way_to_the_report_last() -> None:
    lines = render(Results(*example())).splitlines()
    assert lines[0] == "## One training step: tf1.14, tf2.0, tf2.1"
    assert lines[2].startswith("**TensorFlow 2.0.0 takes 1.35× (1.34 to 1.35) as long as TensorFlow 1.14.0 with fit;")
    assert lines[-4:] == [
        "",
        "```sh",
        "harness report results/2026-11-21T04-10-00Z-3f2a",
        "```",
    ]


def test_what_is_slower_comes_first_and_what_is_the_same_is_counted() -> None:
    text = render(Results(*example()))
    verdicts = [row[-1] for row in rows(text)]
    assert verdicts[0] == "slower"
    assert verdicts == sorted(verdicts, key=["slower", "different work", "faster", "unclear"].index)
    assert "same" not in verdicts
    assert re.search(r"^Of \d+ comparisons: .*\d same", text, re.MULTILINE)


def test_what_gave_no_number_is_named() -> None:
    assert "- **oom**, step, tf2.0, call=train_on_batch, mode=graph: killed at 2 GiB" in render(Results(*example()))


def test_many_comparisons_and_reasons_are_cut() -> None:
    names = [f"call{index}" for index in range(30)]
    times = {of: 0.01 if of.axes["mode"] == "graph" else 0.02 for of in cells(calls=names)}
    lost = [of for of in times if of.environment == "tf2.0"]
    launches = rounds({of: seconds for of, seconds in times.items() if of not in lost}, spread=0.0)
    launches += [broken(of, Status.FAILED, error=f"reason {of.axes['call']}") for of in lost]
    text = render(Results(run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]), launches))
    assert len(rows(text)) == COMPARISONS
    assert "The report contains 10 more such comparisons." in text
    assert text.count("- **failed**") == ABSENCES
    assert "- and 22 more reasons why cells have no result" in text
    assert len(text.splitlines()) < 60


def test_a_run_that_compares_nothing_has_no_table() -> None:
    text = render(Results(*one_launch()))
    assert rows(text) == []
    assert "Nothing is compared" in text
    assert " vs " not in text


def test_a_table_of_one_row_does_not_name_it() -> None:
    times = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
    assert {len(row) for row in rows(render(Results(run(times), rounds(times, spread=0.001))))} == {3}


def test_other_quantities_are_named_in_their_lines() -> None:
    text = render(Results(quantified_run("first call", "memory growth"), quantified()))
    assert [row[0] for row in rows(text)] == [
        "tf2.0 vs tf1.14: first call time",
        "tf2.0 vs tf1.14: memory growth",
    ]
    assert "B\u00a0per\u00a0call" in rows(text)[1][1]


def test_a_control_of_one_quantity_does_not_withhold_the_verdicts_on_another() -> None:
    launches = [
        replace(entry, samples=[replace(sample, seconds=1.2 * sample.seconds) for sample in entry.samples])
        if entry.role is Role.CONTROL
        else entry
        for entry in quantified()
    ]
    text = render(Results(quantified_run("step", "peak memory"), launches))
    assert (
        "Of 2 comparisons: 1 more, 1 with no verdict. 1 verdict is withheld, because two identical cells differed by "
        "more than the margin." in text
    )
    assert [row[-1] for row in rows(text)] == ["more"]
