import struct

from hypothesis import given
from hypothesis import strategies as st

from harness.backends.frames import Frames

pieces = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=20)


def packed(frames):
    return b"".join(struct.pack(">BxxxL", stream, len(data)) + data for stream, data in frames)


@given(pieces, st.integers(1, 20))
def test_the_streams_come_apart_however_the_bytes_are_cut(frames, size):
    data, reader = packed(frames), Frames()
    got = {1: b"", 2: b""}
    for start in range(0, len(data), size):
        for stream, piece in reader.feed(data[start : start + size]):
            got[stream] += piece
    assert got == {number: b"".join(data for stream, data in frames if stream == number) for number in (1, 2)}


@given(st.lists(st.binary(max_size=100)))
def test_any_bytes_are_taken(chunks):
    reader = Frames()
    for chunk in chunks:
        list(reader.feed(chunk))
