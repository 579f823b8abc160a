import sys
from pathlib import Path

import pytest

from harness.machine import interpreters
from harness.machine.interpreters import find_installed, find_python, find_supply, probe
from harness.model.backend import Supply
from harness.model.errors import UnavailableError
from tests.errors import catch_text

HERE = ".".join(map(str, sys.version_info[:2]))


def program(path, script):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A user with nothing: no pyenv, no conda, and a PATH with one empty folder."""
    for name in ("PYENV_ROOT", "ASDF_DATA_DIR", "RYE_HOME", "UV_PYTHON_INSTALL_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    (tmp_path / "bin").mkdir()
    return tmp_path


def test_a_candidate_is_asked_and_not_believed(tmp_path):
    python = find_python(HERE)
    assert probe(python, HERE) == python
    assert probe(Path(sys.executable), "3.7") is None
    assert probe(tmp_path / "none", HERE) is None
    assert probe(program(tmp_path / "shim", "echo 'command not found' >&2; exit 127"), HERE) is None
    assert probe(program(tmp_path / "chatty", "echo hello"), HERE) is None
    assert probe(program(tmp_path / "pypy", "echo PyPy 3.7 /x"), "3.7") is None


def test_a_shim_that_fails_is_passed_over_and_condas_environments_are_found_without_being_active(bare):
    program(bare / "bin" / f"python{HERE}", "exit 127")
    real = bare / ".pyenv" / "versions" / f"{HERE}.1" / "bin" / f"python{HERE}"
    real.parent.mkdir(parents=True)
    real.symlink_to(sys.executable)
    assert find_python(HERE, [find_installed]).exists()
    python = program(bare / "envs" / "old" / "bin" / "python3.7", "echo CPython 3.7 /envs/old/python")
    (bare / ".conda").mkdir()
    (bare / ".conda" / "environments.txt").write_text(f"{bare}/gone\n{python.parent.parent}\n")
    assert find_python("3.7", [find_installed]) == Path("/envs/old/python")


def test_without_one_the_ways_to_get_it_are_named(bare, monkeypatch, snapshot):
    def cannot(version):
        raise UnavailableError("uv cannot download it: no download")

    monkeypatch.setattr(interpreters, "install_with_uv", cannot)
    assert catch_text(UnavailableError, find_python, "3.7") == snapshot


def test_a_download_that_fails_has_its_address_and_says_how_to_use_a_mirror(bare, monkeypatch):
    monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", "http://127.0.0.1:9/pythons")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("COLUMNS", "60")
    with pytest.raises(UnavailableError, match=r"http://127\.0\.0\.1:9/pythons/\S+: .*refused.*\n.*INSTALL_MIRROR"):
        list(interpreters.install_with_uv("3.8"))


def test_an_interpreter_is_here_or_a_download_or_nowhere(bare):
    assert find_supply("3.8") is Supply.POSSIBLE
    assert find_supply("3.7") is Supply.NONE
    with pytest.raises(UnavailableError, match=r"uv .*3\.7"):
        list(interpreters.install_with_uv("3.7"))
    assert list(find_installed("3.7")) == []
    program(bare / "bin" / "python3.7", "echo CPython 3.7 /bin/python3.7")
    assert find_supply("3.7") is Supply.HERE
    (bare / "bin" / "python3.7").rename(bare / "bin" / "python3")
    assert find_python("3.7", [find_installed]) == Path("/bin/python3.7")
