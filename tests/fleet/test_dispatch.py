"""A plan in shards over places that launch nothing: which place takes what, and what becomes of one that dies."""

import json
import os
import re
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness import session
from harness.fleet import check, dispatch
from harness.machine.topology import Topology
from harness.model.errors import CannotRunHereError, Exit, UnavailableError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import Launch, Role
from harness.model.run import Machine, Run, Shard, Stop, StopReason
from harness.session.options import EVENLY
from harness.session.reporting import Written
from harness.session.request import Request
from harness.store.signature import sign
from tests import factories
from tests.cli.conftest import stored
from tests.fleet.conftest import Sentences
from tests.refusal import read_refusal

Act = Callable[["Pretence", int], int]
Measure = Callable[..., dispatch.FleetResult]


@dataclass
class Pretence:
    """A place whose runs are made up; `acts` is called before each, and returns the command's exit code."""

    name: str
    planned: session.Planned
    act: Act = lambda place, number: 0
    is_here: bool = False
    queues: bool = False
    slots: int = 1
    shards: list[int] = field(default_factory=list)
    commands: list[Sequence[str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        self.commands.append(words)
        if "--resume" in words:
            shard = session.read(Path(words[words.index("--resume") + 1])).run.plan.shard
            assert shard
        else:
            number, count = words[words.index("--shard") + 1].split("/")
            shard = Shard(int(number), int(count))
        self.shards.append(shard.number)
        code = self.act(self, shard.number)
        if "--resume" not in words:
            self._make(shard, into / f"{self.name}-{shard.number}-{len(self.commands)}", is_whole=code == 0)
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
    current: list[Pretence] = []

    @contextmanager
    def open_places(on: str, slots: int, slots_found: object, say: object) -> Iterator[Sequence[Pretence]]:
        yield current

    def run(
        *places: Pretence,
        listener: Sentences | None = None,
        resume: Path | None = None,
        lacking: Mapping[str, UnavailableError] | None = None,
        **plan: object,
    ) -> dispatch.FleetResult:
        current[:] = places
        monkeypatch.setattr("harness.fleet.merge.report", lambda *_: Written([], []))
        monkeypatch.setattr(dispatch, "_open_places", open_places)
        monkeypatch.setattr(dispatch, "_count_slots", lambda request, planned: len(places))
        monkeypatch.setattr(dispatch, "_prepare_environments", lambda *arguments, **more: lacking or {})
        if resume:
            return dispatch.resume(resume, listener or Sentences(), rounds=None, budget=None)
        changed = replace(planned, plan=replace(planned.plan, **plan))  # type: ignore[arg-type]
        return dispatch.run(changed, listener or Sentences(), command=["harness", "matrix", "typed"])

    return run


def fail_in(*numbers: int) -> Act:
    """Each of these shards ends badly, as often as it stands here."""
    left = Counter(numbers)

    def act(place: Pretence, number: int) -> int:
        left[number] -= 1
        return 137 if left[number] >= 0 else 0

    return act


def is_whole(result: dispatch.FleetResult, planned: session.Planned) -> bool:
    launches = Counter(
        (launch.cell.anywhere, launch.round, launch.role)
        for launch in result.merged.ended.results.launches
        if launch.role is not Role.CONTROL
    )
    return launches == {
        (cell, number, role): 1
        for number in range(planned.plan.rounds + 1)
        for group in planned.plan.groups
        for cell, role in planned.plan.slots(group, number)
        if role is not Role.CONTROL
    }


def test_shards_are_taken_from_one_queue_so_that_a_slow_place_holds_nobody_up(planned, measure):
    others_are_done = threading.Event()

    def wait(place: Pretence, number: int) -> int:
        assert others_are_done.wait(60)
        return 0

    def hurry(place: Pretence, number: int) -> int:
        if len(place.shards) == 7:
            others_are_done.set()
        return 0

    one, two = Pretence("one", planned, wait), Pretence("two", planned, hurry)
    result = measure(one, two)
    assert len(one.shards) == 1
    assert sorted(one.shards + two.shards) == list(range(1, 9))
    assert is_whole(result, planned)
    assert not result.lacks
    run = result.merged.ended.results.run
    assert (run.id, run.command) == (result.merged.ended.folder.name, ["harness", "matrix", "typed"])
    assert session.read(result.merged.ended.folder).run.merged == run.merged
    # how the run was requested is kept with it
    words = json.loads((result.merged.ended.folder / dispatch.ASKED).read_text())["words"]
    assert words[0] == "matrix"
    assert (words[words.index("--seed") + 1], words[words.index("--balance") + 1]) == ("1", "even")
    assert "--results" not in words


def test_there_are_more_shards_than_places_but_with_a_budget_which_each_place_has_whole(planned, measure):
    for budget, count in ((None, 4), (100.0, 1)):
        place = Pretence("one", planned)
        assert is_whole(measure(place, budget_seconds=budget), planned)
        assert place.shards == list(range(1, count + 1))
    cluster = Pretence("one", planned, queues=True, slots=2)
    assert is_whole(measure(cluster), planned)
    assert sorted(cluster.shards) == list(range(1, 9))


def test_a_shard_that_breaks_off_is_measured_again_and_merged_once(planned, measure):
    place, listener = Pretence("one", planned, fail_in(2)), Sentences()
    result = measure(place, listener=listener)
    assert place.shards == [1, 2, 3, 4, 2]
    (sentence,) = listener.said
    assert all(words in sentence for words in ("Shard 2/4", "exit code 137 on one: what it said last"))
    assert is_whole(result, planned)
    assert not result.lacks
    # on this machine, it goes on with what it had
    here = Pretence("one", planned, fail_in(2), is_here=True)
    measure(here)
    assert ["--resume" in words for words in here.commands] == [False] * 4 + [True]


def test_a_shard_that_fails_twice_is_named_and_the_run_goes_on_with_only_that(planned, measure):
    result = measure(Pretence("one", planned, fail_in(3, 3)))
    folder = result.merged.ended.folder
    lacks = "\n".join(result.lacks)
    assert "Shard 3/4" in lacks
    assert f": harness matrix --resume {folder}" in lacks
    # the file of an older run has less
    request = json.loads((folder / dispatch.ASKED).read_text())
    older = {name: value for name, value in request.items() if name not in ("unavailable", "signature")}
    (folder / dispatch.ASKED).write_bytes(sign(json.dumps(older, indent=2).encode() + b"\n"))
    assert dispatch.read_unavailable(folder / dispatch.SHARDS / "1.1") == {}
    place = Pretence("one", planned)
    resumed = measure(place, resume=folder)
    assert place.shards == [3]
    assert is_whole(resumed, planned)
    assert not resumed.lacks
    assert resumed.merged.ended.folder == folder
    # a request that somebody else wrote is not followed
    path = folder / dispatch.ASKED
    path.write_text(path.read_text().replace('"old"', '"new"').replace("matrix", "matrix "))
    with pytest.raises(UsageError, match="this user"):
        dispatch.resume(folder, Sentences(), rounds=None, budget=None)


def test_a_place_that_is_gone_loses_its_shard_to_another_one(planned, measure):
    is_gone = threading.Event()

    def go(place: Pretence, number: int) -> int:
        is_gone.set()
        raise CannotRunHereError("Connection refused")

    def wait(place: Pretence, number: int) -> int:
        assert is_gone.wait(60)
        return 0

    one, two = Pretence("one", planned, go), Pretence("two", planned, wait)
    result = measure(one, two)
    assert is_whole(result, planned)
    assert len(one.shards) == 1
    (lack,) = result.lacks
    assert lack.endswith("on one: Connection refused")
    with pytest.raises(CannotRunHereError, match=re.escape(lack)):
        measure(Pretence("one", planned, go))
    assert len(list(Path("results").iterdir())) == 1


def test_a_place_that_refuses_gets_no_other_shard(planned, measure):
    for code in (Exit.CANNOT_RUN_HERE, Exit.USAGE):
        place = Pretence("one", planned, lambda place, number, code=code: code if number > 1 else 0)  # type: ignore[misc]
        result = measure(place)
        assert place.shards == [1, 2]
        assert any(lack.endswith("on one: what it said last") for lack in result.lacks)
        assert session.read(result.merged.ended.folder).run.absent


def test_an_interruption_stops_all_places_and_keeps_what_was_finished(planned, measure):
    def interrupt(place: Pretence, number: int) -> int:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            assert place.stopped.wait(60)
            return 130
        return 0

    result = measure(Pretence("one", planned, interrupt))
    assert result.merged.ended.interrupted
    assert {launch.round for launch in result.merged.ended.results.launches} == {0, 1, 2}
    resumed = measure(Pretence("one", planned), resume=result.merged.ended.folder)
    assert is_whole(resumed, planned)


def test_which_requests_are_for_shards():
    for request in (Request(), session.ProfileRequest(), Request(slots="1"), Request(slots="4", shard=Shard(1, 2))):
        assert not dispatch.uses_several_places(request)
    for request in (Request(slots="auto"), Request(spread=True), Request(on="ray://head:10001")):
        assert dispatch.uses_several_places(request)


def on_gpus(planned: session.Planned, *models: str, **changes: object) -> session.Planned:
    cards = [Gpu(place, f"GPU-{place}", model, (8, 0), 40 * 2**30) for place, model in enumerate(models)]
    names = tuple(str(card.index) for card in cards)
    request = replace(planned.request, gpus=",".join(names), **changes)  # type: ignore[arg-type]
    plan = replace(planned.plan, limits=replace(planned.plan.limits, gpus=names))
    return replace(planned, request=request, plan=plan, gpus=cards, gpu_host=GpuHost(cards))


def test_spread_is_a_slot_for_each_gpu(planned, monkeypatch):
    requests: list[tuple[str, int | None]] = []

    def allow(kind: str, wanted: int | None, margin: float) -> int:
        requests.append((kind, wanted))
        return wanted or 2

    monkeypatch.setattr(check, "count_allowed_slots", allow)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("harness.machine.slots.topology.read", lambda: Topology({}))
    three = on_gpus(planned, "NVIDIA A100", "NVIDIA A100", "NVIDIA A100", spread=True, shard=Shard(1, 2))
    assert [slot.gpu for slot in dispatch.find_slots_for_shard(three)] == ["0", "1", "2"]
    assert requests == [("gpu", 3)]


def test_what_no_fleet_measures_is_refused(planned, snapshot):
    def refuse(**changes: object) -> str:
        request = replace(planned.request, **{"on": "ssh://one", **changes})  # type: ignore[arg-type,call-arg]
        return read_refusal(lambda: dispatch.run(replace(planned, request=request), Sentences(), command=[]))

    def refuse_gpus(*models: str) -> str:
        return read_refusal(lambda: dispatch.find_slots_for_shard(on_gpus(planned, *models, spread=True)))

    assert {
        "slots of this machine": [refuse(on=on, slots="2") for on in ("ssh://one,two", "ray://head:10001")],
        "a package of files": refuse(environments=["old", "new+keras@/here"]),
        "a package of a repository": refuse(reference="new+keras@v3", repository="/here"),
        "a package with a password": refuse(environments=["old+keras@https://me:secret@host/a/keras"]),
        "spread over one GPU": refuse_gpus("NVIDIA A100"),
        "spread over two models": refuse_gpus("NVIDIA A100", "NVIDIA T4"),
    } == snapshot


def test_shards_leave_out_what_the_whole_run_could_not_prepare(planned, measure):
    lacking = {"old": UnavailableError("No Python 3.7 is here.", "Install it.")}
    folder = measure(Pretence("one", planned), lacking=lacking).merged.ended.folder
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
