"""From a request to a plan: devices, lengths, and what of it is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.backends import registry
from harness.cli.dryrun import show_plan
from harness.model.backend import GpuWay
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, Exit, HarnessError, UnavailableError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import SHORT, Clock, Interleave, Protocol
from harness.model.run import Shard
from harness.project import Project
from harness.session.jobs import JobMaker
from harness.session.options import EVENLY
from harness.session.planning.plan import plan as make_plan
from harness.session.planning.planned import Planned, drop_environments
from harness.session.request import ProfileRequest, Request
from tests import factories
from tests.cards import H100, RTX5090, V100
from tests.cli.conftest import Harness, stored
from tests.errors import catch_text
from tests.machine.conftest import cores

BAKE = """
variable "ENVIRONMENTS" {
  default = [
    { name = "old", tensorflow = "1.14.0", python = "3.7", as_of = "2019-09-01T00:00:00Z", cuda = "10.0", cudnn = "7.4", gpu_code = "sm_70 compute_70" },
    { name = "nvidias", tensorflow = "1.15.5", python = "3.8", as_of = "2023-04-15T00:00:00Z", cuda = "12.1", cudnn = "8.8", gpu_code = "sm_70 sm_90", gpu_image = "nvcr.io/tf:1" },
    { name = "new", tensorflow = "2.18.1", python = "3.11", as_of = "2025-03-25T00:00:00Z", cuda = "12.5", cudnn = "9.3", gpu_code = "sm_70 sm_80 compute_90" },
    { name = "slim", tensorflow = "2.19.0", python = "3.11", as_of = "2025-03-25T00:00:00Z" },
  ]
}
"""  # noqa: E501
SUITES = '[headline]\nenvironments = ["old", "new"]\n[[headline.select]]\nscenario = "ways"\nway = ["fine"]\n'


@pytest.fixture
def plan(harness: Harness, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Planned]:
    """A function that plans for a machine with one card, None for one where nothing is known."""
    (harness.root / "docker-bake.hcl").write_text(BAKE)
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES)
    for lock in ("old-cpu", "old-gpu", "nvidias-gpu", "new-cpu", "new-gpu", "slim-cpu"):
        (harness.root / "images" / "locks" / f"{lock}.txt").write_text("# nothing\n")
    monkeypatch.setenv("HARNESS_PROJECT", str(harness.root))

    def make(card: Gpu | None = V100, **more: Any) -> Planned:
        host = GpuHost(gpus=[card], driver="550.54.15", cuda=(12, 4)) if card else GpuHost(absent="no driver")
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
        options: dict[str, Any] = {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "seed": 1}
        return make_plan(Request(**{**options, **more}))

    return make


Plan = Callable[..., Planned]


def list_unavailable(planned: Planned) -> dict[str, str]:
    return {entry.cell.environment: entry.reason for entry in planned.plan.unavailable}


@pytest.mark.usefixtures("eight_cpus")
def test_contradictory_options_are_refused(replacing, harness, tmp_path, snapshot):
    turns, document = Interleave.TURNS, Protocol.DOCUMENT
    requests: dict[str, dict[str, Any]] = {
        "CPU time of a GPU": {"clock": Clock.CPU, "gpu": True},
        "too short a timeout": {"timeout": 2.0, "warmup": 1.0, "measure": 1.0},
        "clocks of no GPU": {"lock_clocks": "base"},
        "a GPU that isn't there": {"gpus": "0,1"},
        "turns on a GPU": {"interleave": turns, "gpu": True},
        "turns on all cores": {"interleave": turns, "cpus": "all"},
        "turns as a document says": {"interleave": turns, "sampling": document},
        "turns on several cores": {"interleave": turns, "axes": {"way": ["fine"], "cpus": ["1", "2"]}},
        "more cores than there are": {"axes": {"way": ["fine"], "cpus": ["1", "4"]}, "cpus": "0-1"},
        "a shard on Ray": {"shard": Shard(1, 2), "on": "ray"},
        "too many slots": {"slots": "1024"},
        "--gpu with both": {**BOTH, "gpu": True},
        "a GPU for the CPU": {"device": [Device.CPU], "gpus": "0"},
        "a way to a GPU for the CPU": {"device": [Device.CPU], "gpu_via": GpuWay.CDI},
        "a claim on both": {**BOTH, "claims": ["T#1"]},
        "an axis of devices": {**BOTH, "axes": {"device": ["gpu"]}},
        "CPU time of both": {**BOTH, "clock": Clock.CPU},
        "turns on both": {**BOTH, "interleave": turns},
    }
    errors = {}

    def refuse(case: str, *cards: Gpu, **options: Any) -> None:
        with pytest.raises(HarnessError) as error:
            replacing(*cards, **options)
        errors[case] = [int(error.value.exit), str(error.value).replace(str(tmp_path), "TMP")]

    for case, options in requests.items():
        refuse(case, **{"environments": ["old"], **options})
    suites = harness.root / "scenarios" / "suites.toml"
    for case, text in (
        ("a substitute that isn't there", SUITES + INSTEAD.replace('"nvidias"', '"nvidas"')),
        ("a length of a suite", SUITES.replace("[headline]", '[headline]\nmeasure = "soon"', 1)),
    ):
        suites.write_text(text)
        refuse(case, H100, gpu=True, suite="headline", scenarios=[])
    suites.write_text(SUITES)
    (harness.root / "images" / "locks" / "new-gpu.txt").unlink()
    refuse("no lock", environments=["new"], gpu=True)
    assert errors == snapshot


def test_cpu_time_is_measured_where_it_is_asked_for_with_either_way_of_sampling(plan):
    assert plan(environments=["old"]).plan.clock is Clock.WALL
    assert plan(environments=["old"], clock=Clock.CPU).plan.clock is Clock.CPU
    assert plan(environments=["old"], clock=Clock.CPU, sampling=Protocol.DOCUMENT).plan.clock is Clock.CPU


def test_a_pilot_comes_first_where_it_finds_something_out(plan, harness):
    path = harness.root / "scenarios" / "ways.py"
    text, compared = path.read_text(), '# along = "environment"\n'
    for of, lengths, is_piloted in (
        ("", {"measure": 0.1, "rounds": 1}, False),
        ("", {"measure": 0.1, "rounds": 2}, True),
        # a length that is left open
        ("", {"rounds": 1}, True),
        # a phase, for which files must have been read
        ("import", {"measure": 0.1, "rounds": 1}, True),
    ):
        path.write_text(text.replace(compared, f'{compared}# of = "{of}"\n' if of else compared))
        planned = plan(warmup=0.0, **lengths).plan
        assert {group.piloted for group in planned.groups} == {is_piloted}
        assert (planned.launches(0) > 0) == is_piloted


def test_a_run_has_the_device_the_cores_the_locks_and_the_times_that_its_options_say(plan):
    on_cpu, on_gpu = plan(environments=["old"]), plan(environments=["old"], gpu=True, lock_clocks="base")
    assert {cell.device for cell in on_cpu.plan.cells} == {Device.CPU}
    limits = on_cpu.plan.limits
    assert (limits.gpus, limits.first_start_seconds, len(limits.cpus or ())) == ((), 0.0, 1)
    assert on_cpu.requirements["old"].lock.path.name == "old-cpu.txt"
    assert {cell.device for cell in on_gpu.plan.cells} == {Device.GPU}
    limits = on_gpu.plan.limits
    assert (limits.gpus, limits.cpus, limits.seconds, on_gpu.plan.lock_clocks) == (("0",), None, 600.0, "base")
    assert limits.first_start_seconds > 3600.0
    assert (on_gpu.requirements["old"].lock.path.name, on_gpu.gpus) == ("old-gpu.txt", [V100])
    assert plan(environments=["old"], gpu_via=GpuWay.CDI).plan.limits.gpus == ("0",)
    # what was typed wins
    limits = plan(environments=["old"], gpus="0", cpus="1", timeout=90.0).plan.limits
    assert (limits.gpus, len(limits.cpus or ())) == (("0",), 1)
    assert (limits.seconds, limits.first_start_seconds) == (90.0, 0.0)
    assert plan(environments=["old"], timeout=3.0, warmup=1.0, measure=1.0).plan.limits.seconds == 3.0


def test_the_reference_is_one_that_can_run(plan):
    assert plan(environments=["nvidias", "old"]).reference == "old"
    assert plan(H100, environments=["old", "new"], gpu=True).reference == "new"
    assert plan(environments=["nvidias", "old"], reference="nvidias").reference == "nvidias"
    assert plan(environments=["nvidias"]).reference == "nvidias"


def test_where_containers_get_all_gpus_or_none_a_launch_gets_all(plan, monkeypatch):
    plan()
    host = GpuHost([V100, replace(H100, index=1)], "550.54.15", (12, 4), all_or_none=True)
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
    selection = {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "environments": ["new"]}
    planned = make_plan(Request(**selection, gpu=True))
    assert (planned.plan.limits.gpus, len(planned.gpus)) == (("all",), 2)
    with pytest.raises(CannotRunHereError, match=r"--gpus 1: .*containers get all of this machine's 2 GPUs or none"):
        make_plan(Request(**selection, gpus="1"))


INSTEAD = '\n[headline.instead]\nold = ["nvidias", "new"]\n'


@pytest.fixture
def replacing(plan: Plan, harness: Harness) -> Plan:
    """Plans for a suite that names what stands in for `old`."""
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES + INSTEAD)
    return plan


def test_what_stands_in_for_references_and_profiles(replacing):
    planned = replacing(H100, gpu=True, environments=["old", "new"])
    assert (planned.plan.stand_ins, set(list_unavailable(planned))) == ([], {"old"})
    for card, options in ((V100, {"gpu": True}), (None, {"gpu": True}), (H100, {})):
        planned = replacing(card, **options)
        assert not planned.plan.stand_ins
        assert [environment.name for environment in planned.environments] == ["old", "new"]
    assert replacing(H100, gpu=True, reference="old").reference == "nvidias"
    assert replacing(H100, gpu=True, reference="nvidias").reference == "nvidias"
    assert replacing(H100, gpu=True, reference="new").reference == "new"
    replacing(H100, gpu=True)
    request = ProfileRequest(scenarios=["ways"], axes={"way": ["fine"]}, gpu=True, seed=1)
    assert [entry.environment for entry in make_plan(request).plan.stand_ins] == ["nvidias"]


def test_where_nothing_runs_it_is_said_what_this_card_runs(plan, snapshot):
    errors = []
    for card, options in ((H100, {"environments": ["old"], "axes": {"way": ["fine", "raises"]}}), (RTX5090, {})):
        errors.append(catch_text(CannotRunHereError, plan(card, gpu=True, **options).refuse_nothing))
    assert errors == snapshot
    plan(H100, environments=["new"], gpu=True).refuse_nothing()


@pytest.mark.slow
def test_a_plan_as_json_has_substitutes_and_what_is_compiled_and_one_of_nothing_is_an_error(
    replacing, harness, monkeypatch, capsys
):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    text = BAKE.replace('"sm_70 sm_80 compute_90"', '"sm_70 sm_80 compute_90", ptx_alone = "compute_90 of PTX 8.3"')
    (harness.root / "docker-bake.hcl").write_text(text)
    assert replacing(V100, gpu=True).plan.compiled == {}
    replacing(H100)
    options = {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "gpu": True}
    assert show_plan(Request(**options), json=True) is Exit.OK
    document = json.loads(capsys.readouterr().out)
    assert [(fallback["environment"], fallback["for"]) for fallback in document["stand_ins"]] == [("nvidias", "old")]
    assert document["compiled"] == {"new": "native, but some kernels are compiled at first use"}
    with pytest.raises(CannotRunHereError, match="Nothing can be measured"):
        show_plan(Request(**options, environments=["old"]))
    assert "not available: ways old fine fast" in capsys.readouterr().out


def test_a_scenario_without_environments_runs_in_those_of_the_headline(plan):
    assert [environment.name for environment in plan().environments] == ["old", "new"]


def test_the_plan_shows_the_gpu_and_what_cannot_run(harness, snapshot):
    options = ("-s", "ways", "-a", "way=fine", "--gpu", "--dry-run", "--backend", "docker")
    process = harness.call("matrix", *options, DOCKER_HOST="tcp://192.0.2.1:1")
    assert process.returncode == 4, process.stderr
    assert [process.stdout.splitlines(), process.stderr.splitlines()] == snapshot


def test_lengths_and_ends_are_as_typed_otherwise_as_the_suite_says(plan):
    suite = Project.find().scenarios / "suites.toml"
    suite.write_text(SUITES.replace("[headline]", '[headline]\nwarmup = "200ms"', 1))

    def lengths(**options: Any) -> tuple[float | None, float | None]:
        sampling = plan(environments=["old"], **options).plan.sampling
        return sampling.warmup_seconds, sampling.measure_seconds

    assert lengths() == (None, None)
    assert lengths(suite="headline") == (0.2, None)
    assert lengths(suite="headline", warmup=0.0, measure=2.0) == (0.0, 2.0)
    suite.write_text(SUITES.replace("[headline]", '[headline]\nrounds = 4\nbudget = "225s"', 1))

    def ends(**options: Any) -> tuple[int, float | None, float | None]:
        planned = plan(environments=["old"], suite="headline", **options).plan
        return planned.rounds, planned.budget_seconds, planned.precision

    assert ends() == (4, 225.0, None)
    assert ends(rounds=20) == (20, None, None)
    assert ends(budget=600.0) == (100, 600.0, None)
    assert ends(precision=0.02) == (100, None, 0.02)
    assert ends(rounds=3, budget=60.0) == (3, 60.0, None)


def test_cells_take_turns_where_launches_have_one_core_and_otherwise_follow_one_another(plan, monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    launches = Interleave.LAUNCHES
    for options, interleave, turns in (
        ({}, Interleave.TURNS, 20),
        ({"measure": 0.5}, Interleave.TURNS, 10),
        ({"interleave": launches}, launches, None),
        ({"gpu": True}, launches, None),
        ({"cpus": "all"}, launches, None),
        ({"sampling": Protocol.DOCUMENT}, launches, None),
    ):
        planned = plan(environments=["old"], **options).plan
        assert (planned.interleave, planned.sampling.turns) == (interleave, turns), options


def shards(plan: Plan, count: int, **options: Any) -> list[Planned]:
    ways = {"way": ["fine", "raises", "exits", "killed", "prints", "signals"]}
    options = {"environments": ["old", "slim"], "axes": ways, "seed": None, **options}
    return [plan(shard=Shard(number, count), **options) for number in range(1, count + 1)]


def test_the_shards_of_a_plan_have_its_groups_between_them_and_one_seed(plan):
    parts = shards(plan, 3)
    complete = plan(
        environments=["old", "slim"], axes={"way": ["fine", "raises", "exits", "killed", "prints", "signals"]}
    )
    assert sorted(str(cell) for part in parts for cell in part.cells) == sorted(map(str, complete.cells))
    assert len({part.plan.seed for part in parts}) == 1
    assert len({part.plan.shard.plan for part in parts if part.plan.shard}) == 1
    for part in parts:
        assert part.plan.shard
        names, elsewhere = {group.name for group in part.plan.groups}, part.plan.shard.elsewhere
        assert names | elsewhere.keys() == {group.name for group in complete.plan.groups}
        assert not names & elsewhere.keys()
        assert part.plan.shard.number not in elsewhere.values()
        # what no machine can run is told of in each
        assert {entry.cell.axes["way"] for entry in part.plan.unavailable} == {"signals"}
        part.refuse_nothing()


def test_the_seed_and_the_control_of_shards(plan):
    (one,), (other,) = shards(plan, 1), shards(plan, 1, environments=["old"])
    assert one.plan.seed != other.plan.seed
    assert shards(plan, 1, seed=4)[0].plan.seed == 4
    parts = shards(plan, 3, balance=EVENLY)
    assert sorted(len(part.plan.groups) for part in parts) == [1, 2, 2]
    assert [sum(group.controlled for group in part.plan.groups if group.control) for part in parts] == [1, 1, 1]
    # what no machine can run is told of in each
    assert {entry.cell.axes["way"] for part in parts for entry in part.plan.unavailable} == {"signals"}
    in_slots = shards(plan, 3, balance=EVENLY, slots="2")
    assert sum(group.controlled for part in in_slots for group in part.plan.groups if group.control) == 1


def test_shards_are_balanced_by_what_groups_took(plan, tmp_path):
    (complete,) = shards(plan, 1)
    took = dict(zip([group.name for group in complete.plan.groups], (9.0, 3.0, 3.0, 3.0, 0.5), strict=True))
    launches = [
        replace(factories.launch(cell, (0.1,), group=group.name), seconds=took[group.name])
        for group in complete.plan.groups
        for cell in group.cells
    ]
    of_run = factories.run(
        complete.cells,
        plan=complete.plan,
        reference=complete.reference,
        environments=complete.environments,
        scenarios=list(complete.scenarios.values()),
        pins={},
    )
    folder = stored(tmp_path, of_run, launches)
    one, other = shards(plan, 2, balance=folder)
    assert sorted(sum(took[group.name] for group in value.plan.groups) for value in (one, other)) == [9.0, 9.5]
    with pytest.raises(UsageError, match=r"^--balance .* has no launches of this plan's groups\."):
        shards(plan, 2, balance=stored(tmp_path / "other", of_run, []))
    foreign = replace(launches[0], cell=replace(launches[0].cell, axes={"way": "none", "speed": "fast"}))
    with pytest.raises(UsageError, match=r"the plan doesn't include the cell"):
        shards(plan, 2, balance=stored(tmp_path / "damaged", of_run, [foreign]))


@pytest.fixture
def eight_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine with eight CPUs, each on a separate core."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr("harness.machine.topology.read", lambda: cores(*((number,) for number in range(8))))


def job_cpus(planned: Planned) -> dict[str, tuple[int, ...] | None]:
    """Return the CPUs of each cell's launches, by number of cores."""
    jobs = JobMaker(planned.project, planned.scenarios, planned.plan.limits)
    return {cell.axes["cpus"]: jobs(cell, SHORT).limits.cpus for cell in planned.cells}


@pytest.mark.usefixtures("eight_cpus")
def test_cores_are_an_axis_whose_launches_share_the_cpus_of_the_largest(plan):
    planned = plan(environments=["old"], axes={"way": ["fine"], "cpus": ["4", "1", "2"]})
    assert planned.plan.limits.cpus == (4, 5, 6, 7)
    assert job_cpus(planned) == {"1": (7,), "2": (6, 7), "4": (4, 5, 6, 7)}
    (group,) = planned.plan.groups
    assert group.control is not None
    assert group.control.axes["cpus"] == "1"
    assert planned.plan.interleave is Interleave.LAUNCHES
    one = plan(environments=["old"], axes={"way": ["fine"], "cpus": ["1"]})
    assert (one.plan.limits.cpus, one.plan.interleave) == ((7,), Interleave.TURNS)
    # of the CPUs that are typed, the last ones
    planned = plan(environments=["old"], axes={"way": ["fine"], "cpus": ["1", "2"]}, cpus="0-2")
    assert job_cpus(planned) == {"1": (2,), "2": (1, 2)}


BOTH: dict[str, Any] = {"device": [Device.CPU, Device.GPU], "environments": ["old"]}


def test_both_devices_are_cells_of_one_group_with_their_own_limits_and_locks(plan):
    planned = plan(**BOTH)
    (group,) = planned.plan.groups
    assert (group.name, group.device) == ("ways cpu,gpu way=fine speed=fast", "cpu,gpu")
    assert [cell.device for cell in group.cells] == [Device.CPU, Device.GPU]
    assert group.control == group.cells[0]
    assert planned.plan.interleave is Interleave.LAUNCHES
    assert {name: entry.lock.path.name for name, entry in planned.requirements.items()} == {
        "old": "old-cpu.txt",
        "old:gpu": "old-gpu.txt",
    }
    assert [requirement.name for requirement in planned.needed] == ["old", "old:gpu"]
    jobs = JobMaker(planned.project, planned.scenarios, planned.plan.limits)
    cpu, gpu = (jobs(cell, SHORT) for cell in group.cells)
    assert (cpu.limits.gpus, gpu.limits.gpus) == ((), ("0",))
    assert (cpu.limits.first_start_seconds, gpu.limits.first_start_seconds > 3600.0) == (0.0, True)
    assert cpu.limits.cpus == gpu.limits.cpus
    # the scenario's function doesn't get the device as an argument
    assert cpu.document(die_with_parent=False, artifacts="")["cell"]["axes"] == {"way": "fine", "speed": "fast"}
    (entry, *_) = planned.scenarios["ways"].compare
    assert (entry.along, entry.plus, entry.against) == ("device", "gpu", "cpu")
    # a cell is the same with one device
    alone = [cell for device in Device for cell in plan(environments=["old"], device=[device]).cells]
    assert set(alone) == set(planned.cells)
    # the first device is the baseline
    (group,) = plan(**{**BOTH, "device": [Device.GPU, Device.CPU]}).plan.groups
    assert group.control is not None
    assert group.control.device is Device.GPU


def test_an_environment_without_one_of_the_devices_isnt_launched_on_the_other(plan):
    planned = plan(**{**BOTH, "environments": ["new", "slim"]})
    # slim is compared with new, on the CPU
    assert [(cell.environment, cell.device.value) for cell in planned.cells] == [
        *(("new", "cpu"), ("slim", "cpu"), ("new", "gpu"))
    ]
    planned = plan(**{**BOTH, "environments": ["slim"]})
    assert planned.cells == []
    on_gpu, on_cpu = planned.plan.unavailable
    assert on_gpu.reason == "the catalog lists no GPU code for slim"
    assert on_cpu.advice == "To measure this cell alone, pass -e slim -s ways --device cpu."
    with pytest.raises(CannotRunHereError, match="the catalog lists no GPU code for slim"):
        planned.refuse_nothing()


def test_a_suite_does_not_launch_the_only_cell_that_a_failed_build_leaves(plan):
    error = UnavailableError("The image harness/old:gpu could not be built:\nno such host", "Pull it.")
    left = drop_environments(plan(gpu=True), {"old": error})
    assert left.cells == []
    on_old, on_new = left.plan.unavailable
    assert (on_old.cell.environment, on_old.advice) == ("old", "Pull it.")
    assert "nothing to compare it with" in on_new.reason
    assert on_new.advice == "To measure this cell alone, pass -e new -s ways."
    with pytest.raises(CannotRunHereError, match="could not be built"):
        left.refuse_nothing()
    # requested environments are measured, and so is the CPU
    for options in ({"gpu": True, "environments": ["old", "new"]}, {}):
        assert [cell.environment for cell in drop_environments(plan(**options), {"old": error}).cells] == ["new"]


def test_both_devices_of_a_suite_have_no_substitutes(plan, harness):
    path = harness.root / "scenarios" / "suites.toml"
    path.write_text(SUITES + '[headline.instead]\nold = ["nvidias"]\n')
    assert [fallback.role for fallback in plan(H100, scenarios=[], axes={}, gpu=True).plan.stand_ins] == ["old"]
    planned = plan(H100, scenarios=[], axes={}, device=BOTH["device"])
    assert planned.plan.stand_ins == []
    assert {str(cell) for cell in planned.cells} == {
        f"ways {name} fine fast {device}" for name, device in (("old", "cpu"), ("new", "cpu"), ("new", "gpu"))
    }
