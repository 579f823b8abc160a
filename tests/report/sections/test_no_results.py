"""Why cells have no result."""

from functools import partial

from harness.analysis.results import Results
from harness.model.launch import Status
from harness.model.run import Unavailable
from harness.report.blocks import Where
from harness.report.sections import no_results
from harness.report.sections.no_results import LAUNCHES, OUTPUTS, REASONS
from tests.factories import broken, cell, cells, launch, rounds, run, scenario
from tests.report.sections.reading import column, make, summaries, tables, texts
from tests.report.sections.reading import render as render_section

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


make_section = partial(make, no_results.make_sections)


def make_many(count):
    """So many modes that each broke for a reason of its own."""
    members = [cell(mode=str(at)) for at in range(count)]
    axes = {**scenario().axes, "mode": [str(at) for at in range(count)]}
    launches = [broken(member, Status.FAILED, error=f"error {member.axes['mode']}", stderr="end") for member in members]
    return make_section(run(members, scenarios=[scenario(axes=axes)]), launches)


def test_reasons(snapshot):
    gone = [Unavailable(member, "needs keras<2.4", "Choose another.") for member in cells(["tf2.1"])]
    one = run([cell()])
    timeout = [launch(cell(), number=1), broken(cell(), Status.TIMEOUT, 2, error="60 s")]
    killed = broken(cell(), Status.OOM, error="killed at 2 GiB", stderr="allocating\nKilled")
    runs = {
        "unavailable": (run(unavailable=gone), rounds(TIMES)),
        "without advice": (run(unavailable=[Unavailable(cell("tf2.1"), "why")]), rounds(TIMES)),
        "ended early": (run(), []),
        "ended early, in another folder": (run(folder="/tmp/x"), []),
        "without a reason": (one, [broken(cell(), Status.FAILED)]),
        "some launches": (one, timeout),
        "some launches of many cells": (run(TIMES), [*rounds(TIMES), broken(cell(), Status.FAILED, number=6)]),
        "error output": (one, [killed]),
    }
    assert {name: render_section(make_section(*stored)) for name, stored in runs.items()} == snapshot
    assert not list(no_results.make_sections(Results(run(), rounds(TIMES))))


def test_cells_and_ends_of_error_output_beyond_the_first_are_counted():
    names = [str(at) for at in range(11)]
    members = cells(["tf1.14"], calls=names, modes=names)
    planned = run(members, scenarios=[scenario(axes={**scenario().axes, "call": names, "mode": names}, compare=[])])
    # no two cells of a diagonal are in one box
    times = {member: 0.01 for member in members if member.axes["call"] != member.axes["mode"]}
    (table,) = tables(make_section(planned, rounds(times, count=1)))
    (text,) = column(table, "cells")
    assert text.startswith("step, call=0, mode=0; step, call=1, mode=1; ")
    assert text.endswith("; and 3 more cells")
    section = make_many(OUTPUTS + 2)
    assert len(summaries(section)) == OUTPUTS
    (text,) = texts(section, Where.DETAILS)
    assert " 2 more reasons " in text
    assert texts(make_many(OUTPUTS), Where.DETAILS) == []


def test_unsaved_artifacts_beyond_the_first_launches_are_counted():
    def list_counts(count):
        launches = rounds({cell(): 0.01}, count - 1, not_kept=["a"])
        (section,) = no_results.make_sections(Results(run([cell()]), launches))
        return len(tables(section, Where.DETAILS)[0].lines), texts(section, Where.DETAILS)

    assert list_counts(LAUNCHES) == (LAUNCHES, [])
    assert list_counts(LAUNCHES + 1) == (LAUNCHES, ["1 more launch is in launches.jsonl."])


def test_of_many_reasons_the_report_has_the_first_and_counts_the_others(snapshot):
    section = make_many(REASONS + 2)
    for where in (Where.PASTE, Where.TERMINAL):
        (table,) = tables(section, where)
        assert column(table, "why") == [f"error {at}" for at in range(REASONS)]
        assert texts(section, where)[0] == snapshot(name="the others")
    (rest,) = tables(section, Where.DETAILS)
    assert column(rest, "why") == [f"error {REASONS}", f"error {REASONS + 1}"]
    assert sum(len(table.lines) for table in tables(section, Where.PAGE)) == REASONS + 2
    assert len(tables(make_many(REASONS), Where.PAGE)) == 1
