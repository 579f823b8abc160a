"""Whose code it is: of files, packages and commits."""

import json
import os
from pathlib import Path

import pytest

from harness.environments.requested import FromSource, Named
from harness.files import get_cache_dir
from harness.project import Project
from harness.session import trust
from harness.session.trust import Kind
from tests.sources import SourceRepository


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project and a user's own folder of scenarios."""
    return Project(tmp_path / "project", own=tmp_path / "own" / "scenarios")


def write(path: Path, text: str = "x = 1\n") -> Path:
    """Write a file in a folder that may be new, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_file_is_the_projects_the_users_or_somebody_elses(project, tmp_path):
    run = {"launches.jsonl": "", "run.json": json.dumps({"id": "from another machine"})}
    for folder, files in (("received", run), ("bundle", {"run.json": "{}", "repro.py": ""}), ("app", {"run.json": ""})):
        for name, text in files.items():
            write(tmp_path / folder / name, text)
    for name, kind in {
        "project/scenarios/a.py": Kind.PROJECT,
        "project/scenarios/upstream/a.py": Kind.PROJECT,
        "own/scenarios/a.py": Kind.FILE,
        "own/a.py": Kind.FILE,
        "own/a.ipynb": Kind.FILE,
        "own/a.whl": Kind.FILE,
        "app/a.py": Kind.FILE,
        "own/issue.md": Kind.THREAD,
        "own/thread": Kind.THREAD,
        "received/a.py": Kind.RECEIVED,
        "received/artifacts/deep/a.py": Kind.RECEIVED,
        "bundle/a.py": Kind.RECEIVED,
    }.items():
        assert trust.classify_file(write(tmp_path / name), project) is kind, name
    assert trust.classify_file(write(tmp_path / "train", "#!/usr/bin/env python3\n"), project) is Kind.FILE
    assert trust.classify_file(write(tmp_path / "pasted.py", "```python\nx = 1\n```\n"), project) is Kind.THREAD
    assert trust.classify_file(tmp_path / "missing.py", project) is Kind.FILE


def test_a_link_and_a_download_are_somebody_elses(project, tmp_path, monkeypatch):
    path = write(tmp_path / "a.py")
    link = tmp_path / "link.py"
    link.symlink_to(path)
    assert trust.classify_file(link, project) is Kind.FILE
    with monkeypatch.context() as patch:
        patch.setattr(os, "listxattr", lambda _: ["user.xdg.origin.url"])
        assert trust.classify_file(path, project) is Kind.DOWNLOAD
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    assert trust.classify_file(path, project) is Kind.FOREIGN


@pytest.mark.parametrize(
    "kind", [Kind.FILE, Kind.CHECKOUT, *(kind for kind in Kind if trust.find_untrusted({"": kind}))]
)
def test_a_generated_scenario_has_the_owner_of_its_original(project, kind):
    path = write(get_cache_dir() / trust.get_folder(kind) / "0123" / "a.py")
    assert trust.classify_file(path, project).owner is kind.owner
    assert trust.classify_file(write(get_cache_dir() / "else" / "a.py"), project) is Kind.RECEIVED


def test_a_package_is_the_users_if_it_is_in_their_checkout(project, tmp_path, monkeypatch):
    repository = SourceRepository(tmp_path / "mine")
    first = repository.commit("CALLS = 1\n")
    repository.git("checkout", "--quiet", "-b", "other")
    other = repository.commit("CALLS = 2\n")
    repository.git("checkout", "--quiet", "main")
    folder = str(repository.folder)
    for place, used, kind in (
        (folder, "", Kind.CHECKOUT),
        (f"git+file://{folder}", "", Kind.CHECKOUT),
        (f"git+file://{folder}@{first}", "", Kind.CHECKOUT),
        (first, folder, Kind.CHECKOUT),
        (other, folder, Kind.REVISION),
        ("unknown", folder, Kind.REVISION),
        ("pr/7", folder, Kind.REVISION),
        (first, "https://example.org/mine", Kind.REVISION),
        ("https://example.org/mine", "", Kind.REVISION),
        (str(write(tmp_path / "mine-1.0-py3-none-any.whl")), "", Kind.FILE),
    ):
        assert trust.classify_package(FromSource(Named("new"), "mine", place), project, used) is kind, place
    monkeypatch.setattr(os, "geteuid", lambda: repository.folder.stat().st_uid + 1)
    assert trust.classify_package(FromSource(Named("new"), "mine", folder), project) is Kind.FOREIGN
