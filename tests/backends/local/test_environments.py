import dataclasses
import shutil
import sys
from contextlib import ExitStack
from hashlib import sha256
from pathlib import Path

import pytest

from harness.backends.local.backend import LocalBackend
from harness.backends.local.environments import Environments
from harness.machine.lock import hold_lock
from harness.model.backend import Stage
from harness.model.environment import Lock
from harness.model.errors import CannotRunHereError, UnavailableError
from tests.backends.conftest import requirement_of
from tests.conftest import ROOT
from tests.packageindex import PackageIndex, make_lock

FAKE = """#!/bin/sh
set -eu
mkdir -p "$3/bin"
ln -s "$1" "$3/bin/python"
"""


@pytest.fixture
def root(tmp_path):
    """A project whose install.sh only links the interpreter."""
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "install.sh").write_text(FAKE)
    return tmp_path


def here(version):
    return Path(sys.executable)


def no_python(version):
    raise UnavailableError(f"Python {version} isn't installed on this machine.", "Get it.")


def test_an_environment_is_made_once_and_its_interpreter_is_searched_once(root, cache):
    searched = []

    def search(version):
        searched.append(version)
        return no_python(version)

    environments = Environments(root, search)
    for _ in range(2):
        with pytest.raises(UnavailableError, match="isn't installed"):
            environments.make(requirement_of(root), lambda step: None)
    assert len(searched) == 1
    requirement, steps = requirement_of(root), []
    environments = Environments(root, here)
    environments.make(requirement, steps.append)
    assert environments.is_ready(requirement)
    environments.make(requirement, steps.append)
    assert [step.stage for step in steps] == [Stage.WORKING, Stage.READY]
    assert environments.folder(requirement).parent == cache / "environments"


def test_an_environment_that_another_process_makes_is_waited_for(root, cache):
    requirement, steps = requirement_of(root), []
    environments = Environments(root, here)
    environments.folder(requirement).parent.mkdir(parents=True)
    lock = environments.folder(requirement).with_name(f".{environments.folder(requirement).name}.lock")
    with ExitStack() as stack:
        stack.enter_context(hold_lock(lock, "held"))

        def progress(step):
            steps.append(step)
            stack.close()  # the other process is done

        environments.make(requirement, progress)
    assert "Waiting for it" in steps[0].words
    assert steps[-1].stage is Stage.READY


def test_another_lock_or_another_recipe_is_another_environment(root, cache):
    environments, requirement = Environments(root), requirement_of(root)
    other = dataclasses.replace(requirement, lock=Lock(requirement.lock.path, "0" * 64, {}))
    first = environments.folder(requirement)
    assert environments.folder(other) != first
    (root / "images" / "install.sh").write_text(FAKE + "# changed\n")
    assert environments.folder(requirement) != first


def test_what_was_never_finished_or_has_lost_its_interpreter_is_made_anew(root, cache, tmp_path):
    environments, requirement = Environments(root, here), requirement_of(root)
    (environments.folder(requirement) / "bin").mkdir(parents=True)
    environments.python(requirement).write_text("torn")
    environments.make(requirement, lambda line: None)
    assert environments.python(requirement).is_symlink()
    environments.python(requirement).unlink()
    environments.python(requirement).symlink_to(tmp_path / "gone")
    assert not environments.is_ready(requirement)
    environments.make(requirement, lambda line: None)
    assert environments.is_ready(requirement)


def test_a_failed_installation_and_a_cache_that_cannot_be_written_say_why(root, cache, monkeypatch):
    (root / "images" / "install.sh").write_text("echo 'no matching hash' >&2; exit 1\n")
    environments, requirement = Environments(root, here), requirement_of(root)
    with pytest.raises(UnavailableError, match="no matching hash"):
        environments.make(requirement, lambda line: None)
    assert not environments.is_ready(requirement)
    monkeypatch.setenv("HARNESS_CACHE_DIR", "/proc/none")
    with pytest.raises(CannotRunHereError, match=r"cannot be written.*\n.*HARNESS_CACHE_DIR"):
        Environments(root, here).make(requirement_of(root), lambda line: None)


def test_without_its_python_one_is_unavailable_and_where_none_can_be_had_nothing_runs(root, cache):
    backend = LocalBackend(root, "test")
    backend.environments = Environments(
        root, lambda version: here(version) if version == "3.11" else no_python(version)
    )
    old, new = requirement_of(root, "old", "3.7"), requirement_of(root, "new")
    prepared = backend.prepare([old, new], lambda line: None)
    assert "Python 3.7" in prepared.unavailable["old"].message
    assert prepared.images == {"new": new.lock.sha256}
    with pytest.raises(CannotRunHereError, match=r"Python 3.7 isn't installed on this machine.\nGet it."):
        backend.prepare([old], lambda line: None)


@pytest.mark.slow
def test_one_of_a_folder_of_packages_that_is_made_again_differs_in_times_alone(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("HARNESS_WHEELS", str(tmp_path / "wheels"))
    requirement = requirement_of(tmp_path)
    (tmp_path / "wheels").mkdir()
    # the index has no such package
    wheel = PackageIndex(tmp_path / "wheels").add("harness_tiny-1.0-py3-none-any")
    requirement.lock.path.write_text(make_lock(wheel))
    lock = dataclasses.replace(requirement.lock, pins={"harness-tiny": "1.0"})
    requirement = dataclasses.replace(requirement, lock=lock)
    backend = LocalBackend(ROOT, "test-run")
    environments, contents = backend.environments, []
    for _ in range(2):
        environments.make(requirement, lambda step: None)
        assert backend.verify(requirement).is_right
        folder = environments.folder(requirement)
        files = [path for path in folder.rglob("*") if path.is_file() and path.parent != folder]
        contents.append({path: path.read_bytes() for path in files})
        shutil.rmtree(folder)
    first, second = contents
    assert [path for path in first if path.suffix == ".pyc"]
    assert first.keys() == second.keys()
    for path, data in first.items():
        if path.suffix == ".pyc":  # bytes 8 to 12 are its source's time (PEP 552)
            assert (data[:8], data[12:]) == (second[path][:8], second[path][12:])
        else:
            assert data == second[path]


@pytest.mark.slow
def test_an_environment_shares_the_files_of_a_ready_one_with_the_same_tensorflow(tmp_path, cache, monkeypatch):
    monkeypatch.setenv("HARNESS_WHEELS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    index, environments = PackageIndex(tmp_path / "wheels"), LocalBackend(ROOT, "test-run").environments
    names = ("tensorflow-2.9.9", "keras-1", "keras-2", "extra-1")
    wheels = {
        name: index.add(f"{name}-py3-none-any", others={f"{name.partition('-')[0]}/bin/part.py": name.encode()})
        for name in names
    }

    def make(name, *packages):
        requirement = requirement_of(tmp_path, name)
        path = tmp_path / f"{name}.txt"
        path.write_text(make_lock(*(wheels[package] for package in packages)))
        pins = dict(package.split("-") for package in packages)
        requirement = dataclasses.replace(requirement, lock=Lock(path, sha256(path.read_bytes()).hexdigest(), pins))
        environments.make(requirement, lambda step: None)
        return requirement, environments.folder(requirement)

    def list_parts(folder):
        return sorted(path.read_text() for path in folder.glob("lib/python3.11/site-packages/*/bin/part.py"))

    one, first = make("one", "tensorflow-2.9.9", "keras-1", "extra-1")
    other, second = make("other", "tensorflow-2.9.9", "keras-2")
    assert list_parts(first) == ["extra-1", "keras-1", "tensorflow-2.9.9"]
    assert list_parts(second) == ["keras-2", "tensorflow-2.9.9"]
    module = "lib/python3.11/site-packages/tensorflow/bin/part.py"
    assert (first / module).samefile(second / module)
    assert not [script for script in (second / "bin").iterdir() if str(first).encode() in script.read_bytes()]
    for requirement in (one, other):
        environments.check(requirement)
    (second / module).write_text("changed")  # in both, so neither is used again
    with pytest.raises(CannotRunHereError, match="was changed"):
        environments.check(one)
    assert list_parts(make("third", "tensorflow-2.9.9")[1]) == ["tensorflow-2.9.9"]
