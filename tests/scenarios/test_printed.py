"""A script's output on a terminal, and the numbers in it."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kit.printed import SECONDS, NumberError, find_numbers, read_number, render_output

PLAIN = st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\x1b\r\b\n"), max_size=8)
OUTPUT = st.lists(
    st.one_of(
        PLAIN, st.sampled_from(["\r", "\n", "\b", "\b\b\b", "\x1b[K", "\x1b[2K", "\x1b[1A", "\x1b[9C", "\x1b[J"])
    ),
    max_size=30,
).map("".join)


SCREENS = {
    "1/3\r2/3\r3/3 12 ms\n": "3/3 12 ms\n",
    "took 1234\rtook 7\n": "took 7\n",
    "10/10 - ETA: 3s" + "\b" * 15 + "\r10/10 - 1s 2ms/step\n": "10/10 - 1s 2ms/step\n",
    "windows\r\nlines\r\n": "windows\nlines\n",
    "left\r": "left",
    "|\b/\b-": "-",
    "50 %\x1b[2K\r100 %": "100 %",
    "abc\x1b[2D\x1b[K": "a",
    "one\ntwo\x1b[1A\rONE\n": "ONE\ntwo",
    "\x1b[1;31mred\x1b[0m\x1b]0;title\x07 text": "red text",
    "a\x1b[999999C": "a",
}


def test_a_line_is_what_a_terminal_shows_in_the_end():
    assert {output: render_output(output) for output in SCREENS} == SCREENS


@given(OUTPUT)
@example("\x1b[")
@example("a\x1b[3Gb\x1b[1K")
def test_the_screen_has_no_control_characters_and_shows_itself(output):
    screen = render_output(output)
    assert not re.search("[\x1b\r\b]", screen)
    assert render_output(screen) == screen


NUMBERS = {
    "916us/step": (916e-6, "s"),
    "1ms/step": (1e-3, "s"),
    "12.5 ms,": (12.5e-3, "s"),
    "3 \u00b5s": (3e-6, "s"),
    "1,200.5ms": (1.2005, "s"),
    "1min 2s": (62.0, "s"),
    "1h 2min 3.5s": (3723.5, "s"),
    "0:01:02.5": (62.5, "s"),
    "1 day, 0:00:01": (86401.0, "s"),
    "01:40<00:00": (100.0, "s"),
    "31 steps/sec": (31.0, ""),
    "3 min 2 max 5": (3.0, ""),
    "12 samples": (12.0, ""),
    "5 s_per_step": (5.0, ""),
    " 7": (7.0, ""),
}


def test_a_unit_right_behind_a_number_is_read():
    assert {text: read_number(text, 0, len(text)) for text in NUMBERS} == NUMBERS


@given(st.integers(1, 10**6), st.sampled_from(sorted(SECONDS)), st.sampled_from(["", " "]), st.text("/),;:. \n"))
def test_every_unit_is_converted_to_seconds(count, unit, space, after):
    text = f"{count}{space}{unit}{after}"
    number, kind = read_number(text, 0, len(text))
    assert (number, kind) == (pytest.approx(count * SECONDS[unit]), "s")


def test_the_unit_behind_a_group_is_read_and_units_of_one_number_are_mixed_but_not_with_none():
    text = "10/10 - 0s 916us/step\n10/10 - 0s 1ms/step\n"
    assert find_numbers(text, r"(\d+)[mu]s/step", ["step"]) == {"step": ([916e-6, 1e-3], "s", None)}
    with pytest.raises(NumberError, match=r"0\.002 s and 5 without a unit for 'took'"):
        find_numbers("took 2 ms\ntook 5\n", r"took (\S+)", ["took"])
    assert find_numbers("took 2 ms\ntook 0\n", r"took (\S+)", ["took"]) == {"took": ([0.002, 0.0], "s", None)}


LABELS = {
    "num_calls = None, cost: 1\nnum_calls = 2, cost: 2\n": ["num_calls", ["None", "2"], False],
    "half took 3\nsingle took 4\n": ["label", ["half", "single"], False],
    "two words: 3\nsingle: 4\n": ["label", ["two words", "single"], False],
    "batch 32 lr 0.1: 5\nbatch 64 lr 0.2: 7\n": ["label", ["batch 32, lr 0.1", "batch 64, lr 0.2"], False],
    "image 0 3\nimage 1 4\nimage 2 4\n": ["image", ["0", "1", "2"], True],
    "Epoch 1/2 3\nEpoch 2/2 4\n": ["Epoch", ["1/2", "2/2"], True],
    "batch 32 3\nbatch 64 4\n": ["batch", ["32", "64"], False],
    "epoch 1 - 9s 3\nepoch 1 - 8s 4\n": None,
    "eta 9s 50% 3\neta 0:08 60% 4\n": None,
    "1\n2\n": None,
    "same 1\nsame 2\n": None,
    "Size: (64, 8)\n3\n4\n\nSize: (96, 8)\n5\n": ["Size", ["64", "64", "96"], False],  # in the lines above
    "loss: 0.5,\ntook 3\nloss: 0.25,\ntook 4\n": None,
    "epoch 1/2:\ntook 3\nepoch 2/2:\ntook 4\n": None,
}


def test_labels_are_the_words_in_front_of_a_number_that_differ():
    found = {text: find_numbers(text, r"(\d+)$", ["n"])["n"][2] for text in LABELS}
    assert found == LABELS
    named = find_numbers("a 2 took 5\nb 4 took 6\n", r"(?P<label>\d) took (\S+)", ["took"])
    assert named == {"took": ([5.0, 6.0], "", ["label", ["2", "4"], False])}
