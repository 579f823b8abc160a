import io
import os
import tarfile
from pathlib import PurePosixPath
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends import artifacts
from harness.backends.artifacts import Artifacts, make_safe_name, read_archive
from harness.backends.docker.container import pack


@pytest.fixture
def secret(tmp_path):
    """Return a folder that no launch may read."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("k")
    return tmp_path / "secret"


def from_folder(folder, meanwhile=lambda: None):
    """What is kept of a folder that is opened, changed `meanwhile`, and read."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        meanwhile()
        return artifacts.read_folder(handle)
    finally:
        os.close(handle)


def changed_when_opened(name, change):
    """Has `change` happen between a look at what is called `name` and its opening."""
    real = os.open

    def opened(path, flags, **options):
        if path == name:
            change()
        return real(path, flags, **options)

    return patch.object(os, "open", opened)


def test_files_come_with_their_folders_and_links_and_pipes_are_refused(tmp_path, secret):
    folder = tmp_path / "artifacts"
    (folder / "profile").mkdir(parents=True)
    (folder / "profile" / "trace.json").write_bytes(b"{}")
    (folder / "a.txt").write_bytes(b"a")
    (folder / "file").symlink_to(secret / "key")
    (folder / "folder").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    contents = from_folder(folder)
    assert contents.files == {"a.txt": b"a", "profile/trace.json": b"{}"}
    assert contents.refused == ["file: not a regular file", "folder: not a regular file", "pipe: not a regular file"]


def test_what_is_over_the_limits_is_not_read(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
    with patch.object(artifacts, "FILES_LIMIT", 2):
        assert list(from_folder(tmp_path).files) == ["0", "1"]
    with patch.object(artifacts, "BYTES_LIMIT", 35):
        assert list(from_folder(tmp_path).files) == ["0", "1", "2"]
    with (tmp_path / "0").open("wb") as sparse:
        sparse.truncate(2**40)
    contents = from_folder(tmp_path)
    assert contents.files == {}
    assert "64 MiB" in contents.refused[0]


def test_a_link_in_the_place_of_the_folder_is_not_followed_and_a_folder_that_is_gone_is_empty(tmp_path, secret):
    folder = tmp_path / "artifacts"
    folder.mkdir()

    def replace():
        folder.rmdir()
        folder.symlink_to(secret)

    assert from_folder(folder, replace).files == {}
    folder.unlink()
    folder.mkdir()
    assert from_folder(folder, folder.rmdir).files == {}


def test_another_file_system_is_not_entered():
    with patch.object(artifacts, "_MAX_LISTED", artifacts.ENTRIES_LIMIT):
        assert "pts: on another file system" in from_folder("/dev").refused


def test_what_lies_too_deep_is_not_entered_and_named(tmp_path):
    deep = tmp_path.joinpath(*"abcdefghi")
    deep.mkdir(parents=True)
    (deep / "data").write_bytes(b"1")
    (deep.parent.parent / "data").write_bytes(b"2")
    contents = from_folder(tmp_path)
    assert contents.files == {"a/b/c/d/e/f/g/data": b"2"}
    assert contents.refused == ["a/b/c/d/e/f/g/h: deeper than 8 folders"]
    inner = read_archive([pack({"artifacts/a/b/c/d/e/f/g/h/data": b"1", "artifacts/a/b/c/d/e/f/g/data": b"2"})])
    assert inner.files == contents.files
    assert inner.refused == ["a/b/c/d/e/f/g/h/data: deeper than 8 folders"]


def test_entries_and_time_are_bounded_and_folders_count(tmp_path):
    (tmp_path / "last").write_bytes(b"x")
    with patch.object(artifacts, "SECONDS_LIMIT", -1.0):
        assert from_folder(tmp_path).refused == ["last: this file and the files after it were not read within -1 s"]
    for number in range(20):
        (tmp_path / f"{number:02}").mkdir()
    with patch.object(artifacts, "ENTRIES_LIMIT", 10):
        assert "10 entries" in from_folder(tmp_path).refused[0]
        assert "10 entries" in read_archive([pack({}, tuple(f"artifacts/{n:02}" for n in range(20)))]).refused[0]


def test_a_file_that_became_a_pipe_is_refused_and_not_waited_for(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    with changed_when_opened("a", lambda: [(tmp_path / "a").unlink(), os.mkfifo(tmp_path / "a")]):
        assert from_folder(tmp_path).refused == ["a: not a regular file"]


def test_what_became_a_link_is_not_followed(tmp_path, secret):
    folder = tmp_path / "artifacts"
    (folder / "inner").mkdir(parents=True)
    (folder / "file").write_bytes(b"x")

    def swap():
        (folder / "file").unlink()
        (folder / "file").symlink_to(secret / "key")
        (folder / "inner").rmdir()
        (folder / "inner").symlink_to(secret)

    with changed_when_opened("file", swap):
        contents = from_folder(folder)
    assert contents.files == {}
    assert contents.refused == ["file: Too many levels of symbolic links", "inner: not a regular file"]

    (folder / "inner").unlink()
    (folder / "inner").mkdir()
    with changed_when_opened("inner", lambda: [(folder / "inner").rmdir(), (folder / "inner").symlink_to(secret)]):
        assert from_folder(folder).files == {}


def test_a_file_that_grows_while_it_is_read_is_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    with (
        patch.object(artifacts, "BYTES_LIMIT", 35),
        changed_when_opened("a", lambda: (tmp_path / "a").write_bytes(b"x" * 36)),
    ):
        contents = from_folder(tmp_path)
    assert (contents.files, contents.refused) == ({}, ["a: it grew while it was read"])


@given(st.lists(st.sampled_from(["a b", "a?b", "a b/c", "a?b/c", "a?b/c/d", "a b/c/d", "..", "x/../a b"]), max_size=6))
def test_whatever_names_become_no_file_is_in_the_place_of_another_ones_folder(names):
    contents = Artifacts()
    for name in names:
        contents.add(name, b"")
    assert len(contents.files) == len(names)
    folders = {str(parent) for name in contents.files for parent in PurePosixPath(name).parents}
    assert not folders & contents.files.keys()


def test_long_names_that_begin_alike_stay_names_of_files():
    contents = Artifacts()
    for number in range(300):
        contents.add(f"{'x' * 100}{number}", b"")
    assert len(contents.files) == 300
    assert max(map(len, contents.files)) < 255


@given(st.text())
def test_a_safe_name_stays_inside(name):
    path = PurePosixPath(make_safe_name(name))
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert len(path.parts) <= 8


def test_names_keep_what_is_harmless_and_links_and_devices_are_refused():
    assert make_safe_name("profile/plugins/run_1.trace.json") == "profile/plugins/run_1.trace.json"
    assert make_safe_name("/etc/../x y") == "etc/x_y"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind in [("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("device", tarfile.CHRTYPE)]:
            entry = tarfile.TarInfo(f"artifacts/{name}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
    contents = read_archive([buffer.getvalue()])
    assert contents.files == {}
    assert [line.split(":")[0] for line in contents.refused] == ["link", "hard", "device"]


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_as_an_archive(data):
    read_archive([data])
