"""Which slots a request means."""

from dataclasses import replace

import pytest

from harness import session
from harness.fleet import check, engines
from harness.fleet.slots import LocalSlots
from harness.machine.topology import Topology
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Card, GpuHost
from harness.session.request import Request


def on_gpus(planned: session.Planned, *models: str, **asked: object) -> session.Planned:
    """The same on GPUs of these models, of which the request names all."""
    cards = [Card(at, f"GPU-{at}", model, (8, 0), 40 * 2**30) for at, model in enumerate(models)]
    names = tuple(str(card.index) for card in cards)
    request = replace(planned.request, gpus=",".join(names), **asked)  # type: ignore[arg-type]
    plan = replace(planned.plan, limits=replace(planned.plan.limits, gpus=names))
    return replace(planned, request=request, plan=plan, cards=cards, gpu_host=GpuHost(cards))


@pytest.fixture
def safe(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int | None]]:
    """What is asked of the remembered check, which has found all safe."""
    asked: list[tuple[str, int | None]] = []

    def allowed(kind: str, wanted: int | None) -> int:
        asked.append((kind, wanted))
        return wanted or 2

    monkeypatch.setattr(check, "allowed", allowed)
    # a machine of four cores
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("harness.machine.slots.topology.read", lambda: Topology({}))
    return asked


def test_slots_are_asked_for_by_slots_spread_and_ray() -> None:
    assert not engines.is_asked(Request())
    assert not engines.is_asked(session.ProfileRequest())
    for asked in (Request(slots="auto"), Request(spread=True), Request(on="ray://head:10001")):
        assert engines.is_asked(asked)


def test_spread_is_a_slot_for_each_gpu(planned: session.Planned, safe: list[tuple[str, int | None]]) -> None:
    engine = engines.chosen(on_gpus(planned, "NVIDIA A100", "NVIDIA A100", "NVIDIA A100", spread=True))
    assert isinstance(engine, LocalSlots)
    assert len(engine.places()) == 3
    assert safe == [("gpu", 3)]
    assert len(engines.chosen(on_gpus(planned, "NVIDIA A100", "NVIDIA A100", slots="auto")).places()) == 2
    with pytest.raises(UsageError, match=r"--spread is for several GPUs\."):
        engines.chosen(on_gpus(planned, "NVIDIA A100", spread=True))
    with pytest.raises(UsageError, match=r"several models \(0: NVIDIA A100; 1: NVIDIA T4\)"):
        engines.chosen(on_gpus(planned, "NVIDIA A100", "NVIDIA T4", spread=True))


def test_slots_that_were_not_checked_are_refused(planned: session.Planned) -> None:
    with pytest.raises(CannotRunHereError, match="not measured here"):
        engines.chosen(replace(planned, request=replace(planned.request, slots="2")))
    assert len(engines.chosen(replace(planned, request=replace(planned.request, slots="1"))).places()) == 1
