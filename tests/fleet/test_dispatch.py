"""A plan in shards over places that launch nothing: which place takes what, and what becomes of one that dies."""

import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness import session
from harness.fleet import check, dispatch
from harness.fleet.merge import Merged
from harness.machine.topology import Topology
from harness.model.errors import CannotRunHereError, Exit, UnavailableError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import Launch, Role
from harness.model.run import Machine, Run, Shard, Stop, StopReason
from harness.session.options import EVENLY
from harness.session.reporting import Written
from harness.session.request import Request
from tests import factories
from tests.cli.conftest import stored
from tests.errors import read_refusal
from tests.fleet.conftest import Sentences

Act = Callable[["Pretence", int], int]
Measure = Callable[..., Merged]


@dataclass
class Pretence:
    """A place whose runs are made up; `act` is called before each, and returns the command's exit code."""

    name: str
    planned: session.Planned
    act: Act = lambda place, number: 0
    shards: list[int] = field(default_factory=list)
    earlier: list[Path | None] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def measure(self, shard: str, words: Sequence[str], into: Path, earlier: Path | None) -> tuple[int, str]:
        number, count = map(int, words[words.index("--shard") + 1].split("/"))
        assert shard == f"{into.parent.parent.name}-{number}"
        self.shards.append(number)
        self.earlier.append(earlier)
        code = self.act(self, number)
        self._make(Shard(number, count), into / f"{self.name}-{number}-{len(self.shards)}", is_whole=code == 0)
        return code, "what it said last"

    def _make(self, shard: Shard, path: Path, *, is_whole: bool) -> None:
        """A run as the command makes one; the rounds of a broken one end after the first."""
        request = replace(self.planned.request, shard=shard, balance=EVENLY)  # type: ignore[call-arg]
        planned = session.plan(request)  # type: ignore[arg-type]
        plan = planned.plan
        stops = {group.name: Stop(StopReason.ROUNDS, plan.rounds) for group in plan.groups}
        run = replace(
            factories.run(),
            id=path.name,
            plan=plan,
            environments=planned.environments,
            scenarios=list(planned.scenarios.values()),
            reference=planned.reference,
            images={environment.name: "sha256:" + "ab" * 32 for environment in planned.environments},
            pins={},
            machine=Machine(self.name),
            stops=stops if is_whole else {},
        )
        numbers = range(plan.rounds + 1) if is_whole else [0]
        stored(path.parent, run, [launch for number in numbers for launch in launches(run, number)])

    def stop(self) -> None:
        self.stopped.set()


def launches(run: Run, number: int) -> Iterator[Launch]:
    for group in run.plan.groups:
        for order, (cell, role) in enumerate(run.plan.slots(group, number)):
            yield factories.launch(cell, 0.01, number, role=role, order=order, group=group.name, took=1.0)


@pytest.fixture
def measure(planned: session.Planned, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Measure the plan in some places. Reports aren't written: they take seconds, and are tested elsewhere."""

    def run(
        *places: Pretence,
        listener: Sentences | None = None,
        resume: Path | None = None,
        lacking: Mapping[str, UnavailableError] | None = None,
        plan: session.Planned = planned,
    ) -> Merged:
        monkeypatch.setattr("harness.fleet.merge.report", lambda *_: Written([], []))
        monkeypatch.setattr(dispatch, "open_places", lambda *arguments, **more: places)
        monkeypatch.setattr(dispatch, "find_slots", lambda planned: places)
        monkeypatch.setattr(dispatch, "prepare", lambda *arguments, **more: lacking or {})
        if resume:
            return dispatch.resume(resume, Request(), listener or Sentences())
        return dispatch.run(plan, listener or Sentences(), command=["harness", "matrix", "typed"])

    return run


def fail_in(*numbers: int) -> Act:
    """Each of these shards ends badly, as often as it stands here."""
    left = Counter(numbers)

    def act(place: Pretence, number: int) -> int:
        left[number] -= 1
        return 137 if left[number] >= 0 else 0

    return act


def is_whole(result: Merged, planned: session.Planned) -> bool:
    launches = Counter(
        (launch.cell.anywhere, launch.round, launch.role)
        for launch in result.ended.results.launches
        if launch.role is not Role.CONTROL
    )
    return launches == {
        (cell, number, role): 1
        for number in range(planned.plan.rounds + 1)
        for group in planned.plan.groups
        for cell, role in planned.plan.slots(group, number)
        if role is not Role.CONTROL
    }


def make_places(planned: session.Planned, count: int, **acts: Act) -> list[Pretence]:
    names = ("one", "two", "three", "four")[:count]
    return [Pretence(name, planned, acts.get(name, lambda place, number: 0)) for name in names]


def test_each_place_measures_a_shard_at_the_same_time_and_they_are_merged(planned, measure):
    together = threading.Barrier(3, timeout=60)
    places = make_places(
        planned, 3, **dict.fromkeys(("one", "two", "three"), lambda place, number: together.wait() * 0)
    )
    result = measure(*places)
    assert [place.shards for place in places] == [[1], [2], [3]]
    assert is_whole(result, planned)
    assert not result.lacks
    run = result.ended.results.run
    assert (run.id, run.command) == (result.ended.folder.name, ["harness", "matrix", "typed"])
    assert session.read(result.ended.folder).run.merged == run.merged
    # how the run was requested is kept with it
    words = json.loads((result.ended.folder / dispatch.ASKED).read_text())["words"]
    assert words[0] == "matrix"
    assert (words[words.index("--seed") + 1], words[words.index("--balance") + 1]) == ("1", "even")
    assert not {"--results", "--history-rounds"} & {*words}
    settled = replace(planned, plan=replace(planned.plan, settled={planned.plan.groups[0].name: 2}))
    result = measure(*make_places(planned, 3), plan=settled)
    assert "--history-rounds" in json.loads((result.ended.folder / dispatch.ASKED).read_text())["words"]


def test_a_shard_that_breaks_off_is_continued_in_its_place_and_merged_once(planned, measure):
    one, two = make_places(planned, 2, two=fail_in(2))
    listener = Sentences()
    result = measure(one, two, listener=listener)
    assert (one.shards, two.shards) == ([1], [2, 2])
    (sentence,) = listener.said
    assert all(words in sentence for words in ("Shard 2/2", "exit code 137 on two: what it said last"))
    assert two.earlier[0] is None
    assert two.earlier[1].name == "two-2-1"
    assert is_whole(result, planned)
    assert not result.lacks


def test_a_shard_that_fails_too_often_is_named_and_the_run_goes_on_with_only_that(planned, measure):
    result = measure(*make_places(planned, 3, three=fail_in(3, 3, 3)))
    folder = result.ended.folder
    lacks = "\n".join(result.lacks)
    assert "Shard 3/3" in lacks
    assert f": harness matrix --resume {folder}" in lacks
    places = make_places(planned, 3)
    resumed = measure(*places, resume=folder)
    assert [place.shards for place in places] == [[], [], [3]]
    assert is_whole(resumed, planned)
    assert not resumed.lacks
    assert resumed.ended.folder == folder
    # a request that somebody else wrote is not followed
    path = folder / dispatch.ASKED
    path.write_text(path.read_text().replace('"old"', '"new"').replace("matrix", "matrix "))
    with pytest.raises(UsageError, match="this user"):
        dispatch.resume(folder, Request(), Sentences())


def test_the_next_place_measures_the_shard_of_a_place_that_fails(planned, measure):
    def go(place: Pretence, number: int) -> int:
        raise CannotRunHereError("Connection refused")

    refuse: dict[str, Act] = {"two": lambda place, number: Exit.USAGE, "three": lambda place, number: 4}
    places, listener = make_places(planned, 4, four=go, **refuse), Sentences()
    result = measure(*places, listener=listener)
    assert is_whole(result, planned)
    assert not result.lacks
    assert sorted(places[0].shards) == [1, 2, 3, 4]
    assert sorted(listener.said) == [
        "Measuring stopped on four: Connection refused",
        "Measuring stopped on three: what it said last",
        "Measuring stopped on two: what it said last",
    ]
    with pytest.raises(CannotRunHereError, match="on one: Connection refused"):
        measure(*make_places(planned, 1, one=go))
    assert len(list(Path("results").iterdir())) == 1


def test_a_run_that_may_be_in_a_place_that_failed_can_be_continued(planned, measure):
    one = Pretence("one", planned)
    calls = []

    def lose(shard: str, words: Sequence[str], into: Path, earlier: Path | None) -> tuple[int, str]:
        calls.append(shard)
        if len(calls) == 2:
            raise CannotRunHereError("Connection refused")
        return 255, "Connection reset"

    one.measure = lose  # type: ignore[method-assign]
    with pytest.raises(CannotRunHereError, match="--resume results"):
        measure(one)
    (folder,) = Path("results").iterdir()
    two = Pretence("one", planned)
    assert is_whole(measure(two, resume=folder), planned)
    assert calls == [f"{folder.name}-1"] * 2


def test_an_interruption_stops_all_places_and_keeps_what_was_finished(planned, measure):
    def interrupt(place: Pretence, number: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        assert place.stopped.wait(60)
        return 130

    places = make_places(planned, 2, two=interrupt)
    result = measure(*places)
    assert all(place.stopped.is_set() for place in places)
    assert result.ended.interrupted
    assert {launch.round for launch in result.ended.results.launches} == {0, 1, 2}
    resumed = measure(*make_places(planned, 2), resume=result.ended.folder)
    assert is_whole(resumed, planned)


def test_which_requests_are_for_shards():
    for request in (Request(), session.ProfileRequest(), Request(slots="1"), Request(slots="4", shard=Shard(1, 2))):
        assert not dispatch.uses_several_places(request)
    for request in (Request(slots="auto"), Request(on="http://head:8265")):
        assert dispatch.uses_several_places(request)


def on_gpus(planned: session.Planned, *models: str, **changes: object) -> session.Planned:
    cards = [Gpu(place, f"GPU-{place}", model, (8, 0), 40 * 2**30) for place, model in enumerate(models)]
    names = tuple(str(card.index) for card in cards)
    request = replace(planned.request, gpus=",".join(names), **changes)  # type: ignore[arg-type]
    plan = replace(planned.plan, limits=replace(planned.plan.limits, gpus=names))
    return replace(planned, request=request, plan=plan, gpus=cards, gpu_host=GpuHost(cards))


def test_a_slot_is_a_gpu(planned, monkeypatch):
    requests: list[tuple[str, int | None]] = []

    def allow(kind: str, wanted: int | None, margin: float) -> int:
        requests.append((kind, wanted))
        return wanted or 2

    monkeypatch.setattr(check, "count_allowed_slots", allow)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("harness.machine.slots.topology.read", lambda: Topology({}))
    three = on_gpus(planned, "NVIDIA A100", "NVIDIA A100", "NVIDIA A100", slots="3", shard=Shard(1, 2))
    assert [slot.gpu for slot in dispatch.find_slots(three)] == ["0", "1", "2"]
    assert requests == [("gpu", 3)]


def test_what_no_fleet_measures_is_refused(planned, monkeypatch, snapshot):
    def refuse(**changes: object) -> str:
        request = replace(planned.request, **{"on": "ssh://one", **changes})  # type: ignore[arg-type,call-arg]
        return read_refusal(lambda: dispatch.run(replace(planned, request=request), Sentences(), command=[]))

    monkeypatch.setattr(check, "count_allowed_slots", lambda kind, wanted, margin: wanted)
    two_models = on_gpus(planned, "NVIDIA A100", "NVIDIA T4", slots="2")

    assert {
        "slots of this machine": [refuse(on=on, slots="2") for on in ("ssh://one,two", "http://head:8265")],
        "a package of files": refuse(environments=["old", "new+keras@/here"]),
        "a package of a repository": refuse(reference="new+keras@v3", repository="/here"),
        "a package with a password": refuse(environments=["old+keras@https://me:secret@host/a/keras"]),
        "GPUs of two models": read_refusal(lambda: dispatch.find_slots(two_models)),
    } == snapshot


def test_shards_leave_out_what_the_whole_run_could_not_prepare(planned, measure):
    lacking = {"old": UnavailableError("No Python 3.7 is here.", "Install it.")}
    folder = measure(Pretence("one", planned), lacking=lacking).ended.folder
    unavailable = dispatch.read_unavailable(folder / dispatch.SHARDS / "1.1")
    assert {name: str(error) for name, error in unavailable.items()} == {"old": str(lacking["old"])}
    request = replace(planned.request, shard=Shard(1, 4), balance=EVENLY)  # type: ignore[call-arg]
    part = session.plan(request, unavailable)  # type: ignore[arg-type]
    assert [environment.name for environment in part.needed] == ["new"]
    reasons = {(entry.cell.environment, entry.reason) for entry in part.plan.unavailable}
    assert reasons == {("old", lacking["old"].message)}
    # it is the same part of the same plan
    assert part.plan.shard == session.plan(request).plan.shard  # type: ignore[arg-type]
    assert dispatch.read_unavailable(Path("results")) == {}
    assert dispatch.read_unavailable(Path("elsewhere") / dispatch.SHARDS / "1.1") == {}
