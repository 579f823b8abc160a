"""report.md."""

import os
import re
from dataclasses import replace
from pathlib import Path

import pytest

from harness.backends import registry
from harness.model.backend import BackendFacts
from harness.model.cell import Cell
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import ByHand, Unavailable
from harness.report.markdown import render, report, table
from tests.factories import ENVIRONMENTS, PHASES, RESOURCES, broken, cell, cells, launch, rounds, run, scenario

SNAPSHOT = Path(__file__).parent / "report.md"


def example():
    """Two calls in two environments and two modes: one out of memory, an environment that cannot be had, one round
    disturbed and repeated."""
    times = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
    seconds = {of: milliseconds / 1000 for of, milliseconds in times.items()}
    lost = cell("tf2.0", call="fit", mode="graph")
    del seconds[lost]
    controls = {of: seconds[of] for of in (cell(), cell(call="train_on_batch"))}
    launches = [
        replace(each, phases={name: length * (1.0 + 0.02 * (each.round % 4)) for name, length in PHASES.items()})
        for each in rounds(
            seconds, spread=0.01, controls=controls, took=4.0, resources=RESOURCES, fingerprint={"parameters": 162049}
        )
    ]
    group = launches[0].group
    noise = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.4}
    disturbed = [replace(each, resources=noise) for each in launches if (each.group, each.round) == (group, 3)]
    launches = [replace(each, attempt=1) if (each.group, each.round) == (group, 3) else each for each in launches]
    gone = [Unavailable(c, "needs keras<2.4", "Choose an environment with keras<2.4.") for c in cells(["tf2.1"])]
    killed = broken(lost, Status.OOM, error="killed at 2 GiB", advice="Allow more memory.", stderr="allocating\nKilled")
    return run(times, unavailable=gone, controlled=True), [*launches, *disturbed, killed]


def test_the_report_is_the_snapshot():
    """UPDATE_SNAPSHOTS=1 writes it anew; read the difference before committing it."""
    text = render(*example(), by_hand=registry.by_hand)
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text()


def test_the_parts_come_in_order():
    assert re.findall(r"^##? .*$", render(*example()), re.MULTILINE) == [
        "# One training step: tf1.14, tf2.0, tf2.1",
        "## One training step",
        "## What accounts for it",
        "## Phases",
        "## Shape of the times",
        "## Resources",
        "## What was measured",
        "## What differs between the environments",
        "## Disturbed rounds",
        "## No number",
        "## Again",
    ]


def test_every_table_has_as_many_cells_in_every_line():
    for block in re.findall(r"(?:^\|.*\|$\n?)+", render(*example()), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_each_picture_is_shown_once_by_what_it_says():
    made = report(*example())
    shown = re.findall(r"^!\[(.*)\]\((.*)\)$", made.text, re.MULTILINE)
    assert [file for _, file in shown] == [picture.file for picture in made.pictures]
    assert all(alt.startswith("Chart of ") for alt, _ in shown)


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "no intervals, no verdict"), (3, "fewer than four rounds"), (5, "a 95 % t interval over 5 rounds.")],
)
def test_the_note_says_what_an_interval_is(count, sentence):
    times = dict.fromkeys(cells(), 0.01)
    assert sentence in render(run(), rounds(times, count=count))


def test_what_holds_for_all_comparisons_of_a_table_is_said_once():
    times = dict.fromkeys(cells(), 0.01)
    report = render(run(), rounds(times, count=3))
    assert "comparisons, none with a verdict, for there were fewer than four rounds." in report
    assert "| fewer than four rounds" not in report
    assert "| verdict" not in report
    assert "| verdict" in render(run(), rounds(times, count=4))


def test_the_first_lines_say_where_launches_ran():
    first = render(run(), []).split("##")[0]
    assert "Launches ran pinned to 1 core (CPU 0), on Some CPU, 5 rounds planned; the margin is 3 %" in first


def test_the_answer_comes_first():
    times = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
    assert render(run(times), rounds(times, spread=0.0)).splitlines()[2] == (
        "TensorFlow 2.0.0 (eager) is slower than TensorFlow 1.14.0 (graph): a step takes 2.70 "
        "(2.70 to 2.70) times as long (step, fit; each release's default mode)."
    )


def test_an_answer_of_two_pythons():
    newer = [replace(each, python="3.11") if each.name == "tf2.0" else each for each in ENVIRONMENTS[:2]]
    text = render(run(environments=newer), rounds(dict.fromkeys(cells(), 0.01), spread=0.0))
    assert "TensorFlow 2.0.0 (eager, Python 3.11) is as fast as TensorFlow 1.14.0 (graph, Python 3.7)" in text
    assert re.search(r"\| tf2.0 against tf1.14, graph .*\| Python 3.11 against 3.7; work not checked", text)


def test_the_control_stands_over_the_numbers():
    text = render(*example())
    assert text.index("A/A control: the reference") < text.index("tf1.14 graph, ms")


def test_a_control_beyond_the_margin_leaves_no_verdict():
    times = dict(zip(cells(modes=["graph"]), [0.01, 0.02], strict=True))
    text = render(run(times, controlled=True), rounds(times, spread=0.001, controls={cell(): 0.011}))
    assert "1 comparison, none with a verdict." in text
    assert "the control lies beyond the margin" in text


def test_where_nothing_is_compared_nothing_is_said_of_comparing():
    text = render(run([cell()]), rounds({cell(): 0.01}))
    assert "Nothing is compared" in text
    for word in ("A/A control", "erdict", "against"):
        assert word not in text.split("## One training step")[1]


@pytest.mark.parametrize("calls", [8, 9])
def test_many_comparisons_are_folded_after_their_count(calls):
    names = [f"call{index}" for index in range(calls)]
    times = dict.fromkeys(cells(calls=names), 0.01)
    text = render(
        run(times, scenarios=[scenario(axes={**scenario().axes, "call": names})]), rounds(times, spread=0.0, count=4)
    )
    assert f"Of {5 * calls} comparisons: {5 * calls} same." in text
    assert (f"<summary>All {5 * calls} comparisons</summary>" in text) == (calls > 8)
    lines = text.split("## What accounts for it")[0].splitlines()
    assert len([line for line in lines if line.startswith("| ") and " against " in line]) == 5 * calls


def test_marks_are_explained_below_the_times():
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    launches += [launch(cell("tf2.0"), [0.007] * 3 + [0.022] * 2, fingerprint={"steps_called": 9, "steps_counted": 8})]
    text = render(run(cells(modes=["graph"])), launches)
    assert "Launches: tf2.0 graph: 1 of 1." in text
    assert (
        "◊ Launches of this cell have several modes: some lie apart from the others, and all are in the mean." in text
    )
    assert "such a step: tf2.0 graph: took 9 steps, and the framework counted 8." in text
    assert "launches of this cell have several modes: 1 of 6 lies apart" in text.split("## Shape of the times")[1]


def test_two_scenarios_have_one_section_of_phases():
    other = scenario("other", title="Another", axes={"size": ["1"]}, default={}, compare=[])
    plain = Cell("other", "tf1.14", Device.CPU, {"size": "1"})
    times = {cell(): 0.01, plain: 0.02}
    text = render(run(times, scenarios=[scenario(), other]), rounds(times, phases=PHASES, resources=RESOURCES))
    assert text.count("## Phases") == 1
    assert text.split("## Phases")[1].count("**Another**\n") == 3


@pytest.mark.parametrize(
    ("told", "sentence"),
    [(RESOURCES, "No round was disturbed by other processes."), ({}, "could not be told: no launch recorded")],
)
def test_whether_rounds_were_disturbed_stands_with_what_was_measured(told, sentence):
    text = render(run(), rounds(dict.fromkeys(cells(), 0.01), resources=told))
    assert sentence in text.split("## What was measured")[1]
    assert "## Disturbed rounds" not in text


def test_ten_disturbed_rounds_are_named():
    noisy = {**RESOURCES, "steady_own_cpus_busy_seconds": 1.6}
    text = render(run(), rounds(dict.fromkeys(cells(), 0.01), count=12, resources=noisy))
    assert "12 of 12 rounds, repetitions included, were disturbed" in text
    assert "- Round 10 of step cpu call=fit dtype=float32: step tf1.14" in text
    assert "- Round 11" not in text
    assert "- and 2 more" in text


def test_a_run_without_launches_has_a_report():
    text = render(run(), [])
    assert "No cell gave a number." in text
    assert "harness matrix --resume results/2026-11-21T04-10-00Z-3f2a" in text


def test_a_run_in_which_nothing_is_available_has_a_report():
    text = render(run([], unavailable=[Unavailable(c, "no Python 3.7", "Install it.") for c in cells()]), [])
    assert "No cell gave a number." in text
    assert re.search(r"\| not available +\| step \(4 cells\) +\| no Python 3.7 +\| Install it. +\|", text)


def test_a_run_of_nothing_has_a_report():
    empty = run([], host={}, backend=BackendFacts(""), commit="", images={}, pins={})
    assert "No cell gave a number." in render(empty, [])


def test_many_environments_have_a_line_each_and_changes_are_bold():
    known = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}", tensorflow=f"9.{minor // 2}.0") for minor in range(7)]
    pins = {each.name: {"tensorflow": each.tensorflow, "six": "1"} for each in known}
    text = render(run([], environments=known, pins=pins), [])
    assert re.search(r"^\| tf9.1 +\| 9.0.0 +\|$", text, re.MULTILINE)
    assert re.search(r"^\| tf9.2 +\| \*\*9.1.0\*\* +\|$", text, re.MULTILINE)
    assert "In bold: other than in the line above." in text


def test_what_is_the_same_in_all_is_one_sentence_folded_away():
    folded = render(run(), []).split("<summary>What is the same in all")[1]
    assert "The same in both: TensorFlow's package tensorflow, Python 3.7, NumPy 1.17.4, six 1.13.0." in folded


def test_an_environment_alone_has_its_packages():
    text = render(run([cell()]), [])
    assert "## The environment" in text
    assert "<summary>What is in tf1.14</summary>" in text


def test_the_machine_is_one_line_and_the_rest_of_it_is_folded_away():
    text = render(run(), [])
    assert "- **Machine:** Some CPU, 2 cores, 8.00 GiB; 26.1.5." in text
    assert re.search(
        r"^\| backend \| why +\| An engine answers. +\|$", text.split("in full</summary>")[1], re.MULTILINE
    )


def test_it_can_be_done_again_without_the_harness():
    lines = ByHand("bake it", ["build that"], ["run one", "run another"])
    launches = rounds(dict.fromkeys(cells(), 0.01))
    again = render(run(), launches, by_hand=lambda run, chosen: lines).split("## Again")[1]
    assert [line for line in again.splitlines() if line in ("bake it", "build that", "run one", "run another")] == [
        *("build that", "bake it", "run one", "run another")
    ]
    assert "by hand" not in render(run(), launches)


def test_only_ten_ends_of_standard_error_are_printed():
    members = [cell(mode=str(index)) for index in range(12)]
    axes = {**scenario().axes, "mode": [str(index) for index in range(12)]}
    launches = [broken(c, Status.FAILED, error=f"error {c.axes['mode']}", stderr="end") for c in members]
    text = render(run(members, scenarios=[scenario(axes=axes)]), launches)
    assert text.count("End of standard error") == 10
    assert "The standard error of 2 more is in launches.jsonl." in text


def test_columns_align():
    assert table(["a", "number"], [["x", "1"], ["本", "22"]], right=[1]).splitlines() == [
        "| a   | number |",
        "| --- | -----: |",
        "| x   |      1 |",
        "| 本  |     22 |",
    ]


def test_another_folder_of_templates(tmp_path):
    (tmp_path / "sentences.j2").write_text("{% macro cells(a) %}{% endmacro %}")
    (tmp_path / "report.md.j2").write_text("run {{ document.run.id }} of {{ '<b>' }}")
    assert render(run([]), [], tmp_path) == "run 2026-11-21T04-10-00Z-3f2a of &lt;b&gt;\n"
