"""Resolves locks in which packages are replaced. All other lines are the same as in the base's lock."""

import re
import shlex
import subprocess
import tempfile
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from harness.environments import index
from harness.machine.uv import get_last_lines
from harness.model.environment import KERAS, TENSORFLOW, find_rivals, find_unmet, pins
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.texts import joined

_BLOCK = re.compile(r"(?m)^(?=[A-Za-z0-9])")


def resolve(
    name: str, text: str, asked: Sequence[str], moved: Sequence[str], *, architecture: str, options: Sequence[str]
) -> str:
    """Return the lock `text` of the environment `name`, in which the requirements `moved` (PEP 508) replace packages.

    `asked` are the requirements that the lock was resolved from. `options` are uv's options for Python and for upload
    times. All other packages keep their versions and hashes. If that isn't possible, dependencies of the new packages
    may change too. Raises UsageError with the resolver's message if another package conflicts, or if nothing would
    change. Raises CannotRunHereError if the index doesn't answer.
    """
    old_pins = pins(text)
    if not find_unmet(moved, old_pins):
        names = [package for package in map(_get_name, moved) if package in old_pins]
        versions = joined([f"{package} {old_pins[package]}" for package in names])
        raise UsageError(
            f"{name} already has {versions or joined(moved)}, so nothing would change.", f"Use -e {name} instead."
        )
    removed = {rival for package in map(_get_name, moved) for rival in (package, *find_rivals(package))}
    requirements = [*(text for text in asked if _get_name(text) not in removed), *moved]
    fixed_pins = {package: version for package, version in old_pins.items() if package not in removed}
    # TensorFlow requires its own Keras in a range of versions, but also runs with others: drop or override it
    dropped = sorted(removed & set(KERAS) - set(map(_get_name, moved)))
    overrides = [f"{package} ; python_version < '0'" for package in dropped]
    overrides += [text for text in moved if _get_name(text) in KERAS and "==" in text]
    compile_packages = partial(_compile, architecture=architecture, options=options, overrides=overrides)
    process = compile_packages(requirements, fixed_pins=fixed_pins)
    if process.returncode == index.NO_SOLUTION:
        minimal = compile_packages(moved)
        dependencies = fixed_pins.keys() & pins(minimal.stdout).keys()
        if dependencies:
            other_pins = {package: version for package, version in fixed_pins.items() if package not in dependencies}
            retry = compile_packages(requirements, fixed_pins=other_pins, preferred=text)
            process = process if retry.returncode == index.NO_SOLUTION else retry
    if process.returncode:
        raise _make_refusal(name, old_pins, moved, process)
    old_blocks = split_blocks(text)
    new_blocks = split_blocks(process.stdout)
    return "".join(
        old_blocks[package] if old_pins.get(package) == version else new_blocks[package]
        for package, version in pins(process.stdout).items()
    )


def _get_name(requirement: str) -> str:
    return canonicalize_name(Requirement(requirement).name)


def _compile(
    requirements: Collection[str],
    *,
    architecture: str,
    options: Sequence[str],
    fixed_pins: Mapping[str, str] | None = None,
    overrides: Collection[str] = (),
    preferred: str = "",
) -> subprocess.CompletedProcess[str]:
    """Run uv with fixed versions, requirements that override others, and a lock with preferred versions."""
    with tempfile.TemporaryDirectory() as folder:
        held, overridden, written = (Path(folder, f"{name}.txt") for name in ("held", "overrides", "preferred"))
        lines = [f"{name}=={version}" for name, version in (fixed_pins or {}).items()]
        held.write_text("\n".join(lines), encoding="utf-8")
        overridden.write_text("\n".join(overrides), encoding="utf-8")
        written.write_text(preferred, encoding="utf-8")
        # uv prefers the versions of the file that it then writes
        output = [f"--output-file={written}"] if preferred else []
        bounds = [f"--constraints={held}", f"--overrides={overridden}"]
        process = index.compile_lock(requirements, architecture, *options, *bounds, *output)
        if preferred:
            process.stdout = written.read_text(encoding="utf-8")
        return process


def split_blocks(text: str) -> dict[str, str]:
    """Return the lines of each package in a requirements file, by normalized name."""
    blocks = (block for block in _BLOCK.split(text) if not block.startswith("#"))
    return {name: block.rstrip() + "\n" for block in blocks for name in pins(block)}


def _make_refusal(
    name: str, old_pins: Mapping[str, str], moved: Sequence[str], process: subprocess.CompletedProcess[str]
) -> UsageError | CannotRunHereError:
    error, requirements = get_last_lines(process.stderr, 20), "+".join(moved)
    if process.returncode != index.NO_SOLUTION:
        return CannotRunHereError(f"{joined(moved)} cannot be resolved in {name}:\n{error}")
    advice = [f"Override the conflicting package too: -e {shlex.quote(f'{name}+{requirements}+PACKAGE==VERSION')}."]
    release = next((package for package in TENSORFLOW if package in old_pins), "")
    if release and not any(_get_name(requirement) in TENSORFLOW for requirement in moved):
        tensorflow = "tensorflow" if release == "tensorflow-cpu" else release
        new_text = ",".join([f"{tensorflow}=={old_pins[release]}", *moved])
        advice.append(f"Or resolve all packages again, as of the date of these packages: -e {shlex.quote(new_text)}.")
    if any("==" not in requirement for requirement in moved):
        advice.append(f"Or specify an exact version: a range includes only versions from before the date of {name}.")
    return UsageError(
        f"{joined(moved)} can't be installed in {name} if all other packages stay the same:\n{error}", "\n".join(advice)
    )
