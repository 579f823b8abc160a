"""From a request to a plan: devices, lengths, and what of it is refused."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.backends import registry
from harness.catalog.project import Project
from harness.cli.dryrun import show_plan
from harness.model.backend import GpuWay
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, Exit, FileError, UnavailableError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.model.launch import SHORT, Clock, Interleave, Protocol
from harness.model.run import Shard
from harness.session.jobs import JobMaker
from harness.session.planning import Planned, drop_environments
from harness.session.planning import plan as make_plan
from harness.session.request import EVENLY, ProfileRequest, Request
from tests import factories
from tests.cards import H100, RTX5090, V100
from tests.cli.conftest import Harness, stored
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

    def make(card: Gpu | None = V100, **typed: Any) -> Planned:
        host = GpuHost(cards=[card], driver="550.54.15", cuda=(12, 4)) if card else GpuHost(absent="no driver")
        monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
        options: dict[str, Any] = {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "seed": 1}
        return make_plan(Request(**{**options, **typed}))

    return make


Plan = Callable[..., Planned]


def absent(prepared: Planned) -> dict[str, str]:
    return {entry.cell.environment: entry.reason for entry in prepared.plan.unavailable}


def test_cpu_time_is_measured_where_it_is_asked_for_with_either_way_of_sampling(plan: Plan) -> None:
    assert plan(environments=["old"]).plan.clock is Clock.WALL
    assert plan(environments=["old"], clock=Clock.CPU).plan.clock is Clock.CPU
    assert plan(environments=["old"], clock=Clock.CPU, sampling=Protocol.DOCUMENT).plan.clock is Clock.CPU


@pytest.mark.parametrize(
    ("of", "lengths", "piloted"),
    [
        ("", {"warmup": 0.0, "measure": 0.1, "rounds": 1}, False),
        ("", {"warmup": 0.0, "measure": 0.1, "rounds": 2}, True),
        ("", {"warmup": 0.0, "rounds": 1}, True),
        ("import", {"warmup": 0.0, "measure": 0.1, "rounds": 1}, True),
    ],
    ids=["one round", "two", "a length that is left open", "a phase, for which files must have been read"],
)
def test_a_pilot_comes_first_where_it_finds_something_out(
    plan: Plan, harness: Harness, of: str, lengths: dict[str, Any], piloted: bool
) -> None:
    path = harness.root / "scenarios" / "ways.py"
    compared = '# along = "environment"\n'
    path.write_text(path.read_text().replace(compared, f'{compared}# of = "{of}"\n' if of else compared))
    made = plan(**lengths).plan
    assert {group.piloted for group in made.groups} == {piloted}
    assert (made.launches(0) > 0) == piloted


def test_cpu_time_of_a_gpus_step_is_refused(plan: Plan) -> None:
    with pytest.raises(
        UsageError, match=r"^--clock cpu measures CPU time only, without the work of a GPU\."
    ) as refused:
        plan(environments=["old"], clock=Clock.CPU, gpu=True)
    assert refused.value.advice == "Omit --clock cpu, or measure on the CPU alone."


def test_a_cpu_run_is_as_ever(plan: Plan) -> None:
    prepared = plan(environments=["old"])
    assert {cell.device for cell in prepared.plan.cells} == {Device.CPU}
    assert prepared.plan.limits.gpus == ()
    assert prepared.plan.limits.first_start_seconds == 0.0
    assert len(prepared.plan.limits.cpus or ()) == 1
    assert prepared.requirements["old"].lock.path.name == "old-cpu.txt"


def test_a_timeout_that_ends_every_launch_is_refused(plan: Plan) -> None:
    assert plan(environments=["old"], timeout=3.0, warmup=1.0, measure=1.0).plan.limits.seconds == 3.0
    with pytest.raises(UsageError, match=r"^--timeout 2s isn't longer than .* \(2s\)\."):
        plan(environments=["old"], timeout=2.0, warmup=1.0, measure=1.0)


def test_clocks_are_locked_on_gpus_alone(plan: Plan) -> None:
    assert plan(environments=["old"], gpu=True, lock_clocks="base").plan.lock_clocks == "base"
    with pytest.raises(UsageError, match="--lock-clocks needs a GPU"):
        plan(environments=["old"], lock_clocks="base")


def test_a_gpu_run_has_the_first_gpu_every_core_and_the_gpus_locks(plan: Plan) -> None:
    prepared = plan(environments=["old"], gpu=True)
    assert {cell.device for cell in prepared.plan.cells} == {Device.GPU}
    assert prepared.plan.limits.gpus == ("0",)
    assert prepared.plan.limits.cpus is None
    assert prepared.requirements["old"].lock.path.name == "old-gpu.txt"
    assert prepared.cards == [V100]


def test_a_way_to_gpus_asks_for_one(plan: Plan) -> None:
    assert plan(environments=["old"], gpu_via=GpuWay.CDI).plan.limits.gpus == ("0",)


def test_what_was_typed_wins(plan: Plan) -> None:
    limits = plan(environments=["old"], gpus="0", cpus="1", timeout=90.0).plan.limits
    assert limits.gpus == ("0",)
    assert len(limits.cpus or ()) == 1
    assert (limits.seconds, limits.first_start_seconds) == (90.0, 0.0)


def test_a_first_start_may_take_longer_than_an_hour(plan: Plan) -> None:
    limits = plan(environments=["old"], gpu=True).plan.limits
    assert limits.seconds == 600.0
    assert limits.first_start_seconds > 3600.0


def test_an_environment_without_the_device_is_not_available_and_the_others_run(plan: Plan) -> None:
    prepared = plan(environments=["nvidias", "old"])
    assert "made for GPUs" in absent(prepared)["nvidias"]
    assert {cell.environment for cell in prepared.plan.cells} == {"old"}
    assert [environment.name for environment in prepared.environments] == ["nvidias", "old"]
    prepared = plan(environments=["*"], gpu=True)
    assert absent(prepared) == {"slim": "the catalog lists no GPU code for slim"}


def test_the_reference_is_one_that_can_run(plan: Plan) -> None:
    assert plan(environments=["nvidias", "old"]).reference == "old"
    assert plan(H100, environments=["old", "new"], gpu=True).reference == "new"
    assert plan(environments=["nvidias", "old"], reference="nvidias").reference == "nvidias"
    assert plan(environments=["nvidias"]).reference == "nvidias"


def test_what_the_gpu_cannot_run_is_known_before_anything_is_built(plan: Plan) -> None:
    prepared = plan(H100, environments=["old", "new"], gpu=True)
    assert "CUDA 10.0" in absent(prepared)["old"]
    assert [entry.environment.name for entry in prepared.needed] == ["new"]


def test_where_nothing_is_known_of_the_gpu_nothing_is_judged(plan: Plan) -> None:
    prepared = plan(None, environments=["old", "new"], gpu=True)
    assert absent(prepared) == {}
    assert prepared.cards == []


def test_a_gpu_that_the_machine_lacks_ends_it(plan: Plan) -> None:
    with pytest.raises(
        CannotRunHereError, match=r"GPU 1 isn't on this machine\. The machine has the GPUs 0: Tesla V100"
    ):
        plan(environments=["old"], gpus="0,1")


def test_where_containers_get_all_gpus_or_none_a_launch_gets_all(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    plan()
    host = GpuHost([V100, replace(H100, index=1)], "550.54.15", (12, 4), all_or_none=True)
    monkeypatch.setattr(registry, "find_gpu_host", lambda name, root: host)
    asked = {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "environments": ["new"]}
    planned = make_plan(Request(**asked, gpu=True))
    assert (planned.plan.limits.gpus, len(planned.cards)) == (("all",), 2)
    with pytest.raises(CannotRunHereError, match=r"--gpus 1: .*containers get all of this machine's 2 GPUs or none"):
        make_plan(Request(**asked, gpus="1"))


def test_a_lock_that_is_missing_is_an_error(plan: Plan, harness: Harness) -> None:
    (harness.root / "images" / "locks" / "new-gpu.txt").unlink()
    with pytest.raises(UsageError, match="The gpu lock file of new is missing"):
        plan(environments=["new"], gpu=True)


INSTEAD = '\n[headline.instead]\nold = ["nvidias", "new"]\n'


@pytest.fixture
def replacing(plan: Plan, harness: Harness) -> Plan:
    """Plans for a suite that names what stands in for `old`."""
    (harness.root / "scenarios" / "suites.toml").write_text(SUITES + INSTEAD)
    return plan


@pytest.mark.parametrize("typed", [{"suite": "headline", "scenarios": []}, {}])
def test_a_suites_question_is_asked_of_what_the_card_runs(replacing: Plan, typed: dict[str, Any]) -> None:
    prepared = replacing(H100, gpu=True, **typed)
    assert [environment.name for environment in prepared.environments] == ["nvidias", "new"]
    assert {cell.environment for cell in prepared.cells} == {"nvidias", "new"}
    assert (prepared.reference, absent(prepared)) == ("nvidias", {})
    (group,) = prepared.plan.groups
    assert group.control is not None
    assert group.control.environment == "nvidias"
    (taken,) = prepared.plan.stand_ins
    assert (taken.role, taken.environment, taken.card) == ("old", "nvidias", "NVIDIA H100")
    assert "CUDA 10.0 is older" in taken.reason
    assert [entry.environment.name for entry in prepared.needed] == ["nvidias", "new"]


def test_what_is_typed_is_not_replaced_and_what_runs_is_not(replacing: Plan) -> None:
    prepared = replacing(H100, gpu=True, environments=["old", "new"])
    assert (prepared.plan.stand_ins, set(absent(prepared))) == ([], {"old"})
    for card, typed in ((V100, {"gpu": True}), (None, {"gpu": True}), (H100, {})):
        prepared = replacing(card, **typed)
        assert not prepared.plan.stand_ins
        assert [environment.name for environment in prepared.environments] == ["old", "new"]


def test_the_reference_that_was_typed_has_a_stand_in_too(replacing: Plan) -> None:
    assert replacing(H100, gpu=True, reference="old").reference == "nvidias"
    assert replacing(H100, gpu=True, reference="nvidias").reference == "nvidias"
    assert replacing(H100, gpu=True, reference="new").reference == "new"


def test_a_profile_is_of_what_stands_in_too(replacing: Plan) -> None:
    replacing(H100, gpu=True)
    asked = ProfileRequest(scenarios=["ways"], axes={"way": ["fine"]}, gpu=True, seed=1)
    assert [entry.environment for entry in make_plan(asked).plan.stand_ins] == ["nvidias"]


def test_wrong_stand_ins_are_told_with_their_line(replacing: Plan, harness: Harness) -> None:
    suites = harness.root / "scenarios" / "suites.toml"
    suites.write_text(SUITES + INSTEAD.replace('"nvidias"', '"nvidas"'))
    with pytest.raises(FileError, match=r"suites\.toml:8: Unknown environment: 'nvidas'\. Did you mean nvidias\?"):
        replacing(H100, gpu=True)
    with pytest.raises(FileError, match=r"suites\.toml:8"):
        replacing(H100)


def test_where_nothing_runs_it_is_said_what_this_card_runs(plan: Plan) -> None:
    with pytest.raises(
        CannotRunHereError, match=r"none of the 2 cells is available\. ways old fine fast: CUDA 10"
    ) as no:
        plan(H100, environments=["old"], gpu=True, axes={"way": ["fine", "raises"]}).refuse_nothing()
    assert no.value.message.endswith(" Environments that run on NVIDIA H100: nvidias and new.")
    assert no.value.advice == "Use nvidias."
    with pytest.raises(
        CannotRunHereError,
        match=r"CUDA 10\.0 is older than GPUs of compute capability 12\.0(.|\n)*\nNo environment in ",
    ):
        plan(RTX5090, gpu=True).refuse_nothing()
    plan(H100, environments=["new"], gpu=True).refuse_nothing()


def test_a_dry_run_says_what_stands_in_first_and_fails_where_nothing_runs(
    replacing: Plan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    replacing(H100)
    asked = {"scenarios": ["ways"], "axes": {"way": ["fine"]}, "gpu": True}
    assert show_plan(Request(**asked)) is Exit.OK
    first, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("nvidias replaces old, which the NVIDIA H100 cannot run (CUDA 10.0 is older ")
    assert show_plan(Request(**asked), json=True) is Exit.OK
    (told,) = json.loads(capsys.readouterr().out)["stand_ins"]
    assert (told["environment"], told["for"]) == ("nvidias", "old")
    with pytest.raises(CannotRunHereError, match="Nothing can be measured"):
        show_plan(Request(**asked, environments=["old"]))
    assert "not available: ways old fine fast" in capsys.readouterr().out


def test_of_which_environments_gpu_code_is_compiled_is_kept_and_told_in_a_dry_run(
    plan: Plan, harness: Harness, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    text = BAKE.replace('"sm_70 sm_80 compute_90"', '"sm_70 sm_80 compute_90", ptx_alone = "compute_90 of PTX 8.3"')
    (harness.root / "docker-bake.hcl").write_text(text)
    some = "native, but some kernels are compiled at first use"
    assert plan(H100, environments=["nvidias", "new"], gpu=True).plan.compiled == {"new": some}
    asked = Request(scenarios=["ways"], axes={"way": ["fine"]}, environments=["nvidias", "new"], gpu=True)
    show_plan(asked)
    assert "The driver compiles some kernels of new when they are first needed." in capsys.readouterr().out.splitlines()
    show_plan(asked, json=True)
    assert json.loads(capsys.readouterr().out)["compiled"] == {"new": some}
    assert plan(V100, environments=["new"], gpu=True).plan.compiled == {}
    assert plan(environments=["new"]).plan.compiled == {}


def test_a_scenario_without_environments_runs_in_those_of_the_headline(plan: Plan) -> None:
    assert [environment.name for environment in plan().environments] == ["old", "new"]


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--gpus", "0,x"], 2, ["--gpus 0,x: 'x' isn't a GPU number or UUID", "nvidia-smi -L"]),
        (["--gpu-via", "luck"], 2, ["--gpu-via", "cdi", "runtime", "driver"]),
        (["--gpu-via", "cdi", "--backend", "local"], 2, ["--gpu-via cdi applies only to containers", "Pass --gpu."]),
        (["--gpu", "--resume", "results/none"], 2, ["it doesn't accept --gpu"]),
    ],
)
def test_wrong_options_are_sentences(
    harness: Harness, monkeypatch: pytest.MonkeyPatch, options: list[str], code: int, words: list[str]
) -> None:
    done = harness("matrix", *([] if "--resume" in options else ["-s", "ways"]), *options)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    for word in words:
        assert word in done.stderr
    assert not (harness.root / "results").exists()


@pytest.mark.parametrize("backend", ["auto", "local"])
def test_without_an_engine_a_gpu_needs_the_driver_on_this_machine(harness: Harness, backend: str) -> None:
    environ = {"DOCKER_HOST": "unix:///nowhere/docker.sock", "LD_LIBRARY_PATH": ""}
    done = harness("matrix", "-s", "ways", "--gpu", "--backend", backend, **environ)
    assert done.returncode == 4
    assert "libcuda.so.1" in done.stderr
    assert not (harness.root / "results").exists()


def test_the_plan_shows_the_gpu_and_what_cannot_run(harness: Harness) -> None:
    done = harness(
        "matrix",
        "-s",
        "ways",
        "-a",
        "way=fine",
        "--gpu",
        "--dry-run",
        "--backend",
        "docker",
        DOCKER_HOST="tcp://192.0.2.1:1",
    )
    assert done.returncode == 4, done.stderr
    assert "Nothing can be measured: none of the 2 cells is available." in done.stderr
    assert "GPU: unknown (the engine is on another machine)" in done.stdout
    assert "not available: ways old fine fast: the catalog lists no GPU code for old" in done.stdout
    assert "2 cells are not available" in done.stdout


def test_how_long_a_launch_takes_is_as_typed_else_as_the_suite_says_else_the_pilot_s_matter(plan: Plan) -> None:
    suite = Project.find().scenarios / "suites.toml"
    suite.write_text(SUITES.replace("[headline]", '[headline]\nwarmup = "200ms"', 1))

    def lengths(**typed: Any) -> tuple[float | None, float | None]:
        sampling = plan(environments=["old"], **typed).plan.sampling
        return sampling.warmup_seconds, sampling.measure_seconds

    assert lengths() == (None, None)
    assert lengths(suite="headline") == (0.2, None)
    assert lengths(suite="headline", warmup=0.0, measure=2.0) == (0.0, 2.0)
    suite.write_text(SUITES.replace("[headline]", '[headline]\nmeasure = "soon"', 1))
    with pytest.raises(UsageError, match=r"Invalid measure in the suite headline: 'soon': expected a length of time"):
        lengths(suite="headline")


def test_when_a_run_ends_is_as_typed_else_as_the_suite_says(plan: Plan) -> None:
    suite = Project.find().scenarios / "suites.toml"
    suite.write_text(SUITES.replace("[headline]", '[headline]\nrounds = 4\nbudget = "225s"', 1))

    def ends(**typed: Any) -> tuple[int, float | None, float | None]:
        planned = plan(environments=["old"], suite="headline", **typed).plan
        return planned.rounds, planned.budget_seconds, planned.precision

    assert ends() == (4, 225.0, None)
    assert ends(rounds=20) == (20, None, None)
    assert ends(budget=600.0) == (100, 600.0, None)
    assert ends(precision=0.02) == (100, None, 0.02)
    assert ends(rounds=3, budget=60.0) == (3, 60.0, None)


def test_cells_take_turns_where_launches_have_one_core(plan: Plan) -> None:
    planned = plan(environments=["old"]).plan
    assert (planned.interleave, planned.sampling.turns) == (Interleave.TURNS, 20)
    assert plan(environments=["old"], measure=0.5).plan.sampling.turns == 10
    planned = plan(environments=["old"], interleave=Interleave.LAUNCHES).plan
    assert (planned.interleave, planned.sampling.turns) == (Interleave.LAUNCHES, None)


@pytest.mark.parametrize(
    ("typed", "leave_out"),
    [
        ({"gpu": True}, "--gpu"),
        ({"cpus": "all"}, "--cpus all"),
        ({"sampling": Protocol.DOCUMENT}, "--sampling document"),
    ],
)
def test_where_they_cannot_they_are_launched_one_after_the_other(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, typed: dict[str, Any], leave_out: str
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert plan(environments=["old"], **typed).plan.interleave is Interleave.LAUNCHES
    with pytest.raises(
        UsageError, match="--interleave turns: interleaving needs launches on one CPU core, but"
    ) as refused:
        plan(environments=["old"], interleave=Interleave.TURNS, **typed)
    assert refused.value.advice == f"Omit {leave_out}, or use --interleave launches."


def test_scenarios_of_the_projects_folders_are_trusted_and_no_others(plan: Plan, harness: Harness) -> None:
    ways = (harness.root / "scenarios" / "ways.py").read_text()
    for folder, is_untrusted in (("scenarios/upstream", False), ("elsewhere", True)):
        path = harness.root / folder / f"{folder[-4:]}.py"
        path.parent.mkdir()
        path.write_text(ways)
        asked = {"scenarios": [str(path)], "environments": ["old"]}
        assert bool(plan(**asked).untrusted) is is_untrusted
        assert not plan(**asked, trust=True).untrusted


def shards(plan: Plan, of: int, **typed: Any) -> list[Planned]:
    ways = {"way": ["fine", "raises", "exits", "killed", "prints", "signals"]}
    typed = {"environments": ["old", "slim"], "axes": ways, "seed": None, **typed}
    return [plan(shard=Shard(number, of), **typed) for number in range(1, of + 1)]


def test_the_shards_of_a_plan_have_its_groups_between_them_and_one_seed(plan: Plan) -> None:
    parts = shards(plan, 3)
    whole = plan(environments=["old", "slim"], axes={"way": ["fine", "raises", "exits", "killed", "prints", "signals"]})
    assert sorted(str(cell) for part in parts for cell in part.cells) == sorted(map(str, whole.cells))
    assert len({part.plan.seed for part in parts}) == 1
    assert len({part.plan.shard.plan for part in parts if part.plan.shard}) == 1
    for part in parts:
        assert part.plan.shard
        own, elsewhere = {group.name for group in part.plan.groups}, part.plan.shard.elsewhere
        assert own | elsewhere.keys() == {group.name for group in whole.plan.groups}
        assert not own & elsewhere.keys()
        assert part.plan.shard.number not in elsewhere.values()
        # what no machine can run is told of in each
        assert {entry.cell.axes["way"] for entry in part.plan.unavailable} == {"signals"}
        part.refuse_nothing()


@pytest.mark.parametrize("elsewhere", [{"on": "ray"}, {"spread": True}])
def test_a_shard_is_not_divided_again(plan: Plan, elsewhere: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=r"--on and --spread .* themselves\."):
        plan(shard=Shard(1, 2), **elsewhere)


def test_the_seed_of_shards_is_another_where_something_else_is_measured(plan: Plan) -> None:
    (one,), (other,) = shards(plan, 1), shards(plan, 1, environments=["old"])
    assert one.plan.seed != other.plan.seed
    assert shards(plan, 1, seed=4)[0].plan.seed == 4


def test_shards_are_even_and_of_slots_of_one_machine_one_has_the_control(plan: Plan) -> None:
    parts = shards(plan, 3, balance=EVENLY)
    assert sorted(len(part.plan.groups) for part in parts) == [1, 2, 2]
    assert [sum(group.controlled for group in part.plan.groups if group.control) for part in parts] == [1, 1, 1]
    # what no machine can run is told of in each
    assert {entry.cell.axes["way"] for part in parts for entry in part.plan.unavailable} == {"signals"}
    in_slots = shards(plan, 3, balance=EVENLY, slots="2")
    assert sum(group.controlled for part in in_slots for group in part.plan.groups if group.control) == 1


def test_more_slots_than_cores_are_refused_before_anything_else(plan: Plan) -> None:
    with pytest.raises(UsageError, match="--slots 1024: this machine has"):
        plan(slots="1024")


def test_shards_are_balanced_by_what_groups_took(plan: Plan, tmp_path: Path) -> None:
    (whole,) = shards(plan, 1)
    took = dict(zip([group.name for group in whole.plan.groups], (9.0, 3.0, 3.0, 3.0, 0.5), strict=True))
    made = [
        replace(factories.launch(cell, (0.1,), group=group.name), seconds=took[group.name])
        for group in whole.plan.groups
        for cell in group.cells
    ]
    of_run = factories.run(
        whole.cells,
        plan=whole.plan,
        reference=whole.reference,
        environments=whole.environments,
        scenarios=list(whole.scenarios.values()),
        pins={},
    )
    folder = stored(tmp_path, of_run, made)
    one, other = shards(plan, 2, balance=folder)
    assert sorted(sum(took[group.name] for group in value.plan.groups) for value in (one, other)) == [9.0, 9.5]
    with pytest.raises(UsageError, match=r"^--balance .* has no launches of this plan's groups\."):
        shards(plan, 2, balance=stored(tmp_path / "other", of_run, []))
    foreign = replace(made[0], cell=replace(made[0].cell, axes={"way": "none", "speed": "fast"}))
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
def test_cores_are_an_axis_whose_launches_share_the_cpus_of_the_largest(plan: Plan) -> None:
    planned = plan(environments=["old"], axes={"way": ["fine"], "cpus": ["4", "1", "2"]})
    assert planned.plan.limits.cpus == (4, 5, 6, 7)
    assert job_cpus(planned) == {"1": (7,), "2": (6, 7), "4": (4, 5, 6, 7)}
    (group,) = planned.plan.groups
    assert group.control is not None
    assert group.control.axes["cpus"] == "1"
    assert planned.plan.interleave is Interleave.LAUNCHES
    one = plan(environments=["old"], axes={"way": ["fine"], "cpus": ["1"]})
    assert (one.plan.limits.cpus, one.plan.interleave) == ((7,), Interleave.TURNS)


@pytest.mark.usefixtures("eight_cpus")
def test_cores_are_some_of_the_cpus_that_are_typed(plan: Plan) -> None:
    planned = plan(environments=["old"], axes={"way": ["fine"], "cpus": ["1", "2"]}, cpus="0-2")
    assert job_cpus(planned) == {"1": (2,), "2": (1, 2)}
    with pytest.raises(UsageError, match=r"-a cpus=4: launches may use 3 CPUs \(0-2\)"):
        plan(environments=["old"], axes={"way": ["fine"], "cpus": ["1", "4"]}, cpus="0-2")
    with pytest.raises(UsageError, match="launches have up to 2 cores") as refused:
        plan(environments=["old"], axes={"way": ["fine"], "cpus": ["1", "2"]}, interleave=Interleave.TURNS)
    assert refused.value.advice.startswith("Omit -a cpus,")


BOTH: dict[str, Any] = {"device": [Device.CPU, Device.GPU], "environments": ["old"]}


def test_both_devices_are_cells_of_one_group_with_their_own_limits_and_locks(plan: Plan) -> None:
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


def test_a_cell_is_the_same_with_one_device_and_with_both(plan: Plan) -> None:
    assert set(plan(**BOTH).cells) == {
        cell for device in Device for cell in plan(environments=["old"], device=[device]).cells
    }


def test_the_first_device_is_the_baseline(plan: Plan) -> None:
    (group,) = plan(**{**BOTH, "device": [Device.GPU, Device.CPU]}).plan.groups
    assert group.control is not None
    assert group.control.device is Device.GPU


def test_an_environment_without_one_of_the_devices_isnt_launched_on_the_other(plan: Plan) -> None:
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


def test_a_gpu_that_cannot_run_the_release_has_its_reason(plan: Plan) -> None:
    planned = plan(RTX5090, **BOTH)
    assert planned.cells == []
    on_gpu, on_cpu = planned.plan.unavailable
    alone = plan(RTX5090, environments=["old"], gpu=True)
    assert [(on_gpu.cell, on_gpu.reason)] == [(entry.cell, entry.reason) for entry in alone.plan.unavailable]
    assert "nothing to compare it with" in on_cpu.reason


def test_a_suite_does_not_launch_the_only_cell_that_a_failed_build_leaves(plan: Plan) -> None:
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


def test_both_devices_of_a_suite_have_no_substitutes(plan: Plan, harness: Harness) -> None:
    path = harness.root / "scenarios" / "suites.toml"
    path.write_text(SUITES + '[headline.instead]\nold = ["nvidias"]\n')
    assert [taken.role for taken in plan(H100, scenarios=[], axes={}, gpu=True).plan.stand_ins] == ["old"]
    planned = plan(H100, scenarios=[], axes={}, device=BOTH["device"])
    assert planned.plan.stand_ins == []
    assert {str(cell) for cell in planned.cells} == {
        f"ways {name} fine fast {device}" for name, device in (("old", "cpu"), ("new", "cpu"), ("new", "gpu"))
    }


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gpu": True}, "--gpu and --device cpu,gpu can't be combined"),
        ({"device": [Device.CPU], "gpus": "0"}, "--gpus selects a GPU, but --device cpu"),
        ({"device": [Device.CPU], "gpu_via": GpuWay.CDI}, "--gpu-via selects a GPU, but --device cpu"),
        ({"claims": ["T#1"]}, "--claim and --device cpu,gpu can't be combined"),
        ({"axes": {"device": ["gpu"]}}, "`device` isn't an axis for -a"),
        ({"clock": Clock.CPU}, "--clock cpu measures CPU time only"),
        ({"interleave": Interleave.TURNS}, "this run is on a GPU"),
    ],
)
def test_options_that_contradict_both_devices_are_refused(plan: Plan, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        plan(**{**BOTH, **options})


def test_a_machine_without_a_gpu_cannot_compare_it(plan: Plan) -> None:
    planned = plan(None, **BOTH)
    assert len(planned.cells) == 2  # the backend shows that there is no GPU
    assert planned.plan.limits.gpus == ("0",)
