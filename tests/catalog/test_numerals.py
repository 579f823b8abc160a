import datetime
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.numerals import is_json, is_number, number_text


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (1024.0, "1024"), (0.5, "0.5"), (1e-05, "1e-05"), (-3.0, "-3"), (2**60 + 1, "1152921504606846977")],
)
def test_a_number_has_no_zeros_that_say_nothing(number: float, text: str) -> None:
    assert number_text(number) == text


@given(st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False))
def test_the_text_is_the_number_again(number: float) -> None:
    assert float(number_text(number)) == number


def test_what_is_no_finite_number() -> None:
    assert not any(map(is_number, [True, "1", None, math.inf, math.nan, [1], 10**400]))


@given(st.recursive(st.booleans() | st.text() | st.integers() | st.floats() | st.dates(), st.lists))
def test_what_is_json_can_be_written_as_it(value: object) -> None:
    if is_json(value):
        assert json.loads(json.dumps(value, allow_nan=False)) == value


def test_a_date_is_no_json() -> None:
    assert not is_json({"day": [datetime.date(2026, 11, 21)]})
