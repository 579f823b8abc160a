from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.model.errors import FileError, UsageError
from harness.package_data import load_kit_module
from harness.scenarios import script_sources, scripts
from harness.scenarios.pasted import find_programs
from tests.errors import catch_text

THREADS = sorted((Path(__file__).parent / "threads").iterdir())
SESSION = "x = 1\nfor i in (x,):\n    x += i\n\nx\n"


@pytest.mark.parametrize(
    ("pasted", "name", "code"),
    [
        (">>> x = 1\n>>> for i in (x,):\n...     x += i\n...\n>>> x\n2", "a.py", SESSION),
        ("Python 3.8\n[GCC 9] on linux\n>>> x = 1\n>>> x\n1", "a.py", "\n\nx = 1\nx\n"),
        ("In [1]: x = 1\nIn [2]: for i in (x,):\n   ...:     x += i\n   ...:\nIn [3]: x\nOut[3]: 2", "a.py", SESSION),
        ("In [1]:\nx = 1\n\nIn [2]:\nx\nOut[2]: 1", "a.py", "\nx = 1\n\n\nx\n"),
        ("x = 1\n>>> y = x\n>>> y\n1", "a.py", "x = 1\ny = x\ny\n"),
        ("1 if f():\n2     x = 1\n3 x", "a.py", "if f():\n    x = 1\nx"),
        ("if 1:\n\u00a0\u00a0x = 1\u200b", "a.py", "if 1:\n  x = 1"),
        ("```\n>>> x = f()\n```", "a.py", "\nx = f()\n"),
        ("# Slow\n\n```text\nimport a\n```\n```sh\nls\n```\n- yes", "issue.md", "\n\n\nimport a\n\n\n\n\n"),
        ("```\nimport a\na.b()\n```\nand\n```\nx = a.c\n```", "issue.md", "\nimport a\na.b()\n\n\n\nx = a.c\n"),
        ("```\nimport a\na.b()\n\nb took 3 s\n```", "issue.md", "\nimport a\na.b()\n\n\n"),
        ("It\n\n    import a\n    a.b()\n\nis slow", "issue.md", "\n\nimport a\na.b()\n\n"),
        ("> It is slow:\n> import a\n> a.b()\n\nIs it?", "mail.txt", "\nimport a\na.b()\n\n"),
        ("$ time python3 -c 'import a; a.b()'\n\nreal 3 s", "a.txt", "import a; a.b()\n\n"),
        ("<html>\n<pre>import a\nif a &lt; 3: a.b()</pre>\n</html>", "a.html", "\nimport a\nif a < 3: a.b()\n"),
        ("import a\na.b()\n", "a.txt", "import a\na.b()\n"),
        ("It is slow:\n`import a`\n`a.b()`\nThanks\n", "a.txt", "\nimport a\na.b()\n\n"),
        ("% time python -c 'import a'\npython -c 'import a'  4.7s user 0.8s system 116% cpu", "a.txt", "import a\n"),
        (
            "Slow:\n\n    x = np.ones(3)\n    print x  # three\n",
            "a.md",
            "\nimport numpy as np\nx = np.ones(3)\nprint(x)  # three\n",
        ),
        (
            "```\ndef f():\n    device('/device:GPU:1')\nif __name__ == 'main':\n    f()\n```",
            "a.md",
            "\ndef f():\n    device('/cpu:0')\nif __name__ == '__main__':\n    f()\n",
        ),
    ],
)
def test_what_people_save_becomes_code_with_the_same_line_numbers(pasted, name, code, tmp_path):
    path = tmp_path / name
    path.write_text(pasted)
    source = script_sources.read(path)
    assert list(source.programs.values()) == [code]
    assert bool(source.sentences) == (pasted != code)


@pytest.mark.parametrize("path", THREADS, ids=lambda path: path.name)
def test_saved_threads_become_programs_or_advice(path, snapshot):
    try:
        source = script_sources.read(path)
    except UsageError as raised:
        error = raised
    else:
        error = None
    if error:
        assert str(error).replace(str(path.parent), "") == snapshot
        return
    numbers = {
        first: [number for number, line in enumerate(text.split("\n"), 1) if line.strip()]
        for first, text in source.programs.items()
    }
    ends = {first: lines[-1] for first, lines in numbers.items()}
    assert [ends, source.sentences, source.compares, source.is_command] == snapshot
    for text in source.programs.values():
        compile(text, path.name, "exec")


def test_a_thread_with_several_programs_has_those_with_tensorflow_each_once():
    program = "```\nimport tensorflow as tf\nprint(tf.{})\n```\n"
    torch = "```\nimport torch\ntorch.add(1)\n```\n"
    thread = f"A:\n{program.format('a')}B is slower than A:\n{program.format('b')}Again:\n{program.format('a')}{torch}"
    pasted = find_programs(thread, is_python=False)
    assert ([block.first for block in pasted.programs], pasted.compares) == ([3, 8], True)
    assert pasted.sentences[-1] == "Left out: the code in lines 17 to 18."


def test_fragments_without_imports_get_the_usual_ones():
    fragments = ["x = tf.zeros(xrange(3))", "x = torch.zeros(3)", "y = pd.DataFrame(x)"]
    pasted = find_programs("".join(f"```\n{fragment}\n```\n" for fragment in fragments), is_python=False)
    (program,) = pasted.programs
    assert (program.format(), pasted.sentences[-1]) == (
        "\nx = tf.zeros(xrange(3))\n\n\n\n\n\ny = pd.DataFrame(x)",
        "Left out: the code in line 5.",
    )
    definitions = load_kit_module("names").complete(program.format())
    assert definitions == ["import tensorflow as tf", "xrange = range", "import pandas as pd"]


def test_an_error_in_code_is_reported_and_not_cut_off(tmp_path):
    for language in ("python", "shell"):
        path = tmp_path / f"{language}.md"
        path.write_text(f"Slow:\n\n```{language}\nimport a\nx = a.b(\na.c()\n```\n")
        script = scripts.Script(path=path, name="a.py", text=next(iter(script_sources.read(path).programs.values())))
        assert f"{path}:5: This is not valid Python" in catch_text(FileError, scripts.check, script)


def test_documentation_in_a_script_is_not_taken_for_pasted_text():
    for script in (
        '"""\n>>> f()\n1\n"""\ny = 2',
        'x = 1\n"""\n>>> f()\n1\n"""\ny = = 2',
        '"""\n```\nx\n```\n"""\ny = = 2',
        "x = '\u00a0'",
    ):
        pasted = find_programs(script, is_python=True)
        assert ([block.format() for block in pasted.programs], pasted.sentences) == ([script], [])


@given(st.text(), st.booleans())
@example("\u00a0", True)
def test_any_text_has_programs_or_none(text, is_python):
    pasted = find_programs(text, is_python=is_python)
    assert pasted.programs or not is_python
