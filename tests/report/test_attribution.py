"""What accounts for a gap, as text."""

from dataclasses import replace

import pytest

from harness.analysis.lookup import lookup
from harness.analysis.tables import tables
from harness.model.cell import Cell
from harness.model.environment import Device
from harness.report import markdown
from harness.report.attribution import views
from harness.report.escape import plain
from harness.report.markdown import render
from harness.report.templates import environment
from tests.factories import ENVIRONMENTS, cell, cells, rounds, run, scenario

SAY = environment(plain).get_template("sentences.j2").module

#: The means of docs/examples/headline/report.md.
TIMES = dict(zip(cells(), [0.00708, 0.00733, 0.00751, 0.0217], strict=True))


def viewed(asked, launches):
    found = lookup(asked, launches)
    return views(asked, tables(asked, found)[0], found)


def view(times=TIMES, asked=None, **changes):
    (only,) = viewed(asked or run(times), rounds(times, **{"spread": 0.0, **changes}))
    return only


def test_lines_are_changes_then_interactions():
    lines = view().lines
    assert [(line.term, line.factor) for line in lines] == [
        ("tf2.0 against tf1.14", "1.77"),
        ("eager against graph", "1.73"),
        ("tf2.0 × eager", "2.79"),
    ]
    assert lines[0].interval == "1.77 to 1.77"
    assert SAY.effect(lines[0]) == "tf2.0 against tf1.14"
    assert SAY.effect(lines[2]) == "tf2.0 × eager: additional factor"
    assert SAY.effect_remarks(lines[0], None) == ""
    assert SAY.effect_remarks(lines[2], None) == (
        "tf2.0 against tf1.14: 1.06 with graph, 2.96 with eager; both together: 3.06"
    )


def test_the_sentence_names_what_is_beyond_the_margin_and_what_depends():
    assert SAY.attribution(view(), 0.03) == (
        "On average over the other axes, beyond the margin of 3 % and furthest first: tf2.0 against tf1.14 ×1.77 and "
        "eager against graph ×1.73. One depends on another: tf2.0 against tf1.14 is ×1.06 with graph and ×2.96 with "
        "eager, and both changes together are ×3.06."
    )


def test_one_change_is_named_alone():
    times = dict(zip(cells(), [0.01, 0.02, 0.01, 0.02], strict=True))
    assert SAY.attribution(view(times), 0.03) == (
        "On average over the other axes, beyond the margin of 3 %: eager against graph ×2.00."
    )


def test_nothing_beyond_the_margin_is_said():
    assert SAY.attribution(view(dict.fromkeys(cells(), 0.01)), 0.03) == (
        "On average over the other axes, no change is shown to make a difference of more than 3 %."
    )


def test_changes_of_opposite_directions_that_cancel_on_average_still_depend():
    times = dict(zip(cells(), [0.01, 0.02, 0.02, 0.01], strict=True))
    assert SAY.attribution(view(times), 0.03).endswith(
        "more than 3 %. One depends on another: tf2.0 against tf1.14 is ×2.00 with graph and ×0.500 with eager, and "
        "both changes together are ×1.00."
    )


def test_few_rounds_have_factors_only():
    few = view(count=3)
    assert SAY.attribution(few, 0.03) == "With fewer than four rounds there are factors, but no verdicts."
    assert "Holm" not in SAY.factorial(few)
    assert "Verdicts" not in SAY.effects([few], 0.03)
    assert view(count=1).lines[0].interval == ""
    assert "in 1 round." in SAY.factorial(view(count=1))


def many(calls, modes=("graph", "eager")):
    names = [f"call{index}" for index in range(calls)]
    times = {of: 0.01 * 1.1 ** int(of.axes["call"][4:]) for of in cells(calls=names, modes=modes)}
    return view(times, run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]))


def test_three_changes_are_named_and_the_others_counted():
    told = SAY.attribution(many(6), 0.03)
    assert "furthest first: call5 against call0 ×1.61, call4 against call0 ×1.46, call3 against call0 ×1.33, " in told
    assert told.endswith("×1.33, and 2 more changes.")


def test_a_dozen_interactions_are_shown_and_the_others_counted():
    found = many(10)
    assert len(found.lines) == 1 + 9 + 1 + 12
    assert "7 interactions are not shown: 7 same." in SAY.factorial(found)
    assert "; variances are moderated (Smyth 2004)." in SAY.factorial(found)
    assert "not shown" not in SAY.factorial(many(4))


def test_interactions_beyond_the_margin_are_shown_first():
    names = [f"call{index}" for index in range(20)]
    times = dict.fromkeys(cells(calls=names, modes=["graph"]), 0.01)
    times[cell("tf2.0", call="call19")] = 0.02
    shown = view(times, run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]))
    assert [line.term for line in shown.lines if line.depends and line.verdict == "slower"] == ["tf2.0 × call19"]
    assert shown.lines[-1].term == "tf2.0 × call19"


def test_the_cells_are_told():
    assert SAY.factorial(view()) == (
        "The effects are of 4 cells: every combination of environment (tf1.14, tf2.0) and mode (graph, eager), in 5 "
        "rounds that all of them have. Not all of these cells' work was checked. At 95 %, all verdicts hold together "
        "(Holm's procedure over the 3 effects), and the intervals are those that they were taken from."
    )
    assert "not all" not in SAY.factorial(view(fingerprint={"parameters": 1})).lower()


def test_what_is_left_out_and_held_is_told():
    times = dict.fromkeys(cells(calls=("fit", "train_on_batch")), 0.01)
    del times[cell(call="fit", mode="eager")]
    told = SAY.factorial(view(times, run(times)))
    assert ", with train_on_batch, in 5 rounds" in told
    assert "The other 3 cells with a number are left out, so that no combination is missing." in told
    del times[cell(call="fit")], times[cell("tf2.0", call="fit")]
    assert "The other cell with a number is left out, so" in SAY.factorial(view(times, run(times)))


def test_many_levels_are_counted():
    assert "call (10, call0 to call9)" in SAY.factorial(many(10))


def test_another_python_is_remarked():
    newer = [replace(each, python="3.11") if each.name == "tf2.0" else each for each in ENVIRONMENTS[:2]]
    lines = view(asked=run(environments=newer)).lines
    assert [SAY.effect_remarks(line, None) for line in lines[:2]] == ["Python 3.11 against 3.7", ""]


def test_devices_are_told_apart():
    members = [replace(of, device=device) for device in Device for of in cells()]
    found = viewed(run(members), rounds(dict.fromkeys(members, 0.01)))
    assert [each.device for each in found] == ["cpu", "gpu"]
    assert "of 4 cells on gpu: every" in SAY.factorial(found[1])


def test_that_environments_differ_in_all_they_hold_is_said_where_they_vary():
    times = dict.fromkeys(cells(["tf1.14"], calls=("fit", "train_on_batch")), 0.01)
    assert "change together" in SAY.effects([view()], 0.03)
    assert "change together" not in SAY.effects([view(times)], 0.03)


def test_the_control_takes_verdicts_away():
    text = render(run(controlled=True), rounds(TIMES, spread=0.001, controls={cell(): 0.009}))
    part = text.split("## What accounts for it")[1].split("##")[0]
    assert part.count("the control lies beyond the margin") == 3
    assert "no change is shown" in part


def test_a_run_in_which_one_axis_varies_has_no_such_part():
    times = dict.fromkeys(cells(modes=["graph"]), 0.01)
    assert "What accounts for it" not in render(run(times), rounds(times))


def test_two_scenarios_have_one_part():
    other = scenario("other", title="Another")
    times = {**TIMES, **{Cell("other", of.environment, of.device, of.axes): 0.01 for of in cells()}}
    text = render(run(times, scenarios=[scenario(), other]), rounds(times))
    part = text.split("## What accounts for it")[1].split("\n## ")[0]
    assert part.count("The effects are of 4 cells") == 2
    assert part.index("**One training step**") < part.index("**Another**")


@pytest.mark.parametrize("calls", [8, 40])
def test_many_effects_are_folded(calls):
    names = [f"call{index}" for index in range(calls)]
    times = dict.fromkeys(cells(calls=names), 0.01)
    text = render(run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]), rounds(times, count=4))
    assert ("effects</summary>" in text) == (calls > 8)


def test_strange_values_are_harmless():
    axes = {"size": ["a|b", "`c`\n# d"], "mode": ["graph", "<script>alert(1)</script>"]}
    members = [
        Cell("step", "tf1.14", Device.CPU, {"size": size, "mode": mode})
        for size in axes["size"]
        for mode in axes["mode"]
    ]
    asked = run(members, scenarios=[scenario(axes=axes, default={}, compare=[])])
    times = dict(zip(members, [0.01, 0.02, 0.03, 0.08], strict=True))
    part = render(asked, rounds(times, spread=0.0)).split("## What accounts for it")[1].split("\n## ")[0]
    assert "\\`c\\` # d × &lt;script&gt;alert(1)&lt;/script&gt;: additional factor" in part
    assert "size (a\\|b, \\`c\\` # d)" in part
    assert "<script" not in part
    say = markdown._environment(None).get_template("sentences.j2").module
    (found,) = viewed(asked, rounds(times, spread=0.0))
    assert "\\`c\\` # d against a\\|b" in say.attribution(found, 0.03)
