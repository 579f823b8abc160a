from pathlib import Path

import pytest

from harness.machine.lock import exclusive
from harness.model.errors import CannotRunHereError


def test_a_lock_is_held_by_one_and_names_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with (
        exclusive(path, "Busy."),
        pytest.raises(CannotRunHereError, match=r"Busy\. It is held by process \d+\."),
        exclusive(path, "Busy.", "Wait."),
    ):
        pass
    with exclusive(path, "Busy."):
        pass


def test_a_lock_that_cannot_be_made_gets_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotRunHereError, match="cannot be opened"), exclusive(tmp_path / "no" / "lock", "Busy."):
        pass
