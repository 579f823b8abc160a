import pytest

from harness.machine.probes import power
from tests.machine.conftest import Tree

SUPPLY = "sys/class/power_supply"


@pytest.mark.parametrize(
    ("files", "level"),
    [
        ({}, "unknown"),
        ({"AC/type": "Mains", "AC/online": "1", "BAT0/type": "Battery", "BAT0/status": "Full"}, "good"),
        ({"AC/type": "Mains", "AC/online": "0", "BAT0/type": "Battery", "BAT0/status": "Discharging"}, "warn"),
        ({"BAT0/type": "Battery", "BAT0/status": "Discharging"}, "warn"),
        ({"BAT0/type": "Battery", "BAT0/status": "Charging"}, "good"),
        ({"BAT0/type": "Battery", "BAT0/status": "Unknown"}, "unknown"),
        ({"mouse/type": "Battery", "mouse/scope": "Device", "mouse/status": "Discharging"}, "good"),
    ],
)
def test_a_machine_on_its_battery_is_a_warning(tree: Tree, files: dict[str, str], level: str) -> None:
    root = tree({f"{SUPPLY}/{name}": f"{text}\n" for name, text in files.items()})
    assert power.findings(root)[0].level == level


def test_a_machine_without_supplies_has_no_battery(tree: Tree) -> None:
    root = tree({"sys/class/uevent": ""})
    (root / SUPPLY).mkdir()
    assert power.findings(root)[0].level == "good"
