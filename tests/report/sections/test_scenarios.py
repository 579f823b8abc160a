"""A scenario's comparisons and times."""

import math
from dataclasses import replace
from functools import partial

import pytest

from harness.analysis.comparisons import Compared, RoundsNeeded
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict, Withheld
from harness.analysis.work_equivalence import Work, WorkCheck
from harness.model.environment import Device
from harness.model.launch import Status
from harness.report.blocks import Table, Where
from harness.report.sections import how_to_read, scenarios
from harness.report.sections.remarks import make_remark
from tests.factories import COMPARE, ENVIRONMENTS, broken, cell, cells, growing, launch, rounds, run, scenario
from tests.quantified import quantified, quantified_run
from tests.report.sections import reading

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}
FIT = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}


make_section = partial(reading.make, scenarios.make_sections)


def render_tables(planned, launches):
    return "\n\n".join(
        reading.render(replace(section, blocks=[block for block in section.blocks if isinstance(block, Table)]))
        for section in scenarios.make_sections(Results(planned, launches))
    )


def find_comparisons(section):
    return next(table for table in reading.tables(section, Where.PAGE) if table.caption.startswith("Comparisons"))


def test_tables_of_comparisons_and_times(snapshot):
    graph, eager = cells(["tf1.14"])
    old, new = cells(modes=["graph"])
    unlike = [
        launch(of, 0.01, number, fingerprint={"size": len(of.environment)}) for number in (1, 2) for of in (old, new)
    ]
    fewer = [*rounds({old: 0.01, new: 0.01}, count=6), *rounds({cell("tf2.1"): 0.01}, count=4)]
    names = [f"tf2.{minor}" for minor in range(5)]
    many = [graph, *cells(names)]
    environments = [replace(ENVIRONMENTS[0], name=name) for name in ["tf1.14", *names]]
    uneven = [launch(eager, [0.007] * 3 + [0.022] * 2, number) for number in (1, 2)]
    outlier = [launch(graph, seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    uncounted = rounds({eager: 0.01}, 6, spread=0.0, fingerprint={"steps_called": 100, "steps_counted": 6})
    sparse = [graph, eager, cell(call="train_on_batch", mode="eager")]
    devices = [cell(), cell(device=Device.GPU)]
    runs = {
        "two rows": (run(TIMES), rounds(SECONDS, spread=0.0)),
        "one row": (run(FIT), rounds(FIT, spread=0.0)),
        "two rounds": (run(FIT), rounds(FIT, count=2)),
        "different work": (run([old, new], scenarios=[scenario(compare=COMPARE[:1])]), unlike),
        "fewer rounds": (run(cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph"])), fewer),
        "many environments": (run(many, environments=environments), [launch(member) for member in many]),
        "fewer rounds and uneven samples": (run([graph, eager]), [*rounds({graph: 0.01}, 3), *uneven]),
        "outliers and uncounted steps": (run([graph, eager]), [*outlier, *uncounted]),
        # where there is no cell, there is nothing
        "without a number": (run(sparse), [launch(graph), broken(eager, Status.OOM), launch(sparse[2])]),
        "two devices": (run(devices), [launch(member) for member in devices]),
        "quantities": (quantified_run("first call", "peak memory", "memory growth", "traces"), quantified()),
    }
    assert {name: render_tables(*stored) for name, stored in runs.items()} == snapshot


def test_the_largest_difference_comes_first_and_what_is_unclear_after_all_that_is_settled():
    unclear = {**SECONDS, cell("tf2.0"): 0.0101, cell("tf2.0", call="train_on_batch"): 0.0082}
    table = find_comparisons(make_section(run(TIMES), rounds(unclear, spread=0.05)))
    ratios, verdicts = (
        [line.split("×")[0] for line in reading.column(table, "time ratio")],
        reading.column(table, "verdict"),
    )
    settled = [
        max(float(ratio), 1 / float(ratio))
        for ratio, verdict in zip(ratios, verdicts, strict=True)
        if verdict != "unclear"
    ]
    assert settled == sorted(settled, reverse=True)
    assert verdicts[-2:] == ["unclear", "unclear"]
    assert "unclear" not in verdicts[:-2]
    assert len(verdicts) == 10


def test_a_ratio_opens_both_of_its_cells_and_is_sorted_by_its_value():
    entry = find_comparisons(make_section(run(TIMES), rounds(SECONDS, spread=0.0))).lines[0].entries[2]
    assert entry.cells == (cell("tf2.0", mode="eager"), cell("tf1.14"))
    assert entry.order == pytest.approx(2.7)


def test_without_any_verdict_there_is_no_column_and_remarks_say_why(snapshot):
    times, graph = dict.fromkeys(cells(), 0.01), cells(modes=["graph"])
    far, near = (dict(zip(graph, (0.01, seconds), strict=True)) for seconds in (0.03, 0.014))
    biased = rounds(times, spread=0.001, controls={cell(): 0.011}, fingerprint={"parameters": 1})
    runs = {
        "two rounds": (run(), rounds(times, count=2)),
        "three rounds": (run(), rounds(times, count=3)),
        "two rounds, far": (run(far), rounds(far, count=2, spread=0.001)),
        "two rounds, near": (run(near), rounds(near, count=2, spread=0.001)),
        "a control beyond the margin": (run(controlled=True), biased),
    }
    sections = {name: make_section(*stored) for name, stored in runs.items()}
    assert {name: reading.texts(section)[0] for name, section in sections.items()} == snapshot
    headings = {name: reading.heads(find_comparisons(section)) for name, section in sections.items()}
    assert [name for name, heads in headings.items() if "verdict" in heads] == ["three rounds", "two rounds, far"]
    remarks = reading.column(find_comparisons(sections["a control beyond the margin"]), "remarks")
    assert set(remarks) == {"identical cells differed by more than the margin"}


def compared(verdict=Verdict.SLOWER, withheld=None, settling=None, *, work=Work.SAME, reason="", pythons=None, at=2.0):
    return Compared(
        cell=cell("tf2.0"),
        other=cell(),
        ratio=Estimate(at, 5),
        level=0.95,
        verdict=verdict,
        withheld=withheld,
        settling=settling,
        work=WorkCheck(work, reason),
        pythons=pythons,
    )


def test_a_comparison_has_its_remarks(snapshot):
    comparisons = {
        "none": compared(),
        "Python": compared(pythons=("3.11", "3.7")),
        "not checked": compared(work=Work.NOT_CHECKED),
        "different work": compared(Verdict.DIFFERENT_WORK, work=Work.DIFFERENT, reason="parameters is 1 and 2"),
        "more rounds": compared(Verdict.UNCLEAR, settling=RoundsNeeded(12, 187.0, 0.02, 0.81)),
        "too close": compared(Verdict.UNCLEAR, settling=RoundsNeeded(200, 0.0, 0.02, 0.79)),
        "own variance": replace(compared(), excess=2.7),
        "unclear": compared(Verdict.UNCLEAR),
        "few rounds": compared(None, Withheld.FEW_ROUNDS),
        "control": compared(None, Withheld.CONTROL),
        "trend": compared(None, Withheld.TREND),
        "steps": replace(compared(), steps=Interval(10.0, 1240.0)),
        "contention": replace(compared(None, Withheld.CONTENTION), contention=0.05),
        "contention, with a verdict": replace(compared(), contention=math.log(1.03)),
        "contention below the margin": replace(compared(), contention=0.029),
        "several": compared(None, Withheld.FEW_ROUNDS, work=Work.NOT_CHECKED, pythons=("3.11", "3.7")),
    }
    assert {name: make_remark(Results(run(), []), comparison) for name, comparison in comparisons.items()} == snapshot


def test_steps_of_a_curve_have_no_numbers_where_warm_ups_are_not_counted_and_its_mark_is_explained(snapshot):
    uncounted = reading.texts(make_section(run([cell()]), growing(cell(), resources={})))[-1]
    assert "10.5 ms at first, 29.5 ms 180 steps later" in uncounted
    *_, legends = how_to_read.make_sections(Results(run(FIT), [*growing(cell()), *rounds({cell("tf2.0"): 0.01})]))
    assert [text for text in reading.texts(legends) if text.startswith("§")] == snapshot
