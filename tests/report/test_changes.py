"""Two runs side by side."""

import json
from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.runs import Pair
from harness.report import changes, markdown
from harness.report.blocks import Items, Section, Table, Text
from tests.factories import cell
from tests.quantified import quantified, quantified_run
from tests.two_runs import CELLS, MARGIN, all_but, first, pair, second

ONE = CELLS[2]
SLOWER = all_but(ONE, 1.3)


def list_texts(one, other):
    (section,) = changes.make_sections(pair(one, other))
    texts = []
    for block in section.blocks:
        texts += [block.words] if isinstance(block, Text) else list(block.items) if isinstance(block, Items) else []
    return texts


def list_lines(one, other):
    (section,) = changes.make_sections(pair(one, other))
    (table,) = (block for block in section.blocks if isinstance(block, Table))
    rows = [[entry.text for entry in line.entries] for line in table.lines]
    return {row[0]: row[1:] for row in rows}, [head.text for head in table.heads]


def change(stored, **fields):
    planned, launches = stored
    limits = {name: fields.pop(name) for name in ("cpus", "memory_bytes") if name in fields}
    plan = replace(planned.plan, limits=replace(planned.plan.limits, **limits))
    return replace(planned, plan=plan, **fields), launches


def add_packages(**packages):
    return {name: {**pins, **packages} for name, pins in second()[0].pins.items()}


def test_a_comparison_reads_as_its_golden_file(golden):
    (section,) = changes.make_sections(pair(first(), second(SLOWER | {CELLS[4]: 0.008})))
    assert markdown.render_full([Section("B vs A", "compare", section.blocks)]) == golden


def test_what_is_said_of_two_runs(snapshot):
    host = {**first()[0].host, "cpu": "Another CPU"}
    few = dict.fromkeys(CELLS[:2], 0.01)
    planned, launches = second()
    without_one = planned, [launch for launch in launches if launch.cell != ONE]
    more = first({**dict.fromkeys(CELLS, 0.01), cell("tf2.1"): 0.01})
    images = dict.fromkeys(planned.images, "sha256:cd")
    texts = {
        "a slower day": list_texts(first(), second(all_but(ONE, 1.3, seconds=0.012))),
        "other software": list_texts(first(), second(dict.fromkeys(CELLS, 0.012), sources={"step": "cd34"})),
        "few cells": list_texts(first(few), second(few)),
        # a change this large has a verdict after three rounds, but isn't used for the shift
        "few rounds": list_texts(first(count=3), second(dict.fromkeys(CELLS, 0.02), count=3)),
        "another machine": list_texts(first(), change(second(), host=host)),
        "no result in B": list_texts(first(), without_one),
        "no result in A": list_texts(without_one, more),
        "other packages and images": list_texts(
            first(), change(second(), pins=add_packages(numpy="1.18.0"), images=images)
        ),
        "many packages": list_texts(
            first(), change(second(), pins=add_packages(**{f"p{at:02}": "1" for at in range(11)}))
        ),
        "other limits": list_texts(first(), change(second(), cpus=(0, 1), memory_bytes=2**30)),
        # sizes that look the same are no difference
        "4 KiB more memory": list_texts(
            change(first(), memory_bytes=20 * 2**30), change(second(), memory_bytes=20 * 2**30 + 4096)
        ),
        "1 GiB more memory": list_texts(
            change(first(), memory_bytes=20 * 2**30), change(second(), memory_bytes=21 * 2**30)
        ),
    }
    usual = list_texts(first(), second())
    assert {name: [line for line in lines if line not in usual] for name, lines in texts.items()} == snapshot


def test_a_line_says_what_its_verdict_rests_on():
    slow_day, _ = list_lines(first(), second(all_but(ONE, 1.3, seconds=0.012)))
    assert "slower without the shift" in slow_day["tf1.14, b"][-1]
    assert "same without the shift" in slow_day["tf1.14, a"][-1]
    remarks = [list_lines(first(count=count), second())[0]["tf1.14, a"][-1] for count in (3, 5)]
    assert "too few rounds (3 of 4)" in remarks[0]
    assert "work not checked" in remarks[1]
    # different work has no ratio
    one, other = (
        (member, [replace(launch, fingerprint={"parameters": number}) for launch in launches])
        for number, (member, launches) in enumerate((first(), second()))
    )
    line = list_lines(one, other)[0]["tf1.14, a"]
    assert (line[2], line[3]) == ("", "different work")
    assert "parameters: difference of 1" in line[4]


def make_document(one, other):
    # what is not JSON raises here
    return json.loads(json.dumps(changes.make_document(pair(one, other))))


def test_as_json_cells_have_their_times_and_ratios_and_runs_their_shift_and_differences():
    document = make_document(first(), second(SLOWER))
    assert (document["schema"], document["margin"]) == (changes.SCHEMA, MARGIN)
    assert [document[name]["id"] for name in ("first", "second")] == [first()[0].id, second()[0].id]
    (slower,) = (entry for entry in document["cells"] if entry["change"]["verdict"] == "slower")
    place = {"scenario": "step", "environment": "tf1.14", "device": "cpu", "axes": dict(ONE.axes)}
    assert slower["cell"] == place
    assert slower["first"]["value"] == pytest.approx(0.01, rel=0.01)
    ratio = slower["change"]["ratio"]
    assert ratio["value"] == pytest.approx(1.3, rel=0.01)
    assert ratio["interval"]["low"] < ratio["value"] < ratio["interval"]["high"]
    assert (ratio["rounds"], slower["change"]["withheld"], slower["same_software"]) == (5, None, True)
    assert slower["without_shift"]["verdict"] == "slower"
    assert slower["work"] == {"work": "not checked", "reason": ""}
    alike = make_document(first(), second())
    shift = alike["shift"]
    assert (shift["change"]["verdict"], shift["cells"], shift["unchanged"]) == ("same", 6, True)
    assert alike["differences"] == alike["other_machine"] == alike["only_first"] == alike["only_second"] == []
    more = {**dict.fromkeys(CELLS, 0.01), cell("tf2.1"): 0.01}
    other = make_document(first(more, count=1), change(second(), host={**first()[0].host, "cpu": "Another CPU"}))
    difference = {"part": "machine", "subject": "", "name": "cpu", "first": "Some CPU", "second": "Another CPU"}
    assert other["other_machine"] == other["differences"] == [difference]
    assert other["shift"] is None
    assert other["cells"][0]["change"]["withheld"] == "few rounds"
    assert [(entry["cell"]["environment"], entry["status"]) for entry in other["only_first"]] == [("tf2.1", None)]


def test_each_other_quantity_has_a_table_of_its_own():
    planned = quantified_run("first call", "peak memory")
    both = Pair(Results(planned, quantified()), Results(planned, quantified(spread=0.02)), MARGIN)
    (section,) = changes.make_sections(both)
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert [table.caption for table in tables] == ["Cells", "Cells: first call time", "Cells: peak memory"]
    assert [table.heads[1].text for table in tables[1:]] == ["A, s", "A, MiB"]
    assert "B takes more." in tables[2].legend
    assert set(json.loads(json.dumps(changes.make_document(both)))["quantities"]) == {"first call", "peak memory"}
