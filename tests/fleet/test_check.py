"""What slots of one machine do to each other, and what is remembered of it."""

import json
import math
import os
import random
from collections.abc import Iterable, Sequence

import pytest
from typer.testing import CliRunner

from harness import session
from harness.cli import app
from harness.files import get_data_dir
from harness.fleet import check
from harness.fleet.check import Interference, SlotCheck, compute_interference, count_allowed_slots, load_stored
from harness.machine.slots import Slot
from harness.model.defaults import MARGIN
from harness.model.errors import CannotRunHereError, DamagedError
from harness.model.launch import Launch
from tests import factories
from tests.cli.conftest import Harness


def test_the_ratio_is_the_mean_of_pairs() -> None:
    ratio, low, high = compute_interference([1.0, 2.0, 3.0], [1.1, 2.2, 3.3])
    assert ratio == pytest.approx(1.1)
    assert (low, high) == (pytest.approx(1.1), pytest.approx(1.1))
    _, low, high = compute_interference([1.0, 1.0, 1.0], [1.0, 1.1, 0.9])
    assert low < 0.9
    assert high > 1.1
    assert Interference(2, 1.0, 0.99, 1.029).is_safe(0.03)
    assert not Interference(2, 1.0, 0.97, 1.031).is_safe(0.03)


class Ears(session.Listener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


def slowed(monkeypatch: pytest.MonkeyPatch, ratios: dict[int, float], noise: float = 0.0) -> list[list[int]]:
    """Launches that take so many times as long beside others, by how many there are; `noise` is an sd of logs.

    Returns the slots that were used together.
    """
    made: list[list[int]] = []
    draw = random.Random(1)

    def launched(
        pool: object, planned: session.Planned, slots: object, places: Iterable[int]
    ) -> dict[int, Sequence[Launch]]:
        made.append(list(places))
        (cell,) = planned.plan.groups[0].cells
        count = len(made[-1])
        seconds = 0.01 * ratios.get(count, 1.0) * (1 + len(made) % 3 / 1e4) * math.exp(draw.gauss(0.0, noise))
        return {at: [factories.launch(cell, seconds)] for at in made[-1]}

    monkeypatch.setattr(check, "_launch_in_slots", launched)
    monkeypatch.setattr(check, "prepare", lambda planned, listener: draw.gauss(0.0, noise))
    return made


def slots(count: int | None) -> list[Slot]:
    return [Slot((number,)) for number in range(count or 6)]


def test_fewer_slots_are_tried_until_they_are_safe_and_that_is_remembered(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, ears = slowed(monkeypatch, {6: 1.2, 5: 1.05}), Ears()
    found = check.check(planned, slots, None, ears)
    assert [(entry.slots, entry.is_safe(0.03)) for entry in found.tried] == [(6, False), (5, False), (4, True)]
    assert (found.safe, found.work) == (4, "ways old fine fast")
    assert load_stored("cpu") == found
    assert load_stored("gpu") is None
    assert ears.said[-1].endswith(" as long as in one slot alone: safe.")
    assert {len(places) for places in made} == {1, 4, 5, 6}
    assert [0, 1, 2, 3, 4, 5] in made
    # each slot is the one that is alone
    assert {at for (at, *more) in made if not more} == {0, 1, 2, 3, 4, 5}
    assert count_allowed_slots("cpu", None, MARGIN) == 4
    assert count_allowed_slots("cpu", 3, MARGIN) == 3
    with pytest.raises(
        CannotRunHereError, match=r"4 slots are safe on this machine, and 5 were requested: launches in 5 slots"
    ):
        count_allowed_slots("cpu", 5, MARGIN)


@pytest.mark.parametrize(
    ("noise", "ratio", "told"),
    [
        (0.001, 1.0, (6, "safe")),
        (0.025, 0.98, (8, "safe")),
        (0.06, 1.0, (24, "it isn't certain that this is safe")),
        (0.02, 1.2, (6, "not safe")),
    ],
)
def test_what_is_not_known_is_measured_again(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch, noise: float, ratio: float, told: tuple[int, str]
) -> None:
    made, ears = slowed(monkeypatch, {2: ratio}, noise), Ears()
    check.check(planned, slots, 2, ears)
    blocks, verdict = told
    assert len(made) == 2 * blocks
    assert f"alone: {verdict}" in ears.said[-1]


def test_slots_that_were_not_looked_at_are_refused_but_for_one() -> None:
    assert count_allowed_slots("gpu", 1, MARGIN) == 1
    with pytest.raises(
        CannotRunHereError, match=r"has not been measured\.\nTo measure it: harness fleet check --gpu --slots 2"
    ):
        count_allowed_slots("gpu", 2, MARGIN)


def test_slots_are_used_only_with_a_margin_that_their_interference_is_below() -> None:
    tried = [Interference(6, 1.2, 1.19, 1.21), Interference(4, 1.005, 0.998, 1.012)]
    cores = len(os.sched_getaffinity(0))
    check._save_check("cpu", SlotCheck(4, tried, 0.03, "ways old fine", cores, "2026-11-21T04:10:00Z"))
    for margin in (0.1, 0.03, 0.02):
        assert count_allowed_slots("cpu", None, margin) == 4
        assert count_allowed_slots("cpu", 2, margin) == 2
    for wanted, more in ((None, ""), (2, " --slots 2")):
        with pytest.raises(CannotRunHereError) as refused:
            count_allowed_slots("cpu", wanted, 0.01)
        assert str(refused.value) == (
            "4 slots are safe on this machine for a margin of 3 %, but this run has a margin of 1 %: launches in 4 "
            "slots at the same time took 1.005× (0.998 to 1.012) as long as in one slot alone.\n"
            f"Omit --slots or --margin, or measure again: harness fleet check{more} --margin 1%"
        )
    # one slot has no interference
    check._save_check("cpu", SlotCheck(1, tried[:1], 0.03, "ways old fine", cores, "2026-11-21T04:10:00Z"))
    assert count_allowed_slots("cpu", None, 0.01) == 1


def test_what_is_remembered_is_of_the_cpus_that_there_were(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    slowed(monkeypatch, {})
    check.check(planned, slots, 2, Ears())
    assert count_allowed_slots("cpu", 2, MARGIN) == 2
    path = get_data_dir() / "fleet.json"
    document = json.loads(path.read_text())
    document["cpu"]["cpus"] = len(os.sched_getaffinity(0)) + 1
    path.write_text(json.dumps(document))
    with pytest.raises(CannotRunHereError, match="has not been measured"):
        count_allowed_slots("cpu", 2, MARGIN)
    whole = {**document["cpu"], "cpus": len(os.sched_getaffinity(0))}
    changes: tuple[dict[str, object], ...] = ({"safe": 0}, {"tried": [[]]}, {"cpus": []}, {"when": {}})
    other_types = [json.dumps({"cpu": {**whole, **change}}) for change in changes]
    deep = "[" * 100_000 + "]" * 100_000
    for text in ("[]", "{", '{"cpu": {"tried": []}}', '{"cpu": 3}', deep, *other_types):
        path.write_text(text)
        with pytest.raises(DamagedError, match=r"fleet\.json is damaged"):
            count_allowed_slots("cpu", 2, MARGIN)


def test_work_is_launched_and_without_a_number_says_nothing(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    for name, count in {"BLOCKS": 2, "MOST_BLOCKS": 2, "LAUNCHES": 1}.items():
        monkeypatch.setattr(check, name, count)
    # intervals are tested above; a busy machine would make these wide
    monkeypatch.setattr(Interference, "is_safe", lambda self, margin: True)
    arguments = "fleet check --slots 2 --backend local --warmup 1ms --measure 5ms -s ways"
    with pytest.raises(CannotRunHereError, match="The measured cell has no result: ValueError"):
        CliRunner().invoke(app, [*arguments.split(), "-a", "way=raises"], catch_exceptions=False)
    done = CliRunner().invoke(app, [*arguments.split(), "-a", "way=fine"], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert "2 of 2 slots are safe: harness matrix --slots 2" in done.stdout
    found = load_stored("cpu")
    assert found
    assert found.safe == 2
