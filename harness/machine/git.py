"""Runs git: commits, working copies and remote repositories as trees, and their files.

A working copy is a tree too, with its uncommitted changes. Its objects are written to a temporary folder, so that the
repository stays as it is.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.files import cache_dir
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.texts import nearest

#: Seconds for a command on this machine, and for one that asks another.
LOCAL, REMOTE = 120, 600

#: For remote repositories: only these protocols, and no question for a password.
_REMOTE_ENVIRON = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:https:http:ssh"}

_MISSING = re.compile(r"couldn't find remote ref|not our ref|unadvertised object")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a commit, or of a working copy.

    - `repository`: the folder of the repository; `tree`: the id of the tree, with the package's folder after a colon
    - `commit`: the commit, of a working copy the one that it is based on; `instant`: its time, in seconds since 1970
    - `address`: the address of the repository without a password; empty if it has none
    - `changed`: the number of files that differ from the commit; `difference`: the hash of these differences, or empty
    """

    repository: Path
    tree: str
    commit: str
    instant: int
    address: str = ""
    changed: int = 0
    difference: str = ""
    environ: Mapping[str, str] = field(default_factory=dict)

    def export(self, folder: Path) -> None:
        """Write the files into a folder. Raises UsageError if a link leaves it, and CannotRunHereError."""
        with tempfile.TemporaryFile() as archive:
            command = ["git", "-C", str(self.repository), "archive", "--format=tar", self.tree]
            process = _run(command, LOCAL, self.environ, output=archive.fileno())
            if process.returncode:
                raise CannotRunHereError(f"git cannot read {self.commit[:12]}: {last_line(process)}.")
            archive.seek(0)
            try:
                with tarfile.open(fileobj=archive) as tar:
                    tar.extractall(folder, filter="data")
            except tarfile.FilterError as error:
                raise UsageError(f"The source {self.commit[:12]} has a file that cannot be used: {error}.") from None


def run_git(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> "_Done":
    """Run git in a folder. Raises CannotRunHereError if there is no git."""
    return _run(["git", "-C", str(folder), *arguments], LOCAL, environ or {})


_Done = subprocess.CompletedProcess[bytes]


def _run(command: Sequence[str], seconds: int, environ: Mapping[str, str], output: int = subprocess.PIPE) -> _Done:
    try:
        return subprocess.run(
            command,
            env={**os.environ, **environ},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        # the command can have an address with a password
        raise CannotRunHereError(f"git took longer than {seconds} s.", "Check the network.") from None
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotRunHereError(f"git can't be run: {error}.", "Install git: commits and checkouts need it.") from None


def last_line(done: _Done) -> str:
    """Return the last line of git's error, as a clause."""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ").rstrip(".") if lines else f"exit code {done.returncode}"


def output(done: _Done) -> str:
    """Return what git printed, without the line break at its end."""
    return done.stdout.decode(errors="replace").rstrip("\n")


def top(folder: Path) -> Path:
    """Return the top folder of the repository that a folder is in. Raises UsageError if there is none."""
    process = run_git(folder, "rev-parse", "--show-toplevel")
    if process.returncode:
        bare = run_git(folder, "rev-parse", "--is-bare-repository")
        if output(bare) == "true":
            return folder
        raise UsageError(
            f"{folder} is in no repository: {last_line(process)}.",
            f"To make it one: git -C {folder} init && git -C {folder} add -A && git -C {folder} commit -m source",
        )
    return Path(output(process))


def commit_of(folder: Path, revision: str) -> str:
    """Return the id of a revision's commit. Raises UsageError, with the nearest branch or tag."""
    process = run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if process.returncode:
        listed = output(run_git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags"))
        raise _unknown(revision, str(folder), listed.splitlines(), "In a shallow clone: git fetch --unshallow")
    return output(process)


def _unknown(revision: str, place: str, listed: Sequence[str], advice: str = "") -> UsageError:
    near = nearest(revision, listed)
    hint = f" Did you mean {near}?" if near else ""
    return UsageError(f"git knows no commit {revision!r} in {place}.{hint}", advice)


def at_commit(folder: Path, revision: str) -> Snapshot:
    """Return a commit of the repository in a folder, with the folder's files only. Raises UsageError."""
    root = top(folder)
    commit = commit_of(root, revision)
    prefix = output(run_git(folder, "rev-parse", "--show-prefix"))
    return Snapshot(root, _below(f"{commit}^{{tree}}", prefix), commit, _instant(root, commit), _address(root))


def _below(tree: str, prefix: str) -> str:
    return f"{tree.removesuffix('^{tree}')}:{prefix.rstrip('/')}" if prefix else tree


def tree_id(snapshot: Snapshot) -> str:
    """Return the id of a snapshot's tree, which is the same for the same files."""
    return output(run_git(snapshot.repository, "rev-parse", snapshot.tree, environ=snapshot.environ))


@contextmanager
def working_copy(folder: Path) -> Iterator[Snapshot]:
    """Yield a folder's files as they are, without those that git ignores. Raises UsageError."""
    root = top(folder)
    commit = run_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    if commit.returncode:
        raise UsageError(f"The repository {root} has no commit yet.", f"git -C {root} commit")
    head = output(commit)
    index, objects = (root / output(run_git(root, "rev-parse", "--git-path", name)) for name in ("index", "objects"))
    prefix = output(run_git(folder, "rev-parse", "--show-prefix"))
    with tempfile.TemporaryDirectory() as place:
        own = {
            "GIT_INDEX_FILE": f"{place}/index",
            "GIT_OBJECT_DIRECTORY": f"{place}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        Path(place, "objects").mkdir()
        if index.is_file():
            shutil.copy(index, own["GIT_INDEX_FILE"])
        added = run_git(root, "add", "--all", environ=own)
        written = run_git(root, "write-tree", environ=own)
        if added.returncode or written.returncode:
            failed = added if added.returncode else written
            raise CannotRunHereError(f"git cannot read the files of {root}: {last_line(failed)}.")
        tree = output(written)
        names = output(run_git(root, "diff-tree", "-r", "-z", "--name-only", f"{head}^{{tree}}", tree, environ=own))
        changes = run_git(root, "diff-tree", "-p", "--binary", "--full-index", f"{head}^{{tree}}", tree, environ=own)
        changed = len([name for name in names.split("\0") if name])
        yield Snapshot(
            root,
            _below(tree, prefix),
            head,
            _instant(root, head),
            _address(root),
            changed,
            hashlib.sha256(changes.stdout).hexdigest() if changed else "",
            own,
        )


def fetched(address: str, revision: str) -> Snapshot:
    """Return a commit of a remote repository, which is fetched into the user's cache.

    Raises UsageError for an unknown revision, and CannotRunHereError if the repository doesn't answer.
    """
    shown = without_password(address)
    folder = cache_dir() / "repositories" / hashlib.sha256(address.encode()).hexdigest()[:16]
    if not (folder / "HEAD").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        creation = run_git(folder, "init", "--bare", "--quiet")
        if creation.returncode:
            raise CannotRunHereError(f"{folder} cannot be made a repository: {last_line(creation)}.")
    is_whole = re.fullmatch(r"[0-9a-f]{40}", revision)
    if not is_whole or run_git(folder, "cat-file", "-e", f"{revision}^{{commit}}").returncode:
        name = f"refs/harness/{hashlib.sha256(revision.encode()).hexdigest()[:16]}"
        arguments = ["fetch", "--depth=1", "--no-tags", "--force", "--quiet", "--", address, f"{revision}:{name}"]
        process = _run(["git", "-C", str(folder), *arguments], REMOTE, _REMOTE_ENVIRON)
        if process.returncode:
            words = last_line(process).replace(address, shown)
            if not _MISSING.search(process.stderr.decode(errors="replace")):
                raise CannotRunHereError(f"{shown} cannot be fetched: {words}.", "Name a checkout on this machine.")
            listing = _run(["git", "ls-remote", "--heads", "--tags", "--", address], REMOTE, _REMOTE_ENVIRON)
            refs = [line.rpartition("\t")[2].split("/", 2)[-1] for line in output(listing).splitlines()]
            raise _unknown(revision, shown, refs, "A commit needs its whole id there, with 40 digits.")
        revision = name
    commit = commit_of(folder, revision)
    return Snapshot(folder, f"{commit}^{{tree}}", commit, _instant(folder, commit), shown)


def without_password(address: str) -> str:
    """Return an address without a user name and a password."""
    return re.sub(r"(?<=://)[^/\s]*@", "", address)


def _address(root: Path) -> str:
    """Return the address of the remote `origin`; empty if it is a folder, or if there is none."""
    address = without_password(output(run_git(root, "config", "--get", "remote.origin.url")))
    return address if re.match(r"(https?|ssh)://|[\w.-]+@[\w.-]+:", address) else ""


def _instant(root: Path, commit: str) -> int:
    return int(output(run_git(root, "show", "--no-patch", "--format=%ct", commit)) or 0)
