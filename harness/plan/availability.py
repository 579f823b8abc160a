"""Decides which cells can run, before any image is built, and suggests alternatives for the others."""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from harness.environments.requested import sort_packages
from harness.model.environment import (
    TENSORFLOW,
    X86_64,
    Device,
    Environment,
    Requirement,
    describe_missing_wheel,
    find_unmet,
    installed,
    name_on,
    normalize,
)
from harness.model.gpu import CPU_ALONE, Gpu, GpuHost
from harness.model.run import Unavailable
from harness.model.scenario import DEVICE, Cell, Need, Scenario, has_values
from harness.model.texts import counted, joined
from harness.plan import settings
from harness.plan.gpus import Fit, Support, can_try, fit

#: The largest number of environments that a sentence lists.
_MAX_LISTED = 3

#: The support of an environment that is launched although it can't run according to the catalog.
TRIED = "tried anyway"

#: The environment variable that selects the backend of Keras 3, and the package of each backend except TensorFlow.
KERAS_BACKEND = "KERAS_BACKEND"
_BACKENDS = {"jax": "jax", "torch": "torch", "openvino": "openvino"}

#: The reason why a cell can't run (a clause), and advice (a sentence, or empty).
Reason = tuple[str, str]


def split(
    cells: Sequence[Cell],
    scenarios: Mapping[str, Scenario],
    requirements: Mapping[str, Requirement],
    environments: Mapping[str, Environment],
    *,
    gpus: Sequence[Gpu] = (),
    host: GpuHost = CPU_ALONE,
    anyway: Collection[str] = (),
) -> tuple[list[Cell], list[Unavailable]]:
    """Return the cells that can run, and the cells that can't, with reasons and advice.

    The checks are, in this order: the scenario's work runs on the device, the environment has an image for the device,
    its GPU code runs on the GPUs, it has the packages that the scenario needs, and its release supports the settings.
    `environments` contains the environments of the catalog and of the cells. `requirements` contains the environments
    of the cells on their devices, by their names in the run (Requirement.name). Every launch on GPUs gets all of
    `gpus`. The GPU check is skipped if there are no `gpus`, or if `host` has no information about the GPUs. The
    environments in `anyway` only need CUDA to pass the GPU check.
    """
    devices = {cell.device for cell in cells}
    alternatives = [environment for environment in environments.values() if devices <= set(environment.devices)]

    @cache
    def explain_gpu(name: str) -> Reason | None:
        if name in anyway and can_try(environments[name], host):
            return None
        gpu_fit = assess_on_gpus(environments[name], alternatives, gpus, host)
        return (gpu_fit.reason, gpu_fit.advice) if gpu_fit.is_impossible else None

    def check_packages(cell: Cell) -> Reason | None:
        requirement = requirements[name_on(cell.environment, cell.device, requirements)]
        return _explain_no_packages(cell, scenarios[cell.scenario], requirement) or _explain_no_backend(
            cell, requirement
        )

    checks: Sequence[Callable[[Cell], Reason | None]] = (
        lambda cell: _explain_no_work(cell, scenarios[cell.scenario]),
        lambda cell: _explain_no_device(environments[cell.environment], cell.device, alternatives),
        lambda cell: explain_gpu(cell.environment) if cell.device is Device.GPU else None,
        check_packages,
        lambda cell: settings.explain_refusal(cell, scenarios[cell.scenario], environments[cell.environment], gpus),
    )
    available, unavailable = list(cells), []
    for check in checks:
        explained = [(cell, check(cell)) for cell in available]
        available = [cell for cell, reason in explained if reason is None]
        unavailable += [Unavailable(cell, *reason) for cell, reason in explained if reason is not None]
    return available, unavailable


def _explain_no_work(cell: Cell, scenario: Scenario) -> Reason | None:
    for need in scenario.needs:
        if need.devices and cell.device not in need.devices and has_values(need.when, cell.axes):
            device_names = " or ".join(need.devices)
            options = "Omit --gpu and --gpus." if cell.device is Device.GPU else "Add --gpu."
            options = f"Use --device {device_names}." if DEVICE in cell.axes else options
            return need.reason or f"the scenario runs only on {device_names}", need.advice or options
    return None


def _explain_no_packages(cell: Cell, scenario: Scenario, requirement: Requirement) -> Reason | None:
    from packaging.requirements import Requirement as PackageRequirement
    from packaging.specifiers import SpecifierSet

    pins, environment = requirement.lock.pins, requirement.environment
    if not SpecifierSet(scenario.requires_python).contains(environment.python):
        return (
            f"{scenario.name} needs Python {scenario.requires_python}, but {environment.name} has {environment.python}",
            "Choose an environment with another Python version.",
        )
    unmet = list[tuple[Need, list[str]]]()
    for need in (Need(requires=scenario.dependencies), *scenario.needs):
        missing = find_unmet(need.requires, pins) if has_values(need.when, cell.axes) else []
        if environment.gpu_image:  # the lock doesn't list the image's own packages; the launch shows whether they fit
            missing = [package for package in missing if installed(normalize(PackageRequirement(package).name), pins)]
        if missing:
            unmet.append((need, missing))
    if not unmet:
        return None
    need, missing = unmet[0]
    if not need.advice:  # one environment can have all the packages
        missing = list(dict.fromkeys(package for other, some in unmet if not other.advice for package in some))
    packages = joined(missing)
    can_add = all(re.fullmatch(r"[\w-]+", package) and package not in TENSORFLOW for package in missing)
    options = f"Choose an environment with {packages}"
    added = "+".join([environment.exact, *sort_packages(missing, environment.exact)])
    options += f", such as -e {shlex.quote(added)}" if can_add else "."
    return need.reason or f"needs {packages}", need.advice or options


def _explain_no_backend(cell: Cell, requirement: Requirement) -> Reason | None:
    """Return why Keras doesn't have the backend that a cell selects; None if it has, or if no backend is selected."""
    backend, name = cell.axes.get(KERAS_BACKEND, ""), requirement.environment.exact
    package = _BACKENDS.get(backend, "")
    if not package:
        return None
    if find_unmet(["keras>=3"], requirement.lock.pins):
        return f"{KERAS_BACKEND}={backend} needs Keras 3, but {name} has an older Keras", "Choose a newer environment."
    if find_unmet([package], requirement.lock.pins):
        advice = f"Add the package to the environment: -e {name}+{package}==VERSION"
        return f"{KERAS_BACKEND}={backend} needs {package}, but {name} doesn't have this package", advice
    return None


def _explain_no_device(environment: Environment, device: Device, catalog: Iterable[Environment]) -> Reason | None:
    if device in environment.devices:
        return None
    if not environment.has_wheel:
        return describe_missing_wheel(environment)
    reason = f"the catalog lists no GPU code for {environment.name}"
    if environment.architecture != X86_64:
        return f"{environment.name} has no wheel with GPU code for {environment.architecture}", "Omit --gpu and --gpus."
    if environment.gpu_image:
        reason = f"{environment.name} is NVIDIA's image {environment.gpu_image}, which is made for GPUs"
    other = find_nearest_with(device, environment, catalog)
    return reason, f"Use {other.name}." if other else ""


def find_nearest_with(device: Device, to: Environment, catalog: Iterable[Environment]) -> Environment | None:
    """Return the environment of the nearest release that supports the device, or None.

    If two releases are equally near, the older one wins.
    """
    own_release = to.release

    def distance(environment: Environment) -> list[int]:
        return [abs(one - other) for one, other in zip(environment.release, own_release, strict=True)]

    candidates = [environment for environment in catalog if device in environment.devices]
    return min(candidates, key=lambda environment: (distance(environment), environment.release), default=None)


def assess_on_gpus(environment: Environment, catalog: Iterable[Environment], gpus: Sequence[Gpu], host: GpuHost) -> Fit:
    """Return how an environment runs on the GPUs. If it can't, the advice names an environment that can."""
    own_fit = fit(environment, gpus, host)
    if not own_fit.is_impossible:
        return own_fit
    environments = list(catalog)
    other = find_nearest_on(gpus, host, environment, environments)
    newer = find_nearest_on(gpus, replace(host, driver="", cuda=None), environment, environments)
    if newer and newer.release[0] == environment.release[0] and (not other or other.release[0] != newer.release[0]):
        # with a newer driver, an environment of the same major version would run
        update = fit(newer, gpus, host).advice
        own_fit = replace(own_fit, advice=f"{update} Then use {newer.name}." if newer != environment else update)
    if other is None:
        no_environment = "No environment in the catalog runs on this GPU. Measure on the CPU, or on another GPU."
        return replace(own_fit, advice=own_fit.advice or no_environment)
    other_fit = fit(other, gpus, host)
    alternative = f"{other.name} ({other_fit.support})." if other_fit.effort else f"{other.name}."
    return replace(own_fit, advice=f"{own_fit.advice} Or use {alternative}" if own_fit.advice else f"Use {alternative}")


def find_nearest_on(
    gpus: Sequence[Gpu], host: GpuHost, to: Environment, catalog: Iterable[Environment]
) -> Environment | None:
    """Return the best environment on these GPUs as an alternative to `to`, which can't run on them; or None.

    Environments with native code for most kernels come before environments that the driver compiles. Then the same
    major version of TensorFlow comes before another, and nearer releases come first. If two releases are equally near,
    the newer one wins.
    """
    major, minor, _ = to.release

    def rank(environment: Environment) -> tuple[int, bool, int, int, str]:
        its_major, its_minor, _ = environment.release
        # a later major version continues where the earlier one ended
        distance = abs(its_minor - minor) if its_major == major else (its_minor if its_major > major else -its_minor)
        return fit(environment, gpus, host).effort, its_major != major, distance, -its_minor, environment.name

    candidates = [
        environment
        for environment in catalog
        if environment.gpu_code and not fit(environment, gpus, host).is_impossible
    ]
    return min(candidates, key=rank, default=None)


def list_names_on(gpus: Sequence[Gpu], host: GpuHost, catalog: Iterable[Environment]) -> list[str]:
    """Return the names of the environments that run on the GPUs, with the support of those that don't run well."""
    fits = [
        (environment.name, fit(environment, gpus, host)) for environment in catalog if Device.GPU in environment.devices
    ]
    usable = sorted(
        ((name, own_fit) for name, own_fit in fits if not own_fit.is_impossible), key=lambda pair: pair[1].effort
    )
    return [f"{name} ({own_fit.support})" if own_fit.effort else name for name, own_fit in usable]


def describe_gpu_support(chosen: Iterable[Environment], gpus: Sequence[Gpu], host: GpuHost) -> str:
    """Return a sentence with the number of environments that run on the GPUs, and their names if they are few."""
    with_gpu = [environment for environment in chosen if Device.GPU in environment.devices]
    usable = list_names_on(gpus, host, with_gpu)
    models = joined(list(dict.fromkeys(gpu.name for gpu in gpus)))
    if not usable:
        return f"{models}: no environment runs here."
    listed = "" if len(usable) > _MAX_LISTED else f": {joined(usable)}"
    return f"{models}: {len(usable)} of {counted(len(with_gpu), 'environment')} run here{listed}."


def list_compiled(environments: Iterable[Environment], gpus: Sequence[Gpu], host: GpuHost) -> dict[str, str]:
    """Return the support of each environment that isn't completely native, by name.

    An environment that can't run gets TRIED and the reason, because it is launched anyway.
    """
    fits = {environment.name: fit(environment, gpus, host) for environment in environments}
    return {
        name: f"{TRIED}: {own_fit.reason}" if own_fit.is_impossible else own_fit.support.value
        for name, own_fit in fits.items()
        if own_fit.support is not Support.NATIVE
    }


def list_gpu_rows(
    chosen: Iterable[Environment], catalog: Mapping[str, Environment], gpus: Sequence[Gpu], host: GpuHost
) -> list[dict[str, Any]]:
    """Return a table row for each environment with GPU code: name, support on the GPUs, reason and advice."""
    with_gpu = [environment for environment in chosen if Device.GPU in environment.devices]
    fits = [(environment, assess_on_gpus(environment, catalog.values(), gpus, host)) for environment in with_gpu]
    return [
        {"name": environment.name, "way": own_fit.support.value, "reason": own_fit.reason, "advice": own_fit.advice}
        for environment, own_fit in fits
    ]
