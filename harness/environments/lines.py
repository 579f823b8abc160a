"""Release lines: environments with a changing version, such as `tf-nightly` or `tf2.21+keras-nightly@2026-08-01`.

A line is resolved to the text of an environment with exact versions: `tf-nightly==2.23.0.dev20261026`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cache, partial

from packaging.version import Version

from harness.environments import index
from harness.environments.index import IndexedVersion
from harness.model.environment import LINES, Environment
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.texts import find_nearest, joined

#: Python versions that images can have, in addition to those in the catalog.
PYTHONS = tuple(f"3.{minor}" for minor in range(7, 15))

_EXAMPLE = "Example: -e keras-nightly@2026-08-01"
#: The package whose version changes: at the start of a text, or added to a base.
_FIRST_PACKAGE = re.compile(r"(latest|tf-nightly-cpu|tf-nightly)(?=[,+]|$)")
_ADDED_PACKAGE = re.compile(r"\+keras-nightly(?=\+|$)")
#: A version of Python, which isn't a day.
_PYTHON = re.compile(r"@py\d\.\d+(?=\+|$)")


@dataclass(frozen=True, slots=True)
class ReleaseLine:
    """A release line. `name` is its text without the day.

    The line has the newest wheels that were uploaded by the end of `day` (UTC), or until now if `day` is None.
    """

    name: str
    day: date | None = None

    def resolve(self, known: Mapping[str, Environment]) -> tuple[str, str]:
        """Return the environment's text with exact versions, and why a wheel was yanked (empty if none was).

        `known` is the catalog. If it has an environment with the newest release, `latest` is this environment. Raises
        UsageError for a day before the first wheel, and CannotRunHereError if the index doesn't answer or has no upload
        times.
        """
        list_versions, reasons = cache(index.list_versions), list[str]()

        def find_version(package: str) -> str:
            wheel = self._find_newest(package, list_versions(package))
            if wheel.yanked:
                reasons.append(f"{package} {wheel.version} was yanked from the package index ({wheel.yanked})")
            return wheel.version

        def replace_base(match: re.Match[str], text: str) -> str:
            if match[1] != "latest":
                return f"{match[1]}=={find_version(match[1])}"
            version = find_version("tensorflow")
            catalog = (
                environment for environment in known.values() if not environment.asked and not environment.gpu_image
            )
            name = next((environment.name for environment in catalog if environment.tensorflow == version), "")
            return ("" if text[match.end() :].startswith(",") else name) or f"tensorflow=={version}"

        text = "latest+keras-nightly" if self.name == "keras-nightly" else self.name
        text = _ADDED_PACKAGE.sub(lambda _: f"+keras-nightly=={find_version('keras-nightly')}", text)
        text = _FIRST_PACKAGE.sub(partial(replace_base, text=text), text) if _FIRST_PACKAGE.match(text) else text
        return text, " and ".join(reasons)

    def _find_newest(self, package: str, wheels: Sequence[IndexedVersion]) -> IndexedVersion:
        """Return the newest version, up to the line's day, that has a wheel for 64-bit x86 Linux.

        If the package has stable releases, only these are considered.
        """
        stable = [release for release in wheels if not Version(release.version).is_prerelease and not release.yanked]
        usable = [release for release in stable or wheels if any(map(release.fits, PYTHONS))]
        if not usable:
            raise UsageError(f"The package index has no wheel of {package} for Linux on x86-64.")
        if self.day is None:
            return usable[-1]
        dated = [(release.uploaded.astimezone(UTC).date(), release) for release in usable if release.uploaded]
        if not dated:
            raise CannotRunHereError(
                f"The package index doesn't report upload times of {package}, so the wheels of {self.day} are unknown.",
                "Use an index with upload times (PEP 700), or omit the day.",
            )
        wheel = next((release for uploaded, release in reversed(dated) if uploaded <= self.day), None)
        if wheel is None:
            start = min(uploaded for uploaded, _ in dated)
            raise UsageError(
                f"{self.name}@{self.day}: {package} has no wheel from that day or earlier. The first wheel is from "
                f"{start}.",
                f"Use the nearest day: {self.name}@{start}",
            )
        return wheel


def parse_line(text: str, today: Callable[[], date] = lambda: datetime.now(UTC).date()) -> ReleaseLine | None:
    """Return the release line that a text names; None for any other environment.

    Raises UsageError for a day that is invalid or in the future, and for a day after a name that isn't a release line.
    """
    compact = "".join(text.split())
    if _PYTHON.search(compact):
        return None
    name, separator, day = compact.rpartition("@") if "://" not in compact else ("", "", compact)
    name = "keras-nightly" if (name or day) == "latest+keras-nightly" else name or day
    is_line = name == "keras-nightly" or bool(_FIRST_PACKAGE.match(name) or _ADDED_PACKAGE.search(name))
    if not separator:
        return ReleaseLine(name) if is_line else None
    if not is_line:
        nearest = find_nearest(name, LINES)
        hint = f" Did you mean {nearest}@{day}?" if nearest else ""
        if day.startswith("py"):
            raise UsageError(f"{text!r}: {day!r} isn't a version of Python.", f"For example: -e {name}@py3.11")
        raise UsageError(
            f"{text!r}: {name} isn't a release line, so you can't select a day.{hint}",
            f"Release lines are {joined(LINES)}, and an environment with a nightly Keras, such as "
            f"tf2.21+keras-nightly.",
        )
    try:
        selected_day = date.fromisoformat(day) if re.fullmatch(r"\d{4}-\d\d-\d\d", day) else None
    except ValueError:
        selected_day = None
    if selected_day is None:
        raise UsageError(f"Invalid day {day!r} for the release line {name}: expected YYYY-MM-DD.", _EXAMPLE)
    if selected_day > today():
        raise UsageError(
            f"{name}@{day} is in the future: today is {today()} (UTC).", f"To use the newest wheel, pass -e {name}."
        )
    return ReleaseLine(name, selected_day)
