"""What the environments of a run hold: every version by environment."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.analysis.columns import pins
from harness.model.environment import TENSORFLOW, Environment, installed
from harness.model.run import Run

#: Where nothing was recorded of an environment's packages.
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Software:
    """One version by environment, in the run's order; empty where an environment does not have it.

    `leads`: it is TensorFlow, the package that has it, Keras, Python, NumPy, CUDA or cuDNN, none of the other packages.
    """

    name: str
    versions: Sequence[str]
    leads: bool

    @property
    def differs(self) -> bool:
        """Whether two environments of which it is known have different versions."""
        return self.differs_among(range(len(self.versions)))

    def differs_among(self, places: Iterable[int]) -> bool:
        """The same of some of the environments, by their places in the run's order."""
        return len({self.versions[place] for place in places} - {NOT_KNOWN}) > 1

    @property
    def common(self) -> str:
        """The version that all have, or those that have it; empty where none does."""
        return next((version for version in self.versions if version not in {"", NOT_KNOWN}), "")


def software(run: Run) -> list[Software]:
    """All that is known of the run's environments: what leads, then the other packages by name."""
    return [*_leading(run), *_packages(run)]


def _leading(run: Run) -> list[Software]:
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
    return [Software(name, versions, leads=True) for name, versions in by_name.items()]


def _packages(run: Run) -> list[Software]:
    known = {name for packages in run.pins.values() for name in packages}
    names = sorted(known - {"keras", "numpy", *TENSORFLOW})
    environments = [environment.name for environment in run.environments]
    return [Software(name, [_version(name, run, each) for each in environments], leads=False) for name in names]


def _package(packages: Mapping[str, str]) -> str:
    return next((name for name in TENSORFLOW if name in packages), "")


def _version(name: str, run: Run, environment: str) -> str:
    version = installed(name, pins(run, environment))
    return version or ("" if run.pins.get(environment) else NOT_KNOWN)
