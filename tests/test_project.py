from pathlib import Path

from harness import package_data
from harness.model.errors import UsageError
from harness.project import BAKE_FILE, Project
from tests.errors import catch_text


def make(folder: Path) -> Path:
    """A project's folder, as far as it is looked at."""
    (folder / "scenarios").mkdir(parents=True)
    (folder / BAKE_FILE).touch()
    return folder


def test_the_variable_wins_over_a_folder_upwards_and_that_over_what_comes_with_the_harness(tmp_path, monkeypatch):
    root, named, below = make(tmp_path / "project"), make(tmp_path / "named"), tmp_path / "project" / "below"
    # elsewhere a user's scenarios are added to harness's
    monkeypatch.chdir(tmp_path)
    assert Project.find() == Project(package_data.FOLDER, own=tmp_path / "scenarios")
    assert Project.find().new_scenarios == tmp_path / "scenarios"
    (below / "scenarios").mkdir(parents=True)
    monkeypatch.chdir(below)
    assert Project.find() == Project(root)
    assert Project.find().new_scenarios == root / "scenarios"
    monkeypatch.setenv("HARNESS_PROJECT", str(named))
    assert Project.find() == Project(named)
    monkeypatch.setenv("HARNESS_PROJECT", str(tmp_path))
    assert BAKE_FILE in catch_text(UsageError, Project.find)
