from pathlib import Path

import pytest

from harness.catalog.block import read
from harness.model.problem import FileError

SCRIPT = """\
#!/usr/bin/env python
# /// script
# requires-python = ">=3.6"
#
# [tool.harness]
# title = "A step"
# ///
import this
"""


def problem(text: str) -> str:
    with pytest.raises(FileError) as caught:
        read(text, Path("step.py"))
    (found,) = caught.value.problems
    return str(found)


def test_the_block_is_toml_whose_lines_are_those_of_the_file() -> None:
    found = read(SCRIPT, Path("step.py"))
    assert found.table == {"requires-python": ">=3.6", "tool": {"harness": {"title": "A step"}}}
    assert found.places.line(("tool", "harness", "title")) == 6


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (SCRIPT, "import this\n", "step.py:1: There is no `# /// script` header (PEP 723). Begin the file with"),
        (SCRIPT, "", "step.py:1: There is no"),
        ("# /// script", "# /// other", "step.py:1: There is no"),
        ("# [tool", "#[tool", "step.py:5: The header that begins in line 2 is broken off here. Begin each"),
        ("#\n", "\n", "step.py:4: The header that begins in line 2 is broken off here."),
        ("# ///\nimport", "import", "step.py:7: The header that begins in line 2 is broken off here."),
        ("import this\n", SCRIPT, "step.py:9: This is a second `# /// script` header. A file has one"),
        ('"A step"', "A step", "step.py:6: This is not valid TOML: Invalid value. The line is `title = A step`"),
        ('"A step"', '"A step', "step.py:6: This is not valid TOML:"),
        ('"A step"', '["A step"', "step.py:6: This is not valid TOML:"),
        ("title", "requires = 1\n# requires", "step.py:7: This is not valid TOML: Cannot overwrite a value"),
    ],
)
def test_what_is_no_header_is_told_with_its_line(old: str, new: str, told: str) -> None:
    assert old in SCRIPT
    assert problem(SCRIPT.replace(old, new, 1)).startswith(told)


def test_a_header_of_nothing_is_told() -> None:
    assert problem("# /// script\n# ///\n").startswith("step.py:1: The header has no end, or nothing in it.")
