"""Locks with replaced packages. All other lines are identical to the base's lock."""

import re
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.catalog import index
from harness.machine.uv import last_words
from harness.model.environment import KERAS, TENSORFLOW, pins, rivals, unmet
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.texts import joined

_BLOCK = re.compile(r"(?m)^(?=[A-Za-z0-9])")
_OPTIONS = ("--generate-hashes", "--no-emit-index-url", "--no-header", "--no-annotate")


def resolve(name: str, text: str, asked: Sequence[str], moved: Sequence[str], options: Sequence[str]) -> str:
    """Return the lines of the lock `text` of `name` after the packages `moved` (PEP 508) are replaced.

    `asked` are the requirements of the lock, and `options` are uv's Python and upload times. All other packages keep
    their versions and hashes. If that isn't possible, dependencies of the moved packages may change too. Raises
    UsageError with the resolver's message if another package prevents it, or if nothing would change. Raises
    CannotRunHereError if the index doesn't answer.
    """
    had = pins(text)
    if not unmet(moved, had):
        has = joined([f"{each} {had[each]}" for each in map(_name, moved) if each in had])
        raise UsageError(
            f"{name} has {has or joined(moved)} already, so nothing would change.", f"Use -e {name} instead."
        )
    gone = {each for package in map(_name, moved) for each in (package, *rivals(package))}
    wanted = [*(text for text in asked if _name(text) not in gone), *moved]
    held = {package: version for package, version in had.items() if package not in gone}
    # the installed release depends on the replaced package
    away = sorted(gone & set(KERAS) - set(map(_name, moved)))
    done = _compiled(wanted, options, held=held, away=away)
    if done.returncode == index.NO_SOLUTION:
        alone = _compiled(moved, options, away=away)
        needed = held.keys() & pins(alone.stdout).keys()
        if needed:
            others = {package: version for package, version in held.items() if package not in needed}
            again = _compiled(wanted, options, held=others, away=away, preferred=text)
            done = done if again.returncode == index.NO_SOLUTION else again
    if done.returncode:
        raise _refused(name, had, moved, done)
    own = blocks(text)
    new = blocks(done.stdout)
    return "".join(own[each] if had.get(each) == version else new[each] for each, version in pins(done.stdout).items())


def _name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _compiled(
    asked: Collection[str],
    options: Sequence[str],
    *,
    held: Mapping[str, str] | None = None,
    away: Collection[str] = (),
    preferred: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run uv with fixed versions (`held`), without some packages (`away`), and with a preferred lock."""
    with tempfile.TemporaryDirectory() as folder:
        texts = {
            "asked": asked,
            "held": [f"{name}=={version}" for name, version in (held or {}).items()],
            "away": [f"{name} ; python_version < '0'" for name in away],
            "preferred": [preferred],
        }
        files = {name: Path(folder) / f"{name}.txt" for name in texts}
        for name, lines in texts.items():
            files[name].write_text("\n".join(lines) + "\n", encoding="utf-8")
        # uv prefers the versions of the file that it then writes
        output = [f"--output-file={files['preferred']}"] if preferred else []
        bounds = [f"--constraints={files['held']}", f"--overrides={files['away']}"]
        done = index.compiled(files["asked"], *options, *_OPTIONS, *bounds, *output)
        if preferred:
            done.stdout = files["preferred"].read_text(encoding="utf-8")
        return done


def blocks(text: str) -> dict[str, str]:
    """Return the lines of each package of a requirements file, by its normalised name."""
    blocks = (block for block in _BLOCK.split(text) if not block.startswith("#"))
    return {name: block.rstrip() + "\n" for block in blocks for name in pins(block)}


def _refused(
    name: str, had: Mapping[str, str], moved: Sequence[str], done: subprocess.CompletedProcess[str]
) -> UsageError | CannotRunHereError:
    words, typed = last_words(done.stderr, 20), "+".join(moved)
    if done.returncode != index.NO_SOLUTION:
        return CannotRunHereError(f"{joined(moved)} cannot be resolved in {name}:\n{words}")
    ways = [f"Override the conflicting package too: -e {shlex.quote(f'{name}+{typed}+PACKAGE==VERSION')}."]
    release = next((each for each in TENSORFLOW if each in had), "")
    if release and not any(_name(each) in TENSORFLOW for each in moved):
        anew = ",".join([f"{'tensorflow' if release == 'tensorflow-cpu' else release}=={had[release]}", *moved])
        ways.append(f"Or resolve all packages again, as of the date of these: -e {shlex.quote(anew)}.")
    if any("==" not in each for each in moved):
        ways.append(f"Or specify an exact version: a range includes only versions from before the date of {name}.")
    return UsageError(
        f"{joined(moved)} can't be installed in {name} with its other packages unchanged:\n{words}", "\n".join(ways)
    )
