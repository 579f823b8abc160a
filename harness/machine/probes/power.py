"""Whether the machine runs on its battery."""

from pathlib import Path

from harness.machine import sysfs
from harness.machine.probes.finding import Finding, Level


def findings(root: Path) -> list[Finding]:
    """`mains`, `battery`, or None where the kernel does not tell. A machine that shows no supply has no battery."""
    source = _source(root / "sys/class/power_supply")
    level = {None: Level.UNKNOWN, "battery": Level.WARN}.get(source, Level.GOOD)
    return [Finding("power", level, {"source": source})]


def _source(folder: Path) -> str | None:
    if not folder.is_dir():
        return None
    # a mouse's battery is a supply too, and has this scope
    supplies = [path for path in folder.iterdir() if sysfs.text(path / "scope") != "Device"]
    batteries = [path for path in supplies if sysfs.text(path / "type") == "Battery"]
    states = {sysfs.text(path / "status") for path in batteries}
    online = {sysfs.integer(path / "online") for path in supplies if path not in batteries}
    if "Discharging" in states:
        return "battery"
    if 1 in online or not batteries:
        return "mains"
    return "mains" if states & {"Charging", "Full", "Not charging"} else None
