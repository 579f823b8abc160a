"""Lists the candidates of a search, in order: releases in the catalog, versions of one package, or commits."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from harness.environments import index
from harness.machine import git
from harness.model.environment import NIGHTLIES, TENSORFLOW, Environment
from harness.model.errors import UsageError

_PIN = re.compile(r"([A-Za-z0-9][\w.-]*)==([\w.!+]+?)(?=$|,|\+[A-Za-z])")


@dataclass(frozen=True, slots=True)
class Candidate:
    """An environment in a search. `text` is its value of -e, and `date` (ISO 8601) its wheel's upload date, if known.

    `version` is the version or the commit of the package that changes. For a commit, `title` is the first line of its
    message. `unknown` is the reason if the environment can't be measured.
    """

    text: str
    date: str = ""
    version: str = ""
    unknown: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True)
class MovingPackage:
    """The package that changes in a search, with its `version` at one end of the search.

    `base` is the value of -e at this end, without the package.
    """

    package: str
    base: str
    version: str

    def text(self, version: str) -> str:
        """Return the value of -e with this version of the package."""
        if self.package in TENSORFLOW:
            return f"{self.package}=={version}{self.base}"
        return f"{self.base}+{self.package}=={version}"


def list_releases(known: Mapping[str, Environment], *ends: str) -> list[Candidate]:
    """Return one environment per release, sorted by version, from the lowest to the highest release of the `ends`.

    `ends` are names in `known`. Environments with requirements of the user, or with an image that has its own
    TensorFlow, are included only if they are in `ends`.
    """
    from packaging.version import Version

    by_release: dict[str, Environment] = {}
    for environment in known.values():
        if not environment.asked and not environment.gpu_image:
            by_release.setdefault(environment.tensorflow, environment)
    # an end replaces another environment of its release
    by_release |= {known[name].tensorflow: known[name] for name in reversed(ends)}
    bounds = sorted(Version(known[name].tensorflow) for name in ends)
    releases = sorted(((Version(text), release) for text, release in by_release.items()), key=lambda pair: pair[0])
    return [
        Candidate(release.asked or release.name, release.released, release.tensorflow)
        for version, release in releases
        if bounds[0] <= version <= bounds[-1]
    ]


def find_moved_package(good: str, bad: str) -> str:
    """Return the package whose version is the only difference between two values of -e; empty if there is none."""
    parts = [dict(_PIN.findall(text)) for text in (good, bad)]
    if parts[0].keys() != parts[1].keys() or _PIN.sub("", good) != _PIN.sub("", bad):
        return ""
    changed_names = [name for name, version in parts[0].items() if parts[1][name] != version]
    return changed_names[0] if len(changed_names) == 1 else ""


def find_moving(text: str, package: str, pins: Mapping[str, str], held: str = "") -> MovingPackage:
    """Return the package that changes, with its version in the environment `text`. `pins` are the versions in its lock.

    A nightly TensorFlow keeps its keras-nightly, at the version `held` if one is given. Raises UsageError if the
    environment doesn't contain the package.
    """
    version = pins.get(package) or (pins.get(f"{package}-cpu") if package in ("tensorflow", "tf-nightly") else None)
    if version is None:
        names = (*TENSORFLOW, "keras", "keras-nightly")
        raise UsageError(
            f"The environment {text} doesn't contain the package {package}. It contains "
            f"{', '.join(f'{name} {pins[name]}' for name in names if name in pins)}.",
            f"Use an environment that contains the package: {text}+{package}==VERSION",
        )
    if package not in TENSORFLOW:
        return MovingPackage(package, re.sub(rf"[+,]{re.escape(package)}==[^,+]+", "", text), version)
    other_packages = text.partition(",")[2] if "==" in text else ""
    base = f",{other_packages}" if other_packages else ""
    if package in NIGHTLIES and "keras-nightly" not in base and (held or "keras-nightly" in pins):
        base += f",keras-nightly=={held or pins['keras-nightly']}"
    return MovingPackage(package, base, version)


def find_versions_between(
    good: str, bad: str, package: str, pins: Mapping[str, Mapping[str, str]], python: str
) -> list[Candidate]:
    """Return the versions of a package between two environments.

    `pins` are the versions in the lock files of both environments and, unless the package is TensorFlow, of `bad`
    without the package. All other packages have the versions of `bad`.
    """
    from packaging.version import Version

    held_version = pins[bad].get("keras-nightly", "") if package in NIGHTLIES else ""
    first, last = (find_moving(text, package, pins[text], held_version) for text in (good, bad))
    if package in TENSORFLOW:
        # keep the names of releases in the catalog, because they have images
        ends = {first.version: good, last.version: bad}
        known_texts = {Version(version): text for version, text in ends.items() if "==" not in text}
    else:
        # an environment can't get a version that it already has
        own_version = pins.get(last.base, {}).get(package)
        known_texts = {Version(own_version): last.base} if own_version else {}
    return [
        replace(candidate, text=known_texts.get(Version(candidate.version), candidate.text))
        for candidate in list_package_versions(first, last, python)
    ]


def list_package_versions(first: MovingPackage, last: MovingPackage, python: str) -> list[Candidate]:
    """Return every version of a package from `first` to `last`, with all other packages as in `last`.

    A version that was yanked, or has no wheel for Python X.Y, has a reason in `unknown`. Raises UsageError if both
    versions are the same, and CannotRunHereError if the index doesn't answer.
    """
    from packaging.version import Version

    if first.version == last.version:
        raise UsageError(
            f"--good and --bad both have {first.package} {first.version}, so there is nothing to search.",
            "Pass environments with different versions.",
        )
    low, high = sorted(map(Version, (first.version, last.version)))
    rows = index.list_versions(first.package)
    by_version = {Version(row.version): row for row in rows if low <= Version(row.version) <= high}
    for end in (low, high):
        by_version.setdefault(end, index.IndexedVersion(str(end), None, "", ()))
    candidates = []
    for version, entry in sorted(by_version.items(), key=lambda item: item[0]):
        reason = ""
        if version not in (low, high):
            if entry.yanked:
                reason = f"it was yanked: {entry.yanked}"
            elif not entry.fits(python):
                reason = f"no wheel for Python {python}"
        date = entry.uploaded.date().isoformat() if entry.uploaded else ""
        candidates.append(Candidate(last.text(entry.version), date, entry.version, reason))
    return candidates


def list_commits(repository: Path, environment: str, package: str, good: str, bad: str) -> tuple[list[Candidate], bool]:
    """Return the commits between two revisions, oldest first, and whether the older revision is the bad one.

    As with `git bisect --first-parent`, only first parents of the newer revision are included, so a merge is one
    commit. If neither revision is an ancestor of the other, the search starts at their merge base. Raises UsageError
    for an unknown revision, and for revisions without a common ancestor.
    """
    root = git.find_top(repository)
    ends = [git.resolve_commit(root, revision) for revision in (good, bad)]
    if ends[0] == ends[1]:
        raise UsageError(
            f"{good} and {bad} are the same commit, so there is nothing to search.",
            "Pass two different commits with --good and --bad.",
        )
    base = git.get_output(git.run_git(root, "merge-base", *ends))
    if not base:
        raise UsageError(
            f"{good} and {bad} have no common ancestor in {root}.",
            "Pass two commits of one history with --good and --bad.",
        )
    is_fix = base == ends[1]
    last = ends[0] if is_fix else ends[1]
    log = ("--format=%H %cs %s", "--no-show-signature")
    outputs = [
        git.get_output(git.run_git(root, "log", "--max-count=1", *log, base)),
        git.get_output(git.run_git(root, "log", "--first-parent", "--reverse", *log, f"{base}..{last}")),
    ]
    candidates = []
    for line in "\n".join(outputs).split("\n"):
        commit, date, title = [*line.split(" ", 2), ""][:3]
        candidates.append(Candidate(f"{environment}+{package}@{commit[:12]}", date, commit[:12], title=title))
    return candidates, is_fix
