"""The answers as the parts of sentences."""

from dataclasses import replace

import pytest

from harness.report.document import build
from harness.report.escape import plain
from harness.report.templates import environment
from tests.factories import COMPARE, ENVIRONMENTS, cell, cells, launch, rounds, run, scenario

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
BOTH = {**TIMES, **{cell(c.environment, call="train_on_batch", mode=c.axes["mode"]): 0.01 for c in TIMES}}


def prints(launches, odd):
    """The launches with fingerprints, another one where `odd` holds for the cell."""
    return [replace(each, fingerprint={"parameters": 2 if odd(each.cell) else 1}) for each in launches]


def only(times=BOTH, launches=None, **changes):
    """The one sentence of a run, and the macro's text of it."""
    (sentence,) = build(run(times, **changes), launches or rounds(times, spread=0.0)).sentences
    return sentence


def kinds(sentence):
    return [(part.kind, list(part.names)) for part in sentence.parts]


def test_one_rows_answer_has_its_interval_and_its_verdict():
    sentence = only(TIMES, rounds(TIMES))
    assert (sentence.subject, sentence.subject_has) == ("TensorFlow 2.0.0", ["eager"])
    assert (sentence.base, sentence.base_has) == ("TensorFlow 1.14.0", ["graph"])
    assert sentence.where == "step, fit"
    (part,) = sentence.parts
    assert (part.kind, part.rows, part.names, part.most) == ("slower", 1, [], "")
    assert float(part.low) == pytest.approx(2.7, rel=0.03)
    assert " to " in part.interval
    assert sentence.pythons is None


def test_each_verdict_has_its_rows():
    sentence = only()
    assert kinds(sentence) == [("slower", ["fit"]), ("same", ["train_on_batch"])]
    assert [(part.low, part.high) for part in sentence.parts] == [("2.70", "2.70"), ("1.00", "1.00")]


def test_rows_of_one_verdict_have_their_range_and_the_farthest_is_named():
    times = {**BOTH, cell("tf2.0", call="train_on_batch", mode="eager"): 0.015}
    (part,) = only(times).parts
    assert (part.rows, part.names, part.low, part.high, part.most) == (2, [], "1.50", "2.70", "fit")


def test_what_is_faster_is_told_as_times_as_fast():
    times = {**BOTH, cell("tf2.0", mode="eager"): 0.005, cell("tf2.0", call="train_on_batch", mode="eager"): 0.008}
    (part,) = only(times).parts
    assert (part.kind, part.low, part.high, part.most) == ("faster", "1.25", "2.00", "fit")


def called(seconds):
    """A run with one row for each call, which takes so many times as long in tf2.0, eager."""
    names = list(seconds)
    times = dict.fromkeys(cells(calls=names), 0.01)
    times |= {cell("tf2.0", call=call, mode="eager"): 0.01 * factor for call, factor in seconds.items()}
    return only(times, scenarios=[scenario(axes={**scenario().axes, "call": names})])


def test_several_values_of_an_axis_are_named_together_and_many_are_counted():
    named = called({"fit": 2.0, "predict": 3.0, "evaluate": 1.0})
    assert kinds(named) == [("slower", ["fit/predict"]), ("same", ["evaluate"])]
    counted = called({f"call{index}": 2.0 if index < 4 else 1.0 for index in range(8)})
    assert [(part.kind, part.rows, part.names) for part in counted.parts] == [("slower", 4, []), ("same", 4, [])]


def test_along_an_axis_the_verdict_is_about_the_other_value():
    times = {of: seconds for of, seconds in TIMES.items() if of.environment == "tf1.14"}
    sentence = only(times)
    assert (sentence.subject, sentence.base) == ("eager", "graph")
    assert kinds(sentence) == [("slower", [])]


def test_under_four_rounds_there_is_no_verdict():
    (part,) = only(TIMES, rounds(TIMES, count=3)).parts
    assert (part.kind, part.withheld) == ("no verdict", "few rounds")


def test_different_work_is_not_in_the_range():
    launches = prints(rounds(BOTH, spread=0.001), lambda of: of == cell("tf2.0", call="fit", mode="eager"))
    sentence = only(BOTH, launches)
    assert kinds(sentence) == [("same", ["train_on_batch"]), ("different work", ["fit"])]
    assert sentence.parts[0].low == "1.00"


def test_pythons_are_told_where_they_differ():
    newer = [replace(each, python="3.11") if each.name == "tf2.0" else each for each in ENVIRONMENTS[:2]]
    assert only(TIMES, environments=newer).pythons == ("3.11", "3.7")


def test_environments_are_called_by_what_tells_them_apart():
    def names(**changes):
        known = [ENVIRONMENTS[0], replace(ENVIRONMENTS[0], name="tf2.0", **changes)]
        times = {of: seconds for of, seconds in TIMES.items() if of.axes["mode"] == "graph"}
        sentence = only(times, environments=known)
        return sentence.subject, sentence.base

    assert names(tensorflow="1.15.5") == ("TensorFlow 1.15.5", "TensorFlow 1.14.0")
    assert names(keras="2.3.1") == ("TensorFlow 1.14.0 + Keras 2.3.1", "TensorFlow 1.14.0 + Keras 2.2.5")
    assert names(python="3.8") == ("tf2.0", "tf1.14")


SAY = environment(plain).get_template("sentences.j2").module
WHERE = "(step; each release's default mode)."


@pytest.mark.parametrize(
    ("times", "text"),
    [
        (
            {"fit": 2.7, "predict": 2.4, "evaluate": 1.0},
            "TensorFlow 2.0.0 (eager) is slower than TensorFlow 1.14.0 (graph) in fit/predict: a step takes 2.40 to "
            "2.70 times as long, most with fit; the same within 3 % in evaluate",
        ),
        (
            {"fit": 2.0, "predict": 0.5},
            "TensorFlow 2.0.0 (eager) is slower than TensorFlow 1.14.0 (graph) in fit: a step takes 2.00 (2.00 to "
            "2.00) times as long; faster in predict, 2.00 (2.00 to 2.00) times as fast",
        ),
        (
            {"fit": 0.5, "predict": 0.8},
            "TensorFlow 2.0.0 (eager) is faster than TensorFlow 1.14.0 (graph) in both rows: 1.25 to 2.00 times as "
            "fast, most with fit",
        ),
        (
            {"fit": 1.0, "predict": 1.0, "evaluate": 1.0},
            "TensorFlow 2.0.0 (eager) is as fast as TensorFlow 1.14.0 (graph) within 3 % in all 3 rows",
        ),
    ],
)
def test_what_the_sentence_says(times, text):
    assert SAY.answer(called(times)) == f"{text} {WHERE}"


def test_what_the_sentence_says_without_a_verdict():
    text = SAY.answer(only(TIMES, rounds(TIMES, count=3, spread=0.0)))
    assert text == (
        "A step of TensorFlow 2.0.0 (eager) takes 2.70 (2.70 to 2.70) times as long as one of TensorFlow 1.14.0 "
        "(graph), with no verdict: there were fewer than four rounds (step, fit; each release's default mode)."
    )
    assert "takes 2.70 times as long as one of" in SAY.answer(only(TIMES, rounds(TIMES, count=1, spread=0.0)))


def test_what_the_sentence_says_of_what_is_unclear():
    wide = {**TIMES, cell("tf2.0", mode="eager"): 0.0104}
    assert SAY.answer(only(wide, rounds(wide, spread=0.05))).startswith(
        "Whether TensorFlow 2.0.0 (eager) is slower or faster than TensorFlow 1.14.0 (graph) is unclear: a step takes "
    )


def test_what_the_sentence_says_of_different_work():
    every = prints(rounds(BOTH), lambda of: of.environment == "tf2.0")
    assert SAY.answer(only(BOTH, every)) == (
        "TensorFlow 2.0.0 (eager) and TensorFlow 1.14.0 (graph) did not do the same work in any of 2 rows, so their "
        f"times say nothing of one another {WHERE}"
    )
    one = prints(rounds(BOTH, spread=0.0), lambda of: of == cell("tf2.0", call="fit", mode="eager"))
    assert "within 3 % in train_on_batch; different work in fit" in SAY.answer(only(BOTH, one))


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


def test_each_scenario_is_answered_before_one_is_answered_twice():
    names = [f"v{index}" for index in range(4)]
    axes = {"call": ["fit"], "dtype": ["float32"], "mode": names}
    entry = COMPARE[1].__class__("first", along="mode", plus="v0")
    far = {cell(mode=name): 0.01 * 10**index for index, name in enumerate(names)}
    near = {cell(of="other", mode=name): 0.01 * (1 + index / 10) for index, name in enumerate(names)}
    both = [scenario(of, axes=axes, compare=[entry]) for of in ("step", "other")]
    document = build(run([*far, *near], scenarios=both), rounds({**far, **near}))
    assert [(sentence.where.partition(",")[0], sentence.subject) for sentence in document.sentences] == [
        ("step", "v2"),
        ("", "v3"),
        ("other", "v3"),
    ]
    assert document.more_answers == 3
