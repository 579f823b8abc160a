"""What is read from profiles: names, shares, data handling, what moved, a picture's boxes."""

import pytest

from harness.analysis.profiles import (
    MAX_DEPTH,
    compute_depth,
    find_moves,
    find_top,
    list_frames,
    name,
    sum_by_name,
    sum_matching,
    sum_own_seconds,
    tree,
)
from harness.model.profile import Function
from tests.profiles import function, profile


def test_a_function_goes_by_module_and_name_whatever_the_release_calls_its_packages():
    for file, called, expected in [
        ("/site/tensorflow_core/python/keras/engine/training.py", "train_on_batch", "training.train_on_batch"),
        ("/site/keras/src/utils/__init__.py", "flatten", "utils.flatten"),
        ("~", "<built-in method _pywrap_tensorflow_internal.TF_SessionRunCallable>", "TF_SessionRunCallable"),
        ("~", "<built-in method PyCapsule.TFE_Py_FastPathExecute>", "TFE_Py_FastPathExecute"),
        ("~", "<built-in method builtins.isinstance>", "isinstance"),
        ("~", "<built-in method numpy.core._multiarray_umath.array>", "_multiarray_umath.array"),
        ("~", "<method 'append' of 'list' objects>", "list.append"),
        ("~", "<method 'acquire' of '_thread.RLock' objects>", "RLock.acquire"),
        ("<frozen importlib._bootstrap>", "_find_spec", "importlib._bootstrap._find_spec"),
        ("/tmp/__autograph_generated_file8f3k2.py", "tf__train_step", "autograph.tf__train_step"),
        ("/tmp/tmpa1b2c3d4.py", "tf__train_step", "autograph.tf__train_step"),
        ("<string>", "<module>", "string.<module>"),
    ]:
        assert name(Function(file, 1, called, 1, 1, 0.0, 0.0)) == expected


def test_shares_are_of_the_time_in_all_functions():
    functions = sum_by_name(profile(function("a", own=3.0, cumulative=4.0), function("b", own=1.0)))
    assert (functions["nn.a"].own_share, functions["nn.a"].cumulative_share) == (0.75, 1.0)
    # functions of one name are added up, to the whole at most
    one, other = (function("call", own=1.0, cumulative=seconds) for seconds in (2.0, 1.5))
    functions = sum_by_name(profile(one, other))
    assert (functions["nn.call"].calls, functions["nn.call"].own, functions["nn.call"].cumulative) == (20, 2.0, 2.0)
    # those that take most come first
    profiled = profile(function("a", own=1.0, cumulative=6.0), function("b", own=3.0), function("c", own=2.0))
    assert [entry.name for entry in find_top(profiled, 2, own=True)] == ["nn.b", "nn.c"]
    assert [entry.name for entry in find_top(profiled, 1, own=False)] == ["nn.a"]
    # of no time, shares are of nothing
    assert sum_by_name(profile(function("a", own=0.0)))["nn.a"].own_share == 0.0
    assert [sum_matching(profiled, ["*.a"]) for profiled in (profile(), profile(function("a", own=1.0)))] == [0.0, 1.0]


def test_data_handling_counts_with_all_that_it_calls():
    for share, patterns, functions in (
        (
            0.4,
            ["*.standardize"],
            [
                function("fit", own=6.0, cumulative=10.0),
                function("standardize", own=1.0, cumulative=4.0, callers={0: 4.0}),
                function("check", own=3.0, callers={1: 3.0}),
            ],
        ),
        # what calls from inside and from outside take is told apart
        (
            0.6,
            ["*.standardize", "*.convert"],
            [
                function("fit", own=4.0, cumulative=10.0),
                function("standardize", own=1.0, cumulative=3.0, callers={0: 3.0}),
                function("convert", own=5.0, callers={0: 3.0, 1: 2.0}),
            ],
        ),
        # recursion ends
        (
            0.5,
            ["*.walk"],
            [
                function("walk", own=5.0, cumulative=5.0, callers={0: 2.0, 1: 5.0}),
                function("top", own=5.0, cumulative=10.0),
            ],
        ),
    ):
        assert sum_matching(profile(*functions), patterns) == pytest.approx(share), patterns


def test_moves_are_between_shares_and_a_chain_of_wrappers_moves_once():
    """`fit` only calls `step`; `run` is called by others too, so what calls it is no mere wrapper."""
    functions = (
        function("fit", own=0.1, cumulative=10.0),
        function("step", own=0.1, cumulative=9.9, callers={0: 9.9}),
        function("grad", own=0.0, cumulative=5.0, callers={1: 5.0}),
        function("run", own=9.8, callers={1: 4.8, 2: 5.0}),
    )
    one, other = profile(*functions), profile(function("other"))
    assert [move.name for move in find_moves(one, other, 9, own=False)] == ["nn.other", "nn.step", "nn.run", "nn.grad"]
    assert len(find_moves(one, other, 9, own=True)) == 5
    # what wraps in one profile alone is compared
    assert "nn.fit" in [move.name for move in find_moves(one, profile(function("fit")), 9, own=False)]
    eager = profile(function("backprop", own=8.0), function("fetch", own=2.0), calls=10, steps=2)
    graph = profile(function("run", own=1.0), function("fetch", own=1.0), calls=10)
    functions = {move.name: move for move in find_moves(eager, graph, 3, own=True)}
    assert list(functions) == ["nn.backprop", "nn.run", "nn.fetch"]
    assert (functions["nn.backprop"].by, functions["nn.run"].by) == pytest.approx((0.8, -0.5))
    assert (functions["nn.fetch"].seconds, functions["nn.fetch"].other_seconds) == (0.1, 0.1)


def laid(stacks, least=0.0):
    return list_frames(tree(profile(*[function(name) for name in "abc"], stacks=stacks)), least)


def test_a_function_stands_below_the_one_that_called_it_and_is_as_wide_as_its_time():
    for stacks, least, boxes in (
        ([(1.0, [0]), (3.0, [0, 1])], 0.0, [("nn.a", 0, 0.0, 1.0, 0.25), ("nn.b", 1, 0.0, 0.75, 0.75)]),
        # one function that is called from two places is two boxes
        (
            [(1.0, [0, 2]), (1.0, [1, 2])],
            0.0,
            [
                ("nn.a", 0, 0.0, 0.5, 0.0),
                ("nn.c", 1, 0.0, 0.5, 0.5),
                ("nn.b", 0, 0.5, 0.5, 0.0),
                ("nn.c", 1, 0.5, 0.5, 0.5),
            ],
        ),
        # what is too narrow is not drawn, and counts to its caller
        ([(1.0, [0, 1]), (99.0, [0])], 0.05, [("nn.a", 0, 0.0, 1.0, 1.0)]),
    ):
        functions = [(box.name, box.depth, box.left, box.width, box.own) for box in laid(stacks, least)]
        assert sorted(functions) == sorted(boxes), stacks
    assert [box.name for box in laid([(1.0, [0]), (3.0, [1])])] == ["nn.b", "nn.a"]
    assert compute_depth(laid([])) == 0
    # endless recursion is cut
    assert compute_depth(laid([(1.0, [0] * 5000)])) == MAX_DEPTH


def test_a_box_is_compared_with_its_stack_and_own_seconds_are_those_of_samples_or_of_the_profiler():
    one, base = (tree(profile(*map(function, "abc"), stacks=stacks)) for stacks in ([(3.0, [0, 1])], [(1.0, [0, 2])]))
    assert [(frame.name, frame.width, frame.base) for frame in list_frames(one, 0.0, base, 2.0)] == [
        ("nn.a", 1.0, 2 / 3),
        ("nn.b", 1.0, 0.0),
    ]
    measured = profile(function("a", own=2.0), function("b", own=6.0), stacks=[(3.0, [0]), (1.0, [0, 1])])
    steps = measured.calls * measured.steps
    assert sum_own_seconds(measured, sampled=True) == {"nn.a": 3.0 / steps, "nn.b": 1.0 / steps}
    assert sum_own_seconds(measured, sampled=False) == {"nn.a": 2.0 / steps, "nn.b": 6.0 / steps}
