"""Why cells have no result."""

import re
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.run import Stop, StopReason, Unavailable
from harness.report.blocks import Code, Where
from harness.report.formats import render
from harness.report.sections import no_results
from harness.report.sections.no_results import OUTPUTS, REASONS
from tests.factories import broken, cell, cells, launch, rounds, run, scenario
from tests.report.sections.reading import all_tables, column, everything, heads, rows, summaries, texts

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
PASTED = Where.PASTE | Where.TERMINAL


def made(asked, launches):
    (found,) = no_results.make_sections(Results(asked, launches))
    return found


def only(asked, launches):
    """The columns below the headings of the only line."""
    (table,) = all_tables(made(asked, launches))
    (line,) = rows(table)
    return dict(zip(heads(table), line, strict=True))


def many(count):
    """So many modes that each broke for a reason of its own."""
    members = [cell(mode=str(index)) for index in range(count)]
    axes = {**scenario().axes, "mode": [str(index) for index in range(count)]}
    launches = [broken(c, Status.FAILED, error=f"error {c.axes['mode']}", stderr="end") for c in members]
    return made(run(members, scenarios=[scenario(axes=axes)]), launches)


def test_where_no_number_is_missing_there_is_no_section():
    assert not list(no_results.make_sections(Results(run(), rounds(TIMES))))


def test_cells_without_a_number_are_named_together():
    gone = [Unavailable(c, "needs keras<2.4", "Choose another.") for c in cells(["tf2.1"])]
    assert only(run(unavailable=gone), rounds(TIMES)) == {
        "status": "not available",
        "cells": "step, tf2.1 (2 cells)",
        "why": "needs keras<2.4",
        "what to do": "Choose another.",
    }


def test_the_heading_counts_the_cells_without_a_result():
    (first, *rest) = TIMES
    without = [broken(first, Status.FAILED), *rounds({of: TIMES[of] for of in rest})]
    assert made(run(TIMES), without).title == "1 of 4 cells has no result"
    partly = [*rounds(TIMES), broken(first, Status.FAILED, number=6)]
    assert made(run(TIMES), partly).title == "Some launches have no result"


def test_where_no_advice_is_known_there_is_no_column_for_it():
    assert "what to do" not in only(run(unavailable=[Unavailable(cell("tf2.1"), "why")]), rounds(TIMES))


def test_cells_beyond_the_names_are_counted():
    names = [str(index) for index in range(11)]
    members = cells(["tf1.14"], calls=names, modes=names)
    asked = run(members, scenarios=[scenario(axes={**scenario().axes, "call": names, "mode": names}, compare=[])])
    # no two cells of a diagonal are in one box
    numbers = {of: 0.01 for of in members if of.axes["call"] != of.axes["mode"]}
    told = only(asked, rounds(numbers, count=1))["cells"]
    assert told.startswith("step, call=0, mode=0; step, call=1, mode=1; ")
    assert told.endswith("; and 3 more cells")


def test_a_run_that_ended_early_says_how_to_go_on():
    told = only(run(), [])
    assert told["why"] == "The run ended before the first counted launch."
    assert told["what to do"] == "To continue the run: harness matrix --resume results/2026-11-21T04-10-00Z-3f2a"
    assert only(run(folder="/tmp/x"), [])["what to do"].endswith(" --resume /tmp/x")


def test_what_the_budget_left_out_names_the_budget_and_has_one_command():
    asked = run(cells(calls=("fit", "train_on_batch")), asked={"budget_seconds": 20.0, "rounds": 100})
    stops = {group.name: Stop(StopReason.BUDGET, at) for group, at in zip(asked.plan.groups, (1, 0), strict=True)}
    results = Results(replace(asked, stops=stops), rounds(TIMES, count=1))
    markdown = render("md", results)
    assert "the budget of 20 s ended" in markdown
    assert re.findall(r"harness matrix --resume .*", markdown) == [
        "harness matrix --resume results/2026-11-21T04-10-00Z-3f2a --rounds 3"
    ]
    (entry,) = results.missing
    assert no_results.advise(results, entry).endswith("--rounds 3")


def test_what_has_no_reason_says_so():
    assert only(run([cell()]), [broken(cell(), Status.FAILED)])["why"] == "No reason was recorded."


def test_a_number_from_some_of_the_launches_says_so():
    launches = [launch(cell(), number=1), broken(cell(), Status.TIMEOUT, 2, error="60 s")]
    assert (
        only(run([cell()]), launches)["why"]
        == "60 s (Only some launches have no result. The result is from the other launches.)"
    )


def test_the_error_output_is_folded_in_the_details_and_the_report_says_where_it_is():
    killed = broken(cell(), Status.OOM, error="killed at 2 GiB", stderr="allocating\nKilled")
    found = made(run([cell()]), [killed])
    assert summaries(found, Where.DETAILS) == ["End of the error output: oom, step"]
    assert [block.text for block in everything(found) if isinstance(block, Code)] == ["allocating\nKilled"]
    assert summaries(found, PASTED) == []
    assert texts(found, Where.PASTE) == ["The error output of these launches is in details.md and report.html."]


def test_of_many_ends_of_error_output_the_others_are_counted():
    found = many(OUTPUTS + 2)
    assert len(summaries(found)) == OUTPUTS
    assert texts(found, Where.DETAILS) == ["The error output for 2 more reasons is in launches.jsonl."]


@pytest.mark.parametrize("where", [Where.PASTE, Where.TERMINAL])
def test_of_many_reasons_the_report_has_the_first_and_counts_the_others(where):
    found = many(REASONS + 2)
    (table,) = all_tables(found, where)
    assert column(table, "why") == [f"error {index}" for index in range(REASONS)]
    assert texts(found, where)[0] == "2 more reasons are in details.md and report.html."
    (rest,) = all_tables(found, Where.DETAILS)
    assert column(rest, "why") == [f"error {REASONS}", f"error {REASONS + 1}"]


def test_the_page_has_all_reasons():
    assert sum(len(table.lines) for table in all_tables(many(REASONS + 2), Where.PAGE)) == REASONS + 2
    assert len(all_tables(many(REASONS), Where.PAGE)) == 1
