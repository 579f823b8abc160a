"""Resolves release lines, such as `tf-nightly@2026-08-01`, to exact versions: `tf-nightly==2.23.0.dev20260731`."""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC
from functools import cache, partial

from packaging.version import Version

from harness.environments import index
from harness.environments.index import IndexedVersion
from harness.environments.requested import (
    ADDED_PACKAGE,
    FIRST_PACKAGE,
    Named,
    Override,
    Pinned,
    ReleaseLine,
    parse_requested,
)
from harness.model.environment import Environment
from harness.model.errors import CannotRunHereError, UsageError

#: Python versions that images can have, in addition to those in the catalog.
PYTHONS = tuple(f"3.{minor}" for minor in range(7, 15))


def resolve(line: ReleaseLine, known: Mapping[str, Environment]) -> tuple[Named | Pinned | Override, str]:
    """Return the environment with exact versions, and why a wheel was yanked (empty if none was).

    `known` is the catalog. If it has an environment with the newest release, `latest` is this environment. Raises
    UsageError for a day before the first wheel, and CannotRunHereError if the index doesn't answer or has no upload
    times.
    """
    list_versions, reasons = cache(index.list_versions), list[str]()
    architecture = next(iter(known.values())).architecture

    def find_version(package: str) -> str:
        wheel = _find_newest(line, package, list_versions(package), architecture)
        if wheel.yanked:
            reasons.append(f"{package} {wheel.version} was yanked from the package index ({wheel.yanked})")
        return wheel.version

    def replace_base(match: re.Match[str], text: str) -> str:
        if match[1] != "latest":
            return f"{match[1]}=={find_version(match[1])}"
        version = find_version("tensorflow")
        catalog = (environment for environment in known.values() if environment.is_stable_release)
        name = next((environment.name for environment in catalog if environment.tensorflow == version), "")
        return ("" if text[match.end() :].startswith(",") else name) or f"tensorflow=={version}"

    text = "latest+keras-nightly" if line.name == "keras-nightly" else line.name
    text = ADDED_PACKAGE.sub(lambda _: f"+keras-nightly=={find_version('keras-nightly')}", text)
    text = FIRST_PACKAGE.sub(partial(replace_base, text=text), text) if FIRST_PACKAGE.match(text) else text
    exact = parse_requested(text)
    assert isinstance(exact, Named | Pinned | Override)
    return exact, " and ".join(reasons)


def _find_newest(
    line: ReleaseLine, package: str, wheels: Sequence[IndexedVersion], architecture: str
) -> IndexedVersion:
    """Return the newest version, up to the line's day, that has a wheel for 64-bit Linux.

    If the package has stable releases, only these are considered.
    """
    stable = [release for release in wheels if not Version(release.version).is_prerelease and not release.yanked]
    usable = [release for release in stable or wheels if any(release.fits(python, architecture) for python in PYTHONS)]
    if not usable:
        raise UsageError(f"The package index has no wheel of {package} for Linux on {architecture}.")
    if line.day is None:
        return usable[-1]
    dated = [(release.uploaded.astimezone(UTC).date(), release) for release in usable if release.uploaded]
    if not dated:
        raise CannotRunHereError(
            f"The package index doesn't report upload times of {package}, so the wheels of {line.day} are unknown.",
            "Use an index with upload times (PEP 700), or omit the day.",
        )
    wheel = next((release for uploaded, release in reversed(dated) if uploaded <= line.day), None)
    if wheel is None:
        start = min(uploaded for uploaded, _ in dated)
        raise UsageError(
            f"{line.name}@{line.day}: {package} has no wheel from that day or earlier. The first wheel is from "
            f"{start}.",
            f"Use the nearest day: {line.name}@{start}",
        )
    return wheel
