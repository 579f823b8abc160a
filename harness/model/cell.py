"""Cells: the things that get a number."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.model.environment import Device


@dataclass(frozen=True)
class Cell:
    """Scenario × one value per axis × environment × device."""

    scenario: str
    environment: str
    device: Device
    axes: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str, tuple[tuple[str, str], ...]]:
        """What identifies the cell; hashable, and the same however the axes are ordered."""
        return (self.scenario, self.environment, self.device.value, tuple(sorted(self.axes.items())))

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Cell) and self.key == other.key

    def __str__(self) -> str:
        return " ".join([self.scenario, self.environment, *self.axes.values()])
