"""Systems made of files, and machines made of cores."""

from collections.abc import Callable, Collection
from pathlib import Path

import pytest

from harness.machine.topology import Cpu, Topology

Tree = Callable[..., Path]


def cores(*siblings: Collection[int], known: bool = True, virtual: bool | None = False) -> Topology:
    """A machine with these cores, each given by its CPUs."""
    return Topology({number: Cpu(number, frozenset(core)) for core in siblings for number in core}, known, virtual)


@pytest.fixture
def tree(tmp_path):
    """Writes files under a root of its own, over those that are there; a folder below it is another system's root."""

    def write(files, system=""):
        root = tmp_path / str(system)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return root

    return write
