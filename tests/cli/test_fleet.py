"""`harness fleet`."""

from collections.abc import Callable

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.fleet import check
from harness.fleet.check import Interference, SlotCheck
from harness.machine.identity import load_machine
from harness.machine.slots import Slot
from harness.session import slot_plans
from tests.cli.conftest import Harness


def test_a_machine_is_named() -> None:
    done = CliRunner().invoke(app, ["fleet", "name", "office 2"])
    assert done.output == f"{load_machine().id} is named office 2.\n"
    assert load_machine().name == "office 2"
    assert CliRunner().invoke(app, ["fleet", "name", ""]).output == f"{load_machine().id} is now unnamed.\n"


@pytest.mark.parametrize(
    ("ratio", "code", "told"),
    [
        (1.001, 0, "CPU 0\nCPU 1\n2 of 2 slots are safe: harness matrix --slots 2\n"),
        (1.2, 4, "With 2 slots, the slowdown exceeds the margin of 3 %. 1 slot is safe.\n"),
    ],
)
def test_a_check_says_how_many_slots_are_safe(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, ratio: float, code: int, told: str
) -> None:
    def checked(planned: object, slots: Callable[[int | None], object], count: int | None, say: object) -> SlotCheck:
        assert count == 2
        found = Interference(2, ratio, ratio - 0.001, ratio + 0.001)
        return SlotCheck(2 if found.is_safe(0.03) else 1, [found], 0.03, "ways old fine", 2, "2026-11-22")

    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.setattr(check, "check", checked)
    monkeypatch.setattr(slot_plans, "divide_into_slots", lambda planned, count: [Slot((at,)) for at in range(count)])
    done = CliRunner().invoke(app, ["fleet", "check", "-s", "ways", "-a", "way=fine", "--slots", "2"])
    assert done.exit_code == code
    assert done.output.endswith(told)
