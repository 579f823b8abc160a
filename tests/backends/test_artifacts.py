import io
import os
import tarfile
from pathlib import PurePosixPath
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from harness.backends import artifacts
from harness.backends.artifacts import from_archive, from_folder, safe_name
from harness.backends.docker.container import pack


def test_files_come_with_their_folders(tmp_path):
    (tmp_path / "profile").mkdir()
    (tmp_path / "profile" / "trace.json").write_bytes(b"{}")
    (tmp_path / "a.txt").write_bytes(b"a")
    assert from_folder(tmp_path).files == {"a.txt": b"a", "profile/trace.json": b"{}"}


def test_links_pipes_and_sockets_are_refused(tmp_path):
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("k")
    folder = tmp_path / "artifacts"
    folder.mkdir()
    (folder / "file").symlink_to(secret / "key")
    (folder / "folder").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    found = from_folder(folder)
    assert found.files == {}
    assert found.refused == ["file: no regular file", "folder: no regular file", "pipe: no regular file"]


def test_what_is_over_the_limits_is_not_read(tmp_path):
    for number in range(4):
        (tmp_path / f"{number}").write_bytes(b"x" * 10)
    with patch.object(artifacts, "FILES_LIMIT", 2):
        assert list(from_folder(tmp_path).files) == ["0", "1"]
    with patch.object(artifacts, "BYTES_LIMIT", 35):
        assert list(from_folder(tmp_path).files) == ["0", "1", "2"]
    with (tmp_path / "0").open("wb") as sparse:
        sparse.truncate(2**40)
    found = from_folder(tmp_path)
    assert found.files == {}
    assert "64 MiB" in found.refused[0]


def test_two_names_that_become_one_stay_two(tmp_path):
    (tmp_path / "a b").write_bytes(b"1")
    (tmp_path / "a?b").write_bytes(b"2")
    assert from_folder(tmp_path).files == {"a_b": b"1", "a_b_": b"2"}


def test_no_folder_is_no_artifacts(tmp_path):
    assert from_folder(tmp_path / "none").files == {}


@given(st.text())
def test_a_safe_name_stays_inside(name):
    path = PurePosixPath(safe_name(name))
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert len(path.parts) <= 8


def test_names_keep_what_is_harmless():
    assert safe_name("profile/plugins/run_1.trace.json") == "profile/plugins/run_1.trace.json"
    assert safe_name("/etc/../x y") == "etc/x_y"


def test_links_and_devices_are_refused():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, kind in [("link", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE), ("device", tarfile.CHRTYPE)]:
            entry = tarfile.TarInfo(f"artifacts/{name}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            tar.addfile(entry)
    found = from_archive([buffer.getvalue()])
    assert found.files == {}
    assert [line.split(":")[0] for line in found.refused] == ["link", "hard", "device"]


def test_a_hostile_name_stays_inside():
    assert list(from_archive([pack({"artifacts/../../etc/x": b"1"})]).files) == ["etc/x"]


@given(st.binary(max_size=2000))
def test_any_bytes_are_read_as_an_archive(data):
    from_archive([data])
