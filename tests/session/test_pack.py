import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.pylock import PackageWheel

from harness.model.errors import CannotRunHereError, UsageError
from harness.session import pack
from harness.session.pack import download
from tests.errors import catch_text
from tests.packageindex import serving


@pytest.fixture
def package_index(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with serving(tmp_path / "index") as index:
        yield index


def make_file(path: Path, url: str = "") -> PackageWheel:
    return PackageWheel(url=url or path.as_uri(), hashes={"sha256": hashlib.sha256(path.read_bytes()).hexdigest()})


def test_files_come_from_folders_and_from_servers_once(package_index, tmp_path):
    here, there = package_index.add("one-1.0-py3-none-any"), package_index.add("two-1.0-py3-none-any")
    files, lines = [make_file(here), make_file(there, f"{package_index.url}/files/{there.name}")], list[str]()
    folder = tmp_path / "wheels"
    paths = download(files, folder, lines.append)
    assert paths == [folder / here.name, folder / there.name]
    assert sorted(folder.iterdir()) == paths
    assert len(lines) == 2
    # what a killed download left is removed, and a link is replaced
    (folder / f".{there.name}.0123abcd.part").write_text("half of it")
    (folder / here.name).write_text("half of it")
    (folder / there.name).unlink()
    (folder / there.name).symlink_to(there)
    download(files, folder, lines.append)
    assert lines[2:] == [f"{number} of 2: {path.name} (0.0 MB)" for number, path in ((1, here), (2, there))]
    assert (folder / here.name).read_bytes() == here.read_bytes()
    assert sorted(folder.iterdir()) == paths
    assert not (folder / there.name).is_symlink()


def test_a_file_that_is_not_there_or_that_the_lock_does_not_name_is_refused_and_not_left(tmp_path):
    (tmp_path / "one.whl").write_text("another")
    file = replace(make_file(tmp_path / "one.whl"), hashes={"sha256": "00"})
    assert "one.whl" in catch_text(CannotRunHereError, download, [file], tmp_path / "wheels", print)
    for url in ("file:///nowhere/one.whl", "http://127.0.0.1:9/one.whl"):
        file = PackageWheel(url=url, hashes={"sha256": "00"})
        assert url in catch_text(CannotRunHereError, download, [file], tmp_path / "wheels", print)
    assert list((tmp_path / "wheels").iterdir()) == []


def test_only_a_pack_is_used_and_nothing_outside_of_it_is_read(tmp_path, monkeypatch, snapshot):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    folder = tmp_path / "pack"

    def use() -> Path:
        return pack.use(folder, lambda line: None)

    errors = [catch_text(UsageError, use)]
    for name in ("wheels", "locks"):
        (folder / name).mkdir(parents=True)
    (folder / "locks" / "a-cpu.txt").write_text("locked")
    assert use() == folder / "wheels"
    assert (tmp_path / "cache" / "locks" / "a-cpu.txt").read_text() == "locked"
    (tmp_path / "secret").write_text("x")
    (folder / "locks" / "b-cpu.txt").symlink_to(tmp_path / "secret")
    errors.append(catch_text(CannotRunHereError, use))
    assert [text.replace(str(folder), "FOLDER") for text in errors] == snapshot
