import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.pylock import PackageWheel

from harness.catalog import pack
from harness.catalog.pack import Manifest, download, hash_file
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from tests.packageindex import PackageIndex


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    for name in ("one.whl", "two.whl"):
        (tmp_path / "wheels" / name).write_text(name)
    files = {f"wheels/{path.name}": hash_file(path) for path in (tmp_path / "wheels").iterdir()}
    pack.write(tmp_path, Manifest("1.0", {"tf2.0": ["cpu"]}, {}, files))
    return tmp_path


def test_a_whole_pack_is_right(folder: Path) -> None:
    manifest = pack.read(folder)
    assert manifest.environments == {"tf2.0": ["cpu"]}
    pack.check(folder, manifest)


def test_what_is_missing_or_was_changed_is_named(folder: Path) -> None:
    (folder / "wheels" / "one.whl").write_text("changed")
    (folder / "wheels" / "two.whl").unlink()
    with pytest.raises(UsageError, match=r"wheels/one\.whl was changed; wheels/two\.whl is missing"):
        pack.check(folder, pack.read(folder))


def test_what_is_packed_later_is_added(folder: Path) -> None:
    older = pack.read(folder)
    image = {"images/a.tar": {"reference": "a", "id": "sha256:0"}}
    both = Manifest("1.1", {"tf2.0": ["gpu"], "tf2.1": ["cpu"]}, image, {"images/a.tar": "0"}).extend(older)
    assert both.environments == {"tf2.0": ["cpu", "gpu"], "tf2.1": ["cpu"]}
    assert set(both.files) == {"wheels/one.whl", "wheels/two.whl", "images/a.tar"}
    assert (both.harness, both.images) == ("1.1", image)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "is not a pack"),
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ('{"schema": 1, "more": 2}', "is damaged"),
        ('{"schema": 2}', "has the schema 2"),
        ("[" * 100_000, "is damaged"),
        ('{"schema": 1, "harness": "1", "files": [1]}', "is damaged"),
        ('{"schema": 1, "harness": "1", "files": {"a": 1}}', "is damaged"),
        ('{"schema": 1, "harness": "1", "images": {"a": {}}}', "is damaged"),
    ],
)
def test_a_folder_that_is_no_pack_gets_a_sentence(tmp_path: Path, text: str | None, problem: str) -> None:
    if text is not None:
        (tmp_path / pack.FILE).write_text(text)
    with pytest.raises(UsageError, match=problem):
        pack.read(tmp_path)


def of(path: Path, url: str = "") -> PackageWheel:
    return PackageWheel(url=url or path.as_uri(), hashes={"sha256": hashlib.sha256(path.read_bytes()).hexdigest()})


def test_files_come_from_folders_and_from_servers_once(package_index: PackageIndex, tmp_path: Path) -> None:
    here, there = package_index.add("one-1.0-py3-none-any"), package_index.add("two-1.0-py3-none-any")
    files, lines = [of(here), of(there, f"{package_index.url}/files/{there.name}")], list[str]()
    hashes = download(files, tmp_path / "wheels", lines.append)
    assert hashes == {file.filename: file.hashes["sha256"] for file in files}
    assert sorted(path.name for path in (tmp_path / "wheels").iterdir()) == sorted(hashes)
    assert len(lines) == 2

    (tmp_path / "wheels" / here.name).write_text("half of it")
    download(files, tmp_path / "wheels", lines.append)
    assert lines[2:] == [f"1 of 1: {here.name} (0.0 MB)"]
    assert (tmp_path / "wheels" / here.name).read_bytes() == here.read_bytes()


def test_a_file_that_the_lock_does_not_name_is_refused_and_not_left(tmp_path: Path) -> None:
    (tmp_path / "one.whl").write_text("another")
    with pytest.raises(CannotRunHereError, match="differs from the hash in the lock file"):
        download([replace(of(tmp_path / "one.whl"), hashes={"sha256": "00"})], tmp_path / "wheels", print)
    assert list((tmp_path / "wheels").iterdir()) == []


def test_what_a_killed_download_left_is_removed_and_a_link_is_replaced(
    package_index: PackageIndex, tmp_path: Path
) -> None:
    wheel, folder = package_index.add("one-1.0-py3-none-any"), tmp_path / "wheels"
    folder.mkdir()
    (folder / f".{wheel.name}.0123abcd.part").write_text("half of it")
    (folder / wheel.name).symlink_to(wheel)
    download([of(wheel)], folder, print)
    assert [path.name for path in folder.iterdir()] == [wheel.name]
    assert not (folder / wheel.name).is_symlink()


@pytest.mark.parametrize("url", ["file:///nowhere/one.whl", "http://127.0.0.1:9/one.whl"])
def test_a_file_that_is_not_there_is_told_by_its_address(url: str, tmp_path: Path) -> None:
    with pytest.raises(CannotRunHereError, match=url):
        download([PackageWheel(url=url, hashes={"sha256": "00"})], tmp_path / "wheels", print)
    assert list((tmp_path / "wheels").iterdir()) == []


def test_a_received_packs_manifest_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / pack.FILE)
    with pytest.raises(UsageError, match="it is not a regular file"):
        pack.read(tmp_path)


@pytest.mark.parametrize("name", ["../secret", "/etc/hostname", "wheels/link"])
def test_nothing_outside_of_a_received_pack_is_read(folder: Path, name: str) -> None:
    (folder.parent / "secret").write_text("x")
    (folder / "wheels" / "link").symlink_to(folder.parent / "secret")
    with pytest.raises(UsageError, match=r"cannot be read: (the path leaves the folder|it is a link)"):
        pack.check(folder, Manifest("1", files={name: "0"}))


def test_what_a_packs_manifest_does_not_name_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(folder / "cache"))
    (folder / "locks").mkdir()
    (folder / "locks" / "tf2.0-cpu.txt").write_text("unchecked")
    pack.use(folder, lambda: pytest.fail("no image is packed"), lambda line: None)
    assert not list((folder / "cache").glob("locks/*"))

    pack.write(folder, Manifest("1", images={"images/a.tar": {"reference": "a", "id": "0"}}))
    with pytest.raises(DamagedError, match=r"the hash of images/a\.tar is missing"):
        pack.use(folder, lambda: pytest.fail("it is not loaded"), lambda line: None)
