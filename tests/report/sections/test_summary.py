"""The answer, in sentences."""

import random
import re
from dataclasses import replace

from harness.analysis.answers import Finding
from harness.analysis.results import Results
from harness.analysis.statistics import Difference, Interval
from harness.analysis.verdicts import Deciding
from harness.model.launch import Sample
from harness.model.scenario import Comparison
from harness.report.blocks import REPORT, Table, Text
from harness.report.formats import render
from harness.report.sections import main_results, summary
from tests.factories import COMPARE, ENVIRONMENTS, cell, cells, rounds, run, scenario
from tests.quantified import NEW, VALUES, quantified, quantified_run

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
BOTH = {**TIMES, **{cell(c.environment, call="train_on_batch", mode=c.axes["mode"]): 0.01 for c in TIMES}}

#: The entry that picks each release's default mode, alone.
PICK = COMPARE[2:]


def results(times=BOTH, launches=None, *, compare=PICK, **changes):
    changes.setdefault("scenarios", [scenario(compare=compare)])
    return Results(run(times, **changes), launches or rounds(times, spread=0.0))


def describe_all(measured):
    return [main_results.describe_answer(measured.run, answer) for answer in measured.answers]


def describe(*arguments, **changes):
    (sentence,) = describe_all(results(*arguments, **changes))
    return sentence


def add_fingerprints(launches, is_other):
    """Return the launches with fingerprints, another one where `is_other` holds for the cell."""
    return [replace(launch, fingerprint={"parameters": 2 if is_other(launch.cell) else 1}) for launch in launches]


def find_blocks(measured, *kinds):
    return [block for block in next(summary.make_sections(measured)).blocks if isinstance(block, kinds)]


def describe_calls(**factors):
    """Return the sentence of a run with one row for each call, which takes so many times as long in tf2.0, eager."""
    calls = list(factors)
    times = dict.fromkeys(cells(calls=calls), 0.01)
    times |= {cell("tf2.0", call=call, mode="eager"): 0.01 * factor for call, factor in factors.items()}
    return describe(times, scenarios=[scenario(axes={**scenario().axes, "call": calls}, compare=PICK)])


def describe_environments(changes, pins):
    environments = [ENVIRONMENTS[0], replace(ENVIRONMENTS[0], name="tf2.0", **changes)]
    old = {"tensorflow": "1.14.0", "numpy": "1.17.4"}
    times = {cell: seconds for cell, seconds in TIMES.items() if cell.axes["mode"] == "graph"}
    measured = results(times, environments=environments, pins={"tf1.14": old, "tf2.0": {**old, **pins}})
    return describe_all(measured)[0]


def test_sentences_about_rows(snapshot):
    unlike = add_fingerprints(rounds(BOTH), lambda member: member.environment == "tf2.0")
    one_unlike = add_fingerprints(rounds(BOTH, spread=0.0), lambda member: member == cell("tf2.0", mode="eager"))
    near, wide = ({**TIMES, cell("tf2.0", mode="eager"): seconds} for seconds in (0.014, 0.0104))
    newer = [ENVIRONMENTS[0], replace(ENVIRONMENTS[1], python="3.11")]
    old = {member: seconds for member, seconds in TIMES.items() if member.environment == "tf1.14"}
    override = {"base": "tf1.14", "asked": "tf1.14+numpy==1.21.6"}
    of_other = {"base": "tf2.1", "asked": "tf2.1+numpy==1.21.6", "tensorflow": "2.1.0"}
    assert {
        "one row": describe(TIMES),
        "slower and the same": describe_calls(fit=2.7, predict=2.4, evaluate=1.0),
        "slower and faster": describe_calls(fit=2.0, predict=0.5),
        "all faster": describe_calls(fit=0.5, predict=0.8),
        "all the same": describe_calls(fit=1.0, predict=1.0, evaluate=1.0),
        "more rows than can be named": describe_calls(**{f"call{at}": 2.0 if at < 4 else 1.0 for at in range(8)}),
        "different work": describe(BOTH, unlike),
        "different work in one row": describe(BOTH, one_unlike),
        "two rounds": describe(near, rounds(near, count=2, spread=0.0)),
        "one round": describe(near, rounds(near, count=1, spread=0.0)),
        "a biased control": describe(TIMES, rounds(TIMES, spread=0.0, controls={cell(): 0.011}), controlled=True),
        "unclear": describe(wide, rounds(wide, spread=0.05)),
        "along an axis": describe(old, compare=COMPARE),
        "a copy of an environment": describe(
            TIMES, environments=[*ENVIRONMENTS[:2], replace(ENVIRONMENTS[1], name="b")]
        ),
        "Pythons differ": describe(TIMES, environments=newer),
        "TensorFlow differs": describe_environments({"tensorflow": "1.15.5"}, {}),
        "Keras differs": describe_environments({"keras": "2.3.1"}, {}),
        "NumPy differs": describe_environments({}, {"numpy": "1.21.6"}),
        "only Python differs": describe_environments({"python": "3.8"}, {}),
        "an override": describe_environments(override, {"numpy": "1.21.6", "six": "1.16.0"}),
        "an override of another release": describe_environments(of_other, {"numpy": "1.21.6"}),
    } == snapshot


def test_a_verdict_that_another_interval_decides_has_both_intervals(snapshot):
    measured = results(
        {member: seconds for member, seconds in TIMES.items() if member.environment == "tf1.14"}, compare=COMPARE
    )
    (answer,) = measured.answers
    (finding,) = answer.findings
    # graph is compared with eager, and the sentence is about eager
    compared = replace(finding.compared, deciding=Deciding(Interval(0.4, 0.8), 0.99))
    measured.answers = [replace(answer, findings=[replace(finding, compared=compared)])]
    table, note = find_blocks(measured, Table, Text)[2:4]
    assert table.lines[0].entries[0].text == "eager"
    assert [main_results.describe_answer(measured.run, measured.answers[0]), note.words] == snapshot


def make_variants(names, seconds):
    """Return a scenario whose variants are compared with the first, and the seconds of its cells."""
    axes = {"call": ["fit"], "dtype": ["float32"], "mode": names}
    compare = [Comparison("first", along="mode", plus="v0")]
    members = [cell(mode=name) for name in names]
    return scenario(axes=axes, compare=compare), dict(zip(members, seconds, strict=True))


def test_the_largest_difference_is_the_sentence_and_the_others_are_in_the_table():
    variants, times = make_variants([f"v{at}" for at in range(6)], [0.01 * (at + 1) for at in range(6)])
    first, *_ = summary.make_sections(results(times, rounds(times), scenarios=[variants]))
    assert first.blocks[0].words[0].text.startswith("v5")
    (table,) = [block for block in first.blocks if isinstance(block, Table)]
    assert [line.entries[0].text.split()[0] for line in table.lines] == ["v5", "v4", "v3", "v2", "v1"]


def test_of_more_than_ten_comparisons_the_first_table_has_those_that_differ_and_counts_the_others():
    def make_table(seconds):
        variants, times = make_variants([f"v{at}" for at in range(len(seconds))], seconds)
        table, text = find_blocks(results(times, rounds(times, spread=0.0), scenarios=[variants]), Table, Text)[2:4]
        return [line.entries[0].text.split()[0] for line in table.lines], text.words

    names, counts = make_table([0.01 * max(1, at - 6) for at in range(13)])
    assert names == ["v12", "v11", "v10", "v9", "v8"]
    assert counts.endswith(": 7 same.")
    assert len(make_table([0.01] * 10 + [0.02])[0]) == 10


def test_each_scenario_is_answered_once_first_and_different_work_last():
    variants, times = make_variants([f"v{at}" for at in range(5)], [0.05, 0.04, 0.03, 0.02, 0.001])
    launches = add_fingerprints(rounds(times, spread=0.0), lambda member: member.axes["mode"] == "v4")
    answers = describe_all(results(times, launches, scenarios=[variants]))
    assert [answer.split()[0] for answer in answers] == ["v3", "v2", "v1", "v4"]
    names = [f"v{at}" for at in range(4)]
    variants, far = make_variants(names, [0.01 * 10**at for at in range(4)])
    near = {cell(of="other", mode=name): 0.01 * (1 + at / 10) for at, name in enumerate(names)}
    both = [variants, scenario("other", axes=variants.axes, compare=variants.compare)]
    answers = describe_all(results({**far, **near}, rounds({**far, **near}), scenarios=both))
    assert [answer.split()[0] for answer in answers[:3]] == ["v3", "v3", "v2"]
    assert ["(step," in answer for answer in answers[:3]] == [True, False, True]


def test_titles_and_what_is_said_where_nothing_is_compared(snapshot):
    many = [replace(ENVIRONMENTS[0], name=f"tf9.{minor}") for minor in range(7)]
    pair = cells()[:2]
    one_cell = Results(run([cell()]), rounds({cell(): 0.01}))
    uncompared = Results(run(pair, scenarios=[scenario(compare=[])]), rounds(dict.fromkeys(pair, 0.01)))
    apart = [cell(), cell("tf2.0", mode="eager")]
    lacking = Results(run(cells()), rounds(dict.fromkeys(apart, 0.01)))
    assert {
        "two environments": summary.make_title(results()),
        "no scenario, many environments": summary.make_title(Results(run([], environments=many), [])),
        "one cell": summary.explain_no_answer(one_cell),
        "no result": summary.explain_no_answer(Results(run(), [])),
        "cells that could be compared": summary.explain_no_answer(uncompared),
        "cells without a partner": summary.explain_no_answer(lacking),
    } == snapshot
    _, quality, times = next(summary.make_sections(one_cell)).blocks
    assert (len(times.lines), times.where) == (1, REPORT)
    assert "A/A control" not in quality.words[1]


def make_single_steps(slow=1.0):
    """Return launches of single steps, of which one in fifty takes longer in tf2.0."""
    draw = random.Random(2)
    return [
        replace(
            launch,
            samples=[
                Sample(0.01 * draw.gauss(1.0, 0.01) * (slow if at % 50 == 0 and launch.cell == NEW else 1.0), 1)
                for at in range(200)
            ],
        )
        for launch in quantified()
    ]


def test_sentences_about_other_quantities(snapshot):
    alike = dict.fromkeys(VALUES, VALUES["tf2.0"])
    turned = dict(zip(VALUES, reversed(VALUES.values()), strict=True))
    printed = [
        replace(launch, observations={"printed: loss": 2.0 if launch.cell == NEW else 1.0}) for launch in quantified()
    ]
    sentences = {}
    for quantity in ("first call", "peak memory", "traces", "memory growth"):
        runs = {
            "differs": quantified(),
            "alike": quantified(values=alike, spread=0.002),
            "less": quantified(values=turned),
        }
        for name, launches in runs.items():
            (sentences[f"{quantity}: {name}"],) = describe_all(Results(quantified_run(quantity), launches))
    (sentences["printed"],) = describe_all(Results(quantified_run("printed: loss"), printed))
    percentiles = Results(quantified_run("p50", "p99"), make_single_steps(4.0))
    sentences["p50"], sentences["p99"] = describe_all(percentiles)
    assert sentences == snapshot
    markdown = render("md", percentiles)
    assert "p99 time ratio" in markdown
    # one table for both quantities names the two sides once
    assert re.search(r"^\| tf2.0 vs tf1.14 +\| +tf1.14 \| +tf2.0 \| +ratio \|", markdown, re.MULTILINE)


def test_the_report_says_why_a_cell_has_no_percentile(snapshot):
    few = [replace(launch, samples=[Sample(0.01, 1)] * 40) for launch in quantified()]
    text = render("md", Results(quantified_run("p95", "p99"), few))
    assert [line for line in text.splitlines() if line.startswith("No p")] == snapshot


def test_growth_of_which_rows_differ_in_sign_reads_from_less_to_more():
    findings = [Finding(None, Difference(value, 5), None, None) for value in (-5.0, 120.0)]
    assert main_results._format_byte_range(findings, False) == "5.00 B less to 120 B more"
    assert main_results._format_byte_range(
        [replace(findings[0], ratio=Difference(0.0, 5)), findings[1]], False
    ).startswith("0.00 B to")
