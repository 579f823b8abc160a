"""Whether two cells did the same work."""

import math
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.work_equivalence import Work, WorkCheck, compare, steps
from harness.model.environment import Device
from tests.factories import cell, launch

OLD, NEW = cell("tf1.14"), cell("tf2.0")

values = st.recursive(
    st.one_of(st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.booleans()),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


def proof(of=OLD, **fingerprint):
    return launch(of, fingerprint=fingerprint)


def of_values(one, other, device=Device.CPU):
    """What is said of two launches whose fingerprints have one value each."""
    sides = [replace(side, device=device) for side in (OLD, NEW)]
    return compare([proof(sides[0], value=one)], [proof(sides[1], value=other)])


def agree(one, other, device=Device.CPU):
    return of_values(one, other, device).work is Work.SAME


def test_values_agree():
    for one, other, same in [
        (162049, 162049, True),
        (162049, 162050, False),
        (2**62, 2**62 + 1, False),
        (10**400, 10**400, True),
        (10**400, 10**400 + 1, False),
        (10**400, 0.5, False),
        (3, 3.00001, True),
        ("float32", "float32", True),
        ("float32", "float64", False),
        ("1", 1, False),
        (True, True, True),
        (True, False, False),
        ([], [], True),
        ([], [1.0], False),
        ([1, 2], [1, 2], True),
        ([1, 2], [2, 1], False),
        (["a", 1.0], ["a", 1.00001], True),
        (["a", 1.0], ["b", 1.0], False),
        ([[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.2], [0.3, 0.40001]], True),
        ([[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.2], [0.3, 0.5]], False),
        ([[0.1, 0.2]], [[0.1], [0.2]], False),
        ({"w": {"mean": 0.5}}, {"w": {"mean": 0.50001}}, True),
        ({"w": {"mean": 0.5}}, {"w": {"mean": 0.6}}, False),
        ({"w": 1}, {"w": 1, "b": 1}, False),
        ({"w": 1}, [1], False),
        ([{"w": 0.5}], [{"w": 0.50001}], True),
    ]:
        assert agree(one, other) is same
        assert agree(other, one) is same


def test_floats_agree_within_the_devices_tolerance_in_lists_too():
    for one, other, device, same in [
        (1.0, 1.00009, Device.CPU, True),
        (1.0, 1.0002, Device.CPU, False),
        (1.0, 1.009, Device.GPU, True),
        (1.0, 1.02, Device.GPU, False),
        # near 0 the difference itself counts, far from it its share
        (0.0, 0.00009, Device.CPU, True),
        (0.0, 0.0002, Device.CPU, False),
        (10000.0, 10000.9, Device.CPU, True),
        (10000.0, 10002.0, Device.CPU, False),
    ]:
        assert agree(one, other, device) is same
        assert agree([0.5, one], [0.5, other], device) is same


def test_whole_numbers_are_exact_on_every_device():
    assert not agree(10**6, 10**6 + 1, Device.GPU)
    assert not agree([10**6], [10**6 + 1], Device.GPU)


def test_what_could_not_be_told_agrees_with_nothing():
    for wrap in [lambda x: x, lambda x: [x], lambda x: {"a": x}, lambda x: [[1.0, x]]]:
        for untold in [None, math.nan]:
            assert not agree(wrap(untold), wrap(untold))
            assert not agree(wrap(untold), wrap(1.0))
            assert not agree(wrap(1.0), wrap(untold))


@given(values)
def test_everything_else_agrees_with_itself(value):
    assert agree(value, value)


@given(values, values)
def test_it_does_not_matter_which_side_is_first(one, other):
    assert agree(one, other) is agree(other, one)


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6), st.floats(-9e-5, 9e-5))
def test_noise_within_the_tolerance_agrees(outputs, noise):
    assert agree(outputs, [value * (1.0 + noise) for value in outputs])
    assert agree(outputs, [value + noise for value in outputs])


def test_a_difference_is_said_in_a_line():
    for one, other, reason in [
        (1, 3, "value: difference of 2 (tf1.14, tf2.0)"),
        ([1.0, 1.0], [1.5, 1.25], "value: difference of 0.5 (tf1.14, tf2.0)"),
        ("a", "b", "value is a and b (tf1.14, tf2.0)"),
        ({"w": [1.0]}, {"w": [2.0]}, "value.w: difference of 1 (tf1.14, tf2.0)"),
        ([["a"], ["b"]], [["a"], ["c"]], "value[1][0] is b and c (tf1.14, tf2.0)"),
        (None, None, "value is unknown (tf1.14, tf2.0)"),
    ]:
        assert of_values(one, other) == WorkCheck(Work.DIFFERENT, reason)


def test_a_long_value_is_cut():
    assert len(of_values("a" * 1000, "b" * 1000).reason) < 120


def test_a_value_that_only_one_side_has_could_not_be_told():
    found = compare([proof(OLD, parameters=1)], [proof(NEW, parameters=1, loss=0.5)])
    assert found == WorkCheck(Work.DIFFERENT, "loss is unknown (tf1.14, tf2.0)")
    back = compare([proof(OLD, parameters=1, loss=0.5)], [proof(NEW, parameters=1)])
    assert back.work is Work.DIFFERENT


def test_without_a_difference_nothing_is_said():
    assert compare([proof(OLD, parameters=1)], [proof(NEW, parameters=1)]) == WorkCheck(Work.SAME, "")


def test_launches_of_one_cell_must_agree_with_one_another_too():
    found = compare([proof(OLD, parameters=1), proof(OLD, parameters=2)], [proof(NEW, parameters=1)])
    assert found == WorkCheck(Work.DIFFERENT, "parameters: difference of 1 (tf1.14, tf1.14)")
    assert compare([proof(OLD, parameters=1)], [proof(NEW, parameters=n) for n in (1, 2)]).work is Work.DIFFERENT


def test_without_fingerprints_the_work_is_not_checked():
    assert compare([launch(OLD)], [launch(NEW)]) == WorkCheck(Work.NOT_CHECKED)
    assert compare([proof(OLD, parameters=1)], [launch(NEW)]).work is Work.NOT_CHECKED
    assert compare([], []).work is Work.NOT_CHECKED
    assert compare([proof(OLD, parameters=1)], []).work is Work.NOT_CHECKED


def test_one_launch_of_several_without_a_fingerprint_leaves_the_work_unchecked():
    found = compare([proof(OLD, parameters=1), launch(OLD)], [proof(NEW, parameters=1)])
    assert found.work is Work.NOT_CHECKED


def test_steps_are_counted_within_a_launch_and_not_between_two():
    one = proof(OLD, parameters=1, steps_called=100, steps_counted=100)
    other = proof(NEW, parameters=1, steps_called=250, steps_counted=250)
    assert compare([one], [other]).work is Work.SAME


def test_steps_alone_are_no_proof_of_the_work():
    one, other = (proof(side, steps_called=100, steps_counted=100) for side in (OLD, NEW))
    assert compare([one], [other]).work is Work.NOT_CHECKED


def test_steps_that_were_called_and_counted():
    for fingerprint, reason in [
        ({}, ""),
        ({"steps_called": 100}, ""),
        ({"steps_counted": 100}, ""),
        ({"steps_called": None, "steps_counted": 100}, ""),
        ({"steps_called": 100, "steps_counted": 100}, ""),
        ({"steps_called": 100, "steps_counted": 99}, "ran 100 steps, but the framework counted 99"),
        (
            {"steps_called": 100, "steps_counted": None},
            "ran 100 steps, but the framework's count can't be read",
        ),
    ]:
        assert steps(proof(OLD, **fingerprint)) == reason


def test_miscounted_steps_are_different_work_whatever_else_agrees():
    for side in [OLD, NEW]:
        launches = {
            value: [
                proof(value, parameters=1),
                proof(value, parameters=1, steps_called=2, steps_counted=2 - (value is side)),
            ]
            for value in (OLD, NEW)
        }
        found = compare(launches[OLD], launches[NEW])
        assert found == WorkCheck(Work.DIFFERENT, f"{side.environment} ran 2 steps, but the framework counted 1")


def test_miscounted_steps_are_told_even_where_nothing_else_can_be_checked():
    assert compare([proof(OLD, steps_called=2, steps_counted=1)], [launch(NEW)]).work is Work.DIFFERENT


def test_what_differs_is_different_though_another_launch_has_no_proof():
    found = compare([proof(OLD, parameters=1), launch(OLD)], [proof(NEW, parameters=2)])
    assert found == WorkCheck(Work.DIFFERENT, "parameters: difference of 1 (tf1.14, tf2.0)")


def test_the_reason_names_what_tells_the_cells_apart():
    graph, eager = cell("tf2.0", mode="graph"), cell("tf2.0", mode="eager")
    assert compare([proof(graph, parameters=1)], [proof(eager, parameters=2)]).reason.endswith("(graph, eager)")
    counted = compare([proof(graph, steps_called=2, steps_counted=1)], [proof(eager)])
    assert counted.reason == "graph ran 2 steps, but the framework counted 1"


def mixed(precision="mixed_float16", **fingerprint):
    return proof(cell(precision=precision), **fingerprint)


def test_in_mixed_precision_floats_agree_to_a_hundredth_on_a_cpu_too():
    for precision in ("mixed_float16", "float32"):
        same = compare([mixed(outputs=1.0)], [mixed(precision, outputs=1.005)]).work
        assert same is Work.SAME
        assert compare([mixed(outputs=1.0)], [mixed(precision, outputs=1.05)]).differs
    assert compare([mixed("float32", outputs=1.0)], [mixed("float32", outputs=1.005)]).differs


def test_in_mixed_precision_the_optimizer_may_leave_out_a_hundredth_of_the_steps():
    for counted, told in [(1000, ""), (991, ""), (989, "1000 steps"), (1001, "1000 steps")]:
        fingerprint = {"steps_called": 1000, "steps_counted": counted}
        assert told in steps(mixed(**fingerprint)), (counted, told)
        assert bool(steps(mixed(**fingerprint))) is bool(told), (counted, told)
        assert bool(steps(mixed("float32", **fingerprint))) is (counted != 1000)
