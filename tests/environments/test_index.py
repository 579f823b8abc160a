import hashlib
import tomllib
from datetime import UTC, datetime

from packaging.pylock import Pylock

from harness.environments import index
from harness.environments.packages import find_upload_day
from harness.model.errors import CannotRunHereError
from tests.errors import catch, catch_text

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


def test_a_package_has_its_wheels_or_source_and_the_newest_that_fits_a_python(package_index):
    one, two = Pylock.from_dict(tomllib.loads(PYLOCK)).packages
    assert [file.filename for file in index.find_files(one)] == ["one-1.0+cpu-py3-none-any.whl"]
    assert find_upload_day(one) == datetime(2020, 1, 2, tzinfo=UTC)
    assert [index.find_address(file) for file in index.find_files(two)] == ["file:///folder/two-2.0.zip"]
    assert "two 2.0" in catch_text(CannotRunHereError, find_upload_day, two)
    for version, python in (("2.7.0", "38"), ("2.7.4", "38"), ("2.9.0", "311")):
        package_index.add(f"tensorflow-{version}-cp{python}-cp{python}-manylinux2014_x86_64")
    assert str(index.find("tensorflow", "3.8").version) == "2.7.4"
    assert str(index.find("tensorflow>2.0", "3.8", lowest=True).version) == "2.7.0"
    assert index.find("tensorflow==2.9.0", "3.8") is None
    assert index.find("tensorflow==2.8.0", "3.8") is None


def test_the_files_of_a_lock_are_those_for_its_platform(package_index, tmp_path):
    wanted = package_index.add("one-1.0-cp38-cp38-manylinux2014_x86_64")
    package_index.add("one-1.0-cp38-cp38-win_amd64")
    package_index.add("one-1.0-cp39-cp39-manylinux2014_x86_64")
    digest = hashlib.sha256(wanted.read_bytes()).hexdigest()
    lock = tmp_path / "lock.txt"
    lock.write_text(f"one==1.0 \\\n    --hash=sha256:{digest}\n")
    (package,) = index.parse_lock(lock, "3.8")
    assert [(file.filename, file.hashes["sha256"]) for file in index.find_files(package)] == [(wanted.name, digest)]
    # what the index does not have is told in uv's words
    lock.write_text("one==2.0\n")
    text = catch_text(CannotRunHereError, index.parse_lock, lock, "3.8")
    assert str(lock) in text
    assert "one==2.0" in text


def test_an_index_that_does_not_answer_is_no_missing_version(package_index, monkeypatch):
    for name, value in (("UV_OFFLINE", "1"), ("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            catch(CannotRunHereError, index.find, "tensorflow==2.7.1", "3.8")
            if name == "UV_DEFAULT_INDEX":
                catch(CannotRunHereError, index.list_versions, "one")


def test_every_version_with_wheels_is_listed_in_order(package_index):
    package_index.add("one-1.10.0-py3-none-any", uploaded="2022-03-01T00:00:00Z")
    package_index.add("one-1.9.0-cp38-cp38-win_amd64", uploaded="2022-02-03T00:00:00Z")
    package_index.add("one-1.9.0-cp38-cp38-manylinux2014_x86_64", uploaded="2022-02-02T00:00:00Z")
    package_index.add("one-1.9.0rc1-cp36-abi3-manylinux2014_x86_64", uploaded="")
    versions = index.list_versions("One")
    assert [version.version for version in versions] == ["1.9.0rc1", "1.9.0", "1.10.0"]
    assert [version.uploaded and version.uploaded.day for version in versions] == [None, 2, 1]
    assert [version.fits("3.8") for version in versions] == [True, True, True]
    # of the stable interface an older one fits, and of another CPython's own none
    assert [version.fits("3.11") for version in versions] == [True, False, True]
    assert not any(version.yanked for version in versions)
    assert index.list_versions("two") == []


def test_the_password_of_an_index_is_sent_and_in_no_error(package_index, monkeypatch):
    package_index.add("one-1.0-py3-none-any")
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{package_index.url.replace('//', '//me:sec%25:ret@')}/simple")
    assert [version.version for version in index.list_versions("one")] == ["1.0"]
    assert package_index.accounts == ["me:sec%:ret"]
    for address in ("http://me:secret@127.0.0.1:9/simple", "http://me:secret@127.0.0.1:x/simple"):
        monkeypatch.setenv("UV_DEFAULT_INDEX", address)
        assert "secret" not in catch_text(CannotRunHereError, index.list_versions, "one")
