"""A plan that two machines measured, each with its part."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from harness.model.run import Machine, Shard
from tests import factories
from tests.cli.conftest import stored


def store_shards(folder: Path, machines: Sequence[str] = ("", "")) -> tuple[list[Path], list[str]]:
    """Store a run for each machine in the folder. Return the folders of the runs, and the names of all groups."""
    calls = ("fit", "train_on_batch")
    planned = [factories.cells(calls=(call,), modes=("graph",)) for call in calls]
    runs = [
        factories.run(
            cells, controlled=True, id=f"2026-11-01T04-10-00Z-aaa{index}", machine=Machine("m-1", machines[index])
        )
        for index, cells in enumerate(planned)
    ]
    names = [run.plan.groups[0].name for run in runs]
    folders = []
    for index, run in enumerate(runs):
        (group,) = run.plan.groups
        shard = Shard(index + 1, 2, "abc", {names[1 - index]: 2 - index})
        seconds = {cell: 0.02 if cell.environment == "tf2.0" else 0.01 for cell in group.cells}
        controls = {group.control: 0.01} if group.control else {}
        launches = factories.rounds(seconds, spread=0.004, seed=1 + index, controls=controls, group=group.name)
        part = replace(factories.complete(run), plan=replace(run.plan, shard=shard))
        folders.append(stored(folder, part, launches))
    return folders, names
