import ast
import contextlib
import importlib
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.model.errors import FileError
from harness.project import Project
from harness.scenarios import notebooks
from tests.errors import catch_text

PATH = Path("a.ipynb")


def notebook(*cells: str | tuple[str, str]) -> str:
    """A notebook of these cells: code, or a kind and its text."""
    pairs = [("code", cell) if isinstance(cell, str) else cell for cell in cells]
    return json.dumps(
        {"cells": [{"cell_type": kind, "source": text.splitlines(keepends=True)} for kind, text in pairs]}
    )


def problems(*cells: str) -> list[str]:
    with pytest.raises(FileError) as raised:
        notebooks.convert_notebook(notebook(*cells), PATH)
    return [f"{problem.text} {problem.fix}" for problem in raised.value.problems]


def test_code_cells_are_one_script_and_cells_are_counted_as_the_page_shows_them():
    text, notes = notebooks.convert_notebook(notebook(("markdown", "# Title"), "x = 1", "y = x\nprint(y)"), PATH)
    assert text == "# cell 2\nx = 1\n# cell 3\ny = x\nprint(y)\n"
    assert notes == []
    # operators and texts are no magics, and a cell's own error is left to Python
    for cell in ('x = (7\n%  4)\ns = """\n!pip install x\n%timeit\n"""\nwhat = "is it?"', "x = = 1"):
        assert notebooks.convert_notebook(notebook(cell), PATH) == (f"# cell 1\n{cell}\n", [])


def test_magics_that_only_show_or_set_something_are_left_out_and_told(snapshot):
    text, notes = notebooks.convert_notebook(
        notebook("%matplotlib inline\nimport os", "%%time\nx = 1\n%time y = 2\nos?"), PATH
    )
    assert [line for line in text.split("\n") if "kit.magics" not in line and "__exit__" not in line] == [
        "# cell 1",
        "pass",
        "import os",
        "# cell 2",
        "x = 1",
        "pass",
        "",
    ]
    assert notes == snapshot


def test_a_line_that_runs_in_a_notebook_only_is_told_with_its_cell_and_what_to_do(snapshot):
    lines = [
        *("!pip install -q tensorflow==2.12", "%pip install pandas", "!wget http://example.org/data.csv"),
        *("files = !ls", "%%bash\nls", "import ipywidgets as widgets", "from google.colab import files", "display(x)"),
    ]
    assert {line.replace("\n", " / "): problems("x = 1", line) for line in lines} == snapshot
    # all packages are one environment
    for problem in problems("!pip install seaborn", "!pip install -q tensorflow==2.15"):
        assert problem.endswith("-e 'tensorflow==2.15,seaborn'")
    assert len(problems("!pip install tensorflow==2.12\nx = 1\n!ls", "import ipywidgets")) == 3


def test_timing_magics_are_measured_and_their_times_are_found(capsys, monkeypatch):
    monkeypatch.syspath_prepend(str(Project.find().scenarios))
    monkeypatch.setattr(importlib.import_module("kit.magics"), "SHORTEST", 0.0)
    names = {
        "%timeit sum(values)": "%timeit sum(values)",
        "%timeit -n 10 -r 3 sum(values)": "%timeit sum(values)",
        "%time total = sum(values)": "%time total = sum(values)",
        "time = %timeit -o -n 10 sum(values)\nassert time.best <= time.average": "%timeit sum(values)",
        "%%time\nfor value in values:\n    total = value": "%%time for value in values:",
        "%%timeit -n 10 -r 3 total = 0\ntotal += sum(values)": "%%timeit total += sum(values)",
    }
    for cell, name in names.items():
        text, _ = notebooks.convert_notebook(notebook("values = range(10)", cell), PATH)
        exec(compile(text, "a.ipynb", "exec"), {})
        (pattern,) = notebooks.make_time_patterns(text)
        (line,) = capsys.readouterr().out.splitlines()
        assert line.startswith(f"cell 2: {name}: ")
        assert float(re.match(pattern, line)[1]) >= 0.0


def test_magics_and_pasted_output_in_a_script_are_read_as_in_a_notebook(snapshot):
    pasted = "x = 1\n%timeit x + 1 // **3 ms**\n>> 210 \u00b5s \u00b1 5 \u00b5s\nCPU times: user 3 s\nWall time: 3 s"
    text, notes = notebooks.convert_program(pasted, pasted, Path("a.py"))
    assert [line.partition("(")[0] for line in text.split("\n")] == ["x = 1", "__import__", "pass", "pass", "pass"]
    assert "3 ms" not in text
    errors = catch_text(FileError, notebooks.convert_program, "x = 1\n!ls", "x = 1\n!ls", Path("a.py"))
    assert [*notes, errors] == snapshot


def test_what_is_no_notebook_is_told(snapshot):
    texts = ("", "{}", "[]", '{"cells": 3}', '{"cells": [{"source": ""}]}', "\0")
    errors = {catch_text(FileError, notebooks.convert_notebook, text, PATH) for text in texts}
    assert errors == snapshot


PYTHON = st.lists(
    st.sampled_from(["x = 1", "if x:\n    y = 2", "z = 7 \\\n % 3", "s = '''\n!ls\n%cd\n'''", "f(\n  x\n)"]), max_size=5
).map("\n".join)


@given(st.lists(PYTHON, max_size=4))
def test_cells_of_plain_python_are_kept_as_they_are(cells):
    text, notes = notebooks.convert_notebook(notebook(*cells), PATH)
    assert ast.dump(ast.parse(text)) == ast.dump(ast.parse("\n".join(cells)))
    assert notes == []


@settings(max_examples=20)
@given(st.text())
def test_any_text_is_a_cell_s_or_told_to_be_none(text):
    with contextlib.suppress(FileError):
        script, _ = notebooks.convert_notebook(notebook(text), PATH)
        assert script.startswith("# cell 1\n")
