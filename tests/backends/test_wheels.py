import os

import pytest

from harness.backends import wheels
from harness.model.errors import UsageError


@pytest.fixture
def packages(tmp_path):
    folder = tmp_path / "wheels"
    folder.mkdir()
    for name in (
        "numpy-1.17.4-cp37-cp37m-manylinux1_x86_64.whl",
        "numpy-1.18.0-cp37-cp37m-manylinux1_x86_64.whl",
        "absl_py-0.8.1.tar.gz",
        "certifi-2019.9.11-py2.py3-none-any.whl",
        "six-1.13.0-py2.py3-none-any.whl",
        "notes.txt",
    ):
        (folder / name).write_text(name)
    return folder


def test_packages_come_from_the_network_or_from_a_folder_that_has_some(packages, monkeypatch):
    monkeypatch.delenv(wheels.VARIABLE, raising=False)
    assert wheels.find_folder() is None
    monkeypatch.chdir(packages.parent)
    monkeypatch.setenv(wheels.VARIABLE, "wheels")
    assert wheels.find_folder() == packages
    (packages.parent / "empty").mkdir()
    for name in ("nowhere", "empty"):
        monkeypatch.setenv(wheels.VARIABLE, str(packages.parent / name))
        with pytest.raises(UsageError, match=f"HARNESS_WHEELS is .*{name}, but this isn't a folder with packages"):
            wheels.find_folder()

    def refuse(path):
        raise PermissionError

    monkeypatch.setenv(wheels.VARIABLE, "wheels")
    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        patch.setattr(os, "listdir", refuse)
        with pytest.raises(UsageError, match="isn't a folder with packages"):
            wheels.find_folder()


def test_a_builder_gets_what_the_locks_name(packages, tmp_path):
    lock, tools = tmp_path / "lock.txt", tmp_path / "uv.txt"
    lock.write_text("# a lock\nAbsl.Py==0.8.1 \\\n    --hash=sha256:00\nnumpy==1.17.4 \\\n    --hash=sha256:00\n")
    tools.write_text("certifi==2019.09.11 \\\n    --hash=sha256:00\n")
    with wheels.select_wheels(packages, [lock, tools]) as few:
        assert sorted(path.name for path in few.iterdir()) == [
            "absl_py-0.8.1.tar.gz",
            "certifi-2019.9.11-py2.py3-none-any.whl",
            "notes.txt",
            "numpy-1.17.4-cp37-cp37m-manylinux1_x86_64.whl",
        ]
        assert (few / "notes.txt").read_text() == "notes.txt"
    assert not few.exists()
    assert len(list(packages.iterdir())) == 6
