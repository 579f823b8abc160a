"""`harness matrix --dry-run`: what would be launched, in words or as JSON."""

from harness.cli import problems
from harness.cli.request import Request, prepare
from harness.machine.gpu import chosen as gpus
from harness.model.errors import Exit


def show_plan(request: Request, *, json: bool) -> Exit:
    """Print what would be launched. Returns the exit code."""
    prepared = prepare(request)
    plan = prepared.plan
    if json:
        import json as codec

        cells = [{"group": group.name, "cell": str(cell)} for group in plan.groups for cell in group.cells]
        missing = [
            {"cell": str(entry.cell), "reason": entry.reason, "advice": entry.advice} for entry in plan.unavailable
        ]
        asked = {
            "seed": plan.seed,
            "reference": prepared.reference,
            "rounds": plan.rounds,
            "precision": plan.precision,
            "budget_seconds": plan.budget_seconds,
            "margin": plan.margin,
            "gpus": list(plan.limits.gpus),
            "refused": list(prepared.refused),
        }
        print(codec.dumps({**asked, "cells": cells, "not available": missing}, indent=2))
        return problems.exit_code(prepared.refused, Exit.OK)
    for line in gpus.lines(prepared.cards, prepared.gpu_host) if plan.limits.gpus else ():
        print(line)
    for group in plan.groups:
        print(group.name)
        for cell in group.cells:
            print(f"  {cell}")
    for entry in plan.unavailable:
        print(f"not available: {entry.cell}: {entry.reason.rstrip('.')}. {entry.advice}".rstrip())
    at_most = "at most " if plan.precision or plan.budget_seconds else ""
    # a pilot that sets no length makes only the launches that it must
    fewer = "" if plan.sampling.is_open else "at most "
    controls = sum(group.control is not None for group in plan.groups)
    print(
        f"{_counted(len(plan.cells), 'cell')} in {_counted(len(plan.groups), 'group')}, and "
        f"{_counted(controls, 'control')} (a cell's second launch in a round); a pilot and {at_most}"
        f"{_counted(plan.rounds, 'round')}: {at_most or fewer}{plan.all_launches} launches; "
        f"{_counted(len(plan.unavailable), 'cell')} not available."
    )
    return problems.exit_code(prepared.refused, Exit.OK)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
