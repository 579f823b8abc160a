"""Lists of CPUs, as people and the kernel write them; places; JSON that a terminal shows."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.texts import (
    LISTED,
    NEAREST,
    cpu_list,
    json_escaped,
    nearest,
    ordinal,
    parse_cpus,
    there_are,
    without_password,
)


@pytest.mark.parametrize(
    ("text", "cpus"), [("0-3,8", {0, 1, 2, 3, 8}), ("5", {5}), ("1,", {1}), (" 1 , 2 ", {1, 2}), ("", set())]
)
def test_a_list_is_numbers_and_ranges(text: str, cpus: set[int]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["x", "1-", "-1", "0-x", "0-99999999", "1.5"])
def test_what_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="CPU"):
        parse_cpus(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (112, "112th"), (1203, "1,203rd")],
)
def test_the_place_of_a_number(number: int, text: str) -> None:
    assert ordinal(number) == text


def test_of_near_names_the_one_with_the_same_letters_is_meant() -> None:
    assert nearest("modle", ["mode", "model", "module"]) == "model"
    assert nearest("mod", ["mode", "model"]) == "mode"


def test_of_many_names_only_the_nearest_are_listed() -> None:
    few = [f"name_{number}" for number in range(LISTED)]
    assert there_are("name_3", few, "harness list") == f"There are: {', '.join(few)}."
    told = there_are("nmae_12", [*few, "name_12"], "harness list")
    assert told.startswith(f"There are {LISTED + 1}, such as name_12, ")
    assert told.endswith(" To see all: harness list")
    assert told.count("name_") == NEAREST


@given(st.sets(st.integers(0, 300)))
def test_what_is_written_is_read_again(cpus: set[int]) -> None:
    assert parse_cpus(cpu_list(cpus)) == cpus


def test_numbers_that_follow_one_another_are_joined() -> None:
    assert cpu_list([8, 2, 0, 1, 10]) == "0-2, 8, 10"


@given(st.recursive(st.text(st.characters()), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_escaped_json_is_the_same_document(value: object) -> None:
    text = json.dumps(value, ensure_ascii=False, indent=1)
    assert json.loads(json_escaped(text)) == value
    assert json_escaped(text).replace("\n", "").isprintable()


def test_what_acts_on_a_terminal_is_escaped_in_json() -> None:
    assert json_escaped('["\x9b2J \u202e \x7f \U000e0041 ü €"]') == r'["\u009b2J \u202e \u007f \udb40\udc41 ü €"]'


@pytest.mark.parametrize("password", ["", "me@", "me:secret@", "me:se@cret@"])
def test_a_password_is_not_shown(password: str) -> None:
    assert without_password(f"-e x@https://{password}example.org/x@main") == "-e x@https://example.org/x@main"
