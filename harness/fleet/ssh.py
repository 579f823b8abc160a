"""Shards of a plan on hosts that ssh reaches: what they need is copied there, and their runs are fetched and merged.

Nothing is asked of a host but an ssh server, sh, tar and a home folder: uv brings Python and the harness's packages, as
that user. The system's own `ssh` connects, so that its configuration and agent hold.
"""

import hashlib
import io
import os
import re
import secrets
import shlex
import subprocess
import sys
import tarfile
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from harness import DISTRIBUTION, shipped
from harness.catalog.project import Project
from harness.catalog.scenarios import load_scenario
from harness.fleet import merge
from harness.machine import uv
from harness.model.errors import CannotRunHereError, Exit, UsageError
from harness.model.run import Shard
from harness.session.request import Request

#: Where a host keeps what it was given, below the user's home.
_HOME = ".cache/harness-fleet"

_HOST = re.compile(r"(?P<host>(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9_][\w.-]*)(?::(?P<port>\d{1,5}))?/?")

#: Nothing is asked: a host that wants a password, or does not answer, is told of.
_OPTIONS = ("-o", "BatchMode=yes", "-o", "ConnectTimeout=20", "-o", "ServerAliveInterval=15")

#: What of a project goes along.
_PROJECT = ("docker-bake.hcl", "images", "scenarios", "templates")

#: Variables by which a host, too, finds packages.
_VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_FIND_LINKS", "HARNESS_WHEELS", "REGISTRY")


@dataclass(frozen=True, slots=True)
class Host:
    """Where ssh goes: `name` is as it was typed, a user in front of it, or a name of ssh's configuration."""

    name: str
    port: str = ""

    def ssh(self, script: str) -> list[str]:
        """The command that runs a script in the host's sh; `HARNESS_SSH_COMMAND` is what connects, in place of ssh."""
        connect = shlex.split(os.environ.get("HARNESS_SSH_COMMAND", "ssh"))
        port = ["-p", self.port] if self.port else []
        return [*connect, *_OPTIONS, *port, self.name, f"sh -c {shlex.quote(script)}"]


def hosts(on: str) -> list[Host]:
    """`ssh://a,user@b:2222`. Raises UsageError."""
    typed = [text.removeprefix("ssh://") for text in on.removeprefix("ssh://").split(",")]
    matches = [(text, _HOST.fullmatch(text)) for text in typed]
    wrong = [text for text, match in matches if not match]
    if wrong or len(set(typed)) < len(typed):
        which = repr(wrong[0]) if wrong else "one of them twice"
        raise UsageError(f"--on {on!r} names no hosts: {which}.", "Type ssh://one,user@other:2222")
    return [Host(match["host"], match["port"] or "") for _, match in matches if match]


@dataclass(frozen=True, slots=True)
class _Parcel:
    """What goes to every host: an archive, and the packages of this harness by their versions."""

    archive: bytes
    packages: Sequence[str]

    @property
    def folder(self) -> str:
        """Where it lies on a host: another one for each content."""
        digest = hashlib.sha256(self.archive + "\n".join(self.packages).encode())
        return f"{_HOME}/{digest.hexdigest()[:16]}"


class _Session:
    """One host's part of a run."""

    def __init__(self, host: Host, say: Callable[[str], object]) -> None:
        self.host = host
        self._say = say
        self._process: subprocess.Popen[str] | None = None
        self._stopped = False

    def say(self, sentence: str) -> None:
        """A sentence of this host."""
        self._say(f"{self.host.name}: {sentence}")

    def call(self, script: str, data: bytes = b"") -> bytes:
        """What a script prints there. Raises CannotRunHereError where it fails."""
        done = subprocess.run(self.host.ssh(script), input=data, capture_output=True, check=False)
        if done.returncode:
            told = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
            raise CannotRunHereError(f"{self.host.name}: {' '.join(told[-4:])}")
        return done.stdout

    def prepare(self, parcel: _Parcel) -> None:
        """Copy what the host lacks, and install it."""
        folder = parcel.folder
        known = self.call(f"test -e {folder}/ready && echo ready; command -v uv >/dev/null && echo uv; true").split()
        if b"ready" in known:
            return
        self.say("copying the harness and its project.")
        self.call(f"mkdir -p {folder} && tar -xzf - -C {folder}", parcel.archive)
        if b"uv" not in known:
            self.call(f"cat > {folder}/uv && chmod +x {folder}/uv", uv.find_uv().read_bytes())
        given = [f"export {name}={shlex.quote(os.environ[name])}" for name in _VARIABLES if name in os.environ]
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        lines = [
            "set -e",
            f"cd {folder}",
            *given,
            "uv=$(command -v uv || echo ./uv)",
            f'"$uv" venv -q --allow-existing --python {version} env',
            '"$uv" pip install -q --no-deps --python env/bin/python -r packages.txt',
            "touch ready",
        ]
        # by stdin: a command line is for all to read, and an index's address may hold a password
        self.call("sh -s", "\n".join(lines).encode())

    def measure(self, parcel: _Parcel, words: Sequence[str], place: str) -> int:
        """Run the command there until it ends, or `stop` is called. Returns its exit code."""
        command = shlex.join(["env/bin/python", "-m", "harness", *words, "--results", place, "--wait"])
        script = (
            f"cd {parcel.folder} && mkdir -p {place} || exit 1\n"
            "exec 3<&0; export PYTHONPATH=$PWD/code HARNESS_PROJECT=$PWD/project\n"
            f"{command} </dev/null >/dev/null & pid=$!\n"
            # the end of stdin is the end of whoever asked for this
            "(cat <&3; kill -TERM $pid) >/dev/null 2>&1 & wait $pid"
        )
        self._process = subprocess.Popen(
            self.host.ssh(script),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C is for this process, which then stops them
        )
        if self._stopped:
            self.stop()
        assert self._process.stderr
        for line in self._process.stderr:
            if line.strip():
                self.say(line.rstrip())
        return self._process.wait()

    def stop(self) -> None:
        """Have what is measured there end, as Ctrl-C does."""
        self._stopped = True
        if self._process and self._process.stdin and not self._process.stdin.closed:
            self._process.stdin.close()

    def fetch(self, parcel: _Parcel, place: str, results: Path) -> list[Path]:
        """Copy the runs of `place` here, and remove them there; returns their folders."""
        where = f"{parcel.folder}/{place}"
        data = self.call(f"test -d {where} && tar -cf - -C {where} . || true")
        if not data:
            return []
        results.mkdir(parents=True, exist_ok=True)
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = [each for each in archive if each.isfile() or each.isdir()]
            archive.extractall(results, members, filter="data")
        self.call(f"rm -rf {where}")
        names = dict.fromkeys(Path(each.name).parts[0] for each in members if Path(each.name).parts)
        return [results / name for name in names if (results / name / "run.json").is_file()]


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a run on hosts: the merged run, sentences on what failed, and whether it was interrupted."""

    merged: merge.Merged
    failed: Sequence[str]
    interrupted: bool


def run(request: Request, say: Callable[[str], object]) -> Ended:
    """Measure a plan in as many shards as there are hosts, one on each, and merge them in the folder of results.

    A host that fails is told of, and the others go on. Raises UsageError, and CannotRunHereError where none has a run.
    """
    if request.shard or request.slots or request.spread:
        raise UsageError("--on ssh://… makes a shard for each host.", "Leave --shard, --slots and --spread out.")
    sessions = [_Session(host, say) for host in hosts(request.on)]
    seed = int.from_bytes(os.urandom(4)) if request.seed is None else request.seed
    parcel, asked = _parcel(replace(request, on="", seed=seed))
    place = f"runs/{secrets.token_hex(8)}"
    found: list[Path] = []
    failed: list[str] = []
    having = threading.Lock()

    def part(number: int, each: _Session) -> None:
        try:
            each.prepare(parcel)
            words = replace(asked, shard=Shard(number, len(sessions))).command()[1:]
            code = each.measure(parcel, words, place)
            folders = each.fetch(parcel, place, request.results)
        except CannotRunHereError as error:
            folders, code = [], 0
            with having:
                failed.append(str(error))
        with having:
            found.extend(folders)
            if code not in (Exit.OK, Exit.CELLS_FAILED, Exit.SLOWER):
                failed.append(f"{each.host.name}: its part ended with exit code {code}.")

    interrupted = False
    with ThreadPoolExecutor(len(sessions)) as pool:
        parts = [pool.submit(part, number, each) for number, each in enumerate(sessions, 1)]
        try:
            for each in parts:
                each.result()
        except KeyboardInterrupt:
            interrupted = True
            for session in sessions:
                session.stop()
    if not found:
        raise CannotRunHereError("\n".join(["No host has a run.", *failed]))
    return Ended(merge.merge(sorted(found), request.results), failed, interrupted)


def _parcel(request: Request) -> tuple[_Parcel, Request]:
    """What goes along, and the request as it is typed there: with the files that it names among what goes along."""
    project, buffer = Project.find(), io.BytesIO()
    typed = []
    # of no time and of nobody, so that the same files are the same archive
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:

        def add(path: Path, name: str) -> None:
            archive.add(path, name, filter=_plain)

        add(Path(shipped.__file__).parent, "code/harness")
        if not shipped.IS_INSTALLED:  # else they are in it
            for name in (*_PROJECT, "requirements.txt"):
                add(shipped.FOLDER / name, f"code/{name}")
        for name in _PROJECT:
            if (project.root / name).exists():
                add(project.root / name, f"project/{name}")
        for text in request.scenarios:
            path = Path(text)
            if text.endswith(".py"):
                for each in [path, *(path.parent / file for file in load_scenario(path).files)]:
                    add(each, f"typed/{each.name}")
            typed.append(f"typed/{path.name}" if text.endswith(".py") else text)
        if request.balance:
            for name in ("run.json", "launches.jsonl"):
                add(request.balance / name, f"balance/{name}")
        packages = _packages()
        listed = "\n".join(packages).encode()
        info = tarfile.TarInfo("packages.txt")
        info.size = len(listed)
        archive.addfile(info, io.BytesIO(listed))
    there = replace(
        request, scenarios=typed, balance=Path("balance") if request.balance else None, results=Request().results
    )
    # without the time that gzip would put into it
    import gzip  # noqa: PLC0415 - nothing else needs it

    return _Parcel(gzip.compress(buffer.getvalue(), 6, mtime=0), packages), there


def _plain(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if "__pycache__" in info.name or info.issym() or info.islnk():
        return None
    info.uid = info.gid = info.mtime = 0
    info.uname = info.gname = ""
    return info


def _packages() -> list[str]:
    """What this harness requires, and what that requires, at the versions that are installed here."""
    from importlib import metadata  # noqa: PLC0415 - takes long

    from packaging.requirements import Requirement

    found: dict[str, str] = {}
    left = [Requirement(text) for text in metadata.requires(DISTRIBUTION) or ()]
    while left:
        each = left.pop()
        if each.name in found or (each.marker and not each.marker.evaluate({"extra": ""})):
            continue
        found[each.name] = metadata.version(each.name)
        left += [Requirement(text) for text in metadata.requires(each.name) or ()]
    return sorted({f"{name}=={version}" for name, version in found.items()})
