"""Lists of CPUs, as people and the kernel write them; places; JSON that a terminal shows; numbers."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.texts import (
    LISTED,
    NEAREST,
    counted,
    escape_json,
    find_nearest,
    format_cpu_list,
    format_exact,
    format_number,
    format_ordinal,
    format_plain,
    list_valid_names,
    parse_cpus,
    remove_password,
)


def test_cpus_are_numbers_and_ranges_and_places_ordinals():
    lists = {"0-3,8": {0, 1, 2, 3, 8}, "5": {5}, "1,": {1}, " 1 , 2 ": {1, 2}, "": set[int]()}
    assert {text: parse_cpus(text) for text in lists} == lists
    assert format_cpu_list([8, 2, 0, 1, 10]) == "0-2, 8, 10"
    for text in ("x", "1-", "-1", "0-x", "0-99999999", "1.5"):
        with pytest.raises(ValueError, match="CPU"):
            parse_cpus(text)
    places = {1: "1st", 2: "2nd", 3: "3rd", 4: "4th", 11: "11th", 12: "12th", 13: "13th", 21: "21st", 112: "112th"}
    places[1203] = "1,203rd"
    assert {number: format_ordinal(number) for number in places} == places


def test_a_count_has_its_noun_and_its_verb():
    counts = {
        (1, "round", ""): "1 round",
        (2, "launch", "is"): "2 launches are",
        (1200, "process", ""): "1,200 processes",
    }
    counts |= {(1, "ratio", "changes"): "1 ratio changes", (0, "ratio", "changes"): "0 ratios change"}
    assert {arguments: counted(*arguments) for arguments in counts} == counts


def test_of_many_names_the_nearest_are_meant():
    assert find_nearest("modle", ["mode", "model", "module"]) == "model"
    assert find_nearest("mod", ["mode", "model"]) == "mode"
    few = [f"name_{number}" for number in range(LISTED)]
    assert list_valid_names("name_3", few, "harness list") == f"Valid names: {', '.join(few)}."
    choices = list_valid_names("nmae_12", [*few, "name_12"], "harness list")
    assert choices.startswith(f"There are {LISTED + 1} valid names, such as name_12, ")
    assert choices.endswith(" To see all: harness list")
    assert choices.count("name_") == NEAREST


@given(st.sets(st.integers(0, 300)))
def test_what_is_written_is_read_again(cpus):
    assert parse_cpus(format_cpu_list(cpus)) == cpus


@pytest.mark.slow
@given(st.recursive(st.text(st.characters()), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_escaped_json_is_the_same_document(value):
    text = json.dumps(value, ensure_ascii=False, indent=1)
    assert json.loads(escape_json(text)) == value
    assert escape_json(text).replace("\n", "").isprintable()


def test_json_is_escaped_and_passwords_are_hidden():
    assert escape_json('["\x9b2J \u202e \x7f \U000e0041 ü €"]') == r'["\u009b2J \u202e \u007f \udb40\udc41 ü €"]'
    for password in ("", "me@", "me:secret@", "me:se@cret@"):
        assert remove_password(f"-e x@https://{password}example.org/x@main") == "-e x@https://example.org/x@main"


@given(st.floats(-1e300, 1e300), st.sampled_from([format_number, format_exact, format_plain]))
def test_a_number_has_no_exponent_and_its_value(number, write):
    text = write(number)
    digits, _, power = text.replace(",", "").partition("·10")
    read = float(digits) * 10.0 ** int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0)
    assert "e" not in text.lower()
    assert read == pytest.approx(number, rel=5e-3, abs=1e-300)


def test_numbers_have_no_exponents_for_readers_and_commands():
    texts = {
        1172.0: ("1,170", "1,172", "1172"),
        1234567.0: ("1,230,000", "1,234,567", "1234567"),
        -0.5: ("-0.500", "-0.5", "-0.5"),
        0.00001234: ("0.0000123", "0.00001234", "0.00001234"),
        0.0: ("0.00", "0", "0"),
        1.5e13: ("1.50·10¹³", "1.50·10¹³", "15000000000000"),
    }
    assert {number: (format_number(number), format_exact(number), format_plain(number)) for number in texts} == texts
    # `f"{seconds:.3g}"` prints 1170 as 1.17e+03. `float(f"{seconds:.3g}")` only rounds.
    paths = [path for path in (Path(__file__).parents[2] / "harness").rglob("*.py") if path.name != "texts.py"]
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line for line in lines if re.search(r":[+,]*\.?\d*[eEgGn]}", line) and "float(f" not in line] == []
