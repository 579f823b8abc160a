from pathlib import Path

from harness import package_data
from harness.catalog.project import BAKE_FILE, Project
from harness.model.errors import UsageError
from tests.errors import catch_text


def make(folder: Path) -> Path:
    """A project's folder, as far as it is looked at."""
    (folder / "scenarios").mkdir(parents=True)
    (folder / BAKE_FILE).touch()
    return folder


def test_a_folder_upwards_wins_over_what_comes_with_the_harness(tmp_path, monkeypatch):
    root, below = make(tmp_path / "project"), tmp_path / "project" / "below"
    (below / "scenarios").mkdir(parents=True)
    monkeypatch.chdir(below)
    assert Project.find() == Project(root)
    assert Project.find().new_scenarios == root / "scenarios"


def test_elsewhere_a_users_scenarios_are_added_to_the_harnesss(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Project.find() == Project(package_data.FOLDER, own=tmp_path / "scenarios")
    assert Project.find().new_scenarios == tmp_path / "scenarios"


def test_the_variable_wins_over_both(tmp_path, monkeypatch):
    named = make(tmp_path / "named")
    monkeypatch.chdir(make(tmp_path / "here"))
    monkeypatch.setenv("HARNESS_PROJECT", str(named))
    assert Project.find() == Project(named)
    monkeypatch.setenv("HARNESS_PROJECT", str(tmp_path))
    assert BAKE_FILE in catch_text(UsageError, Project.find)
