"""Strings in data."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.escape import PARAGRAPH_CHARACTERS, dumps, harmless

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(VALUES)
def test_any_value_becomes_json_that_may_stand_in_a_page(value: Any) -> None:
    text = dumps(value)
    assert json.loads(text, parse_constant=pytest.fail) == harmless(value)
    assert "<" not in text
    assert "\x1b" not in text


def test_names_are_cleaned_as_values_are() -> None:
    assert harmless({"\x1b[31mred": ["\x00a\n\tb"]}) == {"red": ["a\n\tb"]}


def test_strings_are_bounded() -> None:
    assert harmless("x" * 10_000_000) == "x" * PARAGRAPH_CHARACTERS


def test_numbers_that_are_not_finite_become_null() -> None:
    assert json.loads(dumps([float("nan"), float("inf"), 1.5])) == [None, None, 1.5]
