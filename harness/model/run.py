"""Runs: one invocation of the matrix, what was asked and on what machine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.model.cell import Cell
from harness.model.environment import Environment
from harness.model.job import Limits, Sampling
from harness.model.scenario import Scenario

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Group:
    """The cells that will be compared with one another.

    `name` is unique in a plan; `axes` are the values that all of its cells share.
    """

    name: str
    scenario: str
    device: str
    axes: Mapping[str, str]
    cells: Sequence[Cell]


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A cell that cannot be measured, known before any launch, with the reason and what to do."""

    cell: Cell
    reason: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do: groups of cells in order, rounds, and the seed that orders each round."""

    groups: Sequence[Group]
    rounds: int
    seed: int
    sampling: Sampling
    limits: Limits
    unavailable: Sequence[Unavailable] = ()

    @property
    def cells(self) -> list[Cell]:
        """Every cell that will be launched, group by group."""
        return [cell for group in self.groups for cell in group.cells]


@dataclass(frozen=True, slots=True)
class Run:
    """run.json: everything a report needs beside the launches.

    `started` is ISO 8601, UTC; `command` is what was typed; `reference` is the environment that the others are set
    against; `folder` is the run's folder as seen from where the command was typed; `backend` and `host` are facts for
    a reader; `images` maps environment to what runs there (an image's id or a lock's hash); `sources` maps scenario to
    the hash of its files, so that a changed one is refused on resuming.
    """

    id: str
    started: str
    command: Sequence[str]
    harness: str
    plan: Plan
    reference: str
    environments: Sequence[Environment]
    scenarios: Sequence[Scenario]
    backend: Mapping[str, Any]
    host: Mapping[str, Any]
    folder: str = ""
    commit: str = ""
    suite: str = ""
    images: Mapping[str, str] = field(default_factory=dict)
    pins: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    schema: int = SCHEMA
