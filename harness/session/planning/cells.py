"""The steps of a plan that choose its cells: selection, fallbacks, and the checks whether they can run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache

from harness.backends import registry
from harness.environments.adhoc import add_requested
from harness.environments.locks import Builds, load_lock, load_locks
from harness.environments.requested import parse_requested
from harness.model.backend import Supply
from harness.model.environment import Environment, Requirement
from harness.model.errors import CannotRunHereError, HarnessError, UnavailableError, UsageError
from harness.model.run import Unavailable
from harness.model.scenario import DEFAULT_SUITE, ENVIRONMENT, Cell
from harness.plan import claims
from harness.plan.availability import split
from harness.plan.fallbacks import find_fallbacks, replace_cells, replace_environments
from harness.plan.selection import Catalog, Selection, check_fallbacks, resolve, select
from harness.session import sources
from harness.session.planning.draft import Draft
from harness.session.planning.planned import drop_lone_cells, omits_lone_cells
from harness.session.request import Request


def select_cells(draft: Draft) -> Draft:
    """Add the cells of the selection or of the claims, with their environments.

    Raises UsageError for an unknown name, and NothingSelectedError if no cell remains.
    """
    device = draft.devices[0]
    if not draft.claims:
        selected, names = select(draft.selection, draft.catalog, device)
        return replace(draft, selected=selected, cells=selected, names=names)
    environments, pairs, errors = _add_claimed_environments(draft.environments, draft.claims)
    names = [claims.find_newest(environments), *resolve(draft.requested, list(environments), ENVIRONMENT)]
    suite, unavailable = claims.make_suite(pairs, names, environments, errors, device)
    catalog = Catalog(list(environments), {scenario.name: scenario for scenario, _ in pairs}, {suite.name: suite})
    cells = list[Cell]()
    if suite.parts:
        cells, names = select(Selection(suite=suite.name, axes=draft.request.axes), catalog, device)
    return replace(
        draft,
        environments=environments,
        claims=pairs,
        catalog=catalog,
        selected=cells,
        cells=cells,
        names=names,
        unavailable=unavailable,
    )


def _add_claimed_environments(
    catalog: Mapping[str, Environment], scenario_claims: Sequence[claims.ScenarioClaim]
) -> tuple[dict[str, Environment], list[claims.ScenarioClaim], dict[str, HarnessError]]:
    """Return the catalog with the environments of claims, the claims with the names in the catalog, and errors.

    The errors are about environments that couldn't be created. Claims about other environments are still measured.
    """
    environments, errors = dict(catalog), dict[str, HarnessError]()
    names: dict[str, str] = {}
    sides = [side for _, claim in scenario_claims for side in (claim.worse, claim.better) if side]
    for text in dict.fromkeys(side.environment for side in sides):
        names[text] = text
        try:
            environments, (names[text],) = add_requested(environments, [parse_requested(text)])
        except (UsageError, CannotRunHereError) as error:
            errors[text] = error
    return environments, claims.rename_environments(scenario_claims, names), errors


def use_fallbacks(draft: Draft) -> Draft:
    """Replace environments of a suite that this machine can't run. Raises FileError for invalid fallbacks.

    A requested environment is measured or reported as unavailable. With both devices, each environment is compared with
    itself, so nothing replaces it on one of them.
    """
    suite = None if draft.requested else draft.suites.get(draft.suite or DEFAULT_SUITE)
    if not (suite and suite.instead and len(draft.devices) == 1 and (draft.gpus or not draft.claims)):
        return draft
    environments = draft.environments
    assert draft.findings is not None
    named = resolve(suite.environments, list(environments), ENVIRONMENT)
    check_fallbacks(suite, named, list(environments), draft.findings)
    draft.findings.check()
    fallbacks = find_fallbacks(
        suite.instead,
        draft.cells,
        draft.catalog.scenarios,
        environments,
        cache(lambda name: load_lock(draft.project, environments[name], draft.devices[0])),
        supply=_make_supply_check(draft),
        gpus=draft.gpus,
        host=draft.gpu_host,
    )
    (baseline,) = replace_environments([draft.baseline], fallbacks)
    return replace(
        draft,
        cells=replace_cells(draft.cells, fallbacks),
        names=replace_environments(draft.names, fallbacks),
        baseline=baseline,
        fallbacks=fallbacks,
    )


def _make_supply_check(draft: Draft) -> Callable[[Requirement], Supply]:
    """Return a function that checks whether this machine has the interpreter of an environment.

    With claims or shards, it doesn't check: claims name their environments, and all shards need the same ones.
    """
    request = draft.request
    is_divided = isinstance(request, Request) and (request.on or request.shard or request.slots not in ("", "1"))
    if draft.claims or is_divided:
        return lambda requirement: Supply.HERE
    # the backend is only opened if a fallback depends on it
    choose = cache(lambda: registry.choose_backend(request.backend, draft.project.root))
    return lambda requirement: choose().supply(requirement)


def check_cells(draft: Draft, *, builds: bool) -> Draft:
    """Keep the cells that can run, and add the others with reasons, the locks, and the name of the baseline.

    Without `builds`, no source package is built for a lock. Raises UsageError for an invalid request.
    """
    kinds = (Builds.ALL if draft.request.trust else Builds.KNOWN) if builds else Builds.NONE
    requirements, line_errors = _load_locks(draft, kinds)
    scenarios = draft.catalog.scenarios
    cells, unavailable = split(
        [cell for cell in draft.cells if cell.environment not in line_errors],
        scenarios,
        requirements,
        draft.environments,
        gpus=draft.gpus,
        host=draft.gpu_host,
        anyway=_find_forced_environments(draft),
    )
    if omits_lone_cells(draft.request, draft.devices):
        cells, lone_cells = drop_lone_cells(cells, draft.selected, scenarios)
        unavailable += lone_cells
    # cells of release lines that have no usable wheel
    errors = [(cell, line_errors[cell.environment]) for cell in draft.cells if cell.environment in line_errors]
    without_wheels = [Unavailable(cell, " ".join(error.message.split()), error.advice) for cell, error in errors]
    return replace(
        draft,
        cells=cells,
        used={cell.scenario: scenarios[cell.scenario] for cell in draft.cells},
        requirements=requirements,
        unavailable=[*unavailable, *without_wheels, *draft.unavailable],
        reference=_choose_reference(draft.baseline, draft.names, cells),
    )


def _load_locks(draft: Draft, builds: Builds) -> tuple[dict[str, Requirement], dict[str, HarnessError]]:
    """Return the environments with their locks on each device that they support, by name, and errors of release lines.

    An environment whose wheel isn't built has the locks of its base. Raises the error of a line that is the baseline
    (by default, the first environment), or if all environments are impossible.
    """
    line_errors, requirements = dict(draft.line_errors), dict[str, Requirement]()
    for name in draft.names:
        environment, base = draft.environments[name], draft.unbuilt.get(name)
        if name in line_errors:
            continue
        try:
            loaded = load_locks(draft.project, base or environment, draft.devices, builds=builds)
            requirements |= sources.rename_requirements(loaded, environment) if base else loaded
        except (UsageError, UnavailableError) as error:
            if not environment.line:
                raise
            line_errors[name] = error
    baseline = draft.baseline or draft.names[0]
    if baseline in line_errors:
        raise line_errors[baseline]
    if line_errors and line_errors.keys() >= set(draft.names):
        raise line_errors[draft.names[0]]
    return requirements, line_errors


def _find_forced_environments(draft: Draft) -> list[str]:
    """Return the requested environments that are launched even if the GPU can't run them. Raises UsageError."""
    if not isinstance(draft.request, Request) or not draft.request.try_anyway:
        return []
    has_gpus = bool(draft.limits.gpus)
    if not has_gpus or not draft.requested:
        raise UsageError(
            f"--try-anyway needs -e and a GPU, but {'-e is missing' if has_gpus else 'this run uses no GPU'}.",
            "Add -e with the environments." if has_gpus else "Add --gpu, or omit --try-anyway.",
        )
    return resolve(draft.requested, list(draft.environments), ENVIRONMENT)


def _choose_reference(requested: str, environments: Sequence[str], cells: Sequence[Cell]) -> str:
    """Return the requested baseline, otherwise the first environment in which some cell can run."""
    if requested and requested not in environments:
        raise UsageError(
            f"Unknown --reference {requested}: the environments of the run are {', '.join(environments)}.",
            "Use one of these.",
        )
    usable_names = {cell.environment for cell in cells}
    return requested or next((name for name in environments if name in usable_names), environments[0])
