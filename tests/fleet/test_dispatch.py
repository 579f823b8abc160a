"""A plan in shards over places that launch nothing: which place takes what, and what becomes of one that dies."""

import json
import os
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
from harness.session.request import EVENLY, Request
from harness.store.signature import sign
from tests import factories
from tests.cli.conftest import stored

Act = Callable[["Pretence", int], int]


@dataclass
class Pretence:
    """A place whose runs are made up; `acts` is called before each, and returns the command's exit code."""

    name: str
    planned: session.Planned
    act: Act = lambda place, number: 0
    is_here: bool = False
    queues: bool = False
    slots: int = 1
    taken: list[int] = field(default_factory=list)
    asked: list[Sequence[str]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def measure(self, words: Sequence[str], into: Path) -> tuple[int, str]:
        self.asked.append(words)
        if "--resume" in words:
            run = session.read(Path(words[words.index("--resume") + 1])).run
            assert run.plan.shard
            shard = run.plan.shard
        else:
            number, of = words[words.index("--shard") + 1].split("/")
            shard = Shard(int(number), int(of))
        self.taken.append(shard.number)
        code = self.act(self, shard.number)
        if "--resume" not in words:
            self._make(shard, into / f"{self.name}-{shard.number}-{len(self.asked)}", is_whole=code == 0)
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


class Ears(session.Listener):
    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        self.said.append(sentence)


@pytest.fixture
def measured(planned: session.Planned, monkeypatch: pytest.MonkeyPatch) -> Callable[..., dispatch.FleetResult]:
    """Measure the plan in places that are given."""

    @contextmanager
    def places(on: str, slots: int, given: object, say: object) -> Iterator[Sequence[Pretence]]:
        yield current

    current: list[Pretence] = []

    def run(
        *given: Pretence,
        ears: Ears | None = None,
        resume: Path | None = None,
        lacking: Mapping[str, UnavailableError] | None = None,
        **plan: object,
    ) -> dispatch.FleetResult:
        current[:] = given
        monkeypatch.setattr(dispatch, "_open_places", places)
        monkeypatch.setattr(dispatch, "_count_slots", lambda request, planned: len(given))
        monkeypatch.setattr(dispatch, "_prepare_environments", lambda *arguments, **more: lacking or {})
        if resume:
            return dispatch.resume(resume, ears or Ears(), rounds=None, budget=None)
        made = replace(planned, plan=replace(planned.plan, **plan))  # type: ignore[arg-type]
        return dispatch.run(made, ears or Ears(), command=["harness", "matrix", "typed"])

    return run


def fails(*numbers: int) -> Act:
    """Each of these shards ends badly, as often as it stands here."""
    left = Counter(numbers)

    def act(place: Pretence, number: int) -> int:
        left[number] -= 1
        return 137 if left[number] >= 0 else 0

    return act


def is_whole(ended: dispatch.FleetResult, planned: session.Planned) -> bool:
    """Whether the merged run has each launch of the plan exactly once."""
    found = Counter(
        (launch.group, launch.cell.anywhere, launch.round, launch.role)
        for launch in ended.merged.ended.results.launches
    )
    wanted = {
        (cell, number, role)
        for number in range(planned.plan.rounds + 1)
        for group in planned.plan.groups
        for cell, role in planned.plan.slots(group, number)
        if role is not Role.CONTROL
    }
    own = Counter({key: count for key, count in found.items() if key[3] is not Role.CONTROL})
    return set(own.values()) == {1} and {(cell, number, role) for _, cell, number, role in own} == wanted


def test_shards_are_taken_from_one_queue_so_that_a_slow_place_holds_nobody_up(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    others_are_done = threading.Event()

    def slow(place: Pretence, number: int) -> int:
        assert others_are_done.wait(60)
        return 0

    def quick(place: Pretence, number: int) -> int:
        if len(place.taken) == 7:
            others_are_done.set()
        return 0

    one, two = Pretence("one", planned, slow), Pretence("two", planned, quick)
    ended = measured(one, two)
    assert len(one.taken) == 1
    assert sorted(one.taken + two.taken) == list(range(1, 9))
    assert is_whole(ended, planned)
    assert not ended.lacks
    run = ended.merged.ended.results.run
    assert (run.id, run.command) == (ended.merged.ended.folder.name, ["harness", "matrix", "typed"])
    assert session.read(ended.merged.ended.folder).run.merged == run.merged


def test_there_are_more_shards_than_places_but_with_a_budget_which_each_place_has_whole(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    for budget, count in ((None, 4), (100.0, 1)):
        place = Pretence("one", planned)
        assert is_whole(measured(place, budget_seconds=budget), planned)
        assert place.taken == list(range(1, count + 1))
    cluster = Pretence("one", planned, queues=True, slots=2)
    assert is_whole(measured(cluster), planned)
    assert sorted(cluster.taken) == list(range(1, 9))


def test_a_shard_that_breaks_off_is_measured_again_and_merged_once(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    place, ears = Pretence("one", planned, fails(2)), Ears()
    ended = measured(place, ears=ears)
    assert place.taken == [1, 2, 3, 4, 2]
    assert ears.said == ["Shard 2/4 ended with exit code 137 on one: what it said last The shard is measured again."]
    assert is_whole(ended, planned)
    assert not ended.lacks
    # on this machine, it goes on with what it had
    here = Pretence("one", planned, fails(2), is_here=True)
    measured(here)
    assert [("--resume" in words) for words in here.asked] == [False] * 4 + [True]


def test_a_shard_that_fails_twice_is_named_and_the_run_goes_on_with_only_that(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    ended = measured(Pretence("one", planned, fails(3, 3)))
    folder = ended.merged.ended.folder
    told = "\n".join(ended.lacks)
    assert "Shard 3/4 ended with exit code 137 on one: what it said last" in told
    assert f"To measure only what is missing: harness matrix --resume {folder}" in told
    place = Pretence("one", planned)
    again = measured(place, resume=folder)
    assert place.taken == [3]
    assert is_whole(again, planned)
    assert not again.lacks
    assert again.merged.ended.folder == folder


def test_a_place_that_is_gone_loses_its_shard_to_another_one(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    is_gone = threading.Event()

    def gone(place: Pretence, number: int) -> int:
        is_gone.set()
        raise CannotRunHereError("Connection refused")

    def after(place: Pretence, number: int) -> int:
        assert is_gone.wait(60)
        return 0

    one, two = Pretence("one", planned, gone), Pretence("two", planned, after)
    ended = measured(one, two)
    assert is_whole(ended, planned)
    assert len(one.taken) == 1
    assert ended.lacks == ["Measuring stopped on one: Connection refused"]
    with pytest.raises(CannotRunHereError, match=r"No shard produced a run\.\nMeasuring stopped on one: Connection"):
        measured(Pretence("one", planned, gone))
    assert len(list(Path("results").iterdir())) == 1


@pytest.mark.parametrize("code", [Exit.CANNOT_RUN_HERE, Exit.USAGE])
def test_a_place_that_refuses_gets_no_other_shard(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult], code: Exit
) -> None:
    place = Pretence("one", planned, lambda place, number: code if number > 1 else 0)
    ended = measured(place)
    assert place.taken == [1, 2]
    assert "Measuring stopped on one: what it said last" in ended.lacks
    assert session.read(ended.merged.ended.folder).run.absent


def test_an_interruption_stops_all_places_and_keeps_what_was_finished(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    def interrupt(place: Pretence, number: int) -> int:
        if number == 2:
            os.kill(os.getpid(), signal.SIGINT)
            assert place.stopped.wait(60)
            return 130
        return 0

    ended = measured(Pretence("one", planned, interrupt))
    assert ended.merged.ended.interrupted
    assert {launch.round for launch in ended.merged.ended.results.launches} == {0, 1, 2}
    again = measured(Pretence("one", planned), resume=ended.merged.ended.folder)
    assert is_whole(again, planned)


def test_what_someone_else_asked_for_is_not_gone_on_with(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    folder = measured(Pretence("one", planned)).merged.ended.folder
    path = folder / dispatch.ASKED
    path.write_text(path.read_text().replace('"old"', '"new"').replace("matrix", "matrix "))
    with pytest.raises(UsageError, match="wasn't started by this user on this machine"):
        dispatch.resume(folder, Ears(), rounds=None, budget=None)


def test_which_requests_are_for_shards() -> None:
    assert not dispatch.uses_several_places(Request())
    assert not dispatch.uses_several_places(session.ProfileRequest())
    assert not dispatch.uses_several_places(Request(slots="1"))
    assert not dispatch.uses_several_places(Request(slots="4", shard=Shard(1, 2)))
    for asked in (Request(slots="auto"), Request(spread=True), Request(on="ray://head:10001")):
        assert dispatch.uses_several_places(asked)


def on_gpus(planned: session.Planned, *models: str, **asked: object) -> session.Planned:
    """The same on GPUs of these models, of which the request names all."""
    cards = [Gpu(at, f"GPU-{at}", model, (8, 0), 40 * 2**30) for at, model in enumerate(models)]
    names = tuple(str(card.index) for card in cards)
    request = replace(planned.request, gpus=",".join(names), **asked)  # type: ignore[arg-type]
    plan = replace(planned.plan, limits=replace(planned.plan.limits, gpus=names))
    return replace(planned, request=request, plan=plan, cards=cards, gpu_host=GpuHost(cards))


def test_spread_is_a_slot_for_each_gpu(planned: session.Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int | None]] = []

    def allowed(kind: str, wanted: int | None, margin: float) -> int:
        asked.append((kind, wanted))
        return wanted or 2

    monkeypatch.setattr(check, "count_allowed_slots", allowed)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1, 2, 3})
    monkeypatch.setattr("harness.machine.slots.topology.read", lambda: Topology({}))
    three = on_gpus(planned, "NVIDIA A100", "NVIDIA A100", "NVIDIA A100", spread=True, shard=Shard(1, 2))
    assert [slot.gpu for slot in dispatch.find_slots_for_shard(three)] == ["0", "1", "2"]
    assert asked == [("gpu", 3)]
    with pytest.raises(UsageError, match=r"--spread needs several GPUs\."):
        dispatch.find_slots_for_shard(on_gpus(planned, "NVIDIA A100", spread=True))
    with pytest.raises(UsageError, match=r"different models \(0: NVIDIA A100; 1: NVIDIA T4\)"):
        dispatch.find_slots_for_shard(on_gpus(planned, "NVIDIA A100", "NVIDIA T4", spread=True))


def test_a_fleet_of_other_machines_takes_no_slots_of_this_one(planned: session.Planned) -> None:
    for on in ("ssh://one,two", "ray://head:10001"):
        asked = replace(planned, request=replace(planned.request, on=on, slots="2"))  # type: ignore[call-arg]
        with pytest.raises(UsageError, match="--slots and --spread apply to this machine"):
            dispatch.run(asked, Ears(), command=[])


def test_other_machines_build_no_package_from_files_of_this_one(planned: session.Planned) -> None:
    def run(**changes: object) -> None:
        asked = replace(planned, request=replace(planned.request, on="ssh://one", **changes))  # type: ignore[arg-type,call-arg]
        dispatch.run(asked, Ears(), command=[])

    refused = "is built from files of this machine, but --on ssh://one measures on other machines"
    for changes in ({"environments": ["old", "new+keras@/here"]}, {"reference": "new+keras@v3", "repository": "/here"}):
        with pytest.raises(UsageError, match=refused):
            run(**changes)
    with pytest.raises(UsageError, match="with a password") as raised:
        run(environments=["old+keras@https://me:secret@host/a/keras"])
    assert raised.value.advice == "Omit the password, and set up git's credentials on each machine."


def test_how_a_run_was_asked_for_is_kept_with_it(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    folder = measured(Pretence("one", planned)).merged.ended.folder
    kept = json.loads((folder / dispatch.ASKED).read_text())
    words = kept["words"]
    assert words[0] == "matrix"
    assert (words[words.index("--seed") + 1], words[words.index("--balance") + 1]) == ("1", "even")
    assert "--results" not in words


def test_shards_leave_out_what_the_whole_run_could_not_prepare(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    lacking = {"old": UnavailableError("No Python 3.7 is here.", "Install it.")}
    folder = measured(Pretence("one", planned), lacking=lacking).merged.ended.folder
    found = dispatch.read_unavailable(folder / dispatch.SHARDS / "1.1")
    assert {name: str(error) for name, error in found.items()} == {"old": "No Python 3.7 is here.\nInstall it."}
    request = replace(planned.request, shard=Shard(1, 4), balance=EVENLY)  # type: ignore[call-arg]
    part = session.plan(request, found)  # type: ignore[arg-type]
    assert [entry.name for entry in part.needed] == ["new"]
    reasons = {(entry.cell.environment, entry.reason) for entry in part.plan.unavailable}
    assert reasons == {("old", "No Python 3.7 is here.")}
    # it is the same part of the same plan
    assert part.plan.shard == session.plan(request).plan.shard  # type: ignore[arg-type]
    assert dispatch.read_unavailable(Path("results")) == {}
    assert dispatch.read_unavailable(Path("elsewhere") / dispatch.SHARDS / "1.1") == {}


def test_the_fleet_of_an_older_run_is_read(
    planned: session.Planned, measured: Callable[..., dispatch.FleetResult]
) -> None:
    folder = measured(Pretence("one", planned, fails(3, 3))).merged.ended.folder
    kept = json.loads((folder / dispatch.ASKED).read_text())
    older = {name: value for name, value in kept.items() if name not in ("unavailable", "signature")}
    (folder / dispatch.ASKED).write_bytes(sign(json.dumps(older, indent=2).encode() + b"\n"))
    assert dispatch.read_unavailable(folder / dispatch.SHARDS / "1.1") == {}
    assert is_whole(measured(Pretence("one", planned), resume=folder), planned)


def test_environments_are_prepared_once_and_again_with_the_next_fallback(
    planned: session.Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = UnavailableError("one"), UnavailableError("other")
    after = replace(planned, suite="after")
    answers = {"": {"old": first}, "after": {"new": second}}
    monkeypatch.setattr(dispatch, "prepare", lambda planned, listener, wait: answers[planned.suite])
    monkeypatch.setattr(
        dispatch, "replace_fallbacks", lambda planned, lacking: after if list(lacking) == ["old"] else None
    )
    assert dispatch._prepare_environments(planned, Ears(), wait=False) == {"old": first, "new": second}
