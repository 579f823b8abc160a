"""An untrusted script's strings, in every way in which a run can be shown: harmless, and bounded.

The run's scenario is called `<script>alert(1)</script>`, values of its axes hold a pipe, a line feed and a formula, and
an error holds terminal sequences and 10 MB, as does a standard error that ends code blocks and elements.
"""

import csv
import io
import json
import re
from collections import Counter
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from harness.analysis.results import Results
from harness.report import sections, terminal
from harness.report.formats import list_formats, render
from tests.report.formats.examples import HOSTILE, hostile

#: More characters than this of a run of six cells are no report.
MOST = 100_000

#: The elements that our Markdown has on purpose.
OURS = re.compile(r"</?(?:details|summary|sub)>")
PICTURE = re.compile(
    r'<picture>\n<source media="[^"<>]+" srcset="charts/[\w-]+-dark\.svg">\n'
    r'<img alt="[^"<>]*" src="charts/[\w-]+\.svg">\n</picture>\n?'
)


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """The run in each format; `terminal` is what is printed."""
    results = Results(*hostile())
    out = io.StringIO()
    terminal.show(sections.build(results), Console(file=out, width=120))
    # the page has tests of its own, in a browser
    formats = [format for format in list_formats() if format != "html"]
    return {"terminal": out.getvalue(), **{format: render(format, results) for format in formats}}


def test_every_format_is_bounded_has_no_control_character_and_does_not_lose_the_run(texts):
    control = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
    for format, text in texts.items():
        assert not control.search(text), format
        assert len(text.encode()) < MOST, format
        # rich breaks lines, and each format has its own way to write markup
        assert re.search(r"alert(\\)?\(1(\\)?\)", "".join(text.split())), format


@pytest.mark.parametrize("format", ["md", "summary"])
def test_githubs_markdown_has_every_table_and_no_element_and_no_heading_but_ours(format, texts):
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(texts[format])
    inline = [child for token in tokens for child in token.children or ()]
    # no cell of a table is lost
    blocks = [block.splitlines() for block in re.findall(r"(?:^\|.*\|$\n?)+", texts[format], re.MULTILINE)]
    cells = [len(re.findall(r"(?<!\\)\|", line)) - 1 for block in blocks for line in block[2:]]
    counts = Counter(token.type for token in tokens)
    assert (counts["table_open"], counts["td_open"]) == (len(blocks), sum(cells))
    # folded blocks open and close in turn
    html = [token.content for token in tokens if token.type == "html_block" and not PICTURE.fullmatch(token.content)]
    folds = [content.strip().split(">")[0] for content in html]
    assert folds == ["<details", "</details"] * (len(folds) // 2)
    elements = [*html, *(token.content for token in inline if token.type == "html_inline")]
    assert all(
        re.fullmatch(r"\s*", OURS.sub("", re.sub(r"<summary>[^<]*</summary>", "", element))) for element in elements
    )
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if heading.startswith(("d", "big"))]
    links = [child.attrs.get("href", "") for child in inline if child.type == "link_open"]
    assert not [link for link in links if not str(link).startswith("https://")]


def test_a_terminal_json_and_csv_have_text_alone(texts):
    assert "\x1b" not in texts["terminal"]
    assert max(len(line) for line in texts["terminal"].splitlines()) <= 120
    assert "<" not in texts["json"]
    assert json.loads(texts["json"])["run"]["scenarios"][0] == HOSTILE
    lines = list(csv.reader(io.StringIO(texts["csv"], newline="")))
    assert not [cell for line in lines for cell in line if cell.startswith(("=", "+", "@", "\t"))]
