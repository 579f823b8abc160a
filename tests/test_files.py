"""Files that are written whole or not at all."""

from pathlib import Path

import pytest

from harness.files import replacing, write_atomically


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_is_replaced_and_its_folder_made(tmp_path: Path, synced: bool) -> None:
    path = tmp_path / "new" / "file"
    for data in ("é\r\n", b"\x00"):
        write_atomically(path, data, synced=synced)
        assert path.read_bytes() == (data.encode() if isinstance(data, str) else data)
    assert list(path.parent.iterdir()) == [path]


def test_until_all_is_written_a_reader_sees_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"


def test_what_cannot_be_finished_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail() -> None:
        with replacing(path) as part:
            part.write_text("n")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fail()
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]
