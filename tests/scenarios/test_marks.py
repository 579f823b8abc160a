"""What of a plain script is timed as a step."""

import ast
import textwrap
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import marks
from kit.steps import Steps

from tests.errors import catch_text


def steps_of(source, functions=(), **variables):
    tree, has_steps = marks.instrument(textwrap.dedent(source), "script.py", functions)
    steps = Steps(lambda result: None)
    names = {marks.CLOCK: steps, **variables}
    exec(compile(tree, "script.py", "exec"), names)
    assert has_steps == (bool(functions) or "harness: step" in source)
    return len(steps.samples), names


def test_of_a_loop_each_pass_is_a_step_with_getting_its_item():
    source = """
        done = []
        # harness: step
        for i in items():
            if i == 1:
                continue
            if i == 3:
                break
            done.append(i)
        else:
            done.append("else")
    """
    count, names = steps_of(source, items=lambda: iter(range(9)))
    assert (count, names["done"]) == (4, [0, 2])
    assert steps_of("i = 0\nwhile i < 5:  # harness: step\n    i += 1")[0] == 5


def test_a_pass_that_raises_is_no_step():
    source = """
        for start in (0, 3):
            try:
                # harness: step
                for i in range(start, 9):
                    # an inner loop that raises is part of the outer one
                    for j in range(2):
                        if i == 5:
                            raise StopIteration
            except StopIteration:
                last = i
    """
    count, names = steps_of(source)
    assert (count, names["last"]) == (5 + 2, 5)
    inner = source.replace("for j in", "# harness: step\n                    for j in")
    assert steps_of(inner)[0] == 5 + 2
    # the next step is timed again, and a traceback has the line that raised
    assert steps_of(source + "\n        # harness: step\n        x = 1")[0] == 5 + 2 + 1
    with pytest.raises(ZeroDivisionError) as raised:
        steps_of("# harness: step\nfor i in range(3):\n    x = 1\n    x = i / 0\n    x = 2")
    assert raised.traceback[-1].lineno + 1 == 4


#: The names of functions to time, how many steps that makes, and the script.
TIMED = [
    ([], 1, "x = 1\n# harness: step\nx = x + 1\ny = x"),
    ([], 3, "for i in range(3):\n    x = i\n    # harness: step\n    y = x"),
    ([], 1, "# harness: step\nif True:\n    x = 1\n    y = 2"),
    ([], 1, "# harness: step\nx = 1\nx += 1\n# harness: end\nx += 1\nassert x == 3"),
    ([], 2, "# harness: step\ndef f():\n    return 1\nx = f() + f()"),
    (
        [],
        2,
        "import functools as f\n# harness: step\n@f.lru_cache()\ndef g(x):\n    return x\ng(1), g(2)\ng.cache_clear()",
    ),
    (["f"], 3, "def f():\n    return 1\n# harness: step\nfor i in range(3):\n    f()"),  # a step within a step
    (["f"], 2, "def f():\n    return 1\nf(); f()"),
    (["C.f"], 2, "class C:\n    def f(self):\n        return self\n    def g(self):\n        pass\nC().f().f()"),
    (["g"], 2, "class C:\n    @staticmethod\n    def g():\n        return 7\nassert C.g() == C().g() == 7"),
    (["C.g"], 1, "class C:\n    @classmethod\n    def g(cls):\n        return cls\nassert C.g() is C"),
    (["model.predict"], 2, "model.predict(1); model.predict(2); model.fit()"),
    (["predict", "fit"], 3, "model.predict(1); model.predict(2); model.fit()"),
    (["f"], 1, "def outer():\n    def f():\n        return 1\n    return f()\nouter()"),
]


def test_what_is_below_a_mark_is_a_step_and_functions_are_timed_by_their_names():
    model = SimpleNamespace(predict=lambda x: x, fit=lambda: None)
    for functions, count, source in TIMED:
        assert steps_of(source, functions, model=model)[0] == count, source


WRONG = {
    "at the end": "x = 1\n# harness: step\n",
    "indented otherwise": "if x:\n    y = 1\n    # harness: step\nz = 1",
    "unknown": "# harness: stop\nx = 1",
    "end without a step": "x = 1\n# harness: end\n",
    "end indented otherwise": "# harness: step\nfor i in y:\n    x = 1\n    # harness: end\n",
    "class": "# harness: step\nclass C:\n    pass",
    "async function": "# harness: step\nasync def f():\n    pass",
    "within a statement": "x = [  # harness: step\n1]\nf(  # fine\n2)  # harness: step",
    "unknown function": "def f():\n    g()",
}


def test_what_cannot_be_timed_is_told_with_its_line(snapshot):
    messages = {}
    for case, source in WRONG.items():
        functions = ["h"] if case == "unknown function" else []
        messages[case] = catch_text(marks.MarkError, marks.instrument, source, "script.py", functions)
    assert messages == snapshot


def test_a_text_that_looks_like_a_mark_is_none():
    source = 's = """\n# harness: step\n"""\nt = "# harness: end"'
    assert marks.marks(source) == []
    assert steps_of(source.replace("step", "stop"))[0] == 0


STATEMENTS = st.recursive(
    st.sampled_from(["x = 1", "f(x)", "pass", "y = [1,\n     2]", '"""a\n# harness\n"""']),
    lambda inner: st.builds(
        lambda head, body: head + "\n" + textwrap.indent("\n".join(body), "    "),
        st.sampled_from(["if x:", "for i in z:", "while f(x):", "def f(x):", "with x:", "class C:"]),
        st.lists(inner, min_size=1, max_size=3),
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.lists(STATEMENTS, min_size=1, max_size=4), st.data())
def test_a_mark_above_any_statement_keeps_every_other_line_and_what_it_says(statements, data):
    """The script's statements stand in the same lines with a mark as without, and no mark changes nothing."""
    source = "\n".join(statements)
    plain, has_steps = marks.instrument(source, "script.py")
    assert not has_steps
    assert ast.dump(plain) == ast.dump(ast.parse(source))
    starts = sorted({(node.lineno, node.col_offset) for node in ast.walk(plain) if isinstance(node, ast.stmt)})
    line, column = data.draw(st.sampled_from(starts))
    lines = source.split("\n")
    marked = "\n".join([*lines[: line - 1], " " * column + "# harness: step", *lines[line - 1 :]])
    below = [node for node in ast.walk(plain) if isinstance(node, ast.stmt) and node.lineno == line]
    if isinstance(below[0], ast.ClassDef):
        with pytest.raises(marks.MarkError, match="a class isn't a step"):
            marks.instrument(marked, "script.py")
        return
    tree, has_steps = marks.instrument(marked, "script.py")
    assert has_steps
    compile(tree, "script.py", "exec")
    lines_of_statements = {node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)}
    assert lines_of_statements == {node.lineno for node in ast.walk(ast.parse(marked)) if isinstance(node, ast.stmt)}
