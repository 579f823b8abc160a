"""What a search chooses from, in order: releases of the catalogue, or versions of one package with all else held."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING

from harness.catalog import index
from harness.files import cache_dir, read_text, write_atomically
from harness.model.environment import TENSORFLOW, Environment
from harness.model.errors import CannotRunHereError, UsageError

if TYPE_CHECKING:
    from packaging.version import Version

#: Packages whose versions are days, and those that bring one module and so cannot be told apart by it.
NIGHTLIES = ("tf-nightly", "tf-nightly-cpu")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An environment to be measured: `text` is what -e takes, `date` (ISO 8601) when its wheel appeared, if known.

    `version` is of the package that moves. `unknown` is why it cannot be measured, empty where nothing is known
    against it.
    """

    text: str
    date: str = ""
    version: str = ""
    unknown: str = ""


@dataclass(frozen=True, slots=True)
class Moving:
    """One package that moves: of an end, its `version` and what is held (`base`: what -e takes without the package)."""

    package: str
    base: str
    version: str

    def text(self, version: str) -> str:
        """What -e takes with this version of the package."""
        if self.package in TENSORFLOW:
            return f"{self.package}=={version}{self.base}"
        return f"{self.base}+{self.package}=={version}"


def releases(known: Mapping[str, Environment], *ends: str) -> list[Candidate]:
    """The catalogue's releases between the outermost of some, and these, by version; of a release one environment.

    `ends` are names in `known`, which has what was typed too. A bridge, and an image with a TensorFlow of
    its own, are there only where they are an end.
    """
    chosen: dict[str, Environment] = {}
    for environment in known.values():
        if not environment.asked and not environment.gpu_image:
            chosen.setdefault(environment.tensorflow, environment)
    # one that was typed goes before another of its release
    chosen |= {known[name].tensorflow: known[name] for name in reversed(ends)}
    bounds = sorted(_version(known[name]) for name in ends)
    inside = [each for each in chosen.values() if bounds[0] <= _version(each) <= bounds[-1]]
    return [Candidate(each.asked or each.name, each.released, each.tensorflow) for each in sorted(inside, key=_version)]


def _version(environment: Environment) -> "Version":
    from packaging.version import Version

    return Version(environment.tensorflow)


def moved_package(good: str, bad: str) -> str:
    """The package in whose version alone two typed environments differ; empty where that is none, or several."""
    parts = [dict(_PIN.findall(text)) for text in (good, bad)]
    if parts[0].keys() != parts[1].keys() or _PIN.sub("", good) != _PIN.sub("", bad):
        return ""
    differ = [name for name, version in parts[0].items() if parts[1][name] != version]
    return differ[0] if len(differ) == 1 else ""


_PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.!+]+?)(?=$|,|\+[A-Za-z])")


def moving(text: str, package: str, pins: Mapping[str, str], held: str = "") -> Moving:
    """How a package moves in the environment that was typed as `text`, whose lock has `pins`.

    A nightly TensorFlow moves with its keras-nightly held, at the version `held` where that is given. Raises UsageError
    where the environment does not have the package.
    """
    version = pins.get(package) or (pins.get("tensorflow-cpu") if package == "tensorflow" else None)
    if version is None and package == "tf-nightly":
        version = pins.get("tf-nightly-cpu")
    if version is None:
        there = ", ".join(f"{name} {pins[name]}" for name in (*TENSORFLOW, "keras", "keras-nightly") if name in pins)
        raise UsageError(
            f"{text} does not have the package {package}: it has {there}.",
            f"Name an end that has it: {text}+{package}==VERSION",
        )
    if package not in TENSORFLOW:
        return Moving(package, re.sub(rf"[+,]{re.escape(package)}==[^,+]+", "", text), version)
    others = text.partition(",")[2] if "==" in text else ""
    base = f",{others}" if others else ""
    if package in NIGHTLIES and "keras-nightly" not in base and (held or "keras-nightly" in pins):
        base += f",keras-nightly=={held or pins['keras-nightly']}"
    return Moving(package, base, version)


def versions(first: Moving, last: Moving, python: str) -> tuple[list[Candidate], str]:
    """Every version of a package between two, these included, with all else as `last` has it; and a sentence.

    The sentence says what the list rests on where the index did not answer, and is empty where it did. A version that
    was withdrawn, or has no wheel for Python X.Y, is there with the reason. Raises UsageError where it is one version.
    """
    from packaging.version import Version

    if first.version == last.version:
        raise UsageError(
            f"Both ends have {first.package} {first.version}, so there is nothing to search.",
            "Name ends with different versions: --good and --bad.",
        )
    low, high = sorted(map(Version, (first.version, last.version)))
    listed, told = _listed(first.package)
    inside = {Version(each.version): each for each in listed if low <= Version(each.version) <= high}
    for end in (low, high):
        inside.setdefault(end, index.Listed(str(end), None, "", ()))
    found = []
    for version in sorted(inside):
        each = inside[version]
        why = ""
        if version not in (low, high):
            if each.yanked:
                why = f"it was yanked: {each.yanked}"
            elif not each.fits(python):
                why = f"it has no wheel for Python {python}"
        date = each.uploaded.date().isoformat() if each.uploaded else ""
        found.append(Candidate(last.text(each.version), date, each.version, why))
    return found, told


def _listed(package: str) -> tuple[list[index.Listed], str]:
    """What the index lists of a package; where it does not answer, what it listed here before."""
    kept = cache_dir() / "versions" / f"{package}.json"
    try:
        found = index.listed(package)
    except CannotRunHereError as error:
        with suppress(OSError, ValueError, TypeError, LookupError, RecursionError):
            return [_read(each) for each in json.loads(read_text(kept))], (
                f"The package index does not answer, so {package} is searched as it was listed here before."
            )
        raise CannotRunHereError(
            error.message,
            f"The versions of {package} were not listed here before: search releases instead.",
        ) from None
    with suppress(OSError):  # it is asked again
        rows = [{**asdict(each), "uploaded": each.uploaded.isoformat() if each.uploaded else None} for each in found]
        write_atomically(kept, json.dumps(rows))
    return found, ""


def _read(row: Mapping[str, object]) -> index.Listed:
    found = index.Listed(**row)  # type: ignore[arg-type]
    return replace(found, uploaded=datetime.fromisoformat(str(row["uploaded"])) if row["uploaded"] else None)
