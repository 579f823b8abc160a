import hashlib
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from packaging.pylock import Pylock

from harness.catalog import index
from harness.model.errors import CannotRunHereError
from tests.packageindex import PackageIndex

PYLOCK = """
lock-version = "1.0"
created-by = "uv"

[[packages]]
name = "one"
version = "1.0+cpu"
sdist = { url = "https://example.org/a/one-1.0%2Bcpu.tar.gz", hashes = { sha256 = "aa" } }

[[packages.wheels]]
url = "https://example.org/b/one-1.0%2Bcpu-py3-none-any.whl"
upload-time = 2020-01-02T03:04:05Z
hashes = { sha256 = "bb" }

[[packages]]
name = "two"
version = "2.0"
sdist = { path = "/folder/two-2.0.zip", hashes = { sha256 = "cc" } }
"""


def test_a_package_has_its_wheels_or_where_there_are_none_its_source() -> None:
    one, two = Pylock.from_dict(tomllib.loads(PYLOCK)).packages
    assert [file.filename for file in index.find_files(one)] == ["one-1.0+cpu-py3-none-any.whl"]
    assert index.find_upload_time(one) == datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert [index.find_address(file) for file in index.find_files(two)] == ["file:///folder/two-2.0.zip"]
    assert index.find_upload_time(two) is None


def test_the_newest_or_the_oldest_of_what_has_a_wheel_for_the_python(package_index: PackageIndex) -> None:
    for version, python in (("2.7.0", "38"), ("2.7.4", "38"), ("2.9.0", "311")):
        package_index.add(f"tensorflow-{version}-cp{python}-cp{python}-manylinux2014_x86_64")
    found = index.find("tensorflow", "3.8")
    assert found is not None
    assert str(found.version) == "2.7.4"
    lowest = index.find("tensorflow>2.0", "3.8", lowest=True)
    assert lowest is not None
    assert str(lowest.version) == "2.7.0"
    assert index.find("tensorflow==2.9.0", "3.8") is None
    assert index.find("tensorflow==2.8.0", "3.8") is None


def test_the_files_of_a_lock_are_those_for_its_platform(package_index: PackageIndex, tmp_path: Path) -> None:
    wanted = package_index.add("one-1.0-cp38-cp38-manylinux2014_x86_64")
    package_index.add("one-1.0-cp38-cp38-win_amd64")
    package_index.add("one-1.0-cp39-cp39-manylinux2014_x86_64")
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    lock = tmp_path / "lock.txt"
    lock.write_text(f"one==1.0 \\\n    --hash=sha256:{digest}\n")
    (package,) = index.parse_lock(lock, "3.8")
    assert [(file.filename, file.hashes["sha256"]) for file in index.find_files(package)] == [(wanted.name, digest)]


def test_a_lock_that_the_index_does_not_have_is_told_in_uvs_words(package_index: PackageIndex, tmp_path: Path) -> None:
    package_index.add("one-1.0-py3-none-any")
    lock = tmp_path / "lock.txt"
    lock.write_text("one==2.0\n")
    with pytest.raises(CannotRunHereError, match=r"lock\.txt requires:(.|\n)*one==2\.0"):
        index.parse_lock(lock, "3.8")


@pytest.mark.parametrize("variable", [{"UV_OFFLINE": "1"}, {"UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple"}])
def test_an_index_that_does_not_answer_is_no_missing_version(
    package_index: PackageIndex, variable: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(CannotRunHereError, match="index does not answer"):
        index.find("tensorflow==2.7.1", "3.8")


def test_every_version_with_wheels_is_listed_in_order(package_index: PackageIndex) -> None:
    package_index.add("one-1.10.0-py3-none-any", uploaded="2022-03-01T00:00:00Z")
    package_index.add("one-1.9.0-cp38-cp38-win_amd64", uploaded="2022-02-03T00:00:00Z")
    package_index.add("one-1.9.0-cp38-cp38-manylinux2014_x86_64", uploaded="2022-02-02T00:00:00Z")
    package_index.add("one-1.9.0rc1-cp36-abi3-manylinux2014_x86_64", uploaded="")
    found = index.list_versions("One")
    assert [entry.version for entry in found] == ["1.9.0rc1", "1.9.0", "1.10.0"]
    assert [entry.uploaded and entry.uploaded.day for entry in found] == [None, 2, 1]
    assert [entry.fits("3.8") for entry in found] == [True, True, True]
    # of the stable interface an older one fits, and of another CPython's own none
    assert [entry.fits("3.11") for entry in found] == [True, False, True]
    assert not any(entry.yanked for entry in found)
    assert index.list_versions("two") == []


def test_the_password_of_an_index_is_sent_and_in_no_error(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_index.add("one-1.0-py3-none-any")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{package_index.url.replace('//', '//me:sec%25:ret@')}/simple")
    assert [version.version for version in index.list_versions("one")] == ["1.0"]
    assert package_index.accounts == ["me:sec%:ret"]
    for address in ("http://me:secret@127.0.0.1:9/simple", "http://me:secret@127.0.0.1:x/simple"):
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        with pytest.raises(CannotRunHereError) as refused:
            index.list_versions("one")
        assert "secret" not in str(refused.value)


def test_an_index_that_does_not_list_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with pytest.raises(CannotRunHereError, match="does not answer with a valid list"):
        index.list_versions("one")
