"""Commits, working copies and remote repositories."""

import base64
import contextlib
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from harness.files import get_cache_dir
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
    commit = git.read_commit(repository.folder, "main")
    with git.copy_working_tree(repository.folder) as copy:
        assert (copy.commit, copy.changed, copy.difference) == (commit.commit, 0, "")
        assert git.get_tree_id(copy) == git.get_tree_id(commit)


def test_a_working_copy_has_its_changes_and_new_files_but_no_ignored_ones(
    repository: SourceRepository, tmp_path: Path
) -> None:
    (repository.folder / ".gitignore").write_text("built\n")
    (repository.folder / "built").write_text("")
    (repository.folder / "mine.py").write_text("CALLS = 2\n")
    (repository.folder / "requires.txt").unlink()
    before = repository.git("status", "--porcelain"), repository.git("count-objects")
    with git.copy_working_tree(repository.folder) as copy:
        found = files(copy, tmp_path / "out")
        assert (copy.changed, len(copy.difference)) == (3, 64)
    assert found.keys() == {".gitignore", "backend.py", "mine.py", "pyproject.toml"}
    assert found["mine.py"] == "CALLS = 2\n"
    assert (repository.git("status", "--porcelain"), repository.git("count-objects")) == before


def test_a_change_in_the_second_of_the_commit_is_seen(repository: SourceRepository) -> None:
    module, second = repository.folder / "mine.py", (1_700_000_000, 1_700_000_000)
    repository.git("config", "core.trustctime", "false")
    os.utime(module, second)
    repository.git("add", "--all")
    module.write_text("CALLS = 2\n")
    for path in (module, repository.folder / ".git" / "index"):
        os.utime(path, second)
    with git.copy_working_tree(repository.folder) as copy:
        assert copy.changed == 1


def test_a_package_may_be_in_a_folder_of_a_repository(repository: SourceRepository, tmp_path: Path) -> None:
    (repository.folder / "inner").mkdir()
    (repository.folder / "inner" / "setup.py").write_text("")
    repository.commit("CALLS = 2\n")
    assert files(git.read_commit(repository.folder / "inner", "HEAD"), tmp_path / "a").keys() == {"setup.py"}
    with git.copy_working_tree(repository.folder / "inner") as copy:
        assert files(copy, tmp_path / "b").keys() == {"setup.py"}


def test_a_link_that_leaves_the_source_is_refused(repository: SourceRepository, tmp_path: Path) -> None:
    (repository.folder / "out").symlink_to("/etc")
    repository.commit("CALLS = 2\n")
    with pytest.raises(UsageError, match="its link out points outside the source"):
        files(git.read_commit(repository.folder, "HEAD"), tmp_path / "out")


def test_all_files_of_a_commit_are_exported_whatever_is_left_out_of_archives(
    repository: SourceRepository, tmp_path: Path
) -> None:
    (repository.folder / ".gitattributes").write_text("requires.txt export-ignore\n")
    (repository.folder / "link").symlink_to("mine.py")
    repository.commit("CALLS = 2\n")
    mask = os.umask(0o077)
    try:
        exported = files(git.read_commit(repository.folder, "HEAD"), tmp_path / "out")
    finally:
        os.umask(mask)
    assert exported.keys() == set(repository.git("ls-files").splitlines())
    # the wheel's files get these modes
    assert (tmp_path / "out" / "mine.py").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "out" / "link").is_symlink()


def test_a_commit_is_exported_from_a_repository_without_a_work_tree(
    repository: SourceRepository, tmp_path: Path
) -> None:
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    assert "mine.py" in files(git.read_commit(tmp_path / "bare", "main"), tmp_path / "out")


def test_a_repository_that_a_hook_names_is_not_used(
    repository: SourceRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = SourceRepository(tmp_path / "other")
    other.commit("CALLS = 2\n")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    with git.copy_working_tree(repository.folder) as copy:
        assert (copy.repository, copy.changed) == (repository.folder, 0)
        assert files(copy, tmp_path / "out")["mine.py"] == "CALLS = 1\n"


def test_equal_changes_of_equal_files_have_one_hash(repository: SourceRepository) -> None:
    def difference(text: str) -> str:
        (repository.folder / "mine.py").write_text(text)
        with git.copy_working_tree(repository.folder) as copy:
            return copy.difference

    first, second, third = map(difference, ("CALLS = 2\n", "CALLS = 3\n", "CALLS = 2\n"))
    assert (first == third, first == second) == (True, False)


def test_a_commit_whose_time_has_no_date_is_refused(
    repository: SourceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@999999999999 +0000")
    repository.commit("CALLS = 2\n")
    with pytest.raises(UsageError, match="has an invalid time: 999999999999 s"):
        git.read_commit(repository.folder, "HEAD")


def test_an_unknown_revision_is_told_with_the_nearest(repository: SourceRepository) -> None:
    repository.git("tag", "v1.2.0")
    with pytest.raises(UsageError, match=r"'v1\.2\.9'.* Did you mean v1\.2\.0\?"):
        git.read_commit(repository.folder, "v1.2.9")
    with pytest.raises(UsageError, match=r"'v1\.2\.9' in file:.* Did you mean v1\.2\.0\?"):
        git.fetch_commit(f"file://{repository.folder}", "v1.2.9")


@pytest.mark.parametrize("revision", ["main~", "main^", "main:x", "^main"])
def test_a_remote_repository_has_no_expressions(repository: SourceRepository, revision: str) -> None:
    with pytest.raises(UsageError, match="git can't find the commit") as raised:
        git.fetch_commit(f"file://{repository.folder}", revision)
    assert "a complete commit id" in raised.value.advice


def test_locks_that_a_killed_fetch_left_are_removed(repository: SourceRepository) -> None:
    address = f"file://{repository.folder}"
    git.fetch_commit(address, "main")
    (copy,) = (path for path in (get_cache_dir() / "repositories").iterdir() if path.is_dir())
    (copy / "shallow.lock").touch()
    for ref in [*copy.glob("refs/harness/*")]:
        ref.with_name(f"{ref.name}.lock").touch()
    commit = repository.commit("CALLS = 2\n")
    assert git.fetch_commit(address, "main").commit == commit


def test_git_asks_nothing_and_answers_in_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$LC_ALL $*" >{tmp_path}/words\necho "no such host" >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{ssh} -i key")
    with pytest.raises(CannotRunHereError, match=r"ssh://example\.org/x cannot be fetched: no such host\.") as raised:
        git.fetch_commit("ssh://me:secret@example.org/x", "main", "Do this.")
    assert raised.value.advice == "Do this."
    assert (tmp_path / "words").read_text().startswith("C -i key -oBatchMode=yes")


class PrivateServer(http.server.ThreadingHTTPServer):
    """A server that asks for a user and a password, and reads the command lines of all processes when it gets them."""

    def __init__(self, target: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _PrivateHandler)
        self.address = f"127.0.0.1:{self.server_port}"
        self.target = target
        self.credentials: list[str] = []
        self.command_lines: list[str] = []


class _PrivateHandler(http.server.BaseHTTPRequestHandler):
    server: PrivateServer

    def do_GET(self) -> None:
        if self.server.target:
            self.send_response(301)
            self.send_header("Location", f"{self.server.target}{self.path}")
        elif given := self.headers.get("Authorization"):
            self.server.credentials.append(base64.b64decode(given.removeprefix("Basic ")).decode())
            for process in psutil.process_iter():
                with contextlib.suppress(psutil.Error):
                    self.server.command_lines += process.cmdline()
            self.send_response(404)
        else:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def serving(server: PrivateServer) -> Iterator[PrivateServer]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_password_of_a_remote_repository_is_in_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    with serving(PrivateServer()) as server:
        with pytest.raises(CannotRunHereError) as raised:
            git.fetch_commit(f"http://me:s3%20c$ret@{server.address}/x", "main")
        assert server.credentials == ["me:s3 c$ret"]
        assert server.address in " ".join(server.command_lines)
        assert not [word for word in server.command_lines if "c$ret" in word]
    assert "c$ret" not in str(raised.value)


def test_another_server_does_not_get_the_password(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    with serving(PrivateServer()) as other, serving(PrivateServer(f"http://{other.address}")) as server:
        with pytest.raises(CannotRunHereError):
            git.fetch_commit(f"http://me:s3cret@{server.address}/x", "main")
        assert not other.credentials


def test_a_remote_repository_is_fetched_once(repository: SourceRepository, tmp_path: Path) -> None:
    address, commit = f"file://{repository.folder}", repository.git("rev-parse", "HEAD")
    found = git.fetch_commit(address, "main")
    assert (found.commit, files(found, tmp_path / "out")["mine.py"]) == (commit, "CALLS = 1\n")
    repository.folder.rename(tmp_path / "away")
    assert git.fetch_commit(address, commit).commit == commit
    with pytest.raises(CannotRunHereError, match="cannot be fetched"):
        git.fetch_commit(address, "main")


def test_what_is_no_repository_or_has_no_commit_is_told(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not in a git repository\.\n"):
        git.read_commit(tmp_path, "HEAD")
    empty = SourceRepository(tmp_path / "empty")
    with pytest.raises(UsageError, match="has no commit yet"), git.copy_working_tree(empty.folder):
        pass


def test_a_repository_of_another_user_is_told_with_what_git_advises(
    repository: SourceRepository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(UsageError, match="dubious ownership") as raised:
        git.read_commit(repository.folder, "HEAD")
    assert f"git config --global --add safe.directory {repository.folder}" in raised.value.advice


def test_without_git_it_is_told(repository: SourceRepository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(CannotRunHereError, match="git can't be run") as raised:
        git.read_commit(repository.folder, "HEAD")
    assert "Install git" in raised.value.advice
