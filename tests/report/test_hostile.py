"""An untrusted script's strings, in every way in which a run can be shown: harmless, and bounded.

The run's scenario is called `<script>alert(1)</script>`, values of its axes hold a pipe, a line feed and a formula, and
an error holds terminal sequences and 10 MB, as does a standard error that ends code blocks and elements.
"""

import csv
import io
import json
import re
import tempfile
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pyperf
import pytest
from markdown_it import MarkdownIt
from rich.console import Console

from harness.analysis.results import Results
from harness.report import sections, terminal
from harness.report.blocks import find_pictures
from harness.report.formats import list_formats, render
from tests.report.formats.examples import HOSTILE, hostile

#: More characters than this of a run of six cells are no report.
MOST = 100_000

#: The elements that our Markdown has on purpose.
OURS = re.compile(r"</?(?:details|summary|sub)>")


@pytest.fixture(scope="module")
def shown() -> Callable[[str], str]:
    """The run in one format, each rendered once; `terminal` is what is printed."""
    made: dict[str, str] = {}

    def render_once(format: str) -> str:
        if format not in made:
            made[format] = _terminal() if format == "terminal" else render(format, Results(*hostile()))
        return made[format]

    return render_once


def _terminal() -> str:
    out = io.StringIO()
    terminal.show(sections.build(Results(*hostile())), Console(file=out, width=120))
    return out.getvalue()


#: The page has tests of its own, in a browser.
EVERY = [*(format for format in list_formats() if format != "html"), "terminal"]


def test_the_run_is_hostile() -> None:
    run, launches = hostile()
    assert run.scenarios[0].name == HOSTILE
    assert any("|" in value for values in run.scenarios[0].axes.values() for value in values)
    assert any("\x1b" in launch.error for launch in launches)
    assert max(len(launch.stderr) for launch in launches) > 10_000_000


@pytest.mark.parametrize("format", EVERY)
def test_no_format_has_a_control_character(format: str, shown: Callable[[str], str]) -> None:
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]", shown(format))


@pytest.mark.parametrize("format", EVERY)
def test_every_format_is_bounded(format: str, shown: Callable[[str], str]) -> None:
    assert len(shown(format).encode()) < MOST


@pytest.mark.parametrize("format", EVERY)
def test_no_format_loses_the_run(format: str, shown: Callable[[str], str]) -> None:
    # rich breaks lines, and each format has its own way to write markup
    assert re.search(r"alert(\\)?\(1(\\)?\)", "".join(shown(format).split()))


@pytest.mark.parametrize("format", ["md", "summary"])
def test_markdown_has_no_element_and_no_heading_but_ours(format: str, shown: Callable[[str], str]) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(shown(format))
    inline = [child for token in tokens for child in token.children or ()]
    elements = [token.content for token in [*tokens, *inline] if token.type in {"html_block", "html_inline"}]
    assert all(re.fullmatch(r"\s*", OURS.sub("", _without_summaries(element))) for element in elements)
    headings = [after.content for token, after in pairwise(tokens) if token.type == "heading_open"]
    assert not [heading for heading in headings if heading.startswith(("d", "big"))]
    links = [child.attrs.get("href", "") for child in inline if child.type == "link_open"]
    assert not [link for link in links if not str(link).startswith("https://")]


def _without_summaries(element: str) -> str:
    """What a summary says is text of the element's own, and holds no `<`."""
    return re.sub(r"<summary>[^<]*</summary>", "", element)


@pytest.mark.parametrize("format", ["md", "summary"])
def test_a_pipe_is_no_cells_end(format: str, shown: Callable[[str], str]) -> None:
    for block in re.findall(r"(?:^\|.*\|$\n?)+", shown(format), re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}) == 1


def test_what_ends_a_code_block_does_not_end_ours(shown: Callable[[str], str]) -> None:
    tokens = MarkdownIt("gfm-like", {"linkify": False}).parse(shown("md"))
    (said,) = [token.content for token in tokens if token.type == "fence" and token.info == "text"]
    assert said.endswith("````\nend\n")


def test_a_terminal_is_told_text_alone(shown: Callable[[str], str]) -> None:
    assert "red|" in shown("terminal")
    assert max(len(line) for line in shown("terminal").splitlines()) <= 120


def test_json_may_stand_in_a_page(shown: Callable[[str], str]) -> None:
    assert "<" not in shown("json")
    assert json.loads(shown("json"))["run"]["scenarios"][0] == HOSTILE


def test_csv_has_no_formula_and_as_many_cells_in_every_line(shown: Callable[[str], str]) -> None:
    lines = list(csv.reader(io.StringIO(shown("csv"), newline="")))
    assert len({len(line) for line in lines}) == 1
    assert not [cell for line in lines for cell in line if cell.startswith(("=", "+", "@", "\t"))]


def test_junit_is_xml_whose_strings_are_text(shown: Callable[[str], str]) -> None:
    root = ElementTree.fromstring(shown("junit"))
    known = {
        "testsuites",
        "testsuite",
        "testcase",
        "properties",
        "property",
        "error",
        "failure",
        "skipped",
        "system-err",
    }
    assert {element.tag for element in root.iter()} <= known


def test_pyperf_reads_it(shown: Callable[[str], str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "suite.json")
        path.write_text(shown("pyperf"))
        assert len(pyperf.BenchmarkSuite.load(str(path))) == 5


def test_the_action_puts_no_markup_into_its_table(shown: Callable[[str], str]) -> None:
    # names stand between backticks there, where `<` is no markup
    for load in json.loads(shown("benchmark-action")):
        assert not set("|`\n") & set(load["name"])


def test_pictures_are_text_too() -> None:
    for picture in find_pictures(sections.build(Results(*hostile()))):
        text = picture.svg()
        assert "<script" not in text
        assert re.fullmatch(r"charts/[A-Za-z0-9_-]+\.svg", picture.file)
        assert len(text) < MOST
        ElementTree.fromstring(text)
