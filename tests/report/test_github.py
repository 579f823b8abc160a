"""report.md as GitHub's Markdown: tables, folded blocks and pictures come out as they are meant."""

import re
from collections import Counter

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from harness.analysis.results import Results
from harness.report import sections
from harness.report.blocks import Section
from harness.report.markdown import render_full
from tests.report.formats.examples import example


@pytest.fixture(scope="module")
def report() -> list[Section]:
    return sections.build(Results(*example()))


@pytest.fixture(scope="module")
def tokens(report: list[Section]) -> list[Token]:
    return MarkdownIt("gfm-like", {"linkify": False}).parse(render_full(report))


def inline(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in token.children or ()]


def test_every_table_is_one_and_no_cell_is_lost(report, tokens):
    blocks = re.findall(r"(?:^\|.*\|$\n?)+", render_full(report), re.MULTILINE)
    counts = Counter(token.type for token in tokens)
    assert counts["table_open"] == len(blocks) > 5
    lines = sum(len(block.splitlines()) - 1 for block in blocks)
    assert counts["tr_open"] == lines
    cells = sum(len(re.findall(r"(?<!\\)\|", line)) - 1 for block in blocks for line in block.splitlines()[2:])
    assert counts["td_open"] == cells
    assert not [token.content for token in inline(tokens) if token.type == "text" and token.content.startswith("|")]


def test_folded_blocks_open_and_close_in_turn_and_what_is_in_them_is_markdown(tokens):
    elements = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert elements
    assert [element.split(">")[0] for element in elements] == ["<details", "</details"] * (len(elements) // 2)
    assert all("</summary>" in element for element in elements[::2])
    # and no other element is in it
    assert {token.content for token in inline(tokens) if token.type == "html_inline"} <= {"<sub>", "</sub>"}
