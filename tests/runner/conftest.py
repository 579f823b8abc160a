"""A run's folder for each test."""

from pathlib import Path

import pytest

from harness.store.folder import RunFolder
from tests.runs import run


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    made = RunFolder.create(tmp_path, "run")
    made.write_run(run())
    return made
