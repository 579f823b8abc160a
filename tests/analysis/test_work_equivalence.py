"""Whether two cells did the same work."""

import math
from dataclasses import replace

from harness.analysis.work_equivalence import Work, WorkCheck, compare, steps
from harness.model.environment import Device
from tests.factories import cell, launch

OLD, NEW = cell("tf1.14"), cell("tf2.0")


def proof(member=OLD, **fingerprint):
    return launch(member, fingerprint=fingerprint)


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
        (10**400, 0.5, False),
        (3, 3.00001, True),
        ("float32", "float64", False),
        ("1", 1, False),
        (True, False, False),
        ([], [], True),
        ([], [1.0], False),
        ([1, 2], [2, 1], False),
        (["a", 1.0], ["a", 1.00001], True),
        ([[0.1, 0.2], [0.3, 0.4]], [[0.1, 0.2], [0.3, 0.5]], False),
        ([[0.1, 0.2]], [[0.1], [0.2]], False),
        ({"w": {"mean": 0.5}}, {"w": {"mean": 0.50001}}, True),
        ({"w": {"mean": 0.5}}, {"w": {"mean": 0.6}}, False),
        ({"w": 1}, {"w": 1, "b": 1}, False),
        ({"w": 1}, [1], False),
    ]:
        assert agree(one, other) is same
        assert agree(other, one) is same


def test_floats_agree_within_the_devices_tolerance_and_whole_numbers_exactly():
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
    assert not agree(10**6, 10**6 + 1, Device.GPU)
    assert not agree([10**6], [10**6 + 1], Device.GPU)
    wrapped = {unknown: [unknown, [unknown], {"a": unknown}, [[1.0, unknown]]] for unknown in (None, math.nan, 1.0)}
    for unknown in (None, math.nan):
        for here, there in zip(wrapped[unknown], wrapped[1.0], strict=True):
            assert [agree(here, here), agree(here, there), agree(there, here)] == [False] * 3, here


GRAPH, EAGER = cell("tf2.0", mode="graph"), cell("tf2.0", mode="eager")
MISCOUNTED = {"steps_called": 2, "steps_counted": 1}
COUNTED = {"steps_called": 2, "steps_counted": 2}


def test_what_differs_is_said_in_a_line(snapshot):
    one, other = proof(parameters=1), proof(NEW, parameters=1)
    cases = {
        "whole numbers": of_values(1, 3),
        "lists": of_values([1.0, 1.0], [1.5, 1.25]),
        "texts": of_values("a", "b"),
        "within a mapping": of_values({"w": [1.0]}, {"w": [2.0]}),
        "within lists": of_values([["a"], ["b"]], [["a"], ["c"]]),
        "not known": of_values(None, None),
        "one side alone": compare([one], [proof(NEW, parameters=1, loss=0.5)]),
        "the other side alone": compare([proof(parameters=1, loss=0.5)], [other]),
        "launches of one cell": compare([one, proof(parameters=2)], [other]),
        "launches of the other cell": compare([one], [other, proof(NEW, parameters=2)]),
        "a launch without proof": compare([one, launch(OLD)], [proof(NEW, parameters=2)]),
        "two modes": compare([proof(GRAPH, parameters=1)], [proof(EAGER, parameters=2)]),
        "miscounted steps": compare([one, proof(parameters=1, **MISCOUNTED)], [proof(NEW, parameters=1, **COUNTED)]),
        "miscounted steps there": compare([proof(parameters=1, **COUNTED)], [proof(NEW, parameters=1, **MISCOUNTED)]),
        "miscounted steps of a mode": compare([proof(GRAPH, **MISCOUNTED)], [proof(EAGER)]),
        "miscounted steps, without other proof": compare([proof(**MISCOUNTED)], [launch(NEW)]),
        "an unreadable count": compare([proof(steps_called=2, steps_counted=None)], [launch(NEW)]),
    }
    assert {check.work for check in cases.values()} == {Work.DIFFERENT}
    assert {case: check.reason for case, check in cases.items()} == snapshot
    assert len(of_values("a" * 1000, "b" * 1000).reason) < 120
    assert compare([one], [other]) == WorkCheck(Work.SAME, "")


def test_steps_that_were_called_and_counted():
    for fingerprint, is_miscounted in (
        ({}, False),
        ({"steps_called": 100}, False),
        ({"steps_called": None, "steps_counted": 100}, False),
        ({"steps_called": 100, "steps_counted": 100}, False),
        ({"steps_called": 100, "steps_counted": 99}, True),
        ({"steps_called": 100, "steps_counted": None}, True),
    ):
        assert bool(steps(proof(OLD, **fingerprint))) is is_miscounted, fingerprint


def test_without_fingerprints_of_all_launches_the_work_is_not_checked():
    counted = [proof(side, steps_called=100, steps_counted=100) for side in (OLD, NEW)]
    for one, other in (
        ([launch(OLD)], [launch(NEW)]),
        ([proof(OLD, parameters=1)], [launch(NEW)]),
        ([proof(OLD, parameters=1), launch(OLD)], [proof(NEW, parameters=1)]),
        # steps alone are no proof
        (counted[:1], counted[1:]),
    ):
        assert compare(one, other) == WorkCheck(Work.NOT_CHECKED), (one, other)


def mixed(precision="mixed_float16", **fingerprint):
    return proof(cell(precision=precision), **fingerprint)


def test_in_mixed_precision_a_hundredth_of_floats_and_of_steps_may_differ():
    for precision in ("mixed_float16", "float32"):
        assert compare([mixed(outputs=1.0)], [mixed(precision, outputs=1.005)]).work is Work.SAME
        assert compare([mixed(outputs=1.0)], [mixed(precision, outputs=1.05)]).differs
    assert compare([mixed("float32", outputs=1.0)], [mixed("float32", outputs=1.005)]).differs
    for counted, is_miscounted in ((1000, False), (991, False), (989, True), (1001, True)):
        fingerprint = {"steps_called": 1000, "steps_counted": counted}
        assert bool(steps(mixed(**fingerprint))) is is_miscounted, counted
        assert bool(steps(mixed("float32", **fingerprint))) is (counted != 1000), counted
