"""Words on standard input, in chunks of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import words as kit_words
from kit.words import END, WordError, Words

from tests.errors import catch_text

WORDS = st.one_of(st.just(END), st.integers(1, 10**9 - 1))


def make_reader(text, sizes):
    """Words that come in chunks of these sizes, over and over, and then end."""
    rest = [text]

    def read(_, most):
        size = min(most, next(turns))
        chunk, rest[0] = rest[0][:size], rest[0][size:]
        return chunk

    turns = (size for _ in iter(int, 1) for size in sizes)
    return read


def write(word):
    return "turn\n" if word == 1 else f"turn {word}\n" if isinstance(word, int) else f"{word}\n"


@given(
    st.lists(WORDS, max_size=20),
    st.sampled_from(["", "turn", "en", "tur", "turn 2"]),
    st.lists(st.integers(1, 100), min_size=1),
)
def test_words_are_read_as_they_were_sent_and_half_a_word_is_the_end(sent, rest, sizes):
    text = "".join(map(write, sent)) + rest
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kit_words.os, "read", make_reader(text.encode(), sizes))
        words = Words(-1)
        assert [words.next() for _ in sent] == sent
        with pytest.raises(KeyboardInterrupt):
            words.next()


UNKNOWN = ["", "stop", "end 1", "turn ", "turn two", "turn -1", "turn 1 2", "turn 1000000000", "TURN"]


def test_a_word_that_is_not_known_is_told(monkeypatch, snapshot):
    messages = {}
    for word in [*UNKNOWN, "²", "x" * 500]:
        monkeypatch.setattr(kit_words.os, "read", make_reader(f"{word}\n".encode(), [64]))
        messages[word[:20]] = catch_text(WordError, Words(-1).next)
    for word in ("turn", "end", "measure now", ""):
        monkeypatch.setattr(kit_words.os, "read", make_reader(f"{word}\n".encode(), [64]))
        messages[f"{word!r} before it measures"] = catch_text(WordError, Words(-1).expect, "measure")
    assert messages == snapshot
