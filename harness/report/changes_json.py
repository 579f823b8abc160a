"""Two runs side by side, as JSON values: `harness compare --json`, described in docs/compare.md."""

from collections.abc import Sequence
from typing import Any

from harness.analysis.conditions import Difference, differences, machines
from harness.analysis.lookup import Lookup
from harness.analysis.runs import Change, Judgement, Lone, Shift
from harness.analysis.statistics import Estimate
from harness.model.cell import Cell
from harness.model.run import Run
from harness.report.changes import View

SCHEMA = 1


def document(view: View, found: tuple[Lookup, Lookup]) -> dict[str, Any]:
    """What `view` says, with every number whole: times in seconds per step, ratios as time(first) / time(second)."""
    first, second, changes = view.first, view.second, view.changes
    return {
        "schema": SCHEMA,
        "first": _run(first, found[0]),
        "second": _run(second, found[1]),
        "margin": view.margin,
        "other_machine": [_difference(each) for each in machines(first, second)],
        "shift": changes.shift and _shift(changes.shift),
        "cells": [_change(each) for each in changes.cells],
        "only_first": _lone(changes.only_first),
        "only_second": _lone(changes.only_second),
        "differences": [
            _difference(each) for each in differences(first, second, (each.cell for each in changes.cells))
        ],
    }


def _run(run: Run, found: Lookup) -> dict[str, Any]:
    control = found.control and _estimate(found.control.estimate)
    return {"id": run.id, "started": run.started, "folder": run.folder, "control": control}


def _shift(shift: Shift) -> dict[str, Any]:
    return {**_judgement(shift.change), "cells": shift.cells, "same_software": shift.unchanged}


def _change(each: Change) -> dict[str, Any]:
    return {
        **_cell(each.cell),
        "first": _estimate(each.first),
        "second": _estimate(each.second),
        **_judgement(each.change),
        "less_the_shift": each.beside and _judgement(each.beside),
        "work": {"is": each.work.work.value, "reason": each.work.reason},
        "same_software": each.same_software,
    }


def _judgement(judgement: Judgement) -> dict[str, Any]:
    return {
        "ratio": _estimate(judgement.ratio),
        "level": judgement.level,
        "verdict": judgement.verdict and judgement.verdict.value,
        "withheld": judgement.withheld and judgement.withheld.value,
    }


def _estimate(estimate: Estimate) -> dict[str, Any]:
    ends = estimate.interval
    return {"value": estimate.value, "interval": ends and [ends.low, ends.high], "rounds": estimate.rounds}


def _lone(cells: Sequence[Lone]) -> list[dict[str, Any]]:
    return [{**_cell(each.cell), "status": each.status and each.status.value} for each in cells]


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "scenario": cell.scenario,
        "environment": cell.environment,
        "device": cell.device.value,
        "axes": dict(cell.axes),
    }


def _difference(each: Difference) -> dict[str, Any]:
    return {
        "part": each.part.value,
        "subject": each.subject,
        "name": each.name,
        "first": each.first,
        "second": each.second,
    }
