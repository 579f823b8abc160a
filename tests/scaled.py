"""A scenario whose launches have several numbers of cores, and runs of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness.model.launch import Launch, Limits
from harness.model.run import Run
from harness.model.scenario import CPUS
from harness.model.settings import with_settings
from tests.factories import cell, rounds, run, scenario


def scaled_run(
    seconds: Mapping[str, float], outputs: Mapping[str, float] | None = None, **changes: Any
) -> tuple[Run, list[Launch]]:
    """Return a run with these seconds per step by number of cores, and its launches with these fingerprints."""
    scaled = with_settings(scenario(), {CPUS: list(seconds)})
    cells = {count: cell(cpus=count) for count in scaled.axes[CPUS]}
    launches = rounds({cells[count]: seconds[count] for count in cells})
    if outputs:
        launches = [replace(one, fingerprint={"outputs": outputs[one.cell.axes[CPUS]]}) for one in launches]
    request = {"limits": Limits(cpus=tuple(range(max(map(int, seconds))))), **changes.pop("asked", {})}
    return run(cells.values(), scenarios=[scaled], asked=request, **changes), launches
