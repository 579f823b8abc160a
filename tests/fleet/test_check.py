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
from tests.errors import read_refusal
from tests.fleet.conftest import Sentences


def test_the_ratio_is_the_mean_of_pairs():
    ratio, low, high = compute_interference([1.0, 2.0, 3.0], [1.1, 2.2, 3.3])
    assert ratio == pytest.approx(1.1)
    assert (low, high) == (pytest.approx(1.1), pytest.approx(1.1))
    _, low, high = compute_interference([1.0, 1.0, 1.0], [1.0, 1.1, 0.9])
    assert low < 0.9
    assert high > 1.1
    assert Interference(2, 1.0, 0.99, 1.029).is_safe(0.03)
    assert not Interference(2, 1.0, 0.97, 1.031).is_safe(0.03)


def slow_down(monkeypatch: pytest.MonkeyPatch, ratios: dict[int, float], noise: float = 0.0) -> list[list[int]]:
    """Launches that take so many times as long beside others, by how many there are; `noise` is an sd of logs.

    Returns the slots that were used together.
    """
    together: list[list[int]] = []
    draw = random.Random(1)

    def launch(
        pool: object, planned: session.Planned, slots: object, places: Iterable[int]
    ) -> dict[int, Sequence[Launch]]:
        together.append(list(places))
        (cell,) = planned.plan.groups[0].cells
        ratio = ratios.get(len(together[-1]), 1.0)
        seconds = 0.01 * ratio * (1 + len(together) % 3 / 1e4) * math.exp(draw.gauss(0.0, noise))
        return {place: [factories.launch(cell, seconds)] for place in together[-1]}

    monkeypatch.setattr(check, "_launch_in_slots", launch)
    monkeypatch.setattr(check, "prepare", lambda planned, listener: draw.gauss(0.0, noise))
    monkeypatch.setattr(
        check, "divide_into_slots", lambda planned, count: [Slot((number,)) for number in range(count or 6)]
    )
    return together


def test_fewer_slots_are_tried_until_they_are_safe_and_that_is_remembered(planned, monkeypatch, snapshot):
    together, listener = slow_down(monkeypatch, {6: 1.2, 5: 1.05}), Sentences()
    result = check.check(planned, None, listener)
    assert [(entry.slots, entry.is_safe(0.03)) for entry in result.tried] == [(6, False), (5, False), (4, True)]
    assert (result.safe, result.work) == (4, "ways old fine fast")
    assert load_stored().get("cpu") == result
    assert load_stored().get("gpu") is None
    assert {len(places) for places in together} == {1, 4, 5, 6}
    assert [0, 1, 2, 3, 4, 5] in together
    # each slot is the one that measures by itself
    assert {places[0] for places in together if len(places) == 1} == {0, 1, 2, 3, 4, 5}
    assert count_allowed_slots("cpu", None, MARGIN) == 4
    assert count_allowed_slots("cpu", 3, MARGIN) == 3
    assert count_allowed_slots("gpu", 1, MARGIN) == 1
    assert {
        "said": [sentence for sentence in listener.said if " of 6 to 24" not in sentence or ", 1 of" in sentence],
        "too many": read_refusal(lambda: count_allowed_slots("cpu", 5, MARGIN)).replace(result.when, "TIME"),
        "not measured": read_refusal(lambda: count_allowed_slots("gpu", 2, MARGIN)),
    } == snapshot


def test_what_is_not_known_is_measured_again(planned, monkeypatch):
    blocks = {
        (0.001, 1.0): (6, "safe"),
        (0.025, 0.98): (8, "safe"),
        (0.06, 1.0): (24, "it isn't certain that this is safe"),
        (0.02, 1.2): (6, "not safe"),
    }
    results = {}
    for noise, ratio in blocks:
        together, listener = slow_down(monkeypatch, {2: ratio}, noise), Sentences()
        check.check(planned, 2, listener)
        results[noise, ratio] = len(together) // 2, listener.said[-1].rpartition(": ")[2].split(".")[0]
    assert results == blocks


def test_slots_are_used_only_with_a_margin_that_their_interference_is_below(snapshot):
    tried = [Interference(6, 1.2, 1.19, 1.21), Interference(4, 1.005, 0.998, 1.012)]
    cores = len(os.sched_getaffinity(0))
    check._save_check("cpu", SlotCheck(4, tried, 0.03, "ways old fine", cores, "2026-11-21T04:10:00Z"))
    for margin in (0.1, 0.03, 0.02):
        assert count_allowed_slots("cpu", None, margin) == 4
        assert count_allowed_slots("cpu", 2, margin) == 2
    assert [
        read_refusal(lambda count=count: count_allowed_slots("cpu", count, 0.01)) for count in (None, 2)
    ] == snapshot  # type: ignore[misc]
    # one slot has no interference
    check._save_check("cpu", SlotCheck(1, tried[:1], 0.03, "ways old fine", cores, "2026-11-21T04:10:00Z"))
    assert count_allowed_slots("cpu", None, 0.01) == 1


def test_what_is_remembered_is_of_the_cpus_that_there_were(planned, monkeypatch):
    slow_down(monkeypatch, {})
    check.check(planned, 2, Sentences())
    assert count_allowed_slots("cpu", 2, MARGIN) == 2
    path = get_data_dir() / "fleet.json"
    document = json.loads(path.read_text())
    entry = document["cpu"]
    path.write_text(json.dumps({"cpu": {**entry, "cpus": entry["cpus"] + 1}}))
    with pytest.raises(CannotRunHereError, match="harness fleet check --slots 2"):
        count_allowed_slots("cpu", 2, MARGIN)
    changes: tuple[dict[str, object], ...] = ({"safe": 0}, {"tried": [[]]}, {"cpus": []}, {"when": {}})
    other_types = [json.dumps({"cpu": {**entry, **change}}) for change in changes]
    deep = "[" * 100_000 + "]" * 100_000
    for text in ("[]", "{", '{"cpu": {"tried": []}}', '{"cpu": 3}', deep, *other_types):
        path.write_text(text)
        with pytest.raises(DamagedError, match=r"fleet\.json"):
            count_allowed_slots("cpu", 2, MARGIN)


@pytest.mark.slow
def test_work_is_launched_and_without_a_number_says_nothing(harness, monkeypatch):
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    for name, count in {"BLOCKS": 2, "MOST_BLOCKS": 2, "LAUNCHES": 1}.items():
        monkeypatch.setattr(check, name, count)
    # intervals are tested above; a busy machine would make these wide
    monkeypatch.setattr(Interference, "is_safe", lambda self, margin: True)
    arguments = "fleet check --slots 2 --backend local --warmup 1ms --measure 5ms -s ways"
    with pytest.raises(CannotRunHereError, match=": ValueError"):
        CliRunner().invoke(app, [*arguments.split(), "-a", "way=raises"], catch_exceptions=False)
    result = CliRunner().invoke(app, [*arguments.split(), "-a", "way=fine"], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert ": harness matrix --slots 2" in result.stdout
    stored = load_stored().get("cpu")
    assert stored
    assert stored.safe == 2
