"""What a GPU's driver keeps of what it compiled, in a folder of a test's own."""

from contextlib import contextmanager, nullcontext

import pytest
from kit.ptx import CompiledCode


@pytest.fixture
def driver(tmp_path):
    path = tmp_path / "version"
    path.write_text("NVRM version: 535.104.05")
    return path


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "cache"
    path.mkdir()
    return path


def test_a_folder_is_new_until_it_was_filled_for_this_driver(folder, driver, tmp_path):
    code = CompiledCode(str(folder), str(driver))
    assert code.is_new
    code.mark()
    assert not code.is_new
    assert not CompiledCode(str(folder), str(driver)).is_new
    driver.write_text("NVRM version: 550.54.15")
    assert CompiledCode(str(folder), str(driver)).is_new
    # a driver that does not tell its version is one and the same
    nowhere = str(tmp_path / "nowhere")
    assert CompiledCode(str(folder), nowhere).is_new
    CompiledCode(str(folder), nowhere).mark()
    assert not CompiledCode(str(folder), nowhere).is_new


@pytest.fixture
def first(tmp_path, driver):
    """Return the folder of a first start: two files of compiled code, for this driver."""
    path = tmp_path / "first"
    (path / "a").mkdir(parents=True)
    (path / "a" / "1").write_bytes(b"x" * 1000)
    (path / "index").write_bytes(b"y")
    CompiledCode(str(path), str(driver)).mark()
    return path


def test_a_new_folder_starts_with_the_code_of_the_first_start(folder, first, driver):
    code = CompiledCode(str(folder), str(driver), str(first))
    assert not code.is_new
    assert (folder / "a" / "1").read_bytes() == b"x" * 1000
    assert sorted(path.name for path in folder.iterdir()) == ["a", "harness-filled", "index"]
    assert code.resources() == {"ptx_cache_bytes": 1001, "ptx_cache_filled_bytes": 0}
    # a filled folder is not touched again
    (folder / "index").write_bytes(b"own")
    CompiledCode(str(folder), str(driver), str(first))
    assert (folder / "index").read_bytes() == b"own"


def test_code_of_a_first_start_that_failed_or_with_another_driver_or_that_cannot_be_copied_is_not_used(
    folder, first, driver, tmp_path
):
    (tmp_path / "file").write_text("")
    assert CompiledCode(str(tmp_path / "file"), str(driver), str(first)).is_new
    (first / "harness-filled").unlink()
    assert CompiledCode(str(folder), str(driver), str(first)).is_new
    CompiledCode(str(first), str(driver)).mark()
    driver.write_text("NVRM version: 550.54.15")
    assert CompiledCode(str(folder), str(driver), str(first)).is_new
    assert list(folder.iterdir()) == []


def test_what_came_in_is_told_beside_what_was_there(folder, driver):
    (folder / "a").mkdir()
    (folder / "a" / "1").write_bytes(b"x" * 1000)
    code = CompiledCode(str(folder), str(driver))
    code.mark()
    assert code.resources() == {"ptx_cache_bytes": 1000, "ptx_cache_filled_bytes": 0}
    (folder / "a" / "2").write_bytes(b"x" * 234)
    assert code.resources() == {"ptx_cache_bytes": 1000, "ptx_cache_filled_bytes": 234}
    (folder / "a" / "1").unlink()
    assert code.resources() == {"ptx_cache_bytes": 1000, "ptx_cache_filled_bytes": 0}


def test_what_came_in_while_steps_were_timed_is_told_apart(folder, driver):
    code = CompiledCode(str(folder), str(driver))
    (folder / "1").write_bytes(b"x" * 1000)
    entered = []
    with code.watching(contextmanager(lambda: iter([entered.append(1)]))()):
        (folder / "2").write_bytes(b"x" * 50)
    (folder / "3").write_bytes(b"x" * 4)
    assert entered == [1]
    assert code.resources() == {
        "ptx_cache_bytes": 0,
        "ptx_cache_filled_bytes": 1054,
        "steady_ptx_cache_filled_bytes": 50,
    }
    raising = CompiledCode(str(folder), str(driver))
    with pytest.raises(ZeroDivisionError), raising.watching(nullcontext()):
        _ = 1 / 0
    assert "steady_ptx_cache_filled_bytes" not in raising.resources()


def test_without_a_folder_nothing_is_told_and_one_that_is_gone_or_cannot_be_written_holds_nothing(tmp_path, driver):
    without = CompiledCode()
    assert not without.is_new
    assert without.resources() == {}
    code = CompiledCode(str(tmp_path / "nowhere"), str(driver))
    code.mark()
    assert code.is_new
    assert code.resources() == {"ptx_cache_bytes": 0, "ptx_cache_filled_bytes": 0}
