from hypothesis import given
from hypothesis import strategies as st

from harness.backends.untrusted_text import Tail, join_lines
from harness.model.texts import escape


@given(st.text(max_size=3000), st.integers(1, 50))
def test_one_line_is_one_short_printable_line(text, limit):
    line = join_lines(text, limit)
    assert len(line) <= limit
    assert line.isprintable()


def test_control_characters_are_written_out():
    assert escape("a\x1b[2Jb\tc\n", keep="\n\t") == "a\\x1b[2Jb\tc\n"


@given(st.lists(st.binary(max_size=300), max_size=30))
def test_a_tail_keeps_the_end_and_counts_the_rest(chunks):
    tail = Tail(limit=100)
    for chunk in chunks:
        tail.feed(chunk)
    data = b"".join(chunks)
    end = escape(data[-100:].decode("utf-8", "backslashreplace"), keep="\n\t")
    missing = f"[{len(data) - 100} bytes before this were not saved]\n" if len(data) > 100 else ""
    assert tail.text() == missing + end
