"""What differs between the environments that a run compares, and what is the same in all. Nothing is escaped yet."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.columns import pins
from harness.model.environment import Environment
from harness.model.requirements import TENSORFLOW, installed
from harness.model.run import Run

#: More environments than these have a line each, in place of a column.
SIDE_BY_SIDE = 6

#: Where nothing was recorded of an environment's packages.
NOT_KNOWN = "not known"

#: Before the name of a package that the line above has, and this one has not.
GONE = "-"


@dataclass(frozen=True, slots=True)
class Fact:
    """One version by environment, in the run's order; empty where an environment does not have it.

    `leads`: it is TensorFlow, the package that has it, Keras, Python, NumPy, CUDA or cuDNN, none of the other packages.
    """

    name: str
    versions: Sequence[str]
    leads: bool

    @property
    def differs(self) -> bool:
        """Whether two environments of which it is known have different versions."""
        return len(set(self.versions) - {NOT_KNOWN}) > 1


@dataclass(frozen=True, slots=True)
class Text:
    """A cell of a table; `stands_out` where it is other than in the line above."""

    text: str
    stands_out: bool = False


@dataclass(frozen=True, slots=True)
class Differences:
    """What `environments` differ in, and what all of them have: `six 1.12.0`.

    `ran` is what a launch of each runs in, an image's id or a lock's hash, shortened as engines show it.
    """

    environments: Sequence[str]
    facts: Sequence[Fact]
    same: Sequence[str]
    ran: Sequence[tuple[str, str]]

    @property
    def by_line(self) -> bool:
        """Whether there are so many environments that each has a line."""
        return len(self.environments) > SIDE_BY_SIDE

    @property
    def gaps(self) -> bool:
        """Whether an environment lacks what another one has."""
        return any("" in fact.versions for fact in self.facts)

    @property
    def headings(self) -> list[str]:
        """Over the table's columns."""
        if not self.by_line:
            return ["", *self.environments]
        return ["environment", *(fact.name for fact in self.facts if fact.leads)]

    @property
    def rows(self) -> list[list[Text]]:
        """The table: a line for each fact, or, of many environments, one for each of them with the facts that lead."""
        if not self.by_line:
            return [[Text(fact.name), *map(Text, fact.versions)] for fact in self.facts]
        leading = [fact.versions for fact in self.facts if fact.leads]
        return [
            [Text(name), *(Text(each[place], place > 0 and each[place] != each[place - 1]) for each in leading)]
            for place, name in enumerate(self.environments)
        ]

    @property
    def changes(self) -> list[tuple[str, str]]:
        """Of many environments, each with what changed of the other packages; none where they are side by side.

        These are the versions that are not those of the environment before it, of the first one all that differ.
        """
        others = [fact for fact in self.facts if not fact.leads]
        if not self.by_line or not others:
            return []
        return [(name, _changed(others, place)) for place, name in enumerate(self.environments)]


def _changed(others: Sequence[Fact], place: int) -> str:
    told = []
    for fact in others:
        version, before = fact.versions[place], fact.versions[place - 1] if place else ""
        if version != before:
            told.append(f"{fact.name} {version}" if version else f"{GONE}{fact.name}")
    return ", ".join(told)


def differences(run: Run) -> Differences:
    """What the run's environments differ in."""
    told = [*_leading(run), *_packages(run)]
    return Differences(
        environments=[environment.name for environment in run.environments],
        facts=[fact for fact in told if fact.differs],
        same=[f"{fact.name} {version}" for fact in told if not fact.differs and (version := _common(fact))],
        ran=[(known.name, _short(image)) for known in run.environments if (image := run.images.get(known.name))],
    )


def _common(fact: Fact) -> str:
    return next((version for version in fact.versions if version not in {"", NOT_KNOWN}), "")


def _leading(run: Run) -> list[Fact]:
    def each(version: Callable[[Environment], str]) -> list[str]:
        return [version(environment) for environment in run.environments]

    def of(name: str) -> list[str]:
        return each(lambda environment: _version(name, run, environment.name))

    on_gpu = bool(run.plan.limits.gpus)
    by_name = {
        "TensorFlow": of("tensorflow"),
        "TensorFlow's package": each(lambda environment: _package(pins(run, environment.name))),
        "Keras": of("keras"),
        "Python": each(lambda environment: environment.python),
        "NumPy": of("numpy"),
        "CUDA, of TensorFlow's build": each(lambda environment: environment.cuda) if on_gpu else [],
        "cuDNN, of TensorFlow's build": each(lambda environment: environment.cudnn) if on_gpu else [],
    }
    return [Fact(name, versions, leads=True) for name, versions in by_name.items()]


def _packages(run: Run) -> list[Fact]:
    known = {name for packages in run.pins.values() for name in packages}
    names = sorted(known - {"keras", "numpy", *TENSORFLOW})
    environments = [environment.name for environment in run.environments]
    return [Fact(name, [_version(name, run, each) for each in environments], leads=False) for name in names]


def _package(packages: Mapping[str, str]) -> str:
    return next((name for name in TENSORFLOW if name in packages), "")


def _version(name: str, run: Run, environment: str) -> str:
    version = installed(name, pins(run, environment))
    return version or ("" if run.pins.get(environment) else NOT_KNOWN)


def _short(digest: str) -> str:
    """Twelve digits of a hash, as engines show it."""
    algorithm, colon, digits = digest.rpartition(":")
    return f"{algorithm}{colon}{digits[:12]}"
