"""The first steps of a plan: the devices, limits and GPUs, and then scenarios, suites and environments."""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path

from harness.backends import registry
from harness.environments.catalog import load_environments
from harness.environments.requested import parse_requested
from harness.machine import cpus
from harness.machine.gpu import selection as gpu_selection
from harness.machine.lock import hold_machine
from harness.machine.slots import divide_machine
from harness.model.defaults import FIRST_START_TIMEOUT, TIMEOUT
from harness.model.environment import Device
from harness.model.errors import FileError, HarnessError, UsageError
from harness.model.gpu import CPU_ALONE, GpuHost
from harness.model.launch import Limits
from harness.model.scenario import CPUS, DEFAULT_SUITE, DEVICE, Scenario, Suite
from harness.model.settings import SETTINGS
from harness.plan import claims, settings
from harness.plan.selection import Catalog, Selection, remove_broken, resolve
from harness.project import Project
from harness.scenarios.catalog import find_scenario_files, find_scenarios, load_scenario, read_suites
from harness.session import sources, trust
from harness.session.planning.draft import Draft
from harness.session.request import LaunchRequest, Request


def choose_machine(draft: Draft) -> Draft:
    """Add the devices, the limits of launches, and the GPUs. Raises UsageError and CannotRunHereError."""
    request = draft.request
    devices, limits = _choose_limits(request)
    gpu_host = registry.find_gpu_host(request.backend, draft.project.root) if limits.gpus else CPU_ALONE
    if limits.gpus and isinstance(request, Request) and request.on:
        gpu_host = GpuHost(absent="the launches run on other machines", is_here=False)
    limits = replace(limits, gpus=gpu_selection.resolve_names(limits.gpus, gpu_host, typed=bool(request.gpus)))
    gpus = gpu_selection.select_gpus(limits.gpus, gpu_host)
    return replace(draft, devices=devices, limits=limits, gpu_host=gpu_host, gpus=gpus)


def _choose_devices(request: LaunchRequest) -> list[Device]:
    """Return the devices of the cells, the baseline first. Raises UsageError for conflicting options."""
    if DEVICE in request.axes:
        raise UsageError("`device` isn't an axis for -a.", "To compare the GPU with the CPU, pass --device cpu,gpu.")
    gpu_options = {"--gpus": request.gpus, "--gpu-via": request.gpu_via}
    others = [name for name, value in gpu_options.items() if value]
    devices = list(request.device) if isinstance(request, Request) else []
    if not devices:
        return [Device.GPU if request.gpu or others else Device.CPU]
    typed = f"--device {','.join(devices)}"
    if request.gpu:
        raise UsageError(f"--gpu and {typed} can't be combined: both select devices.", "Omit --gpu.")
    if others and Device.GPU not in devices:
        raise UsageError(f"{others[0]} selects a GPU, but {typed} measures without one.", f"Omit {others[0]}.")
    if request.claims and len(devices) > 1:
        raise UsageError(f"--claim and {typed} can't be combined: a claim is about one device.", "Use one device.")
    return devices


def _choose_limits(request: LaunchRequest) -> tuple[list[Device], Limits]:
    """Return the devices of the cells, and the limits of launches. Raises UsageError."""
    devices = _choose_devices(request)
    installed_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    gpu_names = gpu_selection.parse_requested(Device.GPU in devices, request.gpus)
    if isinstance(request, Request) and request.slots.isdecimal() and not (request.on or gpu_names):
        divide_machine(int(request.slots), os.sched_getaffinity(0))  # too many slots are an error in a dry run too
    # with one core, a GPU could wait for the CPU work of each step, so use all cores by default
    cores = request.cpus or ("all" if gpu_names or not cpus.can_pin() else "1")
    return devices, Limits(
        cpus=cpus.choose(cores, os.sched_getaffinity(0)),
        memory_bytes=request.memory or installed_bytes * 4 // 5,
        seconds=request.timeout or TIMEOUT,
        gpus=gpu_names,
        first_start_seconds=FIRST_START_TIMEOUT if gpu_names and not request.timeout else 0.0,
    )


def add_cores(limits: Limits, request: LaunchRequest, scenarios: Iterable[Scenario], pool: Collection[int]) -> Limits:
    """Return the limits with CPUs for the largest number of cores on the axis CPUS, if a scenario has this axis.

    The CPUs are chosen from --cpus, or otherwise from `pool`. Raises UsageError if these are too few.
    """
    counts = [int(count) for scenario in scenarios if CPUS in scenario.settings for count in scenario.axes[CPUS]]
    if not counts:
        return limits
    return replace(limits, cpus=cpus.choose_most(counts, limits.cpus if request.cpus and limits.cpus else pool))


def load_scenarios(draft: Draft) -> Draft:
    """Add the scenarios and suites with the requested axes, the selection, and the claims.

    Raises UsageError for unknown names, and FileError if all selected scenarios have invalid files.
    """
    request = draft.request
    suites, findings = read_suites(draft.project)
    findings.check()
    scenarios, errors, names = _load_files(draft.project, request, suites.get(draft.suite))
    catalog = Catalog(environments=(), scenarios=scenarios, suites=suites)
    selection = Selection(suite=draft.suite, scenarios=names, axes=request.axes)
    selection, catalog, selected_names = remove_broken(selection, catalog, errors)
    refused = {name: errors[name] for name in selected_names if name in errors}
    if refused and len(refused) == len(selected_names):
        raise FileError(problem for error in refused.values() for problem in error.problems)
    # several devices are an axis too
    device_axis = {DEVICE: [device.value for device in draft.devices]} if len(draft.devices) > 1 else {}
    catalog = settings.add_setting_axes(replace(selection, axes={**selection.axes, **device_axis}), catalog)
    return replace(
        draft,
        limits=add_cores(draft.limits, request, catalog.scenarios.values(), os.sched_getaffinity(0)),
        catalog=catalog,
        suites=suites,
        findings=findings,
        selection=selection,
        refused=refused,
        claims=_find_claims(request, selection, catalog),
    )


def _load_files(
    project: Project, request: LaunchRequest, suite: Suite | None
) -> tuple[dict[str, Scenario], dict[str, FileError], list[str]]:
    """Return the scenarios of the project and of the requested files, and the errors of invalid ones, by name.

    Scenarios that the request and its suite don't name are left out, unless an error must list all of them. The last
    value has the requested names and globs, in which files are replaced by the names of their scenarios.
    """
    texts = request.scenarios
    paths = {path.stem: path.resolve() for path in find_scenario_files(project, texts)}
    listing = find_scenarios(project, texts, _list_patterns(request, suite, paths))
    known_axes = {axis for scenario in listing.scenarios.values() for axis in scenario.axes}
    if not {*request.axes} <= {*known_axes, *SETTINGS, CPUS}:
        listing = find_scenarios(project, texts)
    scenarios, errors, names = dict(listing.scenarios), dict(listing.broken), []
    for text in texts:
        if not text.endswith(".py"):
            names.append(text)
            continue
        path = Path(text).resolve()
        existing_path = paths.setdefault(path.stem, path)
        if existing_path != path:
            raise UsageError(f"{text} has the name of the scenario {existing_path}.", "Rename the file.")
        names.append(path.stem)
        if path.stem not in scenarios and path.stem not in errors:
            try:
                scenarios[path.stem] = load_scenario(path)
            except FileError as error:
                errors[path.stem] = error
    return scenarios, errors, names


def _list_patterns(request: LaunchRequest, suite: Suite | None, known: Collection[str]) -> list[str] | None:
    """Return the patterns of the project's scenarios that a request and its suite name; None for all scenarios."""
    if request.claims or not (suite or request.scenarios):
        return None
    texts = [*request.scenarios, *(part.scenario for part in (suite.parts if suite else ()))]
    stems = {text: Path(text).stem for text in texts if text.endswith(".py")}
    return [stems.get(text, text) for text in texts if text not in stems or stems[text] in known]


def _find_claims(request: LaunchRequest, selection: Selection, catalog: Catalog) -> list[claims.ScenarioClaim]:
    """Return the requested claims of the selected scenarios. Raises UsageError."""
    if request.claims and request.suite:
        raise UsageError("--claim and --suite can't be combined: both select cells.", "Use one of them.")
    names = resolve(selection.scenarios or ["*"], list(catalog.scenarios), "scenario") if request.claims else []
    return claims.find_claims(request.claims, [catalog.scenarios[name] for name in names])


def resolve_environments(draft: Draft, say: Callable[[str], object], *, wait: bool, builds: bool) -> Draft:
    """Add the environments. Packages from sources are built, with a message to `say`, unless `builds` is false.

    With `wait`, a build waits for the end of another run. Raises the errors of `WheelMaker.resolve`.
    """
    request = draft.request
    maker = sources.WheelMaker(
        draft.project,
        request.backend,
        request.repository,
        is_trusted=request.trust,
        builds=builds,
        say=say,
        lock=lambda: hold_machine(say if wait else None),
    )
    requested = [parse_requested(text) for text in (*request.environments, request.reference)]
    line_errors: dict[str, HarnessError] = {}
    environments, names = maker.resolve(load_environments(draft.project), requested, line_errors)
    *requested_names, baseline = names
    # scenarios without a suite are measured in the environments of the default suite
    suite = "" if draft.suite else DEFAULT_SUITE
    defaults = draft.suites[suite].environments if suite in draft.suites else ()
    return replace(
        draft,
        environments=environments,
        requested=requested_names,
        baseline=baseline,
        line_errors=line_errors,
        packages=trust.classify_environments(requested, names, environments, draft.project, request.repository),
        unbuilt=maker.unbuilt,
        selection=replace(draft.selection, environments=requested_names or defaults),
        catalog=replace(draft.catalog, environments=list(environments)),
    )
