"""The answers as the parts of sentences."""

from dataclasses import replace

import pytest

from harness.report.document import build
from tests.factories import COMPARE, ENVIRONMENTS, cell, cells, launch, rounds, run, scenario

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
BOTH = {**TIMES, **{cell(c.environment, call="train_on_batch", mode=c.axes["mode"]): 0.01 for c in TIMES}}


def prints(launches, odd):
    """The launches with fingerprints, another one where `odd` holds for the cell."""
    return [replace(each, fingerprint={"parameters": 2 if odd(each.cell) else 1}) for each in launches]


def test_one_rows_answer_has_its_interval_and_its_verdict():
    (sentence,) = build(run(), rounds(TIMES)).sentences
    assert (sentence.subject, sentence.subject_has) == ("TensorFlow 2.0.0 + Keras 2.3.1", ["eager"])
    assert (sentence.base, sentence.base_has) == ("TensorFlow 1.14.0 + Keras 2.2.5", ["graph"])
    assert sentence.where == "step, fit"
    assert float(sentence.low) == pytest.approx(2.7, rel=0.03)
    assert " to " in sentence.interval
    assert list(sentence.verdicts.verdicts) == [("slower", 1)]
    assert sentence.pythons is None


def test_many_rows_answer_names_its_ends_and_counts_its_verdicts():
    (sentence,) = build(run(BOTH), rounds(BOTH, spread=0.001)).sentences
    assert (sentence.low_at, sentence.high_at, sentence.rows) == ("train_on_batch", "fit", 2)
    assert list(sentence.verdicts.verdicts) == [("slower", 1), ("same", 1)]


def test_along_an_axis_the_verdict_is_about_the_other_value():
    only = {of: seconds for of, seconds in TIMES.items() if of.environment == "tf1.14"}
    (sentence,) = build(run(only), rounds(only, spread=0.001)).sentences
    assert (sentence.subject, sentence.base) == ("eager", "graph")
    assert list(sentence.verdicts.verdicts) == [("slower", 1)]


def test_under_four_rounds_there_is_no_verdict():
    (sentence,) = build(run(), rounds(TIMES, count=3)).sentences
    assert (list(sentence.verdicts.verdicts), sentence.verdicts.none) == ([], 1)


def test_different_work_is_not_in_the_range():
    launches = prints(rounds(BOTH, spread=0.001), lambda of: of == cell("tf2.0", call="fit", mode="eager"))
    (sentence,) = build(run(BOTH), launches).sentences
    assert (sentence.rows, sentence.numbers) == (2, 1)
    assert (sentence.low, sentence.low_at) == ("1.00", "train_on_batch")
    assert list(sentence.verdicts.verdicts) == [("same", 1), ("different work", 1)]


def test_with_different_work_alone_there_is_no_number():
    (sentence,) = build(run(), prints(rounds(TIMES), lambda of: of.environment == "tf2.0")).sentences
    assert (sentence.rows, sentence.numbers, sentence.low, sentence.high) == (1, 0, "", "")


def test_pythons_are_told_where_they_differ():
    newer = [replace(each, python="3.11") if each.name == "tf2.0" else each for each in ENVIRONMENTS[:2]]
    (sentence,) = build(run(environments=newer), rounds(TIMES)).sentences
    assert sentence.pythons == ("3.11", "3.7")


def test_at_most_three_answers_are_shown_those_furthest_from_as_long():
    names = [f"v{index}" for index in range(6)]
    axes = {"call": ["fit"], "dtype": ["float32"], "mode": names}
    members = [cell(mode=name) for name in names]
    entry = COMPARE[1].__class__("first", along="mode", plus="v0")
    document = build(
        run(members, scenarios=[scenario(axes=axes, compare=[entry])]),
        rounds({member: 0.01 * (index + 1) for index, member in enumerate(members)}),
    )
    assert [sentence.subject for sentence in document.sentences] == ["v3", "v4", "v5"]
    assert document.more_answers == 2


def test_a_number_of_different_work_does_not_bring_an_answer_to_the_top():
    names = [f"v{index}" for index in range(5)]
    axes = {"call": ["fit"], "dtype": ["float32"], "mode": names}
    members = [cell(mode=name) for name in names]
    entry = COMPARE[1].__class__("first", along="mode", plus="v0")
    launches = [
        launch(of, 0.01 * (5 - index), number, fingerprint={"parameters": 2 if of.axes["mode"] == "v4" else 1})
        for number in range(1, 6)
        for index, of in enumerate(members)
    ]
    document = build(run(members, scenarios=[scenario(axes=axes, compare=[entry])]), launches)
    assert [sentence.subject for sentence in document.sentences] == ["v1", "v2", "v3"]
