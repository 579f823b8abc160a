"""`harness fleet`."""

from typer.testing import CliRunner

from harness.cli import app
from harness.fleet import check
from harness.fleet.check import Interference, SlotCheck
from harness.machine.identity import load_machine
from harness.machine.slots import Slot
from harness.session import slot_plans


def test_a_machine_is_named():
    for name in ("office 2", ""):
        result = CliRunner().invoke(app, ["fleet", "name", name])
        assert (result.exit_code, load_machine().name) == (0, name)
        assert load_machine().id in result.output


def test_a_check_says_how_many_slots_are_safe(harness, monkeypatch, snapshot):
    monkeypatch.setattr(slot_plans, "divide_into_slots", lambda planned, count: [Slot((at,)) for at in range(count)])
    outputs = {}
    for ratio, code in ((1.001, 0), (1.2, 4)):

        def measure(_plan: object, count: int, _say: object, ratio: float = ratio) -> SlotCheck:
            assert count == 2
            interference = Interference(2, ratio, ratio - 0.001, ratio + 0.001)
            return SlotCheck(
                2 if interference.is_safe(0.03) else 1, [interference], 0.03, "ways old fine", 2, "2026-11-22"
            )

        monkeypatch.setattr(check, "check", measure)
        process = harness.call("fleet", "check", "-s", "ways", "-a", "way=fine", "--slots", "2")
        assert process.returncode == code
        outputs[ratio] = process.stdout
    assert outputs == snapshot
