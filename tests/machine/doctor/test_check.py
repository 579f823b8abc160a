"""A check's outcome."""

import pytest

from harness.machine.doctor.check import Level, format_number, grade, make_result


def test_a_threshold_belongs_to_what_is_worse() -> None:
    assert [grade(value, 1.0, 3.0) for value in (0.99, 1.0, 2.99, 3.0)] == ["good", "warn", "warn", "bad"]


@pytest.mark.parametrize("level", Level)
def test_nothing_is_advised_where_nothing_is_known_to_be_wrong(level: Level) -> None:
    check = make_result("power", level, "value", {}, advice="Plug it in.", command="plug")
    assert (check.advice, check.command) == (("Plug it in.", "plug") if level in ("warn", "bad") else ("", ""))


@pytest.mark.parametrize(("value", "words"), [(0.0, "0"), (0.423, "0.42"), (9.96, "10"), (12.3, "12"), (130.4, "130")])
def test_numbers_have_two_digits(value: float, words: str) -> None:
    assert format_number(value) == words
