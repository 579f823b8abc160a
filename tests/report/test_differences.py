"""What differs between environments."""

from dataclasses import replace

import pytest

from harness.model.environment import Environment
from harness.model.job import Limits
from harness.report.differences import SIDE_BY_SIDE, Text, differences
from tests.factories import ENVIRONMENTS, run


def named(found):
    return {fact.name: list(fact.versions) for fact in found.facts}


def compared(*packages, **changes):
    """What differs between environments that have these packages, `a`, `b` and so on."""
    known = [
        Environment(name, "2.0.0", "3.7", "2020-01-01T00:00:00Z")
        for name, _ in zip("abcdefghij", packages, strict=False)
    ]
    pins = {each.name: {"tensorflow": "2.0.0", **has} for each, has in zip(known, packages, strict=True)}
    return differences(run([], environments=known, pins=pins, images={}, **changes))


def test_only_what_differs_is_a_line_and_the_rest_is_told_as_the_same():
    found = differences(run())
    assert named(found) == {"TensorFlow": ["1.14.0", "2.0.0"], "Keras": ["2.2.5", "2.3.1"]}
    assert list(found.same) == ["TensorFlow's package tensorflow", "Python 3.7", "NumPy 1.17.4", "six 1.13.0"]
    assert found.headings == ["", "tf1.14", "tf2.0"]
    assert found.rows[0] == [Text("TensorFlow"), Text("1.14.0"), Text("2.0.0")]


def test_a_package_that_one_environment_lacks_differs():
    found = compared({"six": "1"}, {})
    assert named(found) == {"six": ["1", ""]}
    assert found.gaps
    assert not compared({"six": "1"}, {"six": "2"}).gaps


def test_the_leading_facts_come_first_and_packages_by_name():
    found = compared({"numpy": "1", "b": "1", "a": "1"}, {"numpy": "2", "b": "2", "a": "2"})
    assert [(fact.name, fact.leads) for fact in found.facts] == [("NumPy", True), ("a", False), ("b", False)]


def test_tensorflow_from_another_package_says_so():
    known = ENVIRONMENTS[:2]
    pins = {"tf1.14": {"tensorflow": "2.1.0"}, "tf2.0": {"tensorflow-cpu": "2.1.0"}}
    found = differences(run(environments=known, pins=pins))
    assert named(found) == {"TensorFlow's package": ["tensorflow", "tensorflow-cpu"]}
    assert "TensorFlow 2.1.0" in found.same


def test_what_was_not_recorded_is_no_difference():
    found = differences(run(pins={"tf1.14": {"tensorflow": "1.14.0", "keras": "2.2.5", "six": "1.13.0"}}))
    assert "six 1.13.0" in found.same
    assert named(found) == {"TensorFlow": ["1.14.0", "2.0.0"], "Keras": ["2.2.5", "2.3.1"]}


def test_cuda_is_told_of_gpus_only():
    known = [replace(each, cuda=cuda, cudnn="7.4") for each, cuda in zip(ENVIRONMENTS, ["10.0", "10.1"], strict=False)]
    on_gpu = {"limits": Limits(gpus=("0",))}
    assert named(differences(run(environments=known, asked=on_gpu)))["CUDA, of TensorFlow's build"] == ["10.0", "10.1"]
    assert "cuDNN, of TensorFlow's build 7.4" in differences(run(environments=known, asked=on_gpu)).same
    assert not [name for name in named(differences(run(environments=known))) if "CUDA" in name]


def test_an_environment_alone_differs_in_nothing():
    found = compared({"six": "1"})
    assert not found.facts
    assert "six 1" in found.same


def test_what_ran_is_shortened_as_engines_show_it():
    assert differences(run()).ran == [("tf1.14", "sha256:abababababab"), ("tf2.0", "sha256:abababababab")]


MANY = [{"numpy": str(index // 2), "six": "1"} for index in range(SIDE_BY_SIDE + 1)]


def test_many_environments_have_a_line_each_in_which_changes_stand_out():
    found = compared(*MANY)
    assert found.headings == ["environment", "NumPy"]
    assert [[cell.text for cell in row] for row in found.rows[:3]] == [["a", "0"], ["b", "0"], ["c", "1"]]
    assert [row[1].stands_out for row in found.rows] == [False, False, True, False, True, False, True]


def test_of_many_environments_other_packages_are_what_changed_from_the_line_above():
    has = [{"absl-py": "1", "six": "1"}, {"absl-py": "2", "six": "1"}, {"absl-py": "2"}]
    found = compared(*has, *[has[2]] * SIDE_BY_SIDE)
    assert found.headings == ["environment"]
    assert found.changes[:4] == [("a", "absl-py 1, six 1"), ("b", "absl-py 2"), ("c", "-six"), ("d", "")]


@pytest.mark.parametrize("count", [SIDE_BY_SIDE, SIDE_BY_SIDE + 1])
def test_every_row_has_a_cell_under_every_heading(count):
    found = compared(*MANY[:count])
    assert {len(row) for row in found.rows} == {len(found.headings)}


def test_a_run_of_nothing_differs_in_nothing():
    found = differences(run([], images={}, pins={}))
    assert (found.environments, found.facts, found.same, found.ran) == ([], [], [], [])
