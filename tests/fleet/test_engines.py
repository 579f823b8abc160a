"""Which slots a request means."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness import session
from harness.backends import registry
from harness.fleet import check, coordinator, engines
from harness.fleet.slots import LocalSlots
from harness.machine.gpu import chosen as gpus
from harness.machine.topology import Topology
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Card, GpuHost
from harness.model.run import Run
from harness.session.jobs import JobMaker
from harness.session.request import Request
from tests.cli.conftest import Harness
from tests.fleet.conftest import Pretence

BAKE = """
variable "ENVIRONMENTS" {
  default = [{ name = "tf2", tensorflow = "2.4.0", python = "3.11", as_of = "2020-12-20T00:00:00Z", cuda = "11.0", cudnn = "8.0", gpu_code = "sm_80" }]
}
"""  # noqa: E501


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


@pytest.mark.parametrize(("asked", "taken"), [({"gpus": "1,2", "spread": True}, [1, 2]), ({"gpu": True}, [0, 1])])
def test_slots_of_gpus_that_were_typed_are_of_the_same_ones_when_the_run_goes_on(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object], taken: list[int]
) -> None:
    cards = [Card(at, f"GPU-{at}", "NVIDIA A100", (8, 0), 40 * 2**30) for at in range(3)]
    host = GpuHost(cards, "550.54.15", (12, 4))
    (harness.root / "docker-bake.hcl").write_text(BAKE)
    (harness.root / "images" / "locks" / "tf2-gpu.txt").write_text("# nothing\n")
    monkeypatch.setattr(registry, "image_backend", lambda root: SimpleNamespace(gpu_host=host))
    monkeypatch.setattr("harness.machine.host.facts", dict)
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))
    monkeypatch.chdir(harness.root)
    short = {
        "scenarios": ["ways"],
        "axes": {"way": ["fine"]},
        "backend": "local",
        "seed": 1,
        "results": Path("results"),
    }
    typed = session.plan(session.Request(**short, slots="2", **asked))  # type: ignore[arg-type]
    assert [card.index for card in engines.slot_cards(typed)][:2] == taken
    # of its slots, one alone has begun anything
    (one,) = typed.cards[:1]
    limits = replace(typed.plan.limits, gpus=(str(one.index),))
    facts = {"pinned_to": None, **gpus.facts([one], host)}

    sources = JobMaker(typed.project, typed.scenarios, limits).sources()

    def told(run: Run) -> Run:
        return replace(run, plan=replace(run.plan, limits=limits), host=facts, sources=sources)

    ended = coordinator.run(typed, Pretence(["a", "a"], interrupts_after=3, told=told), session.Listener())
    found = session.earlier(ended.folder).planned
    assert [card.index for card in engines.slot_cards(found)][:2] == taken
    assert found.request.slots == "2"


def test_slots_that_were_not_checked_are_refused(planned: session.Planned) -> None:
    with pytest.raises(CannotRunHereError, match="not measured here"):
        engines.chosen(replace(planned, request=replace(planned.request, slots="2")))
    assert len(engines.chosen(replace(planned, request=replace(planned.request, slots="1"))).places()) == 1
