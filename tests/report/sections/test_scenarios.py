"""A scenario's comparisons and times."""

import math
from dataclasses import replace

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.analysis.comparisons import Compared, RoundsNeeded
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict, Withheld
from harness.analysis.work_equivalence import Work, WorkCheck
from harness.model.environment import Device
from harness.model.launch import Status
from harness.report.blocks import Table, Text, Where
from harness.report.phrases import capitalize
from harness.report.sections import scenarios
from harness.report.sections.scenarios import AS_THE_SOURCE
from tests.claims import BETTER, CLAIM, WORSE, claimed_scenario
from tests.factories import COMPARE, ENVIRONMENTS, broken, cell, cells, growing, launch, rounds, run, scenario
from tests.quantified import quantified, quantified_run

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}


def make_section(asked, launches):
    """The tables of the one section by their captions' first words, and its paragraphs."""
    (section,) = scenarios.make_sections(Results(asked, launches))
    tables = {block.caption.partition(",")[0]: block for block in section.blocks if isinstance(block, Table)}
    return tables, [block.words for block in section.blocks if isinstance(block, Text)]


def texts(table):
    """The headings, and the lines as text without plots."""
    return [head.text for head in table.heads], [
        [entry.text for entry in line.entries if not entry.is_code] for line in table.lines
    ]


def list_comparisons(asked, launches):
    return texts(make_section(asked, launches)[0]["Comparisons"])


def test_the_largest_difference_comes_first_and_what_is_unclear_after_all_that_is_settled():
    unclear = {**SECONDS, cell("tf2.0"): 0.0101, cell("tf2.0", call="train_on_batch"): 0.0082}
    headings, lines = list_comparisons(run(TIMES), rounds(unclear, spread=0.05))
    assert [heading for heading in headings if "faster" not in heading][:4] == [
        "call",
        "comparison",
        "time ratio",
        "verdict",
    ]
    ratios, verdicts = [float(line[2].split("×")[0]) for line in lines], [line[3] for line in lines]
    settled = [max(ratio, 1 / ratio) for ratio, verdict in zip(ratios, verdicts, strict=True) if verdict != "unclear"]
    assert settled == sorted(settled, reverse=True)
    assert verdicts[-2:] == ["unclear", "unclear"]
    assert "unclear" not in verdicts[:-2]
    assert len(lines) == 10


def test_a_ratio_is_the_time_of_the_first_over_that_of_the_second():
    _, lines = list_comparisons(run(TIMES), rounds(SECONDS, spread=0.0))
    assert lines[0][2:4] == ["2.70× (2.70 to 2.70)", "slower"]
    assert lines[4][1:4] == ["graph vs eager, tf1.14", "0.500× (0.500 to 0.500)", "faster"]


def test_one_rows_lines_have_no_labels():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    assert list_comparisons(run(only), rounds(only))[0][0] == "comparison"


def test_a_ratio_opens_both_of_its_cells_and_is_sorted_by_its_value():
    table = make_section(run(TIMES), rounds(SECONDS, spread=0.0))[0]["Comparisons"]
    entry = table.lines[0].entries[2]
    assert entry.cells == (cell("tf2.0", mode="eager"), cell("tf1.14"))
    assert entry.order == pytest.approx(2.7)


def test_different_work_has_no_ratio_and_no_plot():
    launches = [
        launch(of, 0.01, number, fingerprint={"parameters": len(of.environment)})
        for number in range(1, 6)
        for of in cells(modes=["graph"])
    ]
    asked = run(cells(modes=["graph"]), scenarios=[scenario(compare=COMPARE[:1])])
    (line,) = make_section(asked, launches)[0]["Comparisons"].lines
    assert [entry.text for entry in line.entries][:4] == ["tf2.0 vs tf1.14", "", "", "different work"]


def test_without_any_verdict_there_is_no_column_and_one_line_says_why(snapshot: SnapshotAssertion):
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
    found = {name: make_section(*stored) for name, stored in runs.items()}
    assert {name: words[0] for name, (_, words) in found.items()} == snapshot
    headings = {name: texts(tables["Comparisons"])[0] for name, (tables, _) in found.items()}
    assert [name for name, heads in headings.items() if "verdict" in heads] == ["three rounds", "two rounds, far"]
    # the line above the table says it, and no remark repeats it
    assert "remarks" not in headings["a control beyond the margin"]


def test_a_line_tells_of_fewer_rounds():
    launches = [*rounds({cell(): 0.01, cell("tf2.0"): 0.01}, count=6), *rounds({cell("tf2.1"): 0.01}, count=4)]
    _, lines = list_comparisons(run(cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph"])), launches)
    assert ["n=4" in line[1] for line in lines[:2]] == [False, True]


def test_legends_depend_on_how_often_verdicts_are_checked_and_on_the_rounds():
    claimed = run([WORSE, BETTER], scenarios=[claimed_scenario()], asked={"claims": [str(CLAIM.issue)], "rounds": 30})
    seconds = {WORSE: 0.02, BETTER: 0.01}
    legends = {
        "one round": make_section(run(TIMES), rounds(SECONDS, count=1))[1],
        "two rounds": make_section(run(TIMES), rounds(dict.fromkeys(SECONDS, 0.01), count=2))[1],
        "five rounds": make_section(run(TIMES), rounds(SECONDS))[1],
        "claims, one check": make_section(claimed, rounds(seconds, count=3))[1],
        "claims, two checks": make_section(claimed, rounds(seconds, count=6))[1],
    }
    words = {"level": "Each of these 10 intervals", "Holm": "Holm", "look": "instead of 5 %"}
    assert {
        name: [word for word, text in words.items() if any(text in legend for legend in found)]
        for name, found in legends.items()
    } == {
        "one round": [],
        "two rounds": ["level"],
        "five rounds": ["level", "Holm"],
        "claims, one check": [],
        "claims, two checks": ["look"],
    }


def test_percentages_stand_where_the_source_counts_in_them():
    percent = [replace(entry, percent=True) for entry in COMPARE[1:2]]
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    asked = run(only, scenarios=[scenario(compare=[COMPARE[0], *percent])])
    tables = make_section(asked, rounds(only, spread=0.0))[0]
    headings, lines = texts(tables["Comparisons"].shown(Where.PAGE))
    percentages = {line[0]: text for line in lines if (text := line[headings.index(AS_THE_SOURCE)])}
    assert percentages == {
        "graph vs eager, tf1.14": "+100 % (+100 to +100)",
        "graph vs eager, tf2.0": "+145 % (+145 to +145)",
    }
    assert AS_THE_SOURCE not in texts(tables["Comparisons"].shown(Where.PASTE))[0]
    (beside,) = [table for caption, table in tables.items() if caption.startswith(capitalize(AS_THE_SOURCE))]
    assert beside.where is Where.DETAILS
    assert texts(beside)[0] == ["comparison", AS_THE_SOURCE]
    assert dict(texts(beside)[1]) == percentages
    assert not any(
        caption.startswith(capitalize(AS_THE_SOURCE)) for caption in make_section(run(only), rounds(only))[0]
    )


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


def test_a_comparison_has_its_remarks(snapshot: SnapshotAssertion):
    comparisons = {
        "none": compared(),
        "Python": compared(pythons=("3.11", "3.7")),
        "not checked": compared(work=Work.NOT_CHECKED),
        "different work": compared(Verdict.DIFFERENT_WORK, work=Work.DIFFERENT, reason="parameters is 1 and 2"),
        "more rounds": compared(Verdict.UNCLEAR, settling=RoundsNeeded(12, 187.0, 0.02, 0.81)),
        "a probability": compared(Verdict.UNCLEAR, settling=RoundsNeeded(200, 0.0, 0.02, 0.79)),
        "a small probability": compared(Verdict.UNCLEAR, settling=RoundsNeeded(200, 0.0, 0.02, 0.04)),
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
    assert {name: scenarios.make_remark(Results(run(), []), of) for name, of in comparisons.items()} == snapshot


# Times.


def list_times(asked, launches):
    return texts(make_section(asked, launches)[0]["Time per step"])


def test_headings_name_environment_mode_and_unit():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    headings, _ = list_times(run(only), rounds(only))
    assert headings == ["tf1.14 graph, ms", "tf1.14 eager, ms", "tf2.0 graph, ms", "tf2.0 eager, ms"]


def test_many_environments_have_a_line_each():
    names_ = [f"tf2.{minor}" for minor in range(5)]
    members = [cell("tf1.14"), *cells(names_)]
    known = [replace(ENVIRONMENTS[0], name=name) for name in ["tf1.14", *names_]]
    headings, lines = list_times(run(members, environments=known), [launch(member) for member in members])
    assert headings == ["environment", "graph, ms", "eager, ms"]
    assert [line[0] for line in lines] == ["tf1.14", *names_]
    assert lines[0][1].startswith("10.0")
    assert lines[0][2] == ""
    assert all(value.startswith("10.0") for value in lines[1][1:])


def test_a_number_has_marks_which_are_explained():
    graph, eager = cells(["tf1.14"])
    fewer = [launch(graph, 0.01, number) for number in (1, 2, 3)]
    uneven = [launch(eager, [0.007] * 3 + [0.022] * 2, number) for number in (1, 2)]
    assert list_times(run([graph, eager]), [*fewer, *uneven])[1] == [["10.0 ± 0.1", "13.0 n=2 †"]]
    outlier = [launch(graph, seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    uncounted = rounds({eager: 0.01}, 6, spread=0.0, fingerprint={"steps_called": 100, "steps_counted": 6})
    ((first, second),) = list_times(run([graph, eager]), [*outlier, *uncounted])[1]
    assert first.endswith(" ◊")
    assert second == "10.0 ± 0.1 ‡"


def test_steps_of_a_curve_are_numbered_only_if_warm_ups_are_counted():
    tables, words = make_section(run(cells(modes=["graph"])), [*growing(cell()), *rounds({cell("tf2.0"): 0.01})])
    assert texts(tables["Time per step"])[1][0][0].endswith(" §")
    assert words[-1].endswith("tf1.14 graph: 10.5 ms at the 61st step, 29.5 ms at the 241st ▁▂▃▃▄▅▆▆▇█.")
    uncounted = growing(cell(), resources={})
    assert "10.5 ms at first, 29.5 ms 180 steps later" in make_section(run([cell()]), uncounted)[1][-1]


def test_without_a_number_the_status_stands_and_where_there_is_no_cell_nothing():
    members = [cell(), cell(mode="eager"), cell(call="train_on_batch", mode="eager")]
    launches = [launch(cell()), broken(cell(mode="eager"), Status.OOM), launch(members[2])]
    assert [line[1:] for line in list_times(run(members), launches)[1]] == [["10.0", "oom"], ["", "10.0"]]


def test_rows_name_their_device_where_there_are_several():
    members = [cell(), cell(device=Device.GPU)]
    headings, lines = list_times(run(members), [launch(member) for member in members])
    assert headings[0] == "device"
    assert [line[0] for line in lines] == ["cpu", "gpu"]


def test_what_ratios_are_is_said_in_the_first_section_alone():
    other = scenario("other", compare=COMPARE[:1])
    times_ = {**dict.fromkeys(cells(), 0.01), **{cell(e, of="other"): 0.01 for e in ("tf1.14", "tf2.0")}}
    found = scenarios.make_sections(Results(run(times_, scenarios=[scenario(), other]), rounds(times_)))
    words = [[block.words for block in section.blocks if isinstance(block, Text)] for section in found]
    assert [sum("A ratio is" in text for text in section) for section in words] == [1, 0]


# Other quantities.

OF = ("first call", "peak memory", "memory growth", "traces")


def list_quantities():
    """Each section's title with its tables of comparisons and of values."""
    found = {}
    for section in scenarios.make_sections(Results(quantified_run(*OF), quantified())):
        found[section.title] = [texts(block) for block in section.blocks if isinstance(block, Table)]
    return found


def test_each_quantity_has_a_section_with_its_own_words_and_units():
    found = list_quantities()
    step, *others = found
    assert others == [f"{step}: {of}" for of in ("first call time", "peak memory", "memory growth", "traces")]
    ratios = [found[title][0][0][1] for title in others]
    assert ratios == ["first call time ratio", "peak memory ratio", "difference, B per call", "traces ratio"]
    values = [found[title][1][0][0] for title in others]
    assert values == ["tf1.14, s", "tf1.14, MiB", "tf1.14, B per call", "tf1.14"]
    assert [found[title][0][1][0][2] for title in others] == ["slower", "more", "more", "more"]
    # a count that never varies has no interval, and the step has its times although only other quantities are compared
    assert found[others[-1]][1][1] == [["3", "300"]]
    assert found[step][0][0] == ["tf1.14, ms", "tf2.0, ms"]


def test_of_two_rounds_there_are_means_alone():
    _, lines = list_times(run(TIMES), rounds(SECONDS, count=2))
    assert not any("±" in text or "to" in text for line in lines for text in line[1:])
