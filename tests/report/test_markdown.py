"""report.md."""

import os
import re
from pathlib import Path

import pytest

from harness.model.cell import Cell
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Unavailable
from harness.report.markdown import render, table
from tests.factories import broken, cell, cells, launch, rounds, run, scenario

SNAPSHOT = Path(__file__).parent / "report.md"

HOSTILE = "<script>alert(1)</script>"


def example():
    """Two calls in two environments and two modes, one cell out of memory, an environment that cannot be had."""
    times = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
    seconds = {of: milliseconds / 1000 for of, milliseconds in times.items()}
    lost = cell("tf2.0", call="fit", mode="graph")
    del seconds[lost]
    gone = [Unavailable(c, "needs keras<2.4", "Choose an environment with keras<2.4.") for c in cells(["tf2.1"])]
    killed = broken(lost, Status.OOM, error="killed at 2 GiB", advice="Allow more memory.", stderr="allocating\nKilled")
    return run(times, unavailable=gone), [*rounds(seconds), killed]


def test_the_report_is_the_snapshot():
    """UPDATE_SNAPSHOTS=1 writes it anew; read the difference before committing it."""
    text = render(*example())
    if os.environ.get("UPDATE_SNAPSHOTS"):
        SNAPSHOT.write_text(text)
    assert text == SNAPSHOT.read_text()


def test_the_parts_come_in_order():
    assert re.findall(r"^##? .*$", render(*example()), re.MULTILINE) == [
        "# One training step: tf1.14, tf2.0, tf2.1",
        "## What was measured",
        "## One training step",
        "## No number",
        "## Again",
    ]


def test_every_table_has_as_many_cells_in_every_line():
    for block in re.findall(r"(?:^\|.*\|$\n?)+", render(*example()), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "no intervals, no verdict"), (3, "fewer than four rounds"), (5, "a 95 % t interval over 5 rounds.")],
)
def test_the_note_says_what_an_interval_is(count, sentence):
    times = dict.fromkeys(cells(), 0.01)
    assert sentence in render(run(), rounds(times, count=count))


def test_the_first_lines_say_where_launches_ran():
    assert "Launches ran pinned to 1 core (CPU 0), on Some CPU, 5 rounds planned." in render(run(), []).split("##")[0]


def test_no_difference_shown_where_the_interval_holds_1():
    assert "no difference shown" in render(run(), rounds(dict.fromkeys(cells(), 0.01)))


def test_a_run_without_launches_has_a_report():
    text = render(run(), [])
    assert "No cell gave a number." in text
    assert "harness matrix --resume results/2026-11-21T04-10-00Z-3f2a" in text


def test_a_run_in_which_nothing_is_available_has_a_report():
    text = render(run([], unavailable=[Unavailable(c, "no Python 3.7", "Install it.") for c in cells()]), [])
    assert "No cell gave a number." in text
    assert re.search(r"\| not available +\| step \(4 cells\) +\| no Python 3.7 +\| Install it. +\|", text)


def test_a_run_of_nothing_has_a_report():
    assert "No cell gave a number." in render(run([], host={}, backend={}, commit="", images={}, pins={}), [])


def test_hostile_strings_are_harmless():
    axes = {"size": ["a|b", "`c`\n# d"], "mode": ["graph", "eager"]}
    evil = scenario(HOSTILE, title=f"{HOSTILE} | x", axes=axes, default={}, source="javascript:alert(1)")
    members = [
        Cell(HOSTILE, "tf1.14", Device.CPU, {"size": size, "mode": mode})
        for size in axes["size"]
        for mode in axes["mode"]
    ]
    stderr = "```\n</details><script>alert(2)</script>\n" + "\x1b]0;x\x07" + "x" * 10_000_000 + "\n````\nend"
    launches = [launch(members[0]), launch(members[1]), launch(members[2])]
    launches += [broken(members[3], Status.FAILED, error="\x1b[31mred|\n# big `q`", stderr=stderr, advice=HOSTILE)]
    hosts = {"cpu": HOSTILE, "<b>": "|"}
    command = ["harness", "matrix", "-s", HOSTILE + "\n```\n"]
    text = render(run(members, scenarios=[evil], host=hosts, command=command), launches)
    outside = re.sub(r"^(`{3,})\w+\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside
    assert "\x1b" not in text
    assert "red\\| # big \\`q\\`" in outside
    assert "](javascript" not in text
    assert "a\\|b" in outside
    assert not re.search(r"^# (d|big)", outside, re.MULTILINE)
    assert len(text) < 20_000


def test_only_ten_ends_of_standard_error_are_printed():
    members = [cell(mode=str(index)) for index in range(12)]
    axes = {**scenario().axes, "mode": [str(index) for index in range(12)]}
    launches = [broken(c, Status.FAILED, error=f"error {c.axes['mode']}", stderr="end") for c in members]
    text = render(run(members, scenarios=[scenario(axes=axes)]), launches)
    assert text.count("End of standard error") == 10
    assert "The standard error of 2 more is in launches.jsonl." in text


def test_a_wide_table_becomes_two():
    text = render(
        run(cells(["tf1.14", "tf2.0", "tf2.1"])), rounds(dict.fromkeys(cells(["tf1.14", "tf2.0", "tf2.1"]), 1e-2))
    )
    heads = [line for line in text.splitlines() if line.startswith("| call")]
    assert len(heads) == 2
    assert ", ms" in heads[0]
    assert "against" in heads[1]
    assert "against" not in heads[0]


def test_columns_align():
    assert table(["a", "number"], [["x", "1"], ["本", "22"]], numbers=1).splitlines() == [
        "| a   | number |",
        "| --- | -----: |",
        "| x   |      1 |",
        "| 本  |     22 |",
    ]


def test_another_folder_of_templates(tmp_path):
    (tmp_path / "sentences.j2").write_text("{% macro cells(a) %}{% endmacro %}")
    (tmp_path / "report.md.j2").write_text("run {{ document.run.id }} of {{ '<b>' }}")
    assert render(run([]), [], tmp_path) == "run 2026-11-21T04-10-00Z-3f2a of &lt;b&gt;\n"
