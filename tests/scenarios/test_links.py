"""Downloads with a fake `gh`, and from a local git repository instead of GitHub."""

import os
import subprocess
from pathlib import Path

import pytest

from harness.model.errors import CannotRunHereError, UsageError
from harness.project import Project
from harness.scenarios import links
from harness.session import trust
from tests.errors import catch_text

ISSUE = "https://github.com/tensorflow/tensorflow/issues/62397"
GIST = "https://gist.github.com/somebody/0123456789abcdef"
FILE = "https://github.com/owner/name/blob/main/deep/bench.py"


@pytest.fixture
def gh(tmp_path, monkeypatch):
    """Return a function that writes a `gh` with this shell code."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def write(code: str) -> None:
        (folder / "gh").write_text(f"#!/bin/sh\n{code}\n")
        (folder / "gh").chmod(0o755)

    return write


@pytest.fixture
def github(tmp_path, monkeypatch):
    """Return a folder. Git uses its repositories instead of the repositories on GitHub."""
    for number, host in enumerate(("https://gist.github.com/", "https://github.com/owner/")):
        monkeypatch.setenv(f"GIT_CONFIG_KEY_{number}", f"url.file://{tmp_path}/git/.insteadOf")
        monkeypatch.setenv(f"GIT_CONFIG_VALUE_{number}", host)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "2")
    return tmp_path / "git"


def commit(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("print(1)\n")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "--quiet", "-b", "main"], ["add", "."], [*identity, "commit", "--quiet", "-m", "x"]):
        subprocess.run(["git", "-C", str(folder), *command], check=True)


def test_an_issue_is_downloaded_by_gh_or_to_be_copied_and_is_somebody_elses_code(gh, monkeypatch):
    gh('test "$*" = "issue view 62397 --repo tensorflow/tensorflow" && echo "some code"')
    path = links.fetch(Path(ISSUE))
    assert (path.name, path.read_text()) == ("issue-62397.md", "some code")
    assert trust.classify_file(path, Project.find()) is trust.Kind.DOWNLOAD
    gh("echo 'HTTP 404' >&2; exit 1")
    assert "HTTP 404" in catch_text(CannotRunHereError, links.fetch, Path(ISSUE))
    monkeypatch.setenv("PATH", "")
    assert "gh isn't installed" in catch_text(CannotRunHereError, links.fetch, Path(ISSUE))


@pytest.mark.slow
def test_gists_and_files_are_downloaded_by_git(github):
    commit(github / "0123456789abcdef.git", "bench.py")
    commit(github / "name.git", "deep/bench.py", "other.py", "my notes.py")
    for link, name in (
        (GIST, "bench.py"),
        (FILE, "deep/bench.py"),
        (FILE.replace("github.com", "colab.research.google.com/github"), "deep/bench.py"),
        ("https://raw.githubusercontent.com/owner/name/refs/heads/main/my%20notes.py", "my notes.py"),
    ):
        path = links.fetch(Path(link))
        assert (str(path).endswith(name), path.read_text()) == (True, "print(1)\n")
    commit(github / "0123456789abcdef.git", "second.ipynb")
    assert "2 files with code" in catch_text(UsageError, links.fetch, Path(GIST))
    for name in ("absent.py", "../../../../../etc/apt/apt.conf.d/x.py", "..%2f..%2fx.py"):
        assert "0 files with code" in catch_text(UsageError, links.fetch, Path(FILE.replace("deep/bench.py", name)))
    assert "cannot be fetched" in catch_text(CannotRunHereError, links.fetch, Path(f"{GIST}99"))


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("https://colab.research.google.com/drive/0?usp=sharing", "Download .ipynb"),
        (f"See {GIST}.", f"harness run {GIST}"),
        ("See https://example.org/a and " + ISSUE, f"harness run {ISSUE}"),
        ("It is at https://example.org/a", "download the code from https://example.org/a"),
        ("Nothing.", "Save the code as a Python file"),
    ],
)
def test_a_link_alone_gets_advice(text, advice):
    assert advice in links.suggest_download(text)
    assert not links.is_link(Path("https.py"))
    if "drive" in text:
        assert advice in catch_text(UsageError, links.fetch, Path(text))
