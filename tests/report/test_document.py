"""The report's content."""

import pytest

from harness.model.run import Unavailable
from harness.report.document import build
from tests.factories import COMPARE, cell, cells, launch, rounds, run, scenario

TIMES = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))


def test_one_rows_answer_has_its_interval():
    (sentence,) = build(run(), rounds(TIMES)).sentences
    assert (sentence.subject, sentence.subject_has) == ("TensorFlow 2.0.0 + Keras 2.3.1", "eager")
    assert (sentence.base, sentence.base_has) == ("TensorFlow 1.14.0 + Keras 2.2.5", "graph")
    assert sentence.where == "step, fit"
    assert float(sentence.low) == pytest.approx(2.7, rel=0.03)
    assert " to " in sentence.interval


def test_many_rows_answer_names_its_ends():
    members = {**TIMES, **{cell(c.environment, call="train_on_batch", mode=c.axes["mode"]): 0.01 for c in TIMES}}
    (sentence,) = build(run(members), rounds(members, spread=0.001)).sentences
    assert (sentence.low_at, sentence.high_at, sentence.rows) == ("train_on_batch", "fit", 2)
    assert (sentence.longer, sentence.judged) == (1, True)


def test_under_four_rounds_nothing_is_judged():
    assert not build(run(), rounds(TIMES, count=3)).sentences[0].judged


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


def test_cells_without_a_number_are_named_together():
    gone = [Unavailable(c, "needs keras<2.4") for c in cells(["tf2.1"])]
    (absence,) = build(run(unavailable=gone), rounds(TIMES)).absences
    assert absence.cells == ["step, tf2.1 (2 cells)"]


def test_numbers_with_several_modes_are_named():
    (view,) = build(run([cell()]), [launch(cell(), [0.007] * 3 + [0.022] * 2)]).tables
    assert view.modes == ["fit, tf1.14 graph: 1 of 1"]


@pytest.mark.parametrize(
    ("command", "again"),
    [
        (["harness", "matrix"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed", "7"], "harness matrix --seed 7"),
        (["harness", "matrix", "--seed=7"], "harness matrix --seed=7"),
        (["harness", "matrix", "-a", "mode=op by op; rm"], "harness matrix -a 'mode=op by op; rm' --seed 7"),
    ],
)
def test_again_is_what_was_typed_with_the_seed(command, again):
    assert build(run(command=command), []).command == again
