"""The work of a step as read from untrusted observations, and the functions in which two cells differ."""

from dataclasses import replace

import pytest

from harness.analysis.results import Results
from harness.analysis.work_counts import compare_functions, read_work
from tests.factories import cell, rounds, run

OLD, NEW = cell("tf1.14"), cell("tf2.0")


def counts(python=10, functions=None, steps=1):
    return {
        "steps": steps,
        "python": python,
        "c": 5,
        "ops": 1,
        "session runs": 0,
        "traces": 0,
        "functions": {"keras/trainer.py": functions or {"step": [1, 14, 2]}},
    }


@pytest.mark.parametrize(
    "value", [None, "a call takes 2 s", [], {"steps": 0}, {**counts(), "functions": {"a": {"b": [1]}}}]
)
def test_what_is_not_a_count_is_no_work(value):
    assert read_work(value) is None


def test_counts_are_per_step_and_functions_called_more_often_come_first():
    launches = [
        replace(launch, observations={"work": counts(11 if launch.round == 2 and launch.cell == OLD else 10, steps=2)})
        for launch in rounds({OLD: 0.01, NEW: 0.03})
    ]
    work = Results(run([OLD, NEW]), launches).work
    assert work.keys() == {NEW}
    assert work[NEW].counts["python"] == 5.0
    old = read_work(counts(functions={"step": [1, 14, 2], "loop": [1, 6, 4], "gone": [1, 0, 0]}))
    new = read_work(counts(functions={"step": [1, 34, 2], "loop": [1, 9, 7], "reset": [1, 19, 3], "clear": [2, 8, 8]}))
    assert compare_functions(new, old) == [
        ("keras/trainer.py", "reset", 1.0, 20.0),
        ("keras/trainer.py", "clear", 2.0, 10.0),
        ("keras/trainer.py", "loop", 0.0, 3.0),
        ("keras/trainer.py", "gone", -1.0, -1.0),
    ]
