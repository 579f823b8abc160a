import pytest

from harness.machine.probes.interruptions import Gaps, findings, listen
from tests.machine.probes.clocks import pausing


def test_pauses_between_readings_are_kept_where_they_are_long() -> None:
    gaps = listen(0.1, pausing({10: 0.005, 20: 0.00005, 30: 0.001}, step=1e-5))
    assert gaps.pauses == pytest.approx((0.00501, 0.00101))
    assert gaps.seconds == pytest.approx(0.1, rel=0.01)


@pytest.mark.parametrize(("lost", "level"), [(0.0, "good"), (0.001, "good"), (0.005, "warn"), (0.02, "bad")])
def test_the_share_that_is_lost_decides(lost: float, level: str) -> None:
    (found,) = findings(Gaps(2.0, (lost,) if lost else ()))
    assert found.level == level
    assert found.facts["lost_percent"] == pytest.approx(50 * lost)
    assert found.facts["longest_seconds"] == lost
    assert found.facts["per_second"] == (0.5 if lost else 0)
