"""The environments of a run: their packages, and a table of software versions."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.model.environment import TENSORFLOW, Device, installed, name_on, versions
from harness.model.run import Run

#: The version of a package if no packages of the environment were recorded.
NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Software:
    """The versions of a package or of Python, one for each environment in the run's order; empty if not installed.

    `leads`: it is a main package (TensorFlow, the package that contains TensorFlow, Keras, Python, NumPy, CUDA or
    cuDNN).
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
        """The version, if all environments with the package have the same one; empty if none has the package."""
        return next((version for version in self.versions if version not in {"", NOT_KNOWN}), "")


def pins(run: Run, environment: str, device: Device = Device.CPU) -> Mapping[str, str]:
    """Return the environment's packages with their versions: the recorded packages, otherwise those in the catalog.

    `device` matters only in a run on both devices.
    """
    if recorded_pins := run.pins.get(name_on(environment, device, run.pins)):
        return recorded_pins
    entry = next((candidate for candidate in run.environments if candidate.name == environment), None)
    return versions(entry) if entry else {}


def get_represented_packages(run: Run, environment: str) -> list[Mapping[str, str]]:
    """Return the sets of packages that determine which axis values a header picks for the environment.

    If the environment is a fallback, the packages of the environments that it replaces are used. For example, a
    fallback for TensorFlow 1 is compared in graph mode if TensorFlow 1 would be. The environment's own packages are
    used only if it is in the run for itself too.
    """
    roles = [stand_in for stand_in in run.plan.stand_ins if stand_in.environment == environment]
    own_packages = [pins(run, environment)] if not roles or any(role.is_itself_too for role in roles) else []
    return [*own_packages, *(role.pins for role in roles)]


def python(run: Run, environment: str) -> str | None:
    """Return the environment's Python version (X.Y); None if the environment isn't in the run."""
    return next((candidate.python for candidate in run.environments if candidate.name == environment), None)


def software(run: Run) -> list[Software]:
    """Return the software of the run's environments: the main packages first, and then the others."""
    environments, on_gpu = run.environments, bool(run.plan.limits.gpus)

    def versions(package: str) -> list[str]:
        return [
            installed(package, pins(run, environment.name)) or ("" if run.pins.get(environment.name) else NOT_KNOWN)
            for environment in environments
        ]

    main_packages = {
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
    other_names = {name for packages in run.pins.values() for name in packages} - {"keras", "numpy", *TENSORFLOW}
    return [
        *(Software(name, values, leads=True) for name, values in main_packages.items()),
        *(Software(name, versions(name), leads=False) for name in sorted(other_names)),
    ]
