"""The answer, in sentences."""

import json
import random
import re
from dataclasses import replace

import pytest

from harness.analysis.answers import Finding
from harness.analysis.looks import FIRST_LOOK
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Interval
from harness.analysis.verdicts import Deciding
from harness.model.launch import Sample
from harness.model.run import StandIn, Stop, StopReason
from harness.report import format
from harness.report.blocks import REPORT, Callout, Table, Text, walk_blocks
from harness.report.formats import render
from harness.report.sections import summary
from tests.factories import COMPARE, ENVIRONMENTS, cell, cells, launch, rounds, run, scenario
from tests.quantified import NEW, VALUES, quantified, quantified_run

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
BOTH = {**TIMES, **{cell(c.environment, call="train_on_batch", mode=c.axes["mode"]): 0.01 for c in TIMES}}

#: The entry that picks each release's default mode, alone.
PICK = COMPARE[2:]
WHERE = "(step; each release's default mode)."


def results(times=BOTH, launches=None, *, compare=PICK, **changes):
    changes.setdefault("scenarios", [scenario(compare=compare)])
    return Results(run(times, **changes), launches or rounds(times, spread=0.0))


def only(*arguments, **changes):
    """Return the one sentence of a run."""
    (sentence,) = summary.describe_answers(results(*arguments, **changes))
    return sentence


def prints(launches, odd):
    """Return the launches with fingerprints, another one where `odd` holds for the cell."""
    return [replace(entry, fingerprint={"parameters": 2 if odd(entry.cell) else 1}) for entry in launches]


def test_what_stands_in_for_what_is_said_before_anything_is_believed():
    told = results()
    taken = StandIn("tf2.0", "tf2.9", "A card", "it has no code", pins={"tensorflow": "2.9.0"})
    told.run = replace(told.run, plan=replace(told.run.plan, stand_ins=[taken]))
    (alert,) = [block for block in next(summary.make_sections(told)).blocks if isinstance(block, Callout)]
    assert alert.blocks[0].words == "tf2.0 replaces tf2.9, which the A card cannot run (it has no code)."
    assert alert.where == REPORT
    assert json.loads(render("json", told))["run"]["plan"]["stand_ins"][0]["environment"] == "tf2.0"


def called(seconds):
    """Return the sentence of a run with one row for each call, which takes so many times as long in tf2.0, eager."""
    names = list(seconds)
    times = dict.fromkeys(cells(calls=names), 0.01)
    times |= {cell("tf2.0", call=call, mode="eager"): 0.01 * factor for call, factor in seconds.items()}
    return only(times, scenarios=[scenario(axes={**scenario().axes, "call": names}, compare=PICK)])


@pytest.mark.parametrize(
    ("times", "text"),
    [
        (
            {"fit": 2.7, "predict": 2.4, "evaluate": 1.0},
            "TensorFlow 2.0.0 (eager) takes 2.40× (2.40 to 2.40) to 2.70× (2.70 to 2.70) as long as TensorFlow 1.14.0 "
            "(graph) with fit/predict, especially with fit; with evaluate it takes as long within 3 %",
        ),
        (
            {"fit": 2.0, "predict": 0.5},
            "TensorFlow 2.0.0 (eager) takes 2.00× (2.00 to 2.00) as long as TensorFlow 1.14.0 (graph) with fit; with "
            "predict it is 2.00× (2.00 to 2.00) as fast",
        ),
        (
            {"fit": 0.5, "predict": 0.8},
            "TensorFlow 2.0.0 (eager) is 1.25× (1.25 to 1.25) to 2.00× (2.00 to 2.00) as fast as TensorFlow 1.14.0 "
            "(graph) with fit and with predict, especially with fit",
        ),
        (
            {"fit": 1.0, "predict": 1.0, "evaluate": 1.0},
            "TensorFlow 2.0.0 (eager) takes as long as TensorFlow 1.14.0 (graph) within 3 % in all 3 rows",
        ),
    ],
)
def test_what_the_sentence_says(times, text):
    assert called(times) == f"{text} {WHERE}"


def test_one_row_is_told_with_its_interval_and_where_it_is():
    assert only(TIMES) == (
        "TensorFlow 2.0.0 (eager) takes 2.70× (2.70 to 2.70) as long as TensorFlow 1.14.0 (graph) "
        "(step, fit; each release's default mode)."
    )


@pytest.mark.parametrize(("count", "interval"), [(2, " (1.40 to 1.40)"), (1, "")])
def test_too_few_rounds_are_told_with_how_many_there_should_be(count, interval):
    near = {**TIMES, cell("tf2.0", mode="eager"): 0.014}
    assert only(near, rounds(near, count=count, spread=0.0)).startswith(
        f"TensorFlow 2.0.0 (eager) takes 1.40×{interval} as long as TensorFlow 1.14.0 (graph); "
        f"too few rounds ({count} of 3) for a verdict (step"
    )


def test_a_verdict_that_the_control_withholds_is_told_with_why():
    launches = rounds(TIMES, spread=0.0, controls={cell(): 0.011})
    told = only(TIMES, launches, controlled=True)
    assert "; no verdict, because two identical cells differed by more than the margin (step" in told


def test_what_is_unclear_is_no_clear_difference():
    wide = {**TIMES, cell("tf2.0", mode="eager"): 0.0104}
    assert only(wide, rounds(wide, spread=0.05)).startswith("No clear difference: TensorFlow 2.0.0 (eager) takes 1.0")


#: The comparison of which the ratio changes.
NAME = "train_on_batch: each release's default mode: tf2.0 vs tf1.14"


def unsettled(seconds, spread):
    """Return a run of two rows, of which one has a ratio that changes."""
    times = {**BOTH, cell("tf2.0", mode="eager"): seconds}
    launches = [replace(entry, seconds=30.0) for entry in rounds(times, spread=spread)]
    return Results(run(times, scenarios=[scenario(compare=PICK)]), launches)


def test_once_a_report_it_is_said_what_settles_the_unclear_comparisons_and_with_which_command():
    made = unsettled(0.0112, 0.03)
    told, command = summary.suggest_rounds(made)
    compared = [value.compared for row in made.tables[0].rows for value in row.values if value.compared]
    (settling,) = {entry.settling for entry in compared if entry.settling}
    total, cost = 5 + settling.rounds, sum(made.found.costs.values())
    assert told.words == (
        f"1 of 2 comparisons is unclear ({NAME}). With {total} rounds in total ({settling.rounds} more, "
        f"about {format.duration(settling.rounds * cost)}), the probability of a verdict is at least "
        "80 % for this comparison:"
    )
    assert command.text == f"harness matrix --resume results/{made.run.id} --rounds {total}"
    blocks = list(walk_blocks(next(summary.make_sections(made)).blocks))
    assert (blocks.count(told), blocks.count(command)) == (1, 1)


def test_of_several_unclear_comparisons_the_rounds_are_those_that_settle_half_of_the_likely_ones():
    told, _ = summary.suggest_rounds(unsettled(0.0103, 0.02))
    assert "2 of 2 comparisons are unclear. With 20 rounds in total (15 more, " in told.words
    assert told.words.endswith(", the probability of a verdict is at least 80 % for 1 of these comparisons:")


@pytest.mark.parametrize(
    ("seconds", "spread", "told"),
    [
        (
            0.0112,
            0.05,
            f"1 of 2 comparisons is unclear ({NAME}). Even with 200 rounds, it would get a verdict with a "
            "probability of 70 %.",
        ),
        (
            0.0101,
            0.08,
            "2 of 2 comparisons are unclear. Even with 200 rounds, each would get a verdict with a probability "
            "of 50 % to 70 %.",
        ),
    ],
)
def test_where_no_number_of_rounds_is_likely_to_settle_it_the_probability_of_200_is_said(seconds, spread, told):
    (only_,) = summary.suggest_rounds(unsettled(seconds, spread))
    assert only_.words == told


FIT, OTHER = "step cpu call=fit dtype=float32", "step cpu call=train_on_batch dtype=float32"


def ended(found, stops, **asked):
    """Return the results of the same launches if the groups ended so."""
    return Results(replace(found.run, stops=stops, plan=replace(found.run.plan, **asked)), found.launches)


def test_where_a_precision_ended_the_group_a_new_run_is_advised_because_this_one_gets_no_more_rounds():
    narrow = Stop(StopReason.PRECISION, FIRST_LOOK)
    stops = {FIT: narrow, OTHER: narrow}
    found = ended(unsettled(0.0112, 0.03), stops, precision=0.2, rounds=100)
    (told,) = summary.suggest_rounds(found)
    assert told.words == (
        f"1 of 2 comparisons is unclear ({NAME}). --resume adds no rounds for this comparison: start a new run with a "
        "smaller --precision."
    )
    assert summary.find_rounds_to_settle(found) is None
    assert summary.command_to_continue(found) == ""
    (told,) = summary.suggest_rounds(ended(found, stops, precision=None, claims=["tensorflow/tensorflow#1"]))
    assert told.words.endswith(": start a new run with harness matrix --claim ISSUE --precision 2%.")


def test_the_rounds_and_their_duration_are_those_of_the_groups_that_are_continued():
    both = unsettled(0.0103, 0.02)
    stops = {FIT: Stop(StopReason.ROUNDS, 5), OTHER: Stop(StopReason.PRECISION, 5)}
    found = ended(both, stops, precision=0.2, rounds=5)
    told, command = summary.suggest_rounds(found)
    total = summary.find_rounds_to_settle(found)
    seconds = (total - 5) * found.found.costs[FIT]
    assert f"With {total} rounds in total ({total - 5} more, about {format.duration(seconds)})" in told.words
    assert told.words.endswith(" for 1 of these comparisons:")
    assert command.text.endswith(f" --rounds {total}")


def test_no_fewer_rounds_are_suggested_than_a_group_has():
    times = {of: seconds for of, seconds in BOTH.items() if of.axes["call"] != "fit"}
    unclear = {of: 0.0108 if of == cell("tf2.0", mode="eager") else 0.01 for of in TIMES}
    launches = [*rounds(times, count=50, spread=0.002), *rounds(unclear, count=5, spread=0.03)]
    found = Results(run(BOTH, scenarios=[scenario(compare=PICK)]), launches)
    told, command = summary.suggest_rounds(found)
    assert "With 50 rounds in total (45 more" in told.words
    assert command.text.endswith(" --rounds 50")


def test_where_all_is_clear_nothing_is_said_of_what_settles_it():
    assert list(summary.suggest_rounds(results())) == []


def test_different_work_is_not_compared():
    every = prints(rounds(BOTH), lambda of: of.environment == "tf2.0")
    assert only(BOTH, every) == (
        "TensorFlow 2.0.0 (eager) and TensorFlow 1.14.0 (graph) aren't known to do the same work with fit and with "
        f"train_on_batch: their times can't be compared {WHERE}"
    )
    one = prints(rounds(BOTH, spread=0.0), lambda of: of == cell("tf2.0", call="fit", mode="eager"))
    assert "within 3 % with train_on_batch; different work with fit" in only(BOTH, one)


def test_rows_are_counted_where_names_would_be_too_many():
    told = called({f"call{index}": 2.0 if index < 4 else 1.0 for index in range(8)})
    assert " in 4 of 8 rows; in 4 of 8 rows it takes as long" in told


def test_along_an_axis_the_sentence_is_about_the_other_value():
    times = {of: seconds for of, seconds in TIMES.items() if of.environment == "tf1.14"}
    told = only(times, compare=COMPARE)
    assert told.startswith("eager takes 2.00× (2.00 to 2.00) as long as graph (")


def test_a_verdict_that_another_interval_decides_has_both_intervals():
    found = results({of: seconds for of, seconds in TIMES.items() if of.environment == "tf1.14"}, compare=COMPARE)
    (answer,) = found.answers
    (finding,) = answer.findings
    # graph is compared with eager, and the sentence is about eager
    compared = replace(finding.compared, deciding=Deciding(Interval(0.4, 0.8), 0.99))
    told = summary.describe_answer(found.run, replace(answer, findings=[replace(finding, compared=compared)]))
    assert told.startswith(
        "eager takes 2.00× (2.00 to 2.00; decided by its 99 % interval: 1.25 to 2.50) as long as graph ("
    )
    found.answers = [replace(answer, findings=[replace(finding, compared=compared)])]
    table, under = [block for block in next(summary.make_sections(found)).blocks if isinstance(block, Table | Text)][
        1:3
    ]
    assert table.lines[0].entries[0].text == "eager"
    assert under.words == (
        "Verdicts that are decided by a narrower interval than the one in the table: eager: 1.25 to 2.50."
    )


def test_pythons_are_told_where_they_differ():
    newer = [
        replace(environment, python="3.11") if environment.name == "tf2.0" else environment
        for environment in ENVIRONMENTS[:2]
    ]
    told = only(TIMES, environments=newer)
    assert "TensorFlow 2.0.0 (eager, Python 3.11)" in told
    assert "TensorFlow 1.14.0 (graph, Python 3.7)" in told


@pytest.mark.parametrize(
    ("changes", "pins", "subject", "base"),
    [
        ({"tensorflow": "1.15.5"}, {}, "TensorFlow 1.15.5", "TensorFlow 1.14.0"),
        ({"keras": "2.3.1"}, {}, "TensorFlow 1.14.0 + Keras 2.3.1", "TensorFlow 1.14.0 + Keras 2.2.5"),
        ({}, {"numpy": "1.21.6"}, "tf2.0 (NumPy 1.21.6 instead of 1.17.4)", "tf1.14"),
        ({"python": "3.8"}, {}, "tf2.0 (Python 3.8)", "tf1.14 (Python 3.7)"),
        (
            {"base": "tf1.14", "asked": "tf1.14+numpy==1.21.6"},
            {"numpy": "1.21.6", "six": "1.16.0"},
            "tf1.14 with NumPy 1.21.6 instead of 1.17.4 and six 1.16.0 added",
            "tf1.14",
        ),
        (
            {"base": "tf2.1", "asked": "tf2.1+numpy==1.21.6", "tensorflow": "2.1.0"},
            {"numpy": "1.21.6"},
            "tf2.1 with numpy==1.21.6",
            "tf1.14",
        ),
    ],
)
def test_environments_are_called_by_what_differs(changes, pins, subject, base):
    known = [ENVIRONMENTS[0], replace(ENVIRONMENTS[0], name="tf2.0", **changes)]
    old = {"tensorflow": "1.14.0", "numpy": "1.17.4"}
    times = {of: seconds for of, seconds in TIMES.items() if of.axes["mode"] == "graph"}
    found = results(times, environments=known, pins={"tf1.14": old, "tf2.0": {**old, **pins}})
    assert summary.describe_answers(found)[0].startswith(f"{subject} takes 1.10× (1.10 to 1.10) as long as {base} (")


def test_every_comparison_of_the_header_is_answered_the_decided_ones_first():
    times = {**TIMES, cell("tf2.0"): 0.0102}
    found = results(times, rounds(times, spread=0.02), compare=COMPARE)
    told = [(answer.comparison.name, answer.is_decided) for answer in found.answers]
    assert [name for name, decided in told if decided] == [
        "TF 2 against TF 1",
        "graph against eager",
        "graph against eager",
        "each release's default mode",
    ]
    assert [decided for _, decided in told] == [True] * 4 + [False]


def many(names, seconds):
    axes = {"call": ["fit"], "dtype": ["float32"], "mode": names}
    members = [cell(mode=name) for name in names]
    entry = COMPARE[1].__class__("first", along="mode", plus="v0")
    return members, scenario(axes=axes, compare=[entry]), dict(zip(members, seconds, strict=True))


def test_at_most_three_answers_are_shown_the_largest_first_and_the_others_are_counted():
    _, of, times = many([f"v{index}" for index in range(6)], [0.01 * (index + 1) for index in range(6)])
    first, rest = summary.make_sections(results(times, rounds(times), scenarios=[of]))
    assert first.blocks[0].words[0].text.startswith("v5")
    others, more, *_ = rest.blocks
    assert [words.split()[0] for words in others.items] == ["v4", "v3"]
    assert more.words == "2 more comparisons are in the tables."
    (table,) = [block for block in first.blocks if isinstance(block, Table)]
    assert [line.entries[0].text.split()[0] for line in table.lines] == ["v5", "v4", "v3", "v2", "v1"]


def test_of_more_than_ten_comparisons_the_first_table_has_those_that_differ_and_counts_the_others():
    _, of, times = many([f"v{index}" for index in range(13)], [0.01 * max(1, index - 6) for index in range(13)])
    first, *_ = summary.make_sections(results(times, rounds(times, spread=0.0), scenarios=[of]))
    table, counts = [block for block in first.blocks if isinstance(block, Table | Text)][1:3]
    assert [line.entries[0].text.split()[0] for line in table.lines] == ["v12", "v11", "v10", "v9", "v8"]
    assert counts.words == "Comparisons that are not in this table: 7 same."


@pytest.mark.parametrize(
    ("environments", "calls", "first_column"),
    [
        (["tf1.14", "tf2.0"], ["fit"], ["comparison", "tf2.0 vs tf1.14"]),
        (["tf1.14", "tf2.0"], ["fit", "predict"], ["tf2.0 vs tf1.14", "fit", "predict"]),
        (["tf1.14", "tf2.0", "tf2.1"], ["fit"], ["environment vs tf1.14", "tf2.0", "tf2.1"]),
    ],
)
def test_environments_are_compared_under_their_own_names(environments, calls, first_column):
    members = cells(environments, calls=calls, modes=["graph"])
    axes = {**scenario().axes, "call": calls}
    found = results(dict.fromkeys(members, 0.01), scenarios=[scenario(axes=axes, compare=COMPARE)])
    (table,) = [block for block in next(summary.make_sections(found)).blocks if isinstance(block, Table)]
    assert [table.heads[0].text, *(line.entries[0].text for line in table.lines)] == first_column


def test_a_number_of_different_work_does_not_bring_an_answer_to_the_top():
    members, of, times = many([f"v{index}" for index in range(5)], [0.05, 0.04, 0.03, 0.02, 0.001])
    launches = [
        launch(member, times[member], number, fingerprint={"parameters": 2 if member.axes["mode"] == "v4" else 1})
        for number in range(1, 6)
        for member in members
    ]
    told = summary.describe_answers(results(times, launches, scenarios=[of]))
    assert [entry.split()[0] for entry in told] == ["v3", "v2", "v1"]


def test_each_scenario_is_answered_before_one_is_answered_twice():
    names = [f"v{index}" for index in range(4)]
    axes = {"call": ["fit"], "dtype": ["float32"], "mode": names}
    entry = COMPARE[1].__class__("first", along="mode", plus="v0")
    far = {cell(mode=name): 0.01 * 10**index for index, name in enumerate(names)}
    near = {cell(of="other", mode=name): 0.01 * (1 + index / 10) for index, name in enumerate(names)}
    both = [scenario(of, axes=axes, compare=[entry]) for of in ("step", "other")]
    told = summary.describe_answers(results({**far, **near}, rounds({**far, **near}), scenarios=both))
    assert [entry.split()[0] for entry in told] == ["v3", "v3", "v2"]
    assert ["(step," in entry for entry in told] == [True, False, True]


def test_the_title_names_the_scenario_and_the_environments():
    assert summary.make_title(results()) == "One training step: TensorFlow 2.0.0 vs 1.14.0"
    known = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}") for minor in range(7)]
    assert summary.make_title(Results(run([], environments=known), [])) == "0 scenarios: 7 environments, tf9.0 to tf9.6"


def test_without_a_pair_nothing_is_compared_and_nothing_is_said_of_comparing():
    alone = Results(run([cell()]), rounds({cell(): 0.01}))
    sentence, times, small = next(summary.make_sections(alone)).blocks
    assert sentence.words[0].text == "Nothing is compared, because there is only one cell."
    assert len(times.lines) == 1
    assert times.where == REPORT
    assert "A/A control" not in small.words
    assert summary.explain_no_answer(Results(run(), [])) == "No cell has a result."


def test_cells_that_could_be_compared_say_how_to_ask_for_it():
    members = cells()[:2]
    alone = Results(run(members, scenarios=[scenario(compare=[])]), rounds(dict.fromkeys(members, 0.01)))
    assert summary.explain_no_answer(alone) == (
        "Nothing is compared: 2 of 2 cells have a result, but no two of them can be compared. To compare the "
        "values of an axis, name it in the scenario's header: [[tool.harness.compare]]."
    )


def test_what_must_be_known_to_believe_it_stands_beside_it():
    told = summary.describe_conditions(results())
    assert told.startswith("Measured in 5 rounds of fresh processes, pinned to 1 core (CPU 0), on Some CPU.")
    assert "Differences below 3 % aren't reported." in told
    assert "Interference is unknown" in told


@pytest.mark.parametrize("rules", [1, 5])
def test_a_run_of_older_rules_says_so(rules):
    assert "earlier version of harness" not in summary.describe_conditions(results())
    assert summary.describe_conditions(results(rules=rules)).endswith(
        "An earlier version of harness made this run; the verdicts follow the current rules."
    )


def controlled(second, spread, **changes):
    """Return what a run's control shows whose second launches take so many seconds, and its first 10 ms."""
    times = dict(zip(cells(modes=["graph"]), [0.01, 0.02], strict=True))
    launches = rounds(times, spread=spread, controls={cell(): second}, **changes)
    return summary.describe_control(Results(run(times, controlled=True), launches))


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (controlled(0.01, 0.001), ": no difference is shown. A bias of "),
        (
            controlled(0.0101, 0.001),
            ": more than noise, but not certainly more than the margin of 3 %. A bias of ",
        ),
        (controlled(0.01, 0.08), ": too few rounds to check for a bias."),
        (
            controlled(0.011, 0.001),
            "That is more than the margin of 3 %, so no verdicts are given. Measure on a machine "
            "with less interference (see harness doctor), and with more rounds.",
        ),
        (controlled(0.01, 0.0, count=1), "differed by 0.0 %: too few rounds to check for a bias."),
        (summary.describe_control(results()), "No A/A control: no cell was launched twice in a round"),
    ],
)
def test_what_the_control_shows(told, sentence):
    assert sentence in told


def test_which_launch_of_the_control_took_longer_is_not_told():
    assert controlled(0.009, 0.0).startswith("A/A control: two identical cells differed by 11 ± ")


@pytest.mark.parametrize(
    ("quantity", "begins"),
    [
        (
            "first call",
            "TensorFlow 2.0.0 takes 4.00× (3.92 to 4.07) as long as TensorFlow 1.14.0 in the phase first call (",
        ),
        (
            "peak memory",
            "TensorFlow 2.0.0 takes 2.00× (2.00 to 2.00) as much memory as TensorFlow 1.14.0 at its peak (",
        ),
        ("traces", "TensorFlow 2.0.0 has 100× (100 to 100) as many traces as TensorFlow 1.14.0 ("),
        (
            "memory growth",
            "TensorFlow 2.0.0 keeps 1,190 B (1,160 to 1,220) more with each call than TensorFlow 1.14.0 (",
        ),
    ],
)
def test_other_quantities_have_words_of_their_own(quantity, begins):
    (sentence,) = summary.describe_answers(Results(quantified_run(quantity), quantified()))
    assert sentence.startswith(begins)


@pytest.mark.parametrize(
    ("quantity", "told"),
    [
        ("first call", "TensorFlow 2.0.0 takes as long as TensorFlow 1.14.0 in the phase first call within 3 % (step,"),
        ("peak memory", "takes as much memory as TensorFlow 1.14.0 at its peak within 3 %"),
        ("traces", "has as many traces as TensorFlow 1.14.0 within 3 %"),
        (
            "memory growth",
            "keeps as much memory with each call as TensorFlow 1.14.0 within 32.0 KiB over the later half",
        ),
    ],
)
def test_what_is_the_same_of_other_quantities(quantity, told):
    alike = dict.fromkeys(VALUES, VALUES["tf2.0"])
    (sentence,) = summary.describe_answers(Results(quantified_run(quantity), quantified(values=alike, spread=0.002)))
    assert told in sentence


def single_steps(slow=1.0):
    """Return launches of single steps, of which one in fifty takes longer in tf2.0."""
    draw = random.Random(2)
    return [
        replace(
            entry,
            samples=[
                Sample(0.01 * draw.gauss(1.0, 0.01) * (slow if at % 50 == 0 and entry.cell == NEW else 1.0), 1)
                for at in range(200)
            ],
        )
        for entry in quantified()
    ]


def test_percentiles_have_words_of_their_own():
    results = Results(quantified_run("p50", "p99"), single_steps(4.0))
    median, slowest = summary.describe_answers(results)
    assert "takes as long as TensorFlow 1.14.0 at p50 within 3 %" in median
    assert slowest.startswith("TensorFlow 2.0.0 takes 3.")
    assert ") as long as TensorFlow 1.14.0 at p99" in slowest
    markdown = render("md", results)
    assert "p99 time ratio" in markdown
    # one table for both quantities names the two sides once
    assert re.search(r"^\| tf2.0 vs tf1.14 +\| +ratio \|", markdown, re.MULTILINE)
    assert "p99: 99 % of the single steps of a launch took at most this long." in markdown


def test_the_report_says_why_a_cell_has_no_percentile():
    assert (
        "No p99 for tf1.14; tf2.0: Percentiles need single steps, but a sample of this launch has 10 steps."
        in render("md", Results(quantified_run("p99"), quantified()))
    )
    few = [replace(entry, samples=[Sample(0.01, 1)] * 40) for entry in quantified()]
    markdown = render("md", Results(quantified_run("p95", "p99"), few))
    assert "No p99 for tf1.14; tf2.0: p99 needs at least 100 steps, but this launch has 40. Measure longer" in markdown
    assert "No p95" not in markdown


def test_a_number_that_a_script_prints_is_called_by_its_name():
    launches = [
        replace(entry, observations={"printed: loss": 2.0 if entry.cell.environment == "tf2.0" else 1.0})
        for entry in quantified()
    ]
    (sentence,) = summary.describe_answers(Results(quantified_run("printed: loss"), launches))
    assert sentence.startswith("TensorFlow 2.0.0 prints 2.00× (2.00 to 2.00) as much as TensorFlow 1.14.0 for loss (")


def test_what_keeps_less_is_told_with_the_same_sign_in_its_interval():
    turned = dict(zip(VALUES, reversed(VALUES.values()), strict=True))
    (sentence,) = summary.describe_answers(Results(quantified_run("memory growth"), quantified(values=turned)))
    assert "less with each call than" in sentence
    assert "-" not in sentence.partition("(")[2].partition(")")[0]


def test_growth_of_which_rows_differ_in_sign_is_told_from_less_to_more():
    def finding(value):
        return Finding(None, Difference(value, 5), None, None)

    told = [
        summary._format_byte_range([finding(value) for value in values])
        for values in ((-5.0, 120.0), (-7.0,), (3.0, 40.0))
    ]
    assert told == ["5.00 B less to 120 B more", "7.00 B less", "3.00 B to 40.0 B more"]


def test_a_scenario_that_times_no_step_is_answered_by_its_phases():
    launches = [replace(entry, samples=(), observations={"seen": 1}) for entry in quantified()]
    results = Results(quantified_run("first call"), launches)
    told = {name: render(name, results) for name in ("md", "html", "json", "junit")}["md"]
    assert "Nothing was timed" not in told
    assert "A/A control: two identical cells differed by" in told


def test_what_ended_the_run_early_is_in_the_first_block_with_one_command():
    def ended_by_its_budget(found):
        stops = {group.name: Stop(StopReason.BUDGET, 5) for group in found.run.plan.groups}
        plan = replace(found.run.plan, budget_seconds=60.0, rounds=100)
        return Results(replace(found.run, stops=stops, plan=plan), found.launches)

    # more rounds are of no use to a run that is settled
    settled = ended_by_its_budget(results())
    (told,) = summary.describe_early_end(settled)
    assert told in list(walk_blocks(next(summary.make_sections(settled)).blocks))
    sentence = "The budget of 60 s ended the run after 5 rounds (planned: at most 100 rounds)."
    assert told.words == sentence
    # one that somebody interrupted is continued whatever it found
    stops = {name: Stop(StopReason.INTERRUPTED, 5) for name in settled.run.stops}
    _, command = summary.describe_early_end(Results(replace(settled.run, stops=stops), settled.launches))
    assert command.text == f"harness matrix --resume results/{settled.run.id}"
    # what settles the unclear comparisons has a command of its own
    unclear = ended_by_its_budget(unsettled(0.0112, 0.03))
    (told,) = summary.describe_early_end(unclear)
    assert told.words == sentence
    _, command = summary.suggest_rounds(unclear)
    assert command.text.endswith(f"--rounds {summary.find_rounds_to_settle(unclear)}")
