"""What a library holds for which GPU, read from fat binaries that the tests make."""

import json
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.backends import fatbins
from harness.backends.fatbins import MAGIC, count_modules, find_modules
from tests.fatbinaries import entry, fat_binary, library, plain, wrapped

CODE = st.builds("{}_{}".format, st.sampled_from(["sm", "ptx"]), st.integers(20, 130))
MODULES = st.lists(st.lists(CODE, min_size=1, max_size=6), max_size=5)
#: Bytes between modules that do not begin one.
BETWEEN = st.binary(max_size=40).filter(lambda data: MAGIC[:1] not in data)


@given(MODULES, st.integers(0, 300), st.sampled_from([64, 80, 128]), BETWEEN)
def test_what_was_written_is_read(written, size, header, between):
    binaries = [fat_binary(*code, size=size, header=header) for code in written]
    assert list(find_modules(between + between.join(binaries) + between)) == [tuple(code) for code in written]


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_nothing_is_read_of_what_is_no_fat_binary(before, after):
    # the compiler's own programs hold the magic number too
    header = MAGIC + b"\x02\x00"
    assert not list(find_modules(before + header + after))


@given(MODULES.filter(bool), st.data())
def test_a_file_that_was_cut_off_has_whole_modules_only_and_a_byte_that_changed_breaks_nothing(written, data):
    complete = library(written)
    at = data.draw(st.integers(0, len(complete) - 1))
    read = list(find_modules(complete[:at]))
    assert read == [tuple(code) for code in written][: len(read)]
    broken = bytearray(complete)
    broken[at] = data.draw(st.integers(0, 255))
    assert len(list(find_modules(bytes(broken)))) <= len(broken) / 16


def test_what_only_begins_like_one_is_not_believed(tmp_path):
    file = tmp_path / "library.so"
    for broken in (
        wrapped(entry("sm_80")[:-1]),  # shorter than its entry says
        wrapped(entry("sm_80") + b"rest"),
        wrapped(entry("sm_80", header=8)),  # a header too short to have an architecture
        wrapped(b""),
        fat_binary("sm_80")[:-1],  # the file ends first
    ):
        assert list(find_modules(broken)) == [], broken
        file.write_bytes(fat_binary("sm_70") + broken)
        assert count_modules(file) == {("sm_70",): 1}


def test_entries_tell_their_kind_and_ptx_its_version_and_target_also_if_it_is_compressed(tmp_path):
    assert list(find_modules(fat_binary("sm_80", "other_80", "ptx_80"))) == [("sm_80", "ptx_80")]
    file = tmp_path / "library.so"
    # a label isn't the target: some PTX labeled 8.0 is for 7.5
    for code in (["sm_75", "ptx_80:6.3/sm_75"], ["ptx_90:8.5/sm_90a"], ["sm_80", "ptx_90"]):  # the last is no PTX
        file.write_bytes(fat_binary(*code))
        assert count_modules(file) == {tuple(code): 1}
    assert fatbins.decompress_block(PACKED + b"\x05\x00").startswith(b"//////////\n.version 8.5\n.target sm_90a")
    packed = plain("ptx", 90, PACKED, flags=fatbins.COMPRESSED)
    assert list(find_modules(wrapped(entry("sm_80") + packed))) == [("sm_80", "ptx_90:8.5/sm_90a")]


#: As LZ4 writes `//////////\n.version 8.5\n.target sm_90a`, by hand: one slash, and nine more by a copy from one back.
PACKED = b"\x15/\x01\x00" + b"\xf0\x0d\n.version 8.5\n.target sm_90a"


@given(st.binary(max_size=600))
def test_any_start_of_a_compressed_block_is_unpacked(start):
    assert len(fatbins.decompress_block(start)) <= 300 * len(start)


def test_files_and_folders_are_read_and_alike_modules_counted_together(tmp_path):
    file = tmp_path / "library.so"
    file.write_bytes(library([["sm_70", "sm_100"], ["ptx_80", "sm_70"], ["sm_100", "sm_70"], ["sm_70", "sm_100"]]))
    assert count_modules(file) == {("sm_70", "sm_100"): 3, ("sm_70", "ptx_80"): 1}
    folder = tmp_path / "package" / "python"
    folder.mkdir(parents=True)
    (folder / "_pywrap.so").write_bytes(library([["sm_70"]]))
    (folder / "libtwo.so.2").write_bytes(library([["sm_80"]]))
    (folder / "libtwo.so").symlink_to("libtwo.so.2")
    (folder / "empty.so").touch()
    (folder / "none.so").write_bytes(b"no GPU code")
    single = tmp_path / "libalone.so.1"
    single.write_bytes(library([["ptx_90"]]))
    command = [sys.executable, fatbins.__file__, str(tmp_path / "package"), str(single), str(tmp_path / "absent.so")]
    files = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert sorted(Path(path).name for path in files) == ["_pywrap.so", "libalone.so.1", "libtwo.so.2"]
    assert files[str(single)] == [["ptx_90"]]
