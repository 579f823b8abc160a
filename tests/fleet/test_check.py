"""What slots of one machine do to each other, and what is remembered of it."""

import json
import math
import os
import random
from collections.abc import Sequence

import pytest

from harness import session
from harness.files import data_dir
from harness.fleet import check
from harness.fleet.check import Interference, allowed, interference, remembered
from harness.fleet.unit import Unit
from harness.machine.slots import Slot
from harness.model.errors import CannotRunHereError, DamagedError
from harness.model.launch import Launch, Status
from tests import factories


def test_the_ratio_is_the_mean_of_pairs() -> None:
    ratio, low, high = interference([1.0, 2.0, 3.0], [1.1, 2.2, 3.3])
    assert ratio == pytest.approx(1.1)
    assert (low, high) == (pytest.approx(1.1), pytest.approx(1.1))
    _, low, high = interference([1.0, 1.0, 1.0], [1.0, 1.1, 0.9])
    assert low < 0.9
    assert high > 1.1
    assert Interference(2, 1.0, 0.99, 1.029).is_safe(0.03)
    assert not Interference(2, 1.0, 0.97, 1.031).is_safe(0.03)


def slowed(monkeypatch: pytest.MonkeyPatch, ratios: dict[int, float], noise: float = 0.0) -> list[list[Unit]]:
    """Launches that take so many times as long beside others, by how many there are; `noise` is an sd of logs."""
    made: list[list[Unit]] = []
    draw = random.Random(1)

    def launched(units: Sequence[Unit], say: object) -> list[list[Launch]]:
        made.append(list(units))
        cell = units[0].planned.plan.groups[0].cells[0]
        seconds = 0.01 * ratios.get(len(units), 1.0) * (1 + len(made) % 3 / 1e4) * math.exp(draw.gauss(0.0, noise))
        return [[factories.launch(cell, seconds)] for _ in units]

    monkeypatch.setattr(check, "_launched", launched)
    return made


def slots(count: int | None) -> list[Slot]:
    return [Slot((number,)) for number in range(count or 6)]


def test_fewer_slots_are_tried_until_they_are_safe_and_that_is_remembered(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, said = slowed(monkeypatch, {6: 1.2, 5: 1.05}), list[str]()
    found = check.check(planned, slots, None, said.append)
    assert [(each.slots, each.is_safe(0.03)) for each in found.tried] == [(6, False), (5, False), (4, True)]
    assert (found.safe, found.work) == (4, "ways old fine fast")
    assert remembered("cpu") == found
    assert remembered("gpu") is None
    assert said[-1].endswith("times as long as one alone: safe.")
    assert {len(units) for units in made} == {1, 4, 5, 6}
    busy = next(units for units in made if len(units) == 6)
    assert [unit.slot for unit in busy] == [0, 1, 2, 3, 4, 5]
    assert allowed("cpu", None) == 4
    assert allowed("cpu", 3) == 3
    with pytest.raises(CannotRunHereError, match=r"4 slots are safe on this machine, and 5 were asked for: 5 at once"):
        allowed("cpu", 5)


@pytest.mark.parametrize(
    ("noise", "ratio", "told"),
    [
        (0.001, 1.0, (6, "safe")),
        (0.025, 0.98, (8, "safe")),
        (0.06, 1.0, (24, "not shown to be safe")),
        (0.02, 1.2, (6, "not safe")),
    ],
)
def test_what_is_not_known_is_measured_again(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch, noise: float, ratio: float, told: tuple[int, str]
) -> None:
    made, said = slowed(monkeypatch, {2: ratio}, noise), list[str]()
    check.check(planned, slots, 2, said.append)
    blocks, verdict = told
    assert len(made) - 1 == 2 * blocks
    assert f"alone: {verdict}" in said[-1]


def test_slots_that_were_not_looked_at_are_refused_but_for_one() -> None:
    assert allowed("gpu", 1) == 1
    with pytest.raises(
        CannotRunHereError, match=r"not measured here\.\nMeasure it: harness fleet check --gpu --slots 2"
    ):
        allowed("gpu", 2)


def test_what_is_remembered_is_of_the_cpus_that_there_were(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, {})
    check.check(planned, slots, 2, lambda _: None)
    assert allowed("cpu", 2) == 2
    path = data_dir() / "fleet.json"
    document = json.loads(path.read_text())
    document["cpu"]["cpus"] = len(os.sched_getaffinity(0)) + 1
    path.write_text(json.dumps(document))
    with pytest.raises(CannotRunHereError, match="not measured here"):
        allowed("cpu", 2)
    for text in ("[]", "{", '{"cpu": {"tried": []}}'):
        path.write_text(text)
        with pytest.raises(DamagedError, match=r"fleet\.json is damaged"):
            allowed("cpu", 2)


def test_work_without_a_number_says_nothing(planned: session.Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    def launched(units: Sequence[Unit], say: object) -> list[list[Launch]]:
        return [[factories.broken(unit.planned.plan.cells[0], Status.FAILED, 1, error="No module.")] for unit in units]

    monkeypatch.setattr(check, "_launched", launched)
    with pytest.raises(CannotRunHereError, match=r"The work has no number: No module\."):
        check.check(planned, slots, 2, lambda _: None)
