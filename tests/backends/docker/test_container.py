import io
import struct
import tarfile

from hypothesis import given
from hypothesis import strategies as st

from harness.backends.artifacts import read_archive
from harness.backends.docker.container import pack
from harness.backends.docker.frames import Frames


def test_what_is_packed_belongs_to_the_images_user():
    archive = pack({"kit/core.py": b"1"}, ("kit/artifacts",))
    assert len(archive) == (2 + 2 + 2) * tarfile.BLOCKSIZE, "two folders, a file with its content, and the end"
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        entries = {entry.name: (entry.isdir(), entry.uid, entry.gid) for entry in tar}
    assert entries == {
        "kit": (True, 1000, 1000),
        "kit/artifacts": (True, 1000, 1000),
        "kit/core.py": (False, 1000, 1000),
    }


@given(
    st.dictionaries(st.from_regex(r"\A[a-z]{1,5}\.txt\Z"), st.binary(max_size=2000), max_size=5), st.integers(1, 999)
)
def test_files_survive_the_way_in_and_out(files, size):
    data = pack({f"artifacts/{name}": content for name, content in files.items()}, ("artifacts",))
    chunks = [data[start : start + size] for start in range(0, len(data), size)]
    assert read_archive(chunks).files == files


pieces = st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=50)), max_size=20)


def packed(sent):
    return b"".join(struct.pack(">BxxxL", stream, len(data)) + data for stream, data in sent)


@given(pieces, st.integers(1, 20))
def test_the_streams_come_apart_however_the_bytes_are_cut(sent, size):
    data = packed(sent)
    got, frames = {1: b"", 2: b""}, Frames()
    for start in range(0, len(data), size):
        for stream, piece in frames.feed(data[start : start + size]):
            got[stream] += piece
    assert got == {number: b"".join(data for stream, data in sent if stream == number) for number in (1, 2)}


@given(st.lists(st.binary(max_size=100)))
def test_any_bytes_are_read_as_frames(chunks):
    frames = Frames()
    for chunk in chunks:
        list(frames.feed(chunk))
