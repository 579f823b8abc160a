import os
import re

import pytest

from harness.machine.uv import find_uv, get_last_lines, make_environ
from harness.model.errors import CannotRunHereError
from tests.errors import catch_text


@pytest.fixture
def fresh():
    """uv is looked for anew, before and after."""
    find_uv.cache_clear()
    yield
    find_uv.cache_clear()


def test_only_where_things_come_from_is_taken_from_the_user(monkeypatch):
    environ = {
        "PATH": "/bin",
        "HOME": "/home/someone",
        "HTTPS_PROXY": "http://proxy",
        "UV_INDEX_URL": "https://mirror",
        "UV_CACHE_DIR": "/cache",
        "UV_EXCLUDE_NEWER": "2020-01-01",
        "UV_CONSTRAINT": "x.txt",
        "UV_PYTHON": "3.12",
        "VIRTUAL_ENV": "/venv",
        "PYTHONPATH": "/x",
    }
    monkeypatch.setattr(os, "environ", environ)
    assert make_environ() == {
        "PATH": os.pathsep.join([str(find_uv().parent), "/bin"]),
        "HOME": "/home/someone",
        "HTTPS_PROXY": "http://proxy",
        "UV_INDEX_URL": "https://mirror",
        "UV_CACHE_DIR": "/cache",
        "UV_NO_CONFIG": "1",
    }


@pytest.mark.usefixtures("fresh")
def test_without_the_package_the_path_is_searched(tmp_path, monkeypatch, snapshot):
    monkeypatch.setitem(__import__("sys").modules, "uv", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert catch_text(CannotRunHereError, find_uv) == snapshot
    (tmp_path / "uv").write_text("#!/bin/sh\n")
    (tmp_path / "uv").chmod(0o755)
    assert find_uv() == tmp_path / "uv"


def test_last_words_are_the_end_and_have_no_password_of_an_address():
    assert get_last_lines("a\n\nb\nc \n", 2) == "b\nc"
    assert get_last_lines("") == ""
    assert get_last_lines("failed: https://me:secret@host/simple/") == "failed: https://host/simple/"
    for password in ("secret", "sec/ret"):
        words = get_last_lines(f"error: invalid value 'https://me:{password}@host:x/simple' for '--default-index'")
        assert re.fullmatch("error: invalid value '(https://)?host:x/simple' for '--default-index'", words)
