"""The counted calls of a step: exact, the same in each pass, and left out where they are not."""

import gc
import random

from kit import counting


def leaf(values):
    return len(values) + max(values)


def middle(depth):
    return leaf([1, 2]) if depth == 0 else middle(depth - 1)


def step():
    for _ in range(3):
        leaf([1])
    return middle(2)


def look(step, steps=1):
    told = []
    calls = counting.look(step, steps, lambda result: result, lambda event, **fields: told.append((event, fields)))
    ((event, fields),) = told
    assert (event, fields["name"]) == ("observation", "work")
    return calls, fields["value"]


def test_calls_are_counted_by_function_with_all_that_is_within_them():
    calls, work = look(step, steps=2)
    assert calls == 3
    assert gc.isenabled()
    assert (work["python"], work["c"], work["steps"]) == (8, 8, 2)
    assert work["functions"] == {"test_counting.py": {"step": [1, 15, 0], "leaf": [4, 8, 8], "middle": [3, 5, 0]}}, (
        "of a recursion, only the outermost call counts what is within"
    )


def test_operations_sessions_and_traces_are_told_by_the_names_of_their_functions(monkeypatch):
    monkeypatch.setitem(counting.KINDS, "len", "ops")
    monkeypatch.setattr(counting, "TRACER", "trace")

    class Graph:
        def get_operations(self):
            return [1, 2, 3]

    def trace():
        return Graph()

    _, work = look(lambda: (step(), trace(), trace()))
    assert (work["ops"], work["session runs"], work["traces"], work["graph nodes"]) == (4, 0, 2, 6)


def test_steps_that_do_not_repeat_or_are_long_have_no_counts_and_random_numbers_change_none(monkeypatch):
    made = []
    calls, reason = look(lambda: [leaf([1]) for _ in made] + [made.append(1)])
    assert calls == 3
    assert reason.startswith("two calls of the step differ: ")
    draw = random.Random(0).randrange
    assert isinstance(look(lambda: [draw(5) for _ in range(20)])[1], dict)
    monkeypatch.setattr(counting, "MOST_CALLS", 10)
    assert look(step) == (3, "a call makes more than 10 calls")
    monkeypatch.setattr(counting, "LONGEST_SECONDS", 0.0)
    assert look(step)[1].startswith("a call takes 0.0 s")


def test_paths_do_not_depend_on_the_environment():
    for path, short in {
        "/cache/env/lib/python3.11/site-packages/keras/src/trainer.py": "keras/src/trainer.py",
        "/usr/lib/python3.7/random.py": "random.py",
        "/tmp/__autograph_generated_filek3_x9.py": "__autograph_generated_file.py",
        "/home/harness/step.py": "step.py",
        "<frozen importlib._bootstrap>": "<frozen importlib._bootstrap>",
    }.items():
        assert counting.shorten(path) == short
