"""Files that are written whole or not at all."""

import os
import secrets
import tracemalloc
from pathlib import Path

import pytest

from harness.files import read, replace_file, write_atomically, write_output


def test_a_file_is_replaced_as_a_whole(tmp_path):
    for synced in (True, False):
        path = tmp_path / str(synced) / "file"
        for data in ("é\r\n", b"\x00"):
            write_atomically(path, data, synced=synced)
            assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)
        assert list(path.parent.iterdir()) == [path]
    path = tmp_path / "file"
    path.write_text("old")
    with replace_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_what_cannot_be_finished_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with replace_file(path) as part:
            part.write_text("n")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_links_are_replaced_and_not_written_through(tmp_path, monkeypatch):
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_text("mine")
    for name in ("file.part", ".file.part", f".file.{os.getpid()}.part", ".file.1.part"):
        (tmp_path / name).symlink_to(victim)
    for write in (write_atomically, write_output):
        path.unlink(missing_ok=True)
        path.symlink_to(victim)
        write(path, b"new")
        assert victim.read_text() == "mine"
        assert not path.is_symlink()
        assert path.read_text() == "new"
    # a link in the place of the temporary file
    monkeypatch.setattr(secrets, "token_hex", lambda length: "0" * 2 * length)
    (tmp_path / ".file.00000000.part").symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(path, "other")
    assert victim.read_text() == "mine"


def test_an_output_to_a_pipe_is_written_into_it(tmp_path):
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDWR | os.O_NONBLOCK)
    try:
        for path in (pipe, link):
            write_output(path, b"new")
            assert os.read(reader, 100) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert sorted(tmp_path.iterdir()) == [link, pipe]


def test_an_output_to_an_open_file_is_appended_to_it(tmp_path):
    path, link = tmp_path / "file", tmp_path / "stdout"
    path.write_text("old ")
    with path.open("a") as file:
        link.symlink_to(f"/proc/self/fd/{file.fileno()}")
        write_output(link, b"new ")
        write_output(Path(f"/proc/self/fd/{file.fileno()}"), b"newer")
    assert path.read_text() == "old new newer"
    assert link.is_symlink()


def test_a_folder_is_not_replaced_by_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in (".", "", "/", "..", "folder"):
        with pytest.raises(IsADirectoryError):
            write_output(Path(name), b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_only_regular_files_are_read_and_none_is_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path("/dev/zero")):
        with pytest.raises(OSError, match=r"it is not a regular file"):
            read(path)


def test_more_than_is_wanted_or_than_a_file_says_is_read_to_its_end_only(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    os.truncate(path, 2**40)
    with pytest.raises(OSError, match=r"it is larger than 1 MiB"):
        read(path, most=2**20)
    assert read(Path("/proc/self/status")).startswith(b"Name:")


def test_reading_takes_the_memory_of_what_the_file_has_not_of_what_it_may_have(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    tracemalloc.start()
    try:
        assert read(path, most=8 * 2**30) == b"12345"
        assert tracemalloc.get_traced_memory()[1] < 2**21
    finally:
        tracemalloc.stop()


def test_nothing_outside_of_a_received_folder_is_read(tmp_path):
    (tmp_path / "secret").write_text("x")
    inside = tmp_path / "inside"
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "file").write_text("x")
    (inside / "link").symlink_to(tmp_path / "secret")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").write_text("x")
    (inside / "folder").symlink_to(tmp_path / "other")
    for name in ("../secret", "/etc/hostname", "a/../../secret", "", "link", "folder/file", "a\0b"):
        with pytest.raises(OSError, match=r"link|leaves the folder"):
            read(Path(name), within=inside)
    assert read(Path("a/b/file"), within=inside) == b"x"
