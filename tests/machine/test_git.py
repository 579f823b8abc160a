"""Commits, working copies and remote repositories."""

from pathlib import Path

import pytest

from harness.machine import git
from harness.model.errors import CannotRunHereError, UsageError
from tests.sources import SourceRepository


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SourceRepository:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    made = SourceRepository(tmp_path / "repository")
    made.commit("CALLS = 1\n")
    return made


def files(snapshot: git.Snapshot, folder: Path) -> dict[str, str]:
    folder.mkdir()
    snapshot.export(folder)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_clean_working_copy_is_its_commit(repository: SourceRepository) -> None:
    commit = git.at_commit(repository.folder, "main")
    with git.working_copy(repository.folder) as copy:
        assert (copy.commit, copy.changed, copy.difference) == (commit.commit, 0, "")
        assert git.tree_id(copy) == git.tree_id(commit)


def test_a_working_copy_has_its_changes_and_new_files_but_no_ignored_ones(
    repository: SourceRepository, tmp_path: Path
) -> None:
    (repository.folder / ".gitignore").write_text("built\n")
    (repository.folder / "built").write_text("")
    (repository.folder / "mine.py").write_text("CALLS = 2\n")
    (repository.folder / "requires.txt").unlink()
    before = repository.git("status", "--porcelain"), repository.git("count-objects")
    with git.working_copy(repository.folder) as copy:
        found = files(copy, tmp_path / "out")
        assert (copy.changed, len(copy.difference)) == (3, 64)
    assert found.keys() == {".gitignore", "backend.py", "mine.py", "pyproject.toml"}
    assert found["mine.py"] == "CALLS = 2\n"
    assert (repository.git("status", "--porcelain"), repository.git("count-objects")) == before


def test_a_package_may_be_in_a_folder_of_a_repository(repository: SourceRepository, tmp_path: Path) -> None:
    (repository.folder / "inner").mkdir()
    (repository.folder / "inner" / "setup.py").write_text("")
    repository.commit("CALLS = 2\n")
    assert files(git.at_commit(repository.folder / "inner", "HEAD"), tmp_path / "a").keys() == {"setup.py"}
    with git.working_copy(repository.folder / "inner") as copy:
        assert files(copy, tmp_path / "b").keys() == {"setup.py"}


def test_a_link_that_leaves_the_source_is_refused(repository: SourceRepository, tmp_path: Path) -> None:
    (repository.folder / "out").symlink_to("/etc")
    repository.commit("CALLS = 2\n")
    with pytest.raises(UsageError, match="has a file that cannot be used"):
        files(git.at_commit(repository.folder, "HEAD"), tmp_path / "out")


def test_an_unknown_revision_is_told_with_the_nearest(repository: SourceRepository) -> None:
    repository.git("tag", "v1.2.0")
    with pytest.raises(UsageError, match=r"'v1\.2\.9'.* Did you mean v1\.2\.0\?"):
        git.at_commit(repository.folder, "v1.2.9")
    with pytest.raises(UsageError, match=r"'v1\.2\.9' in file:.* Did you mean v1\.2\.0\?"):
        git.fetched(f"file://{repository.folder}", "v1.2.9")


def test_a_remote_repository_is_fetched_once(repository: SourceRepository, tmp_path: Path) -> None:
    address, commit = f"file://{repository.folder}", repository.git("rev-parse", "HEAD")
    found = git.fetched(address, "main")
    assert (found.commit, files(found, tmp_path / "out")["mine.py"]) == (commit, "CALLS = 1\n")
    repository.folder.rename(tmp_path / "away")
    assert git.fetched(address, commit).commit == commit
    with pytest.raises(CannotRunHereError, match="cannot be fetched"):
        git.fetched(address, "main")


def test_a_password_is_not_shown() -> None:
    for password in ("secret", "se@cret"):
        assert git.without_password(f"https://me:{password}@example.org/x") == "https://example.org/x"
    assert git.without_password("https://example.org/x@main") == "https://example.org/x@main"


def test_what_is_no_repository_or_has_no_commit_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is in no repository"):
        git.at_commit(tmp_path, "HEAD")
    empty = SourceRepository(tmp_path / "empty")
    with pytest.raises(UsageError, match="has no commit yet"), git.working_copy(empty.folder):
        pass


def test_without_git_it_is_told(repository: SourceRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CannotRunHereError, match="git can't be run") as raised:
        git.at_commit(repository.folder, "HEAD")
    assert "Install git" in raised.value.advice
