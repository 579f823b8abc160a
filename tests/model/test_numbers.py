"""The ranges of numbers that come in."""

import math

from hypothesis import given
from hypothesis import strategies as st

from harness.model.numbers import AMOUNT, MOST, SAMPLE, find_problem, is_amount


@given(st.floats())
def test_no_number_in_a_range_makes_infinity(value):
    if value in SAMPLE or (is_amount(value) and value):
        assert 0.0 < value**2 < math.inf
        assert math.isfinite(AMOUNT.most / value)
        assert math.isfinite(math.log(value))


def test_what_is_no_amount_and_what_a_scenario_may_observe():
    for value in (math.nan, math.inf, -1.0, 5e-324, 1e200):
        assert not is_amount(value)
        assert value not in SAMPLE
    for value in (None, True, "x", 3, -2.5, 2**64, 5e-324, 0, [], {}, {"a": [1, {"b": None}]}, MOST, -MOST):
        assert find_problem(value) == "", value
    for value in (math.nan, math.inf, 10**400, 10 * MOST, [[-math.inf]], {"a": {"b": 10**101}}):
        assert find_problem(value) == "a number is not within ±1.00·10¹⁰⁰"
    value: object = 1
    for _ in range(32):
        value = [value]
    assert find_problem(value) == ""
    assert find_problem({"a": value}) == "a value is nested deeper than 32"
