"""A scenario's comparisons and times."""

from dataclasses import replace

import pytest

from harness.analysis.comparisons import Compared, RoundsNeeded
from harness.analysis.results import Results
from harness.analysis.statistics import Estimate, Interval
from harness.analysis.verdicts import Verdict, Withheld
from harness.analysis.work_equivalence import Work, WorkCheck
from harness.model.environment import Device
from harness.model.launch import Status
from harness.model.run import Stop, StopReason
from harness.report.blocks import Table, Text, Where
from harness.report.phrases import capitalize
from harness.report.sections import scenarios
from harness.report.sections.scenarios import AS_THE_SOURCE
from tests.claims import BETTER, CLAIM, WORSE, claimed_scenario
from tests.factories import COMPARE, ENVIRONMENTS, broken, cell, cells, growing, launch, rounds, run, scenario
from tests.quantified import quantified, quantified_run

TIMES = dict(zip(cells(calls=("fit", "train_on_batch")), [10, 20, 11, 27, 8, 15, 8, 21], strict=True))
SECONDS = {of: milliseconds / 1000 for of, milliseconds in TIMES.items()}


def made(asked, launches):
    """The tables of the one section by their captions' first words, and its paragraphs."""
    (section,) = scenarios.make_sections(Results(asked, launches))
    tables = {block.caption.partition(",")[0]: block for block in section.blocks if isinstance(block, Table)}
    return tables, [block.words for block in section.blocks if isinstance(block, Text)]


def texts(table):
    """The headings, and the lines as text without plots."""
    return [head.text for head in table.heads], [
        [entry.text for entry in line.entries if not entry.is_code] for line in table.lines
    ]


def comparisons(asked, launches):
    return texts(made(asked, launches)[0]["Comparisons"])


def test_the_largest_difference_comes_first_and_what_is_unclear_after_all_that_is_settled():
    unclear = {**SECONDS, cell("tf2.0"): 0.0101, cell("tf2.0", call="train_on_batch"): 0.0082}
    headings, lines = comparisons(run(TIMES), rounds(unclear, spread=0.05))
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
    _, lines = comparisons(run(TIMES), rounds(SECONDS, spread=0.0))
    assert lines[0][2:4] == ["2.70× (2.70 to 2.70)", "slower"]
    assert lines[4][1:4] == ["graph vs eager, tf1.14", "0.500× (0.500 to 0.500)", "faster"]


def test_one_rows_lines_have_no_labels():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    assert comparisons(run(only), rounds(only))[0][0] == "comparison"


def test_a_ratio_opens_both_of_its_cells_and_is_sorted_by_its_value():
    table = made(run(TIMES), rounds(SECONDS, spread=0.0))[0]["Comparisons"]
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
    (line,) = made(asked, launches)[0]["Comparisons"].lines
    assert [entry.text for entry in line.entries][:4] == ["tf2.0 vs tf1.14", "", "", "different work"]


def test_where_every_verdict_is_missing_one_line_says_why_and_there_is_no_column():
    times = dict.fromkeys(cells(), 0.01)
    tables, words = made(run(), rounds(times, count=2))
    assert "5 comparisons: too few rounds (2 of 3) for a verdict." in words
    assert "verdict" not in texts(tables["Comparisons"])[0]
    assert not any("too few rounds" in text for line in texts(tables["Comparisons"])[1] for text in line)
    assert "verdict" in comparisons(run(), rounds(times, count=3))[0]


def test_of_two_rounds_only_a_large_difference_has_a_verdict():
    times = dict(zip(cells(modes=["graph"]), [0.01, 0.03], strict=True))
    far = made(run(times), rounds(times, count=2, spread=0.001))
    assert "1 comparison: slower." in far[1]
    near = made(run(times), rounds({**times, cell("tf2.0"): 0.014}, count=2, spread=0.001))
    assert "1 comparison: too few rounds (2 of 3) for a verdict." in near[1]


def test_a_control_beyond_the_margin_takes_the_verdicts_and_is_no_remark_of_each():
    times = dict.fromkeys(cells(), 0.01)
    found = rounds(times, spread=0.001, controls={cell(): 0.011}, fingerprint={"parameters": 1})
    tables, words = made(run(controlled=True), found)
    assert "5 comparisons: no verdicts, because two identical cells differed by more than the margin." in words
    assert not {"verdict", "remarks"} & set(texts(tables["Comparisons"])[0])


def test_a_line_tells_of_fewer_rounds():
    launches = [*rounds({cell(): 0.01, cell("tf2.0"): 0.01}, count=6), *rounds({cell("tf2.1"): 0.01}, count=4)]
    _, lines = comparisons(run(cells(["tf1.14", "tf2.0", "tf2.1"], modes=["graph"])), launches)
    assert ["n=4" in line[1] for line in lines[:2]] == [False, True]


def test_intervals_that_are_judged_together_have_one_level():
    level = "Each of these 10 intervals has 99.5 % confidence, so that all of them together have 95 %."
    words = made(run(TIMES), rounds(SECONDS))[1]
    assert level in words
    assert any("Holm" in word for word in words)
    two = made(run(TIMES), rounds(dict.fromkeys(SECONDS, 0.01), count=2))[1]
    assert any(entry.startswith(level) and "assume that launches vary equally" in entry for entry in two)
    assert not any("Holm" in entry for entry in two)
    assert not any("all of them together have" in entry for entry in made(run(TIMES), rounds(SECONDS, count=1))[1])


def test_a_run_that_was_continued_says_what_that_costs():
    asked = run(TIMES)
    names = [group.name for group in asked.plan.groups]
    _, words = made(replace(asked, looks=[dict.fromkeys(names, 2), dict.fromkeys(names, 4)]), rounds(SECONDS))
    (told,) = [word for word in words if "continued" in word]
    assert told.startswith(
        "This run was reported after 2 rounds and after 4 rounds, and then continued. Its verdicts now use a "
        "level of 0.5 % instead of 5 %"
    )
    (told,) = [word for word in words if "of these 10 intervals" in word]
    assert told.startswith("Each of these 10 intervals has 99.95 % confidence, so that all of them together have 99.5")


def test_a_run_of_claims_says_which_level_later_checks_have():
    asked = run([WORSE, BETTER], scenarios=[claimed_scenario()], asked={"claims": [str(CLAIM.issue)], "rounds": 30})
    seconds = {WORSE: 0.02, BETTER: 0.01}
    _, words = made(asked, rounds(seconds, count=6))
    (told,) = [word for word in words if "outcomes of its claims" in word]
    assert "its verdicts use a level of 2.5 % instead of 5 %" in told
    assert not any("outcomes of its claims" in entry for entry in made(asked, rounds(seconds, count=3))[1])


def test_a_run_that_a_precision_ended_says_why_some_intervals_are_wider():
    asked = run(TIMES, asked={"precision": 0.02})
    ended = {group.name: Stop(StopReason.PRECISION, 5) for group in asked.plan.groups}
    _, words = made(replace(asked, stops=ended), rounds(SECONDS))
    assert any(
        word.startswith("A group ended when the interval of each comparison was within ±2 % or its") for word in words
    )


def test_one_that_is_judged_alone_has_its_level():
    only = {of: seconds for of, seconds in SECONDS.items() if of in cells(modes=["graph"])}
    words = made(run(only), rounds(only))[1]
    assert "The interval of the ratio has 95 % confidence." in words
    assert not any("all of them together have" in word for word in words)


def test_the_intervals_of_times_say_why_they_are_others_than_those_of_ratios():
    (told,) = [entry for entry in made(run(TIMES), rounds(SECONDS))[1] if entry.startswith("Time per step in ms;")]
    assert told.endswith(
        "is a 95 % confidence interval over 5 rounds. These intervals include variation between rounds, which "
        "cancels out in the ratios. No verdict depends on them, so each one has this confidence by itself; the "
        "intervals of ratios have it all together."
    )


def test_percentages_stand_where_the_source_counts_in_them():
    percent = [replace(entry, percent=True) for entry in COMPARE[1:2]]
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    asked = run(only, scenarios=[scenario(compare=[COMPARE[0], *percent])])
    tables = made(asked, rounds(only, spread=0.0))[0]
    headings, lines = texts(tables["Comparisons"].shown(Where.PAGE))
    told = {line[0]: text for line in lines if (text := line[headings.index(AS_THE_SOURCE)])}
    assert told == {
        "graph vs eager, tf1.14": "+100 % (+100 to +100)",
        "graph vs eager, tf2.0": "+145 % (+145 to +145)",
    }
    assert AS_THE_SOURCE not in texts(tables["Comparisons"].shown(Where.PASTE))[0]
    (beside,) = [table for caption, table in tables.items() if caption.startswith(capitalize(AS_THE_SOURCE))]
    assert beside.where is Where.DETAILS
    assert texts(beside)[0] == ["comparison", AS_THE_SOURCE]
    assert dict(texts(beside)[1]) == told
    assert not any(caption.startswith(capitalize(AS_THE_SOURCE)) for caption in made(run(only), rounds(only))[0])


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


@pytest.mark.parametrize(
    ("of", "remarks"),
    [
        (compared(), ""),
        (compared(pythons=("3.11", "3.7")), "Python 3.11 vs 3.7"),
        (compared(work=Work.NOT_CHECKED), "work not checked"),
        (
            compared(Verdict.DIFFERENT_WORK, work=Work.DIFFERENT, reason="parameters is 1 and 2"),
            "parameters is 1 and 2",
        ),
        (
            compared(Verdict.UNCLEAR, settling=RoundsNeeded(12, 187.0, 0.02, 0.81)),
            "12 rounds in total would probably give a verdict",
        ),
        (
            compared(Verdict.UNCLEAR, settling=RoundsNeeded(200, 0.0, 0.02, 0.79)),
            "200 rounds would give a verdict with a probability of 70 %",
        ),
        (
            compared(Verdict.UNCLEAR, settling=RoundsNeeded(200, 0.0, 0.02, 0.04)),
            "200 rounds would give a verdict with a probability below 10 %",
        ),
        (compared(Verdict.UNCLEAR), ""),
        (compared(None, Withheld.FEW_ROUNDS), "too few rounds (5 of 3) for a verdict"),
        (compared(None, Withheld.CONTROL), ""),
        (
            compared(None, Withheld.TREND),
            "the time per step changes during the measurement, and too few steps can be compared",
        ),
        (replace(compared(), steps=Interval(10.0, 1240.0)), "compared at the same number of steps: 11 to 1,240"),
        (
            compared(None, Withheld.FEW_ROUNDS, work=Work.NOT_CHECKED, pythons=("3.11", "3.7")),
            "Python 3.11 vs 3.7; work not checked; too few rounds (5 of 3) for a verdict",
        ),
    ],
)
def test_a_comparison_has_its_remarks(of, remarks):
    assert scenarios.make_remark(Results(run(), []), of) == remarks


# Times.


def times(asked, launches):
    return texts(made(asked, launches)[0]["Time per step"])


def test_headings_name_environment_mode_and_unit():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    headings, _ = times(run(only), rounds(only))
    assert headings == ["tf1.14 graph, ms", "tf1.14 eager, ms", "tf2.0 graph, ms", "tf2.0 eager, ms"]


def test_what_all_rows_share_is_told_once():
    only = {of: seconds for of, seconds in SECONDS.items() if of.axes["call"] == "fit"}
    assert "The same in all rows: call = fit." in made(run(only), rounds(only))[1]


def test_many_environments_have_a_line_each():
    names_ = [f"tf2.{minor}" for minor in range(5)]
    members = [cell("tf1.14"), *cells(names_)]
    known = [replace(ENVIRONMENTS[0], name=name) for name in ["tf1.14", *names_]]
    headings, lines = times(run(members, environments=known), [launch(member) for member in members])
    assert headings == ["environment", "graph, ms", "eager, ms"]
    assert [line[0] for line in lines] == ["tf1.14", *names_]
    assert lines[0][1].startswith("10.0")
    assert lines[0][2] == ""
    assert all(value.startswith("10.0") for value in lines[1][1:])


def test_a_number_tells_of_fewer_rounds_and_of_uneven_samples():
    launches = [launch(cell(), 0.01, number) for number in (1, 2, 3)]
    launches += [launch(cell(mode="eager"), [0.007] * 3 + [0.022] * 2, number) for number in (1, 2)]
    assert times(run(cells(["tf1.14"])), launches)[1] == [["10.0 ± 0.1", "13.0 n=2 †"]]


def test_a_number_tells_of_outliers_and_of_steps_that_were_not_counted():
    spread = [0.010, 0.0101, 0.0099, 0.010, 0.0102, 0.020]
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate(spread, 1)]
    launches += [
        launch(cell(mode="eager"), 0.01, number, fingerprint={"steps_called": 100, "steps_counted": 6})
        for number in range(1, 7)
    ]
    ((first, second),) = times(run(cells(["tf1.14"])), launches)[1]
    assert first.endswith(" ◊")
    assert second == "10.0 ± 0.1 ‡"


def test_marks_are_explained_with_the_numbers_that_have_them():
    launches = [launch(cell(), seconds, number) for number, seconds in enumerate([0.01] * 5 + [0.02], 1)]
    launches += [launch(cell("tf2.0"), [0.007] * 3 + [0.022] * 2, fingerprint={"steps_called": 9, "steps_counted": 8})]
    words = made(run(cells(modes=["graph"])), launches)[1]
    uneven, outliers, undone = words[-3:]
    assert uneven.startswith("† Uneven samples: the mean and the median")
    assert uneven.endswith("Affected launches: tf2.0 graph: 1 of 1.")
    assert outliers.startswith("◊ Outliers: ")
    assert outliers.endswith("Affected launches: tf1.14 graph: 1 of 6.")
    assert undone.endswith("one step: tf2.0 graph: ran 9 steps, but the framework counted 8.")


def test_a_step_that_changes_is_marked_with_its_curve():
    steady = rounds({cell("tf2.0"): 0.01})
    tables, words = made(run(cells(modes=["graph"])), [*growing(cell()), *steady])
    assert texts(tables["Time per step"])[1][0][0].endswith(" §")
    assert words[-1].startswith("§ Time per step depends on the number of steps before it. ")
    assert words[-1].endswith("tf1.14 graph: 10.5 ms at the 61st step, 29.5 ms at the 241st ▁▂▃▃▄▅▆▆▇█.")
    (line,) = texts(tables["Comparisons"])[1]
    assert line[-1].endswith("; the time per step changes during the measurement, and too few steps can be compared")
    uncounted = growing(cell(), resources={})
    assert "10.5 ms at first, 29.5 ms 180 steps later" in made(run([cell()]), uncounted)[1][-1]


def test_without_a_number_the_status_stands_and_where_there_is_no_cell_nothing():
    members = [cell(), cell(mode="eager"), cell(call="train_on_batch", mode="eager")]
    launches = [launch(cell()), broken(cell(mode="eager"), Status.OOM), launch(members[2])]
    assert [line[1:] for line in times(run(members), launches)[1]] == [["10.0", "oom"], ["", "10.0"]]


def test_rows_name_their_device_where_there_are_several():
    members = [cell(), cell(device=Device.GPU)]
    headings, lines = times(run(members), [launch(member) for member in members])
    assert headings[0] == "device"
    assert [line[0] for line in lines] == ["cpu", "gpu"]


@pytest.mark.parametrize(
    ("count", "sentence"),
    [(1, "no intervals, no verdict"), (5, "a 95 % confidence interval over 5 rounds.")],
)
def test_the_note_says_what_an_interval_is(count, sentence):
    words = made(run(), rounds(dict.fromkeys(cells(), 0.01), count=count))[1]
    assert any(sentence in told for told in words)


def test_what_ratios_are_is_said_in_the_first_section_alone():
    other = scenario("other", compare=COMPARE[:1])
    times_ = {**dict.fromkeys(cells(), 0.01), **{cell(e, of="other"): 0.01 for e in ("tf1.14", "tf2.0")}}
    found = scenarios.make_sections(Results(run(times_, scenarios=[scenario(), other]), rounds(times_)))
    told = [[b.words for b in entry.blocks if isinstance(b, Text) and "A ratio is" in b.words] for entry in found]
    assert [len(entry) for entry in told] == [1, 0]


# Other quantities.

OF = ("first call", "peak memory", "memory growth", "traces")


def quantities(**changes):
    """Each section's title with its table of comparisons, its table of values, and its paragraphs."""
    found = {}
    for section in scenarios.make_sections(Results(quantified_run(*OF), quantified(**changes))):
        tables = [texts(block) for block in section.blocks if isinstance(block, Table)]
        found[section.title] = [*tables, [block.words for block in section.blocks if isinstance(block, Text)]]
    return found


def test_each_quantity_has_a_section_with_its_own_words_and_units():
    found = quantities()
    step, *others = found
    assert others == [f"{step}: {of}" for of in ("first call time", "peak memory", "memory growth", "traces")]
    ratios = [found[title][0][0][1] for title in others]
    assert ratios == ["first call time ratio", "peak memory ratio", "difference, B per call", "traces ratio"]
    values = [found[title][1][0][0] for title in others]
    assert values == ["tf1.14, s", "tf1.14, MiB", "tf1.14, B per call", "tf1.14"]
    verdicts = [found[title][0][1][0][2:] for title in others]
    assert [verdict[0] for verdict in verdicts] == ["slower", "more", "more", "more"]


def test_a_count_that_never_varies_has_no_interval():
    (line,) = quantities()["One training step: traces"][1][1]
    assert line == ["3", "300"]


def test_memory_growth_is_told_in_bytes_and_as_a_difference():
    compared, values, words = quantities()["One training step: memory growth"]
    assert compared[1][0][1].startswith("+1,")
    assert any("32.0 KiB" in word for word in words)
    assert "Memory growth per call in B; ±" in " ".join(words)
    assert len(values[1]) == 1


def test_the_step_of_a_scenario_that_compares_other_quantities_alone_has_its_times():
    tables = quantities()["One training step"]
    assert len(tables) == 2
    assert tables[0][0] == ["tf1.14, ms", "tf2.0, ms"]


def test_of_two_rounds_there_are_means_alone():
    words = made(run(TIMES), rounds(SECONDS, count=2))[1]
    assert "Time per step in ms: means of 2 rounds, too few for intervals." in words
    _, lines = times(run(TIMES), rounds(SECONDS, count=2))
    assert not any("±" in text or "to" in text for line in lines for text in line[1:])
