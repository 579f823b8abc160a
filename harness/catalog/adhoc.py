"""Ad-hoc environments: made of what was typed (`-e tensorflow==2.7.1`), and kept in the user's cache with their locks.

What is not typed is the catalogue's: Python and CUDA are those of the same minor release. Packages are taken as of the
end of the day after the youngest of those appeared of which a version was typed. The estimator of 2.4.0 was uploaded
six hours after its TensorFlow, past midnight.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from packaging.pylock import Package
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import Specifier
from packaging.utils import canonicalize_name
from packaging.version import Version

from harness.catalog import index
from harness.files import cache_dir, write_atomically
from harness.model.environment import TENSORFLOW, Environment
from harness.model.errors import CannotRunHereError, UsageError

#: The Pythons that images can have beside the catalogue's own.
_PYTHONS = tuple(f"3.{minor}" for minor in range(7, 15))

#: Those of TENSORFLOW whose versions are days: the newest is meant where none is typed.
NIGHTLIES = ("tf-nightly", "tf-nightly-cpu")

_EXAMPLE = "For example: -e tensorflow==2.7.1, -e tf-nightly, -e 'tensorflow==2.0.0,keras==2.3.1'"
_OPERATOR = r"[<>=~!]=|[<>]"
#: A comma between requirements: no bound follows it, and it is not between extras.
_COMMA = re.compile(rf",(?!\s*(?:{_OPERATOR}))(?![^\[\]]*\])")
#: A docker repository and a file are named after an environment; longer names are cut off.
_LONGEST = 100


@dataclass(frozen=True, slots=True)
class Asked:
    """One TensorFlow package and version, and what is wanted with it.

    `version` is empty for the newest nightly; `others` are PEP 508 requirements, an exact Keras first.
    """

    package: str
    version: str
    others: Sequence[str]

    def __str__(self) -> str:
        return ",".join([f"{self.package}=={self.version}" if self.version else self.package, *self.others])

    @property
    def pins(self) -> dict[str, str]:
        """The other packages of which one version was typed, and that."""
        return {each.name: exact for each in map(Requirement, self.others) if (exact := _exact(each))}

    @property
    def name(self) -> str:
        """What its environment is called: `tensorflow-2.0.0-keras-2.3.1`. Different texts have different names."""
        text = str(self)
        plain = text.replace("==", "-").replace(",", "-")
        exact = all("==" in part for part in text.split(","))
        if exact and re.fullmatch(r"[a-z0-9][a-z0-9.-]*", plain) and len(plain) <= _LONGEST:
            return plain
        start = re.sub(r"[^a-z0-9.]+", "-", f"{self.package}-{self.version}")
        return f"{start}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def is_asked(text: str) -> bool:
    """Whether a text is meant as requirements, not as a name or a glob."""
    return bool(re.search(_OPERATOR, text)) or text.strip() in NIGHTLIES


def parse(text: str) -> Asked:
    """What was asked. Raises UsageError, with examples, for what is no TensorFlow, pinned, and requirements."""
    first, *others = [_requirement(part.strip(), text) for part in _COMMA.split(text)]
    package = canonicalize_name(first.name)
    if package not in TENSORFLOW:
        raise _wrong(text, f"the first package is {first.name}, not one of {', '.join(TENSORFLOW)}")
    version = _exact(first)
    if first.extras or not (version or (package in NIGHTLIES and not first.specifier)):
        raise _wrong(text, f"{first} is not an exact version")
    return Asked(package, version, sorted(map(_normal, others), key=lambda each: not each.startswith("keras==")))


def _requirement(part: str, text: str) -> Requirement:
    try:
        found = Requirement(part)
    except InvalidRequirement:
        raise _wrong(text, f"{part!r} is no requirement") from None
    if found.url or found.marker:
        raise _wrong(text, f"{part!r} is not a package with versions")
    return found


def _exact(requirement: Requirement) -> str:
    """The one version that a requirement allows, as it is normally written; empty where it allows others."""
    match list(requirement.specifier):
        case [Specifier(operator="==", version=version)] if not version.endswith(".*"):
            return str(Version(version))
    return ""


def _normal(requirement: Requirement) -> str:
    exact = _exact(requirement)
    extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
    return f"{canonicalize_name(requirement.name)}{extras}{f'=={exact}' if exact else requirement.specifier}"


def _wrong(text: str, why: str) -> UsageError:
    return UsageError(f"The environment {text!r} cannot be made: {why}.", _EXAMPLE)


def with_asked(known: Mapping[str, Environment], typed: Sequence[str]) -> tuple[dict[str, Environment], list[str]]:
    """The catalogue and the environments that were typed as requirements; and what was typed, as names and globs.

    An environment that was made before is found by its name too, without a look at the index. Raises UsageError for
    requirements that no environment can be made of, CannotRunHereError where the index has to be asked and does not
    answer.
    """
    environments, names = dict(known), []
    for text in typed:
        environment = None
        if text not in known:
            environment = make(text, known) if is_asked(text) else kept(text)
        if environment is not None:
            environments[environment.name] = environment
        names.append(environment.name if environment else text)
    return environments, names


def make(text: str, known: Mapping[str, Environment]) -> Environment:
    """The environment that was typed: the one that is kept, else a new one, which is kept then."""
    asked = parse(text)
    if (before := _kept_for(asked)) is not None:
        return before
    environment = _new(asked, list(known.values()))
    # of a nightly the day is known only now; the lock that it has is as of that instant, not as of this one
    if (before := _kept_for(parse(environment.asked))) is not None:
        return before
    # what cannot be kept is asked of the index again
    with contextlib.suppress(OSError):
        write_atomically(file(environment.name), json.dumps(asdict(environment), indent=2))
    return environment


def kept(name: str) -> Environment | None:
    """The environment of this name that was made before; None where there is none."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9.-]*", name):
        return None
    try:
        return Environment(**json.loads(file(name).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _kept_for(asked: Asked) -> Environment | None:
    environment = kept(asked.name) if asked.version else None
    return environment if environment is not None and environment.asked == str(asked) else None


def folder() -> Path:
    """Where ad-hoc environments and their locks are kept."""
    return cache_dir() / "locks"


def file(name: str) -> Path:
    """What is kept of the environment of this name."""
    return folder() / f"{name}.json"


def _new(asked: Asked, known: Sequence[Environment]) -> Environment:
    neighbour = _neighbour(asked.version, known)
    package, python = _tensorflow(asked, neighbour.python, known)
    asked = replace(asked, version=str(package.version))
    as_of = _as_of([package, *(_pinned(name, version, python) for name, version in asked.pins.items())])
    environment = Environment(
        name=asked.name,
        tensorflow=asked.version,
        python=python,
        as_of=as_of.isoformat().replace("+00:00", "Z"),
        keras=asked.pins.get("keras", ""),
        released=_day(package).date().isoformat(),
        asked=str(asked),
    )
    if asked.package.endswith("-cpu") or _minor(asked.version) < _minor(neighbour.tensorflow):
        return environment
    # NVIDIA's packages are no older than those of the neighbour
    instant = neighbour.cuda_as_of or neighbour.as_of
    return replace(
        environment,
        cuda=neighbour.cuda,
        cudnn=neighbour.cudnn,
        gpu_code=neighbour.gpu_code,
        ptx_alone=neighbour.ptx_alone,
        # of a cuDNN that was typed nothing is known
        cudnn_code="" if any(name.startswith("nvidia-cudnn-") for name in asked.pins) else neighbour.cudnn_code,
        cuda_image=neighbour.cuda_image,
        cuda_as_of=instant if datetime.fromisoformat(instant) > as_of and not neighbour.cuda_image else "",
    )


def _as_of(packages: Sequence[Package]) -> datetime:
    """The end of the day (UTC) after the youngest of the packages, or now where that is to come."""
    return min(max(map(_day, packages)) + timedelta(days=2), datetime.now(UTC).replace(microsecond=0))


def _day(package: Package) -> datetime:
    """The start of the day (UTC) on which a package appeared."""
    uploaded = index.uploaded(package)
    if uploaded is None:
        raise CannotRunHereError(
            f"The package index does not tell when {package.name} {package.version} appeared, so what users had then "
            "is not known.",
            "Use an index that tells upload times (PEP 700), or add a line to docker-bake.hcl.",
        )
    return uploaded.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _minor(version: str) -> tuple[int, ...]:
    return Version(version).release[:2]


def _neighbour(version: str, known: Sequence[Environment]) -> Environment:
    """The catalogue's environment of the same minor release, else of the nearest below, else the oldest."""

    def minor(environment: Environment) -> tuple[int, ...]:
        return _minor(environment.tensorflow)

    ours = [environment for environment in known if not environment.asked and not environment.gpu_image]
    if not ours:
        raise UsageError("The catalogue has no environment to take Python and CUDA from.")
    below = [environment for environment in ours if not version or minor(environment) <= _minor(version)]
    return max(below, key=minor) if below else min(ours, key=minor)


def _tensorflow(asked: Asked, python: str, known: Sequence[Environment]) -> tuple[Package, str]:
    """The package and its Python: `python`, else the nearest that it has a wheel for."""
    wanted = f"{asked.package}=={asked.version}" if asked.version else asked.package
    if (package := index.find(wanted, python)) is not None and package.wheels:
        return package, python
    catalogue = {environment.python for environment in known}
    others = sorted(
        {*_PYTHONS, *catalogue} - {python}, key=lambda each: (abs(_number(each) - _number(python)), _number(each))
    )
    for other, candidate in zip(others, _find_each(wanted, others), strict=True):
        if candidate is not None and candidate.wheels:
            return candidate, other
    raise _unknown(asked.package, asked.version, sorted(catalogue, key=_number))


def _pinned(name: str, version: str, python: str) -> Package:
    package = index.find(f"{name}=={version}", python)
    if package is None:
        raise _unknown(name, version, [python])
    return package


def _unknown(name: str, version: str, pythons: Sequence[str]) -> UsageError:
    """The error for a version that is not there, with the nearest that are."""

    def versions(bound: str, *, lowest: bool = False) -> list[Version]:
        found = _find_each(f"{name}{bound}{version}", pythons, lowest=lowest)
        return sorted(package.version for package in found if package and package.wheels and package.version)

    near = [*versions("<")[-1:], *versions(">", lowest=True)[:1]]
    advice = f"The nearest: {' and '.join(f'{name}=={each}' for each in near)}." if near else ""
    return UsageError(f"There is no {name} {version} for Python {', '.join(pythons)} on x86-64.", advice)


def _find_each(requirement: str, pythons: Sequence[str], *, lowest: bool = False) -> list[Package | None]:
    """The answers for several Pythons, asked all at once."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(partial(index.find, requirement, lowest=lowest), pythons))


def _number(python: str) -> int:
    """A Python's minor version."""
    return int(python.partition(".")[2])
