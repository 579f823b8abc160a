"""Words on standard input, in chunks of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import words as kit_words
from kit.words import END, TURN, WordError, Words

WORDS = st.one_of(st.sampled_from([TURN, END]), st.integers(0, 10**9 - 1))


def reading(text, sizes):
    """Words that come in chunks of these sizes, over and over, and then end."""
    rest = [text]

    def read(_, most):
        size = min(most, next(turns))
        chunk, rest[0] = rest[0][:size], rest[0][size:]
        return chunk

    turns = (size for _ in iter(int, 1) for size in sizes)
    return read


@given(st.lists(WORDS, max_size=20), st.lists(st.integers(1, 100), min_size=1))
def test_words_are_read_as_they_were_told(told, sizes):
    text = "".join(f"alone {word}\n" if isinstance(word, int) else f"{word}\n" for word in told).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit_words.os, "read", reading(text, sizes))
        words = Words(-1)
        assert [words.next() for _ in told] == told
        with pytest.raises(KeyboardInterrupt):
            words.next()


@given(st.binary(max_size=300), st.lists(st.integers(1, 100), min_size=1))
def test_whatever_is_told_is_a_word_or_none_or_the_end(text, sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit_words.os, "read", reading(text, sizes))
        words = Words(-1)
        with pytest.raises((WordError, KeyboardInterrupt)):  # noqa: PT012, it may hold words before that
            while True:
                assert words.next() in (TURN, END) or text.startswith(b"alone ") or b"\nalone " in text
