import base64
import contextlib
import os
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import psutil
import pytest

from harness.files import get_cache_dir
from harness.machine import git
from harness.model.errors import CannotRunHereError, UsageError
from tests.errors import catch, catch_text
from tests.sources import SourceRepository
from tests.webserver import serving


@pytest.fixture
def repository(tmp_path):
    repository = SourceRepository(tmp_path / "repository")
    repository.commit("CALLS = 1\n")
    return repository


def files(snapshot: git.Snapshot, folder: Path) -> dict[str, str]:
    folder.mkdir()
    snapshot.export(folder)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_a_clean_working_copy_is_its_commit_and_equal_changes_have_one_hash(repository):
    commit = git.read_commit(repository.folder, "main")
    with git.copy_working_tree(repository.folder) as copy:
        assert (copy.commit, copy.changed, copy.difference) == (commit.commit, 0, "")
        assert git.get_tree_id(copy) == git.get_tree_id(commit)
    differences = []
    for text in ("CALLS = 2\n", "CALLS = 3\n", "CALLS = 2\n"):
        (repository.folder / "mine.py").write_text(text)
        with git.copy_working_tree(repository.folder) as copy:
            differences.append(copy.difference)
    first, second, third = differences
    assert first == third != second


def test_a_working_copy_has_its_changes_and_new_files_but_no_ignored_ones(repository, tmp_path):
    (repository.folder / ".gitignore").write_text("built\n")
    (repository.folder / "built").write_text("")
    (repository.folder / "mine.py").write_text("CALLS = 2\n")
    (repository.folder / "requires.txt").unlink()
    before = repository.git("status", "--porcelain"), repository.git("count-objects")
    with git.copy_working_tree(repository.folder) as copy:
        copies = files(copy, tmp_path / "out")
        assert (copy.changed, len(copy.difference)) == (3, 64)
    assert copies.keys() == {".gitignore", "backend.py", "mine.py", "pyproject.toml"}
    assert copies["mine.py"] == "CALLS = 2\n"
    assert (repository.git("status", "--porcelain"), repository.git("count-objects")) == before


def test_a_change_in_the_second_of_the_commit_is_seen(repository):
    module, second = repository.folder / "mine.py", (1_700_000_000, 1_700_000_000)
    repository.git("config", "core.trustctime", "false")
    os.utime(module, second)
    repository.git("add", "--all")
    module.write_text("CALLS = 2\n")
    for path in (module, repository.folder / ".git" / "index"):
        os.utime(path, second)
    with git.copy_working_tree(repository.folder) as copy:
        assert copy.changed == 1


def test_a_package_may_be_in_a_folder_of_a_repository(repository, tmp_path):
    (repository.folder / "inner").mkdir()
    (repository.folder / "inner" / "setup.py").write_text("")
    repository.commit("CALLS = 2\n")
    assert files(git.read_commit(repository.folder / "inner", "HEAD"), tmp_path / "a").keys() == {"setup.py"}
    with git.copy_working_tree(repository.folder / "inner") as copy:
        assert files(copy, tmp_path / "b").keys() == {"setup.py"}


def test_all_files_of_a_commit_are_exported_whatever_is_left_out_of_archives(repository, tmp_path):
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
    # and from a repository without a work tree
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    assert files(git.read_commit(tmp_path / "bare", "main"), tmp_path / "copy") == exported


def test_a_signature_is_not_checked_even_if_git_shows_signatures(repository, tmp_path):
    program = tmp_path / "gpg"
    program.write_text("#!/bin/sh\necho checked >&2\n")
    program.chmod(0o755)
    repository.git("config", "log.showSignature", "true")
    repository.git("config", "gpg.program", str(program))
    signature = "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n"
    commit = repository.folder / "commit"
    commit.write_text(repository.git("cat-file", "commit", "HEAD").replace("\n\n", signature, 1))
    signed = repository.git("hash-object", "-t", "commit", "-w", str(commit)).strip()
    assert git.read_commit(repository.folder, signed).instant == git.read_commit(repository.folder, "HEAD").instant


def test_a_repository_that_a_hook_names_is_not_used(repository, tmp_path, monkeypatch):
    other = SourceRepository(tmp_path / "other")
    other.commit("CALLS = 2\n")
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    with git.copy_working_tree(repository.folder) as copy:
        assert (copy.repository, copy.changed) == (repository.folder, 0)
        assert files(copy, tmp_path / "out")["mine.py"] == "CALLS = 1\n"


def test_what_is_no_usable_commit_is_refused(repository, tmp_path, monkeypatch, snapshot):
    folder, address = repository.folder, f"file://{repository.folder}"
    repository.git("tag", "v1.2.0")
    empty = SourceRepository(tmp_path / "empty")
    (tmp_path / "folder").mkdir()
    errors = {
        "a revision": catch_text(UsageError, git.read_commit, folder, "v1.2.9"),
        "a remote revision": catch_text(UsageError, git.fetch_commit, address, "v1.2.9"),
        "an expression": catch_text(UsageError, git.fetch_commit, address, "main~"),
        "no repository": catch_text(UsageError, git.read_commit, tmp_path / "folder", "HEAD"),
        "an empty repository": catch_text(UsageError, git.copy_working_tree(empty.folder).__enter__),
    }

    (folder / "out").symlink_to("/etc")
    repository.commit("CALLS = 2\n")
    commit = git.read_commit(folder, "HEAD")
    errors["a link outside"] = catch_text(UsageError, files, commit, tmp_path / "out").replace(
        commit.commit[:12], "COMMIT"
    )
    monkeypatch.setenv("GIT_COMMITTER_DATE", "@999999999999 +0000")
    date = repository.commit("CALLS = 3\n")
    errors["no date"] = catch_text(UsageError, git.read_commit, folder, "HEAD").replace(date[:12], "COMMIT")
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    errors["another owner"] = catch_text(UsageError, git.read_commit, folder, "HEAD")
    monkeypatch.setenv("PATH", "/nowhere")
    errors["no git"] = catch_text(CannotRunHereError, git.read_commit, folder, "HEAD")
    assert {name: text.replace(str(tmp_path), "") for name, text in errors.items()} == snapshot


def test_git_asks_nothing_and_answers_in_english(tmp_path, monkeypatch):
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$LC_ALL $*" >{tmp_path}/words\necho "no such host" >&2\nexit 255\n')
    ssh.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", f"{ssh} -i key")
    error = catch(CannotRunHereError, git.fetch_commit, "ssh://me:secret@example.org/x", "main", "Do this.")
    assert "ssh://example.org/x" in error.message
    assert "no such host" in error.message
    assert error.advice == "Do this."
    assert (tmp_path / "words").read_text().startswith("C -i key -oBatchMode=yes")


def test_a_password_of_a_remote_repository_is_in_no_command_line_and_goes_to_no_other_server():
    credentials: list[str] = []
    words: list[str] = []

    class Private(BaseHTTPRequestHandler):
        def do_GET(self):
            if header := self.headers.get("Authorization"):
                credentials.append(base64.b64decode(header.removeprefix("Basic ")).decode())
                for process in psutil.process_iter():
                    with contextlib.suppress(psutil.Error):
                        words.extend(process.cmdline())
            self.send_response(404 if header else 401)
            self.send_header("WWW-Authenticate", 'Basic realm="x"')
            self.end_headers()

    class Redirect(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(301)
            self.send_header("Location", f"{private}{self.path}")
            self.end_headers()

    with serving(Private) as private, serving(Redirect) as other:
        address = f"{private}/x".replace("//", "//me:s3%20c$ret@")
        assert "c$ret" not in catch_text(CannotRunHereError, git.fetch_commit, address, "main")
        assert credentials == ["me:s3 c$ret"]
        assert private.removeprefix("http://") in " ".join(words)
        assert not [word for word in words if "c$ret" in word]
        catch(CannotRunHereError, git.fetch_commit, f"{other}/x".replace("//", "//me:s3cret@"), "main")
        assert len(credentials) == 1


def test_a_remote_repository_is_fetched_once_and_locks_that_a_killed_fetch_left_are_removed(repository, tmp_path):
    address, commit = f"file://{repository.folder}", repository.git("rev-parse", "HEAD")
    snapshot = git.fetch_commit(address, "main")
    assert (snapshot.commit, files(snapshot, tmp_path / "out")["mine.py"]) == (commit, "CALLS = 1\n")
    (copy,) = (path for path in (get_cache_dir() / "repositories").iterdir() if path.is_dir())
    (copy / "shallow.lock").touch()
    for ref in [*copy.glob("refs/harness/*")]:
        ref.with_name(f"{ref.name}.lock").touch()
    later = repository.commit("CALLS = 2\n")
    assert git.fetch_commit(address, "main").commit == later
    repository.folder.rename(tmp_path / "away")
    assert git.fetch_commit(address, commit).commit == commit
    catch(CannotRunHereError, git.fetch_commit, address, "main")
