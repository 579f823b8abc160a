"""Artifacts that launches left and that weren't saved, with the reasons."""

from collections.abc import Iterator

from harness.analysis.results import Results
from harness.model.launch import Launch
from harness.model.texts import counted
from harness.report.blocks import Column, Section, Text, Where, tabulate

#: The largest number of launches in the list.
LAUNCHES = 50


def make_sections(results: Results) -> Iterator[Section]:
    """Yield the section on launches with unsaved artifacts; nothing if all artifacts were saved."""
    unsaved = [launch for launch in results.launches if launch.not_kept]
    if not unsaved:
        return
    text = f"{counted(len(unsaved), 'launch')} left unsaved artifacts. For their names, see details.md and report.html."
    columns: list[Column[Launch]] = [
        Column("cell", lambda launch: str(launch.cell), is_label=True),
        Column("round", lambda launch: str(launch.round or "pilot")),
        Column("not saved", lambda launch: "; ".join(launch.not_kept)),
    ]
    yield Section(
        "Unsaved artifacts",
        "not-kept",
        [
            Text(text, True, where=Where.PASTE | Where.TERMINAL),
            tabulate("Unsaved artifacts", columns, unsaved[:LAUNCHES], noun="launch"),
        ],
    )
