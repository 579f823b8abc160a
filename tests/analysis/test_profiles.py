"""What is read from profiles: names, shares, the document's classes, data handling, and what moved."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.profiles import Class, filed, matching, moves, name, taken, top
from harness.model.profile import Function
from tests.profiles import first, function, profile


def of(file: str, called: str) -> str:
    return name(Function(file, 1, called, 1, 1, 0.0, 0.0))


@pytest.mark.parametrize(
    ("file", "called", "expected"),
    [
        ("/site/tensorflow/python/keras/engine/training.py", "train_on_batch", "training.train_on_batch"),
        ("/site/tensorflow_core/python/keras/engine/training.py", "train_on_batch", "training.train_on_batch"),
        ("/site/keras/src/utils/__init__.py", "flatten", "utils.flatten"),
        ("~", "<built-in method _pywrap_tensorflow_internal.TF_SessionRunCallable>", "TF_SessionRunCallable"),
        ("~", "<built-in method tensorflow.python._pywrap_tfe.TFE_Py_Execute>", "TFE_Py_Execute"),
        ("~", "<built-in method PyCapsule.TFE_Py_FastPathExecute>", "TFE_Py_FastPathExecute"),
        ("~", "<built-in method builtins.isinstance>", "isinstance"),
        ("~", "<built-in method numpy.core._multiarray_umath.array>", "_multiarray_umath.array"),
        ("~", "<method 'append' of 'list' objects>", "list.append"),
        ("~", "<method 'acquire' of '_thread.RLock' objects>", "RLock.acquire"),
        ("<frozen importlib._bootstrap>", "_find_spec", "importlib._bootstrap._find_spec"),
        ("/tmp/__autograph_generated_file8f3k2.py", "tf__train_step", "autograph.tf__train_step"),
        ("/tmp/tmpa1b2c3d4.py", "tf__train_step", "autograph.tf__train_step"),
        ("<string>", "<module>", "string.<module>"),
    ],
)
def test_a_function_goes_by_module_and_name_whatever_the_release_calls_its_packages(
    file: str, called: str, expected: str
) -> None:
    assert of(file, called) == expected


@given(st.text(), st.text())
def test_any_name_is_told_somehow(file: str, called: str) -> None:
    assert isinstance(of(file, called), str)


def test_shares_are_of_the_time_in_all_functions() -> None:
    found = taken(profile(function("a", own=3.0, cumulative=4.0), function("b", own=1.0)))
    assert (found["nn.a"].own_share, found["nn.a"].cumulative_share) == (0.75, 1.0)
    assert found["nn.b"].own_share == 0.25


def test_functions_of_one_name_are_added_up_to_the_whole_at_most() -> None:
    found = taken(profile(function("call", own=1.0, cumulative=2.0), function("call", own=1.0, cumulative=1.5)))
    assert (found["nn.call"].calls, found["nn.call"].own, found["nn.call"].cumulative) == (20, 2.0, 2.0)


def test_the_functions_that_take_most_come_first() -> None:
    made = profile(function("a", own=1.0, cumulative=6.0), function("b", own=3.0), function("c", own=2.0))
    assert [each.name for each in top(made, 2, own=True)] == ["nn.b", "nn.c"]
    assert [each.name for each in top(made, 1, own=False)] == ["nn.a"]


def test_a_profile_of_no_time_has_shares_of_nothing() -> None:
    assert taken(profile(function("a", own=0.0)))["nn.a"].own_share == 0.0
    assert matching(profile(), ["*"]) == 0.0


def test_the_document_s_classes_go_by_calls_in_the_whole_run() -> None:
    classes = filed(
        first(function("once", calls=1), function("trace", calls=300), function("step", calls=1)),
        profile(function("step", calls=10), function("seldom", calls=4)),
    )
    assert {each.kind: each.functions for each in classes} == {Class.BUILD: 1, Class.TRAIN: 2, Class.NEITHER: 1}


def test_building_that_the_rule_files_as_training_is_told() -> None:
    """`create_op` runs hundreds of times in the first call, and never again."""
    train = next(
        each
        for each in filed(first(function("create_op", calls=348, own=0.1)), profile(function("step", own=0.4)))
        if each.kind is Class.TRAIN
    )
    assert (train.functions, train.building, train.examples) == (2, 1, ["nn.create_op"])
    assert train.building_own == pytest.approx(0.1)
    assert train.share == pytest.approx(1.0)


def test_data_handling_counts_with_all_that_it_calls() -> None:
    made = profile(
        function("fit", own=6.0, cumulative=10.0),
        function("standardize", own=1.0, cumulative=4.0, callers={0: 4.0}),
        function("check", own=3.0, callers={1: 3.0}),
    )
    assert matching(made, ["*.standardize"]) == pytest.approx(0.4)


def test_data_handling_inside_of_data_handling_is_counted_once() -> None:
    made = profile(
        function("fit", own=5.0, cumulative=10.0),
        function("standardize", own=1.0, cumulative=5.0, callers={0: 5.0}),
        function("helper", own=1.0, cumulative=4.0, callers={1: 4.0}),
        function("convert", own=3.0, callers={2: 3.0}),
    )
    assert matching(made, ["*.standardize", "*.convert"]) == pytest.approx(0.5)


def test_what_calls_from_inside_and_from_outside_take_is_told_apart() -> None:
    made = profile(
        function("fit", own=4.0, cumulative=10.0),
        function("standardize", own=1.0, cumulative=3.0, callers={0: 3.0}),
        function("convert", own=5.0, callers={0: 3.0, 1: 2.0}),
    )
    assert matching(made, ["*.standardize", "*.convert"]) == pytest.approx(0.6)


def test_recursion_ends() -> None:
    made = profile(
        function("walk", own=5.0, cumulative=5.0, callers={0: 2.0, 1: 5.0}),
        function("top", own=5.0, cumulative=10.0),
    )
    assert matching(made, ["*.walk"]) == pytest.approx(0.5)


def test_a_function_s_move_is_between_shares_and_says_seconds_a_step() -> None:
    eager = profile(function("backprop", own=8.0), function("fetch", own=2.0), calls=10, steps=2)
    graph = profile(function("run", own=1.0), function("fetch", own=1.0), calls=10)
    found = {move.name: move for move in moves(eager, graph, 3, own=True)}
    assert list(found) == ["nn.backprop", "nn.run", "nn.fetch"]
    assert found["nn.backprop"].by == pytest.approx(0.8)
    assert found["nn.run"].by == pytest.approx(-0.5)
    assert (found["nn.fetch"].seconds, found["nn.fetch"].other_seconds) == (0.1, 0.1)


def test_a_profile_against_itself_has_not_moved() -> None:
    made = profile(function("a"), function("b", own=3.0))
    assert all(move.by == 0.0 for move in moves(made, made, 5, own=False))


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0.0, 10.0)), max_size=12),
    st.lists(st.sampled_from(["*.a", "*.b", "*"]), max_size=2),
)
def test_shares_lie_between_nothing_and_the_whole(rows: list[tuple[str, float]], patterns: list[str]) -> None:
    made = profile(*(function(label, own=own) for label, own in rows))
    assert 0.0 <= matching(made, patterns) <= 1.0
    assert sum(each.own_share for each in taken(made).values()) <= 1.0 + 1e-9
