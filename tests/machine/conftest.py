"""Systems made of files, and machines made of cores."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import pytest

from harness.machine.topology import Cpu, Topology

Tree = Callable[[Mapping[str, str]], Path]


def cores(*siblings: Collection[int], known: bool = True, virtual: bool | None = False) -> Topology:
    """A machine with these cores, each given by its CPUs."""
    return Topology({number: Cpu(number, frozenset(core)) for core in siblings for number in core}, known, virtual)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """Writes files under a root of its own, over those that are there."""

    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write
