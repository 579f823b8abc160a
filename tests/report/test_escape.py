"""Untrusted strings made harmless."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.escape import (
    LINE_CHARACTERS,
    PARAGRAPH_CHARACTERS,
    clean,
    dump_json,
    escape_terminal,
    html,
    link,
    make_fenced_block,
    markdown,
    sanitize,
)


def test_terminal_sequences_go_and_lines_are_bounded():
    texts = {
        "\x1b[31mred\x1b[0m": "red",
        "\x9b2Jgone": "gone",
        "\x1b]0;title\x07text": "text",
        "\x1b]8;;http://example.org\x1b\\link\x1b]8;;\x1b\\": "link",
        "a\x08\x00b\u202ec": "abc",
        "torn \x1b": "torn ",
        "kept\n\tboth": "kept\n\tboth",
    }
    assert {text: clean(text) for text in texts} == texts
    assert sanitize({"\x1b[31mred": ["\x00a\n\tb"]}) == {"red": ["a\n\tb"]}
    assert escape_terminal(" a\r\nb\t c ") == "a b c"
    assert len(escape_terminal("x" * 10_000_000)) == LINE_CHARACTERS
    assert sanitize("x" * 10_000_000) == "x" * PARAGRAPH_CHARACTERS


def test_markdown_and_html_show_the_text_as_it_is():
    texts = {
        "<script>alert(1)</script>": "&lt;script&gt;alert(1)&lt;/script&gt;",
        "a|b": "a\\|b",
        "`code`": "\\`code\\`",
        "[here](javascript:x)": "\\[here\\](javascript:x)",
        "**bold** _it_": "\\*\\*bold\\*\\* \\_it\\_",
        "train_on_batch": "train_on_batch",
        "a\\|b": "a\\\\\\|b",
        "R&D\nline": "R&amp;D line",
        "@someone": "@\u200bsomeone",
        "5.52 ± 0.08": "5.52 ± 0.08",
    }
    assert {text: markdown(text) for text in texts} == texts
    assert html("<a title=\"x\" o='y'>&") == "&lt;a title=&quot;x&quot; o=&#39;y&#39;&gt;&amp;"


@given(st.text(alphabet="`~a\n\x1b"))
def test_a_fence_cannot_be_closed_by_what_it_holds(text):
    first, *body, last = make_fenced_block(text).split("\n")
    fence = first.removesuffix("text")
    assert last == fence
    assert not any(line.strip().startswith(fence) for line in body)


def test_only_web_addresses_become_links_and_stay_in_them():
    for address in ("javascript:alert(1)", "data:text/html,x", "no address", "http://[broken", ""):
        assert "](" not in link("source", address), address
    assert link("source", "https://example.org/a b)(<x>|`") == "[source](https://example.org/a%20b%29%28%3Cx%3E%7C%60)"
    assert link("source", "https://example.org/a#b?c=d") == "[source](https://example.org/a#b?c=d)"


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_becomes_json_that_may_stand_in_a_page(value):
    text = dump_json(value)
    assert json.loads(text, parse_constant=pytest.fail) == sanitize(value)
    assert "<" not in text
    assert "\x1b" not in text


def test_numbers_that_are_not_finite_become_null():
    assert json.loads(dump_json([float("nan"), float("inf"), 1.5])) == [None, None, 1.5]
