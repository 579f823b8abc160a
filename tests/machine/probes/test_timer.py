import pytest

from harness.machine.probes.timer import Timer, findings, look
from tests.machine.conftest import Tree
from tests.machine.probes.clocks import Clock

SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


def test_the_timer_is_read_and_timed(tree: Tree) -> None:
    found = look(tree({SOURCE: "tsc\n"}), Clock(1e-7), calls=1000)
    assert found.source == "tsc"
    assert found.cost == pytest.approx(1e-7, rel=0.01)
    assert found.resolution == pytest.approx(1e-7)


@pytest.mark.parametrize(
    ("timer", "level"),
    [
        (Timer("tsc", 5e-8, 3e-8), "good"),
        (Timer("hpet", 5e-7, 1e-7), "warn"),
        (Timer("something", 2e-6, 1e-6), "warn"),
        (Timer("jiffies", 5e-8, 4e-3), "bad"),
        (Timer(None, 5e-8, 3e-8), "unknown"),
    ],
)
def test_a_slow_or_coarse_timer_is_not_good(timer: Timer, level: str) -> None:
    assert findings(timer)[0].level == level
