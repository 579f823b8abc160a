import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from packaging.pylock import PackageWheel

from harness.environments import pack
from harness.environments.pack import Manifest, download, hash_file
from harness.model.errors import CannotRunHereError, DamagedError, UsageError
from tests.errors import catch_text


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "wheels").mkdir()
    for name in ("one.whl", "two.whl"):
        (tmp_path / "wheels" / name).write_text(name)
    files = {f"wheels/{path.name}": hash_file(path) for path in (tmp_path / "wheels").iterdir()}
    pack.write(tmp_path, Manifest("1.0", {"tf2.0": ["cpu"]}, {}, files))
    return tmp_path


def test_a_pack_is_right_or_what_is_missing_or_was_changed_is_named(folder):
    manifest = pack.read(folder)
    assert manifest.environments == {"tf2.0": ["cpu"]}
    pack.check(folder, manifest)
    # what is packed later is added
    image = {"images/a.tar": {"reference": "a", "id": "sha256:0"}}
    both = Manifest("1.1", {"tf2.0": ["gpu"], "tf2.1": ["cpu"]}, image, {"images/a.tar": "0"}).extend(manifest)
    assert both.environments == {"tf2.0": ["cpu", "gpu"], "tf2.1": ["cpu"]}
    assert set(both.files) == {"wheels/one.whl", "wheels/two.whl", "images/a.tar"}
    assert (both.harness, both.images) == ("1.1", image)
    (folder / "wheels" / "one.whl").write_text("changed")
    (folder / "wheels" / "two.whl").unlink()
    with pytest.raises(UsageError, match=r"wheels/one\.whl .*wheels/two\.whl "):
        pack.check(folder, manifest)


def test_a_folder_that_is_no_pack_is_refused(tmp_path, snapshot):
    def refuse(kind, text):
        (tmp_path / pack.FILE).write_text(text)
        return catch_text(kind, pack.read, tmp_path)

    errors = [
        catch_text(UsageError, pack.read, tmp_path),
        refuse(UsageError, '{"schema": 2}'),
        refuse(DamagedError, "[" * 100_000),
        refuse(DamagedError, '{"schema": 1, "harness": "1", "files": {"a": 1}}'),
    ]
    # whose reasons are Python's own
    for text in ("{", "[]", '{"schema": 1, "more": 2}', '{"schema": 1, "harness": "1", "files": [1]}'):
        refuse(DamagedError, text)
    refuse(DamagedError, '{"schema": 1, "harness": "1", "images": {"a": {}}}')
    (tmp_path / pack.FILE).unlink()
    os.mkfifo(tmp_path / pack.FILE)  # it is not waited for
    errors.append(catch_text(UsageError, pack.read, tmp_path))
    assert [text.replace(str(tmp_path), "FOLDER") for text in errors] == snapshot


def make_file(path: Path, url: str = "") -> PackageWheel:
    return PackageWheel(url=url or path.as_uri(), hashes={"sha256": hashlib.sha256(path.read_bytes()).hexdigest()})


def test_files_come_from_folders_and_from_servers_once(package_index, tmp_path):
    here, there = package_index.add("one-1.0-py3-none-any"), package_index.add("two-1.0-py3-none-any")
    files, lines = [make_file(here), make_file(there, f"{package_index.url}/files/{there.name}")], list[str]()
    folder = tmp_path / "wheels"
    hashes = download(files, folder, lines.append)
    assert hashes == {file.filename: file.hashes["sha256"] for file in files}
    assert sorted(path.name for path in folder.iterdir()) == sorted(hashes)
    assert len(lines) == 2
    # what a killed download left is removed, and a link is replaced
    (folder / f".{there.name}.0123abcd.part").write_text("half of it")
    (folder / here.name).write_text("half of it")
    (folder / there.name).unlink()
    (folder / there.name).symlink_to(there)
    download(files, folder, lines.append)
    assert lines[2:] == [f"{number} of 2: {path.name} (0.0 MB)" for number, path in ((1, here), (2, there))]
    assert (folder / here.name).read_bytes() == here.read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == sorted(hashes)
    assert not (folder / there.name).is_symlink()


def test_a_file_that_is_not_there_or_that_the_lock_does_not_name_is_refused_and_not_left(tmp_path):
    (tmp_path / "one.whl").write_text("another")
    file = replace(make_file(tmp_path / "one.whl"), hashes={"sha256": "00"})
    assert "one.whl" in catch_text(CannotRunHereError, download, [file], tmp_path / "wheels", print)
    for url in ("file:///nowhere/one.whl", "http://127.0.0.1:9/one.whl"):
        file = PackageWheel(url=url, hashes={"sha256": "00"})
        assert url in catch_text(CannotRunHereError, download, [file], tmp_path / "wheels", print)
    assert list((tmp_path / "wheels").iterdir()) == []


def test_nothing_outside_of_a_received_pack_is_read(folder, snapshot):
    (folder.parent / "secret").write_text("x")
    (folder / "wheels" / "link").symlink_to(folder.parent / "secret")
    names = ("../secret", "/etc/hostname", "wheels/link")
    errors = {name: catch_text(UsageError, pack.check, folder, Manifest("1", files={name: "0"})) for name in names}
    assert {name: text.replace(str(folder), "FOLDER") for name, text in errors.items()} == snapshot


def test_what_a_packs_manifest_does_not_name_is_not_taken(folder, monkeypatch):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(folder / "cache"))
    (folder / "locks").mkdir()
    (folder / "locks" / "tf2.0-cpu.txt").write_text("unchecked")
    pack.use(folder, lambda: pytest.fail("no image is packed"), lambda line: None)
    assert not list((folder / "cache").glob("locks/*"))

    pack.write(folder, Manifest("1", images={"images/a.tar": {"reference": "a", "id": "0"}}))
    with pytest.raises(DamagedError, match=r"the hash of images/a\.tar is missing"):
        pack.use(folder, lambda: pytest.fail("it is not loaded"), lambda line: None)
