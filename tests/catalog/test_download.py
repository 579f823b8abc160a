import hashlib
from pathlib import Path

import pytest

from harness.catalog.download import download
from harness.catalog.index import File
from harness.model.errors import CannotRunHereError
from tests.packageindex import PackageIndex


def of(path: Path, url: str = "") -> File:
    return File(url or path.as_uri(), hashlib.sha256(path.read_bytes()).hexdigest())


def test_files_come_from_folders_and_from_servers_once(package_index: PackageIndex, tmp_path: Path) -> None:
    here, there = package_index.add("one-1.0-py3-none-any"), package_index.add("two-1.0-py3-none-any")
    files, lines = [of(here), of(there, f"{package_index.url}/files/{there.name}")], list[str]()
    hashes = download(files, tmp_path / "wheels", lines.append)
    assert hashes == {file.name: file.sha256 for file in files}
    assert sorted(path.name for path in (tmp_path / "wheels").iterdir()) == sorted(hashes)
    assert len(lines) == 2

    (tmp_path / "wheels" / here.name).write_text("half of it")
    download(files, tmp_path / "wheels", lines.append)
    assert lines[2:] == [f"1 of 1: {here.name} (0.0 MB)"]
    assert (tmp_path / "wheels" / here.name).read_bytes() == here.read_bytes()


def test_a_file_that_the_lock_does_not_name_is_refused_and_not_left(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_text("another")
    with pytest.raises(CannotRunHereError, match="is not the file that the lock names"):
        download([File((tmp_path / "one.whl").as_uri(), "00")], tmp_path / "wheels", lambda _: None)
    assert list((tmp_path / "wheels").iterdir()) == []


@pytest.mark.parametrize("url", ["file:///nowhere/one.whl", "http://127.0.0.1:9/one.whl"])
def test_a_file_that_is_not_there_is_told_by_its_address(url: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRunHereError, match=url):
        download([File(url, "00")], tmp_path / "wheels", lambda _: None)
    assert list((tmp_path / "wheels").iterdir()) == []
