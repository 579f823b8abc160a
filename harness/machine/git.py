"""Runs git, to get the files of commits, working copies and remote repositories.

A working copy is written as a git tree that contains its uncommitted changes. The new objects are written to a
temporary folder, so that the repository doesn't change.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.files import get_cache_dir
from harness.machine import child_process
from harness.machine.lock import hold_lock
from harness.model.errors import CannotRunHereError, UsageError, explain_unwritable
from harness.model.texts import counted, find_nearest, remove_password

#: Time limits in seconds for a local git command, and for one that connects to a server.
LOCAL, REMOTE = 120, 600

#: Variables for remote repositories: git may only use these protocols, and may not ask for a password.
_REMOTE_ENVIRON = {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": "file:https:http:ssh"}

#: Variables that git sets for its hooks. They are removed, because git would use them instead of the folder's
#: repository.
_HOOK_VARIABLES = (
    "GIT_DIR",
    "GIT_COMMON_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_SHALLOW_FILE",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)

#: The user and the password in an address.
_CREDENTIALS = re.compile(r"(?P<scheme>https?://)(?P<user>[^/\s:@]*)(:(?P<password>[^/\s]*))?@(?P<rest>.*)", re.DOTALL)

#: Variables with the user and the password for git, and the credential helper that prints them. They aren't passed as
#: arguments, because all users of the machine can read command lines, but only this user can read the variables.
_USER, _PASSWORD = "HARNESS_GIT_USER", "HARNESS_GIT_PASSWORD"
_HELPER = f'!printf "username=%s\\npassword=%s\\n" "${_USER}" "${_PASSWORD}" #'

_MISSING_REVISION = re.compile(r"couldn't find remote ref|not our ref|unadvertised object|invalid refspec")

#: The last second of the year 9999, which is the last year of Python's dates, in seconds since 1970.
_LAST_INSTANT = 253402300799


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of a commit, or of a working copy.

    - `repository`: the folder of the repository; `tree`: the id of the tree, and the package's folder after a colon
    - `commit`: the commit, or the commit on which a working copy is based; `instant`: its time in seconds since 1970
    - `address`: the URL of the repository, without its password; empty if the repository has no URL
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

    @property
    def short(self) -> str:
        """The id in the name of an environment: `3f2a91c`, or `3f2a91c-dirty-1a2b3c4d`."""
        return self._make_id(7)

    @property
    def long(self) -> str:
        """The id in the requirements of an environment: as `short`, with more digits of the commit."""
        return self._make_id(12)

    def _make_id(self, digits: int) -> str:
        return self.commit[:digits] + (f"-dirty-{self.difference[:8]}" if self.difference else "")

    @property
    def description(self) -> str:
        """The files in words: `commit 3f2a91c of 2026-08-21, with 2 changed files (diff 1a2b3c4d)`."""
        day = datetime.fromtimestamp(self.instant, UTC).date().isoformat()
        address = f" ({self.address})" if self.address else ""
        changes = f", with {counted(self.changed, 'changed file')} (diff {self.difference[:8]})"
        return f"commit {self.commit[:12]} of {day}{address}{changes if self.changed else ''}"

    def export(self, folder: Path) -> None:
        """Write the files into an empty folder. Raises UsageError if a link points outside, and CannotRunHereError."""
        # not `git archive`, because it omits files that are marked in .gitattributes, and a build may need them
        with tempfile.TemporaryDirectory() as temporary:
            git_environ = {
                **self.environ,
                "GIT_INDEX_FILE": f"{temporary}/index",
                "GIT_WORK_TREE": str(folder.absolute()),
            }
            for arguments in (["read-tree", self.tree], ["checkout-index", "--all"]):
                process = run_git(self.repository, *arguments, environ=git_environ)
                if process.returncode:
                    raise CannotRunHereError(f"git cannot read {self.commit[:12]}: {get_last_line(process)}.")
        root = os.path.realpath(folder)
        for path in folder.rglob("*"):
            if not path.is_symlink():
                # the modes of files in the wheel must not depend on this user's umask
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
            elif path.readlink().is_absolute() or not Path(os.path.realpath(path)).is_relative_to(root):
                link = path.relative_to(folder)
                raise UsageError(
                    f"The source {self.commit[:12]} cannot be used: its link {link} points outside the source."
                )


_Process = subprocess.CompletedProcess[bytes]

#: Settings that keep git from starting programs that the configuration of somebody's repository names.
_NO_PROGRAMS = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "log.showSignature=false")


def run_git(folder: Path, *arguments: str, environ: Mapping[str, str] | None = None) -> _Process:
    """Run git in a folder. Raises CannotRunHereError if there is no git, or if it takes too long."""
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *_NO_PROGRAMS, *arguments],
            env=_make_environ(environ or {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LOCAL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise CannotRunHereError(
            f"`git {arguments[0]}` took longer than {LOCAL} s in {folder}.",
            "If the folder has many or large files that aren't part of the source, add them to its .gitignore.",
        ) from None
    except OSError as error:
        raise CannotRunHereError(f"git can't be run: {error}.", "Install git: commits and checkouts need it.") from None


def _run_remotely(folder: Path, command: Sequence[str], address: str, *refs: str) -> tuple[int, str]:
    """Run git in a folder with a remote repository, without prompts. Return its exit code and its output."""
    ssh = os.environ.get("GIT_SSH_COMMAND") or get_output(run_git(folder, "config", "--get", "core.sshCommand"))
    ssh = ssh or shlex.quote(os.environ.get("GIT_SSH") or "ssh")
    public_address, credentials = _extract_credentials(address)
    environ = _make_environ({**_REMOTE_ENVIRON, **credentials, "GIT_SSH_COMMAND": f"{ssh} -oBatchMode=yes"})
    return child_process.run(["git", "-C", str(folder), *command, "--", public_address, *refs], environ, REMOTE)


def _extract_credentials(address: str) -> tuple[str, dict[str, str]]:
    """Return an address without user and password, and the variables that pass them to git."""
    match = _CREDENTIALS.fullmatch(address)
    if match is None:
        return address, {}
    user, password = (urllib.parse.unquote(match[name] or "") for name in ("user", "password"))
    # the credentials are only for this server, and not for a server to which it redirects
    server = f"credential.{match['scheme']}{match['rest'].partition('/')[0]}"
    # with a user but no password, git's own helpers provide the password
    settings = [("credential.helper", ""), (f"{server}.helper", _HELPER)] if match["password"] else []
    settings = settings or [(f"{server}.username", user)]
    count = os.environ.get("GIT_CONFIG_COUNT", "")
    start = int(count) if count.isdecimal() else 0
    environ = {_USER: user, _PASSWORD: password, "GIT_CONFIG_COUNT": str(start + len(settings))}
    for number, (name, value) in enumerate(settings, start):
        environ |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return match["scheme"] + match["rest"], environ


def _make_environ(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables for git, with messages in English."""
    inherited = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES}
    return {**inherited, "LC_ALL": "C", **variables}


def get_last_line(process: _Process) -> str:
    """Return the last line of git's error, as a clause."""
    lines = process.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ").rstrip(".") if lines else f"exit code {process.returncode}"


def get_output(process: _Process) -> str:
    """Return git's output without the final line break."""
    return process.stdout.decode(errors="replace").rstrip("\n")


def find_top(folder: Path) -> Path:
    """Return the top folder of the repository that a folder is in. Raises UsageError if there is none."""
    process = run_git(folder, "rev-parse", "--show-toplevel")
    if process.returncode:
        if get_output(run_git(folder, "rev-parse", "--is-bare-repository")) == "true":
            return folder
        reason, *other_lines = process.stderr.decode(errors="replace").strip().splitlines() or ["it fails"]
        if "not a git repository" not in reason:
            raise UsageError(
                f"git cannot read {folder}: {reason.removeprefix('fatal: ').rstrip('.')}.",
                " ".join(" ".join(other_lines).split()),
            )
        raise UsageError(
            f"{folder} is not in a git repository.",
            f"Pass a folder in a repository, or create a repository there: git -C {folder} init && git -C {folder} "
            f"add -A && git -C {folder} commit -m source",
        )
    return Path(get_output(process))


def resolve_commit(folder: Path, revision: str) -> str:
    """Return the id of a revision's commit. Raises UsageError, which suggests the most similar branch or tag."""
    process = run_git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if process.returncode:
        listed = get_output(run_git(folder, "for-each-ref", "--format=%(refname:short)", "refs/heads", "refs/tags"))
        raise _make_unknown_error(
            revision, str(folder), listed.splitlines(), "In a shallow clone: git fetch --unshallow"
        )
    return get_output(process)


def is_in_history(folder: Path, revision: str) -> bool:
    """Return whether a commit belongs to the history of the current branch. Raises UsageError for an unknown one."""
    commit = resolve_commit(folder, revision)
    return run_git(folder, "merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def _make_unknown_error(revision: str, repository: str, names: Sequence[str], advice: str = "") -> UsageError:
    nearest = find_nearest(revision, names)
    hint = f" Did you mean {nearest}?" if nearest else ""
    return UsageError(f"git can't find the commit {revision!r} in {repository}.{hint}", advice)


def read_commit(folder: Path, revision: str) -> Snapshot:
    """Return a snapshot of a commit that contains only the files of `folder`. Raises UsageError."""
    root = find_top(folder)
    commit = resolve_commit(root, revision)
    prefix = get_output(run_git(folder, "rev-parse", "--show-prefix"))
    return Snapshot(root, f"{commit}:{prefix.rstrip('/')}", commit, _read_instant(root, commit), _read_address(root))


def get_tree_id(snapshot: Snapshot) -> str:
    """Return the id of a snapshot's tree, which is the same for the same files."""
    return get_output(run_git(snapshot.repository, "rev-parse", snapshot.tree, environ=snapshot.environ))


@contextmanager
def copy_working_tree(folder: Path) -> Iterator[Snapshot]:
    """Yield a snapshot of a folder's current files, except ignored files. Raises UsageError."""
    root = find_top(folder)
    if run_git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").returncode:
        raise UsageError(f"The repository {root} has no commit yet.", f"git -C {root} commit")
    head = read_commit(folder, "HEAD")
    index, objects = (
        root / get_output(run_git(root, "rev-parse", "--git-path", name)) for name in ("index", "objects")
    )
    with tempfile.TemporaryDirectory() as temporary:
        git_environ = {
            "GIT_INDEX_FILE": f"{temporary}/index",
            "GIT_OBJECT_DIRECTORY": f"{temporary}/objects",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        Path(temporary, "objects").mkdir()
        if index.is_file():
            # keep the file's time, because git uses it to find files that changed in the same second
            shutil.copy2(index, git_environ["GIT_INDEX_FILE"])
        add_process = run_git(root, "add", "--all", environ=git_environ)
        tree_process = run_git(root, "write-tree", environ=git_environ)
        if add_process.returncode or tree_process.returncode:
            failed_process = add_process if add_process.returncode else tree_process
            raise CannotRunHereError(f"git cannot read the files of {root}: {get_last_line(failed_process)}.")
        tree, tree_before = get_output(tree_process), f"{head.commit}^{{tree}}"
        names = run_git(root, "diff-tree", "-r", "-z", "--name-only", tree_before, tree, environ=git_environ)
        if names.returncode:
            raise CannotRunHereError(f"git cannot compare the files of {root}: {get_last_line(names)}.")
        changed = names.stdout.count(b"\0")
        yield replace(
            head,
            tree=f"{tree}:{head.tree.partition(':')[2]}",
            changed=changed,
            difference=hashlib.sha256(f"{head.commit} {tree}".encode()).hexdigest() if changed else "",
            environ=git_environ,
        )


def fetch_commit(address: str, revision: str, advice: str = "Check the network.") -> Snapshot:
    """Fetch a commit of a remote repository into the user's cache, and return a snapshot of it.

    Raises UsageError for an unknown revision, and CannotRunHereError with the advice if the repository doesn't answer.
    """
    public_address = remove_password(address)
    folder = get_cache_dir() / "repositories" / hashlib.sha256(address.encode()).hexdigest()[:16]
    with explain_unwritable(f"The folder {folder}"):
        folder.mkdir(parents=True, exist_ok=True)
    busy = f"Another process is fetching from {public_address}."
    with hold_lock(folder.with_suffix(".lock"), busy, waiting=lambda _: None):
        for stale_lock in [*folder.glob("*.lock"), *folder.glob("refs/harness/*.lock")]:  # a killed git left these
            stale_lock.unlink()
        if not (folder / "HEAD").is_file():
            creation = run_git(folder, "init", "--bare", "--quiet")
            if creation.returncode:
                raise CannotRunHereError(f"A repository cannot be created in {folder}: {get_last_line(creation)}.")
        is_complete_id = re.fullmatch(r"[0-9a-f]{40}", revision)
        if not is_complete_id or run_git(folder, "cat-file", "-e", f"{revision}^{{commit}}").returncode:
            revision = _fetch_revision(folder, address, revision, advice)
        commit = resolve_commit(folder, revision)
    return Snapshot(folder, f"{commit}^{{tree}}", commit, _read_instant(folder, commit), public_address)


def _fetch_revision(folder: Path, address: str, revision: str, advice: str) -> str:
    """Fetch a revision into a local repository, and return its name there. Raises the errors of `fetch_commit`."""
    public_address = remove_password(address)
    name = f"refs/harness/{hashlib.sha256(revision.encode()).hexdigest()[:16]}"
    fetch = ["fetch", "--depth=1", "--no-tags", "--force", "--quiet"]
    code, output = _run_remotely(folder, fetch, address, f"{revision}:{name}")
    if code and _MISSING_REVISION.search(output):
        _, listing = _run_remotely(folder, ["ls-remote", "--heads", "--tags"], address)
        refs = [line.rpartition("\t")[2].split("/", 2)[-1] for line in listing.splitlines() if "\t" in line]
        raise _make_unknown_error(
            revision, public_address, refs, "Pass a branch, a tag or a complete commit id, with 40 digits."
        )
    if code:
        # this line and the lines after it contain only git's general advice
        reason = output.partition("fatal: Could not read from remote repository")[0].strip() or output.strip()
        error = reason.splitlines()[-1] if reason else f"exit code {code}"
        error = remove_password(error.removeprefix("fatal: ").rstrip("."))
        raise CannotRunHereError(f"{public_address} cannot be fetched: {error}.", advice)
    return name


def read_origin(folder: Path) -> str:
    """Return the address of the remote `origin` of a folder's repository; empty if there is none."""
    return get_output(run_git(folder, "config", "--get", "remote.origin.url"))


def _read_address(root: Path) -> str:
    """Return the address of the remote `origin` without a password; empty if it is a folder, or if there is none."""
    address = remove_password(read_origin(root))
    return address if re.match(r"(https?|ssh)://|[\w.-]+@[\w.-]+:", address) else ""


def _read_instant(root: Path, commit: str) -> int:
    instant = int(get_output(run_git(root, "show", "--no-patch", "--format=%ct", commit)) or 0)
    if instant > _LAST_INSTANT:
        raise UsageError(f"The commit {commit[:12]} has an invalid time: {instant} s after 1970.")
    return instant
