"""The environments of a run: their packages, and every version by environment."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.model.environment import TENSORFLOW, Device, installed, name_on, versions
from harness.model.run import Run

#: Used if no packages of an environment were recorded.
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Software:
    """One version by environment, in the run's order; empty for an environment without it.

    `leads`: it is a leading package (TensorFlow, the package that contains it, Keras, Python, NumPy, CUDA or cuDNN),
    not one of the other packages.
    """

    name: str
    versions: Sequence[str]
    leads: bool

    @property
    def differs(self) -> bool:
        """Whether two environments with a known version have different versions."""
        return self.differs_among(range(len(self.versions)))

    def differs_among(self, places: Iterable[int]) -> bool:
        """Return whether the software differs among some environments, given by their positions in the run's order."""
        return len({self.versions[place] for place in places} - {NOT_KNOWN}) > 1

    @property
    def common(self) -> str:
        """The version that all environments with this package have; empty if none has it."""
        return next((version for version in self.versions if version not in {"", NOT_KNOWN}), "")


def pins(run: Run, environment: str, device: Device = Device.CPU) -> Mapping[str, str]:
    """Return the environment's packages. If none were recorded, return the packages in its line of the catalogue.

    `device` only matters in a run on both devices.
    """
    if recorded := run.pins.get(name_on(environment, device, run.pins)):
        return recorded
    entry = next((candidate for candidate in run.environments if candidate.name == environment), None)
    return versions(entry) if entry else {}


def stands_for(run: Run, environment: str) -> list[Mapping[str, str]]:
    """Return the packages that a header uses to pick axis values.

    The packages of the replaced environment come first, and then its own packages.

    A substitute for TensorFlow 1 is compared in graph mode if TensorFlow 1 is. An environment that is only a substitute
    doesn't use its own packages.
    """
    roles = [stand_in for stand_in in run.plan.stand_ins if stand_in.environment == environment]
    own = [pins(run, environment)] if not roles or any(role.is_itself_too for role in roles) else []
    return [*own, *(role.pins for role in roles)]


def python(run: Run, environment: str) -> str | None:
    """Return the environment's Python version, X.Y; None if the run doesn't have the environment."""
    return next((candidate.python for candidate in run.environments if candidate.name == environment), None)


def software(run: Run) -> list[Software]:
    """Return the software of the run's environments: leading packages first."""
    environments, on_gpu = run.environments, bool(run.plan.limits.gpus)

    def versions(package: str) -> list[str]:
        return [_version(package, run, environment.name) for environment in environments]

    leading = {
        "TensorFlow": versions("tensorflow"),
        "TensorFlow's package": [
            next((name for name in TENSORFLOW if name in pins(run, environment.name)), "")
            for environment in environments
        ],
        "Keras": versions("keras"),
        "Python": [environment.python for environment in environments],
        "NumPy": versions("numpy"),
        "CUDA, of TensorFlow's build": [environment.cuda for environment in environments if on_gpu],
        "cuDNN, of TensorFlow's build": [environment.cudnn for environment in environments if on_gpu],
    }
    rest = {name for packages in run.pins.values() for name in packages} - {"keras", "numpy", *TENSORFLOW}
    return [
        *(Software(name, values, leads=True) for name, values in leading.items()),
        *(Software(name, versions(name), leads=False) for name in sorted(rest)),
    ]


def _version(name: str, run: Run, environment: str) -> str:
    version = installed(name, pins(run, environment))
    return version or ("" if run.pins.get(environment) else NOT_KNOWN)
