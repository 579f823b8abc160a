"""Cells: the things that get a number."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from harness.model.environment import Device


@dataclass(frozen=True)
class Cell:
    """Scenario × one value per axis × environment × device."""

    scenario: str
    environment: str
    device: Device
    axes: Mapping[str, str]

    @cached_property
    def key(self) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
        """What identifies the cell; hashable, and the same however the axes are ordered."""
        return (self.scenario, self.environment, self.device.value, tuple(sorted(self.axes.items())))

    @cached_property
    def _hash(self) -> int:
        return hash(self.key)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Cell) and self.key == other.key)

    def __str__(self) -> str:
        return " ".join([self.scenario, self.environment, *self.axes.values()])
