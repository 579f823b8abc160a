"""The step of a plan that adds rounds, lengths and precision."""

import math
import os
from collections.abc import Sequence
from dataclasses import replace

from harness.model.defaults import MOST_CLAIM_ROUNDS, MOST_ROUNDS, ROUNDS
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.launch import Clock, Interleave, Limits, Protocol, Sampling
from harness.model.run import Group, Plan
from harness.model.scenario import GROWTH, PEAK, STEP, TRACES, Suite
from harness.plan import claims
from harness.plan.groups import is_of_launches
from harness.session.options import SuiteLength, format_seconds, read_suite_seconds
from harness.session.request import Request

#: Quantities that need no pilot if lengths are given, because pilots would be half of the launches of a small run.
#: Other quantities, such as the import time, need a pilot, because the pilot reads the files from disk into memory.
UNPILOTED = (STEP, PEAK, GROWTH, TRACES)

#: If the claims of a group need no narrower interval than this, on the log scale, the group has no A/A control.
CONTROL_BELOW = math.log1p(0.10)


def add_lengths(
    plan: Plan, request: Request, suite: Suite | None, scenario_claims: Sequence[claims.ScenarioClaim]
) -> Plan:
    """Return the plan with its rounds, lengths and precision, from the request, or otherwise from the suite.

    Groups lose pilots and controls that are then useless. Pilots determine lengths that are still open. If the request
    limits rounds, precision or budget, the limits of the suite don't apply. Raises UsageError.
    """
    limiting_suite = suite if not (request.rounds or request.precision or request.budget) else None
    budget = _get_length(request, "budget", limiting_suite)
    default_rounds = MOST_CLAIM_ROUNDS if scenario_claims else MOST_ROUNDS if request.precision or budget else ROUNDS
    _check_clocks(request, plan.limits)
    interleave = _choose_interleaving(request, plan.limits)
    new_plan = replace(
        plan,
        rounds=request.rounds or (limiting_suite.rounds if limiting_suite else None) or default_rounds,
        sampling=_choose_sampling(request, suite).sampled(in_turns=interleave is Interleave.TURNS),
        precision=request.precision,
        budget_seconds=budget,
        budget_is_wish=budget is not None and (request.budget is None or request.budget_is_wish),
        margin=request.margin,
        clock=request.clock,
        interleave=interleave,
        lock_clocks=request.lock_clocks,
        claims=list(dict.fromkeys(str(claim.issue) for _, claim in scenario_claims)),
    )
    groups = [_fit_to_claims(planned_group, scenario_claims, new_plan) for planned_group in new_plan.groups]
    return replace(new_plan, groups=[_drop_useless_pilot(planned_group, new_plan) for planned_group in groups])


def _get_length(request: Request, key: SuiteLength, suite: Suite | None) -> float | None:
    """Return a length in seconds, from the request, or otherwise from the suite."""
    value: float | None = getattr(request, key)
    return read_suite_seconds(suite, key) if value is None and suite else value


def _check_clocks(request: Request, limits: Limits) -> None:
    if request.clock is Clock.CPU and limits.gpus:
        raise UsageError(
            "--clock cpu measures CPU time only, without the work of a GPU.",
            "Omit --clock cpu, or measure on the CPU alone.",
        )
    if request.lock_clocks and not limits.gpus:
        raise UsageError("--lock-clocks needs a GPU.", "Add --gpu, or omit --lock-clocks.")


def _choose_sampling(request: Request, suite: Suite | None) -> Sampling:
    """Return the warm-up and the measurement of a launch. Raises UsageError if --timeout is too short for them."""
    warmup, measure = (_get_length(request, key, suite) for key in ("warmup", "measure"))
    length = (warmup or 0.0) + (measure or 0.0)
    if request.timeout and request.timeout <= length:
        raise UsageError(
            f"--timeout {format_seconds(request.timeout)} isn't longer than the warm-up and measurement of a launch "
            f"({format_seconds(length)}).",
            "Pass a longer --timeout, or a shorter --warmup or --measure.",
        )
    return Sampling(protocol=request.sampling, warmup_seconds=warmup, measure_seconds=measure)


def _choose_interleaving(request: Request, limits: Limits) -> Interleave:
    """Return whether the cells of a round are interleaved: as requested, or if it is possible. Raises UsageError."""
    count = len(limits.cpus) if limits.cpus is not None else len(os.sched_getaffinity(0))
    if limits.gpus:
        reason, omit = "this run is on a GPU", "--device" if request.device else "--gpu"
    elif request.sampling is not Protocol.TIME:
        reason, omit = "the source document's iterations are measured without a break", f"--sampling {request.sampling}"
    elif count > 1:
        reason, omit = f"launches have up to {count} cores", f"--cpus {request.cpus}" if request.cpus else "-a cpus"
    else:
        return request.interleave or Interleave.TURNS
    if request.interleave is Interleave.TURNS:
        raise UsageError(
            f"--interleave turns: interleaving needs launches on one CPU core, but {reason}.",
            f"Omit {omit}, or use --interleave launches.",
        )
    return Interleave.LAUNCHES


def _drop_useless_pilot(planned_group: Group, plan: Plan) -> Group:
    """Return the group, without a pilot if the pilot would be useless.

    A pilot is useless before a single round with given lengths. But if a phase of several cells is compared, the pilot
    is useful, because it reads the files from disk first.
    """
    needs_files = len(planned_group.cells) > 1 and not set(planned_group.of) <= set(UNPILOTED)
    is_brief = plan.rounds == 1 and not plan.sampling.is_open and not needs_files
    return replace(planned_group, piloted=planned_group.piloted and not is_brief)


def _fit_to_claims(planned_group: Group, scenario_claims: Sequence[claims.ScenarioClaim], plan: Plan) -> Group:
    """Return the group without a control and a pilot if its claims don't need them.

    The control isn't needed if no claim needs a narrow interval and no claim is about memory growth. The pilot isn't
    needed if lengths are given and no claim is about a phase. A group without claims stays the same.
    """
    cells = set(planned_group.cells)
    environments = {cell.environment for cell in cells}
    own_claims = [
        claim
        for scenario, claim in scenario_claims
        if not cells.isdisjoint(claims.list_cells((scenario, claim), environments, Device(planned_group.device)))
    ]
    if not own_claims:
        return planned_group
    are_large_claims = all(claim.needed(plan.margin) >= CONTROL_BELOW and claim.of != GROWTH for claim in own_claims)
    piloted = plan.sampling.is_open or any(claim.of not in UNPILOTED for claim in own_claims)
    quantities = dict.fromkeys([*planned_group.of, *(claim.of for claim in own_claims if is_of_launches(claim.of))])
    return replace(
        planned_group, control=None if are_large_claims else planned_group.control, piloted=piloted, of=list(quantities)
    )
