"""The workflows, run here in their order: a bare git repository is the remote, a fake `gh` has the issues."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import yaml

from harness.history.alerts import LABEL
from harness.history.index import History
from harness.history.states import find_changes
from harness.history.summary import load_summary as summary_of
from harness.model.history import Decision, Key
from harness.model.run import Machine, Stop, StopReason
from tests.cli.conftest import BAKE, SCENARIO, stored
from tests.factories import cells, rounds, run
from tests.fleet import test_merge as merging
from tests.github import ENVIRON, REPOSITORY, Repository
from tests.test_site import make_project
from tests.workflow import Runner

ROOT = Path(__file__).parents[1]
SHORT = "-s ways -a way=fine -e old,new --backend local --rounds 1 --warmup 1ms --measure 5ms"

NIGHTS = f"""
[[night]]
name = "cpu"
arguments = "{SHORT}"
machines = [{{ name = "hosted", runs-on = ["ubuntu-24.04"] }}]
"""


@pytest.fixture
def github(tmp_path):
    return Repository(tmp_path / "repository.json")


@pytest.fixture
def project(tmp_path):
    """A repository: the real workflows, and scenarios that need no TensorFlow."""
    root = tmp_path / "fork"
    shutil.copytree(ROOT / ".github", root / ".github")
    shutil.copytree(ROOT / "images", root / "images", ignore=shutil.ignore_patterns("locks"))
    shutil.copytree(ROOT / "scenarios" / "kit", root / "scenarios" / "kit")
    (root / "docker-bake.hcl").write_text(BAKE)
    (root / "scenarios" / "ways.py").write_text(SCENARIO)
    (root / "images" / "locks").mkdir()
    for name in ("old", "new"):
        (root / "images" / "locks" / f"{name}-cpu.txt").write_text("# nothing\n")
    (root / ".github" / "nightly.toml").write_text(NIGHTS)
    return root


@pytest.fixture
def remote(tmp_path):
    """The repository on GitHub's side, still without a history."""
    bare = tmp_path / "remote" / f"{REPOSITORY}.git"
    bare.mkdir(parents=True)
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    return bare


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The two environments are made once."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def night(tmp_path, project, github, cache, monkeypatch):
    """Run a workflow as the night of that number."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(cache))
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)

    def installed(temporary: Path) -> None:
        # what `install` would put there
        place = temporary / "harness" / "bin"
        place.mkdir(parents=True)
        (place / "harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
        (place / "harness").chmod(0o755)

    (tmp_path / "bin").mkdir()
    github.install(tmp_path / "bin")
    github.states = [{"cpu on hosted": "completed", "gpu on rack": "completed"}]
    github.save()

    def ran(number, workflow="nightly.yml", only="", caller=None, **inputs):
        environ = {
            "GITHUB_REPOSITORY": REPOSITORY, "GITHUB_RUN_ID": str(number),
            "GITHUB_SERVER_URL": (tmp_path / "remote").as_uri(),
            "HARNESS_DATA_DIR": str(tmp_path / "data"), "HARNESS_MACHINE_LOCK": str(tmp_path / "lock"),
            "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT),
            # no image of this machine is removed
            "DOCKER_HOST": f"unix://{tmp_path}/nowhere",
        }  # fmt: skip
        place = tmp_path / f"night-{number}"
        if caller:
            # what the action installs: the harness of the called repository, with its catalog
            for folder in ("harness", "templates"):
                shutil.copytree(ROOT / folder, project / folder)
            environ["PYTHONPATH"] = str(project)
            return Runner(caller, place, environ, installed, project).run(workflow, inputs)
        return Runner(project, place, environ, installed).run(workflow, inputs, only)

    return ran


def git(where, *arguments):
    done = subprocess.run(["git", "-C", where, *arguments], capture_output=True, text=True, check=True)
    return done.stdout


def listed(remote):
    return git(remote, "ls-tree", "-r", "--name-only", "harness-history").splitlines()


def results(ran):
    return {name: job.result for name, job in ran.items()}


def test_nights_are_measured_kept_and_told_with_nothing_to_alarm(night, remote, github, tmp_path):
    first = night(1)
    assert results(first) == {
        "plan": "success", "measure: cpu hosted": "success", "wait": "success", "merge": "success",
        "history": "success", "alarm": "success", "documentation": "success",
    }, "\n".join(value.log for value in first.values())  # fmt: skip
    assert "| cpu | hosted | `-s ways" in first["plan"].summary
    assert git(remote, "show", "harness-history:README.md").startswith("# History: 7 days to ")
    assert "harness report" in first["measure: cpu hosted"].summary
    kept = [name for name in listed(remote) if name.endswith(".json")]
    assert len(kept) == 1
    document = json.loads(git(remote, "show", f"harness-history:{kept[0]}"))
    assert [entry["machine"] for entry in document["machines"]] == [{"id": "hosted-hosted", "name": "hosted"}]

    night(2)
    assert len([name for name in listed(remote) if name.endswith(".json")]) == 2
    assert kept[0] in listed(remote)
    assert git(remote, "rev-list", "--count", "harness-history").strip() == "2"
    # an orphan: it shares nothing with the project
    assert {Path(name).parts[0] for name in listed(remote)} == {kept[0].split("/")[0], "README.md"}
    assert github.load().issues == []
    # the token is in no file, and in no folder's configuration
    encoded = base64.b64encode(b"x-access-token:a-token").decode()
    grep = ["grep", "-rl", "-e", encoded, "-e", "a-token", str(tmp_path)]
    assert subprocess.run(grep, capture_output=True, text=True, check=False).stdout == ""

    # the first night's job is behind now: what it writes again joins what the second has pushed
    work = tmp_path / "night-1" / "jobs" / "history" / "work"
    (folder,) = (work / "runs").iterdir()
    document = json.loads((folder / "run.json").read_text())
    document["id"] = f"{document['id'][:-4]}beef"
    (folder / "run.json").write_text(json.dumps(document))
    folder.rename(folder.with_name(document["id"]))
    done = again(work, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len([name for name in listed(remote) if name.endswith(".json")]) == 3
    # what is there already is no commit
    count = git(remote, "rev-list", "--count", "harness-history")
    assert again(work, tmp_path).returncode == 0
    assert git(remote, "rev-list", "--count", "harness-history") == count

    # decisions that cannot be read stay off the branch
    key = Key("m", "s", "cpu", (), "e", "r")
    decision = Decision(key, "2026", (), True, "run", "2026-11-25T04:10:00+00:00", 1.2, 1.1, 1.3)
    good = json.dumps(asdict(decision))
    for name, text in {"good": good, "other": '{"key": 1}', "x": "not JSON", "deep": "[" * 9999}.items():
        (work / "artifacts" / name).mkdir(parents=True)
        (work / "artifacts" / name / "decisions.jsonl").write_text(text)
    done = again(work, tmp_path)
    assert done.returncode == 1
    for name in ("other", "x", "deep"):
        assert f"::error::artifacts/{name}/decisions.jsonl is left out" in done.stdout
    assert git(remote, "show", "harness-history:decisions.jsonl").strip() == good


def again(work, tmp_path):
    """The history job's script once more, in the folder that it left."""
    temporary = work.parent / "temp"
    environ = {
        **os.environ, "HISTORY_BRANCH": "harness-history", "GITHUB_STEP_SUMMARY": str(tmp_path / "page"),
        "NIGHTLY_FILE": ".github/nightly.toml", "RUNNER_TEMP": str(temporary),
        "PATH": f"{temporary / 'harness' / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT), "HARNESS_DATA_DIR": str(tmp_path / "data"),
    }  # fmt: skip
    script = [".harness/.github/nightly/history", "history"]
    return subprocess.run(script, cwd=work, env=environ, capture_output=True, text=True, check=False)


MINE = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
# [tool.harness]
# title = "Mine"
# ///


def scenario(bench):
    bench.measure(lambda: sum(range(1000)))
"""


def test_a_repository_with_only_scenarios_and_nightly_toml_gets_its_nights(night, remote, tmp_path):
    caller = tmp_path / "caller"
    (caller / "scenarios").mkdir(parents=True)
    (caller / "scenarios" / "mine.py").write_text(MINE)
    (caller / ".github").mkdir()
    short = SHORT.replace("-s ways -a way=fine", "-s mine --trust")
    nights = NIGHTS.replace(SHORT, short).replace('"] }]', '"], id = "rack-7" }]')
    (caller / ".github" / "nightly.toml").write_text(nights)
    ran = night(1, "night.yml", caller=caller)
    assert {*results(ran).values()} == {"success"}, "\n".join(value.log for value in ran.values())
    (kept,) = [name for name in listed(remote) if name.endswith(".json")]
    document = json.loads(git(remote, "show", f"harness-history:{kept}"))
    assert {point["scenario"] for point in document["points"]} == {"mine"}
    # the id of nightly.toml: the runner is a new machine each night
    assert [entry["machine"] for entry in document["machines"]] == [{"id": "rack-7", "name": "hosted"}]


def test_a_machine_that_fails_is_told_and_the_others_numbers_are_kept(night, remote, project, github):
    (project / ".github" / "nightly.toml").write_text(
        NIGHTS + f'[[night]]\nname = "gpu"\narguments = "{SHORT} --gpu"\n'
        'machines = [{ name = "rack", runs-on = ["self-hosted", "gpu"] }]\n'
    )
    ran = night(1)
    assert results(ran) == {
        "plan": "success", "measure: cpu hosted": "success", "measure: gpu rack": "failure", "wait": "success",
        "merge": "failure", "history": "success", "alarm": "success", "documentation": "success",
    }, "\n".join(value.log for value in ran.values())  # fmt: skip
    # the error, wherever somebody looks, and not its code alone
    said = ran["measure: gpu rack"].summary
    assert said.startswith("### rack measured nothing\n\n```\n")
    assert "**rack sent no run of the night gpu.**" in ran["merge"].summary
    error = next(line for line in said.splitlines() if line.startswith("GPU"))
    assert error in ran["merge"].summary
    (issue,) = github.load().issues
    assert issue["title"] == "No nightly run of rack yet"
    assert error in issue["body"]
    assert len([name for name in listed(remote) if name.endswith(".json")]) == 1


def test_a_failure_before_the_measurement_is_the_reason_in_the_issue(night, project, github, tmp_path):
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("\n[[", '\nregistry = "ghcr.io/me/"\n[[', 1))
    docker = tmp_path / "bin" / "docker"
    docker.write_text("#!/bin/sh\necho 'Error: https://me:s3cret@ghcr.io/v2/: denied' >&2\nexit 1\n")
    docker.chmod(0o755)
    ran = night(1)
    assert results(ran)["measure: cpu hosted"] == "failure", ran["measure: cpu hosted"].log
    for text in (ran["measure: cpu hosted"].summary, ran["merge"].summary, github.load().issues[0]["body"]):
        assert "Error: https://ghcr.io/v2/: denied" in text


def test_a_confirmed_change_becomes_one_issue(night, project, remote, github, *, tmp_path, monkeypatch):
    seed(tmp_path / "seed", remote, monkeypatch)
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("hosted", "lab"))
    monkeypatch.setenv("TODAY", "2026-10-21")
    told = night(1, "night.yml", only="alarm", **{"dry-run": True})["alarm"]
    assert (told.result, github.load().issues) == ("success", []), told.log
    assert "Slower since 2026-10-13" in told.summary
    for number in (2, 3):
        told = night(number, "night.yml", only="alarm")["alarm"]
        assert told.result == "success", told.log
    (issue,) = github.load().issues
    assert issue["title"] == "Slower since 2026-10-13: step in tf2.0, on lab"
    assert issue["labels"] == [LABEL]
    assert issue["body"].endswith(f"/{REPOSITORY}/actions/runs/2)")
    assert github.load().writes == ["issue create"]
    assert told.summary.startswith("### Alarm\n\n- keep #1: Slower since 2026-10-13: ")

    # days without a run are an issue too, which the next run closes
    for number, (day, state) in enumerate([("2026-10-25", "OPEN"), ("2026-10-21", "CLOSED")], 4):
        monkeypatch.setenv("TODAY", day)
        told = night(number, "night.yml", only="alarm")["alarm"]
        silent = github.load().issues[1]
        assert (silent["title"], silent["state"]) == ("No nightly run of lab since 2026-10-20", state), told.log


def test_only_machines_of_the_night_that_was_asked_for_get_an_issue(
    night, project, remote, github, *, tmp_path, monkeypatch
):
    seed(tmp_path / "seed", remote, monkeypatch)
    file = NIGHTS.replace("hosted", "lab") + NIGHTS.replace('"cpu"', '"gpu"').replace("hosted", "rack")
    (project / ".github" / "nightly.toml").write_text(file)
    monkeypatch.setenv("TODAY", "2026-10-25")
    for number, (name, machines) in enumerate({"cpu": ["lab"], "gpu": ["lab", "rack"]}.items(), 1):
        ran = night(number, "night.yml", only="alarm", night=name)["alarm"]
        assert ran.result == "success", ran.log
        silent = [issue for issue in github.load().issues if issue["title"].startswith("No nightly run of ")]
        assert [(entry["title"].split()[4], entry["state"]) for entry in silent] == [
            (name, "OPEN") for name in machines
        ]


def test_a_machine_with_nothing_to_measure_gets_no_issue(night, project, remote, github, *, tmp_path, monkeypatch):
    seed(tmp_path / "seed", remote, monkeypatch)
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("hosted", "lab"))
    (tmp_path / "night-1" / "artifacts" / "cpu--lab").mkdir(parents=True)
    (tmp_path / "night-1" / "artifacts" / "cpu--lab" / "idle").touch()
    monkeypatch.setenv("TODAY", "2026-10-25")
    ran = night(1, "night.yml", only="alarm")["alarm"]
    assert ran.result == "success", ran.log
    assert [issue["title"] for issue in github.load().issues] == ["Slower since 2026-10-13: step in tf2.0, on lab"]


def test_a_change_that_is_muted_is_no_issue(night, project, remote, github, *, tmp_path, monkeypatch):
    seed(tmp_path / "seed", remote, monkeypatch)
    mute = '[[mute]]\nseries = "step tf2.0 *"\nreason = "bug 5"\nuntil = 2026-10-31\n'
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("hosted", "lab") + mute)
    monkeypatch.setenv("TODAY", "2026-10-21")
    told = night(1, "night.yml", only="alarm")["alarm"]
    assert (told.result, github.load().issues) == ("success", []), told.log


def seed(place, remote, monkeypatch):
    """Push a history in which a change of another machine was confirmed."""
    place.mkdir()
    monkeypatch.chdir(place)
    monkeypatch.setenv("HARNESS_HISTORY", str(place / "history.duckdb"))
    planned = cells()
    folders = []
    for number in range(1, 21):
        seconds = {entry: 0.01 * (1.1 if number > 12 and entry == planned[-1] else 1.0) for entry in planned}
        made = run(
            planned, controlled=True, id=f"2026-10-{number:02}T04-10-00Z-aaaa",
            started=f"2026-10-{number:02}T04:10:00+00:00", machine=Machine("m-00000001", "lab"),
        )  # fmt: skip
        made = replace(made, stops={group.name: Stop(StopReason.ROUNDS, 5) for group in made.plan.groups})
        folders.append(stored(Path("results"), made, rounds(seconds, 5, 0.002, number)))
    with History.open(writing=True) as history:
        history.add_all(map(summary_of, folders))
        (found,) = [change for change in find_changes(history.series()) if change.ratio > 1.0]
        when = "2026-10-21T04:10:00+00:00"
        history.decide(Decision(found.key, found.since, found.suspects, True, "run-c", when, 1.1, 1.09, 1.11))
    subprocess.run([sys.executable, "-m", "harness", "history", "export", "--git", "branch"], check=True,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip
    monkeypatch.delenv("HARNESS_HISTORY")
    git("branch", "init", "-q", "-b", "harness-history")
    git("branch", "add", ".")
    git("branch", "-c", "user.name=N", "-c", "user.email=n@example.org", "commit", "-qm", "seed")
    git("branch", "push", "-q", remote, "harness-history")


@pytest.fixture
def plan(tmp_path):
    """Run the plan of a file; returns the process and its outputs."""

    def ran(text, **more):
        (tmp_path / "nightly.toml").write_text(text)
        output = tmp_path / "output"
        output.write_text("")
        environ = {
            **os.environ, "NIGHTLY_FILE": str(tmp_path / "nightly.toml"), "GITHUB_OUTPUT": str(output),
            "GITHUB_STEP_SUMMARY": os.devnull, "GITHUB_RUN_ID": "77", **more,
        }  # fmt: skip
        script = [ROOT / ".github" / "nightly" / "plan"]
        done = subprocess.run(script, env=environ, capture_output=True, text=True, check=False)
        return done, dict(line.split("=", 1) for line in output.read_text().splitlines())

    return ran


def test_a_file_that_is_wrong_stops_the_night_with_its_place(night, project):
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("machines", "machine"))
    ran = night(1)
    assert results(ran)["plan"] == "failure"
    assert ran["plan"].log.startswith("::error file=.github/nightly.toml::")
    assert "Unknown key 'machine' in night 1. Did you mean 'machines'?" in ran["plan"].log
    others = {name: each for name, each in results(ran).items() if name not in ("plan", "documentation")}
    # what watches the machines isn't silent because of it
    assert others.pop("alarm") == "failure"
    assert {*others.values()} == {"skipped"}


def test_a_machine_that_sends_nothing_because_the_file_is_wrong_gets_an_issue_with_the_error(
    night, project, remote, github, *, tmp_path, monkeypatch
):
    seed(tmp_path / "seed", remote, monkeypatch)
    (project / ".github" / "nightly.toml").write_text(NIGHTS.replace("machines", "machine"))
    for number, (day, count) in enumerate({"2026-10-21": 0, "2026-12-25": 1}.items(), 1):
        monkeypatch.setenv("TODAY", day)
        told = night(number, "night.yml", only="alarm")["alarm"]
        assert "Unknown key 'machine'" in told.log
        # no slowdown: the file could mute it
        assert [issue["title"] for issue in github.load().issues] == ["No nightly run of lab since 2026-10-20"] * count
    (issue,) = github.load().issues
    assert "Unknown key 'machine' in night 1. Did you mean 'machines'?" in " ".join(issue["body"].split())
    assert issue["state"] == "OPEN"


def test_machines_of_one_night_share_a_plan(plan):
    _, outputs = plan(NIGHTS.replace("machines = [", "machines = [{ name = 'a', runs-on = ['a'] }, "))
    first, second = json.loads(outputs["jobs"])
    assert first["arguments"] == f"{SHORT} --seed 77 --shard 1/2"
    assert second["arguments"] == f"{SHORT} --seed 77 --shard 2/2"


@pytest.mark.parametrize(
    ("labels", "resolved"),
    [
        ('"ubuntu-24.04"', "ubuntu-24.04"),
        ('["self-hosted", "gpu"]', ["self-hosted", "gpu"]),
        ('"runs-on=${{ github.run_id }}/family=g6"', "runs-on=77/family=g6"),
        ('{ group = "g-${{github.run_id}}", labels = ["a"] }', {"group": "g-77", "labels": ["a"]}),
    ],
)
def test_a_runner_is_named_as_github_takes_it(plan, labels, resolved):
    _, outputs = plan(NIGHTS.replace('["ubuntu-24.04"]', labels))
    assert json.loads(outputs["jobs"])[0]["runs-on"] == resolved


def test_an_expression_without_a_value_is_refused(plan):
    done, _ = plan(NIGHTS.replace('["ubuntu-24.04"]', '"${{ secrets.x }}"'))
    assert done.returncode == 1
    assert "Invalid expression '${{ secrets.x }}' in runs-on. Valid: github." in done.stderr


@pytest.mark.parametrize(
    ("machines", "warns"),
    [
        ("{ name = 'rack', runs-on = 'x', minutes = 600 }, { name = 'lab', runs-on = 'x' }", True),
        ("{ name = 'rack', runs-on = 'x', minutes = 350 }, { name = 'lab', runs-on = 'x' }", False),
        # nobody else waits for it
        ("{ name = 'rack', runs-on = 'x', minutes = 600 }", False),
    ],
)
def test_a_machine_that_can_measure_longer_than_the_job_that_waits_is_named(plan, machines, warns):
    done, _ = plan(NIGHTS[: NIGHTS.index("machines")] + f"machines = [{machines}]\n")
    assert done.returncode == 0, done.stderr
    assert ("rack may measure for 600 minutes." in done.stdout) is warns


def test_a_night_that_is_not_in_the_file_is_refused(plan):
    done, _ = plan(NIGHTS, NIGHT="gpu")
    assert "Unknown nightly run 'gpu'. The nightly runs in the file: cpu." in done.stderr


@pytest.mark.parametrize(
    ("states", "minutes", "late"),
    [
        # all started: the script doesn't wait for their end
        ([["in_progress", "in_progress"]], 60, False),
        ([["queued", "in_progress"], ["in_progress", "completed"]], 60, False),
        # what GitHub doesn't list yet is queued
        ([[None, "completed"], ["in_progress", "completed"]], 60, False),
        # too late, but the other machine still measures: cancelled when it has ended
        ([["queued", "in_progress"], ["queued", "in_progress"], ["queued", "completed"]], 0, True),
        ([["pending", "completed"]], 0, True),
    ],
)
def test_a_machine_that_does_not_start_in_time_is_named_and_cancelled(tmp_path, github, states, minutes, late):
    names = ["gpu on rack", "cpu on hosted"]
    github.states = [{name: state for name, state in zip(names, entry, strict=True) if state} for entry in states]
    github.save()
    github.install(tmp_path)
    jobs = [{"night": "gpu", "machine": "rack"}, {"night": "cpu", "machine": "hosted"}]
    environ = {
        **os.environ, **ENVIRON, "PATH": f"{tmp_path}:{os.environ['PATH']}", "JOBS": json.dumps(jobs),
        "WAIT_MINUTES": str(minutes), "POLL_SECONDS": "0", "GITHUB_RUN_ID": "77",
        "GITHUB_STEP_SUMMARY": str(tmp_path / "page"),
    }  # fmt: skip
    subprocess.run([ROOT / ".github" / "nightly" / "wait"], env=environ, check=True)
    github = github.load()
    assert github.writes == (["run cancel 77"] if late else [])
    assert github.states == [{name: state for name, state in zip(names, states[-1], strict=True) if state}]
    if late:
        assert (tmp_path / "page").read_text().startswith("- **rack did not start within 0 minutes.")


def test_what_was_measured_is_merged_and_reported_after_a_cancellation():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "night.yml").read_text())["jobs"]
    for name in ("merge", "history", "alarm"):
        assert "always()" in jobs[name]["if"], name


#: A uv that writes down its arguments, and a Python whose pip installs this uv.
UV = """#!/bin/sh
echo "$@" >>"{log}"
for last; do :; done
case "$1" in venv) mkdir -p "$last/bin"; ln -s /bin/true "$last/bin/harness" ;; esac
"""
PYTHON = """#!/bin/sh
until [ "$1" = --target ]; do shift; done
mkdir -p "$2/bin"
cp "{uv}" "$2/bin/uv"
"""


def test_jobs_build_and_install_the_harness_with_locked_versions_only(tmp_path):
    log = tmp_path / "log"
    for name, text in {"uv": UV.format(log=log), "python3": PYTHON.format(uv=tmp_path / "uv")}.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environ = {
        **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path / "temp"),
        "GITHUB_PATH": str(tmp_path / "path"),
    }  # fmt: skip
    subprocess.run([ROOT / ".github" / "actions" / "measure" / "install"], env=environ, check=True)
    (installed,) = [line for line in log.read_text().splitlines() if line.startswith("pip install ")]
    for option in ("--constraint", "--build-constraint"):
        assert f" {option} {ROOT / 'requirements.txt'} " in installed


@pytest.fixture
def runner(tmp_path):
    """Run `install` on a runner that has no Python from 3.11 on, and no pip. The package index has uv's wheel."""
    clone, bin_, log = tmp_path / "clone", tmp_path / "bin", tmp_path / "log"
    script = clone / ".github" / "actions" / "measure" / "install"
    script.parent.mkdir(parents=True)
    shutil.copy(ROOT / ".github" / "actions" / "measure" / "install", script)
    machine = os.uname().machine
    name = f"uv-1.2.3-py3-none-manylinux_2_17_{machine}.manylinux2014_{machine}.whl"
    uv = UV.format(log=log).replace('case "$1" in', 'if [ "$1 $2" = "python find" ]; then exit 1; fi\ncase "$1" in')
    with zipfile.ZipFile(tmp_path / name, "w") as wheel:
        wheel.writestr("uv-1.2.3.data/scripts/uv", uv)
    (clone / "images").mkdir()
    digest = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
    (clone / "images" / "uv.txt").write_text(f"uv==1.2.3 \\\n    --hash=sha256:{digest}\n")
    (tmp_path / "page").write_text(f'<a href="https://files/{name}#sha256={digest}">{name}</a>')
    curl = f"""#!/bin/sh
while [ $# -gt 1 ]; do if [ "$1" = --output ]; then out=$2; fi; shift; done
case "$1" in
  */simple/uv/) cat "{tmp_path}/page" ;;
  https://files/*) cp "{tmp_path}/${{1##*/}}" "$out" ;;
  *) exit 22 ;;
esac
"""
    bin_.mkdir()
    for name, text in {
        "curl": curl,
        "unzip": f'#!/bin/sh\nexec "{sys.executable}" -m zipfile -e "$3" "$5"\n',
    }.items():
        (bin_ / name).write_text(text)
        (bin_ / name).chmod(0o755)
    tools = "bash cat chmod cp cut dirname env grep head ln mkdir sed sh sha256sum true uname"
    for name in tools.split(" "):
        (bin_ / name).symlink_to(shutil.which(name))

    def ran(**more):
        environ = {
            "PATH": str(bin_), "RUNNER_TEMP": str(tmp_path / "temp"), "GITHUB_PATH": str(tmp_path / "path"), **more,
        }  # fmt: skip
        (tmp_path / "temp").mkdir(exist_ok=True)
        done = subprocess.run([script], env=environ, capture_output=True, text=True, check=False)
        return done, log.read_text().splitlines() if log.exists() else []

    return ran


INDEX = "https://me:s3cret@index.example.org/simple/"


def test_a_runner_without_python_gets_uv_from_the_index_and_python_from_uv(runner):
    done, commands = runner(PACKAGE_INDEX=INDEX)
    assert done.returncode == 0, done.stderr
    assert "python install 3.11" in commands
    assert any(command.startswith("venv --quiet --no-project --python 3.11 ") for command in commands)


@pytest.mark.parametrize(
    ("index", "page", "message"),
    [
        ("", None, "This runner has no pip. Install Python with pip, or set the input package-index"),
        (INDEX, "nothing", "::error::https://index.example.org/simple/uv/ has no file uv-1.2.3"),
        (INDEX, None, "isn't the file that images/uv.txt pins."),
    ],
)
def test_a_runner_that_cannot_get_uv_says_what_is_missing_and_no_password(runner, tmp_path, *, index, page, message):
    if page:
        (tmp_path / "page").write_text(page)
    else:
        (tmp_path / "clone" / "images" / "uv.txt").write_text("uv==1.2.3 --hash=sha256:0\n")
    done, commands = runner(PACKAGE_INDEX=index)
    assert (done.returncode, commands) == (4, [])
    assert message in done.stderr
    assert "s3cret" not in done.stdout + done.stderr


#: A Docker Engine with the images of two releases and of release lines.
DOCKER = """#!/bin/sh
echo "$@" >>"{log}"
case "$1 $2" in
  "image ls") printf 'harness/%s\\n' tf2.15:cpu tf2.21:cpu tf2.21-keras-nightly:cpu tf-nightly:cpu '<none>' ;;
  "image inspect") printf '%s\\n' 2000000000 "${{SIZE:-1000}}" ;;
  save*) echo images ;;
esac
"""


@pytest.fixture
def images(tmp_path):
    """Run the script that keeps images in GitHub's cache; returns its outputs and the commands of docker."""
    log = tmp_path / "log"
    (tmp_path / "docker").write_text(DOCKER.format(log=log))
    (tmp_path / "docker").chmod(0o755)

    def ran(what, **more):
        log.write_text("")
        (tmp_path / "output").write_text("")
        environ = {
            **os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path),
            "GITHUB_OUTPUT": str(tmp_path / "output"), "RUNNER_ENVIRONMENT": "github-hosted", "ARGUMENTS": "-s step",
            **more,
        }  # fmt: skip
        script = [ROOT / ".github" / "actions" / "measure" / "images", what]
        done = subprocess.run(script, cwd=tmp_path, env=environ, capture_output=True, text=True, check=True)
        outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
        return outputs, log.read_text(), done.stdout

    return ran


def test_a_runner_that_is_new_each_night_keeps_the_images_of_releases_in_the_cache(images, tmp_path):
    outputs, commands, _ = images("save")
    assert outputs == {"saved": "true"}
    assert "save harness/tf2.15:cpu harness/tf2.21:cpu\n" in commands
    file = tmp_path / "harness-images.tar.gz"
    _, commands, _ = images("load")
    assert f"load --quiet --input {file}" in commands
    assert not file.exists()
    # too large for GitHub
    outputs, _, said = images("save", SIZE="7000000000")
    assert (outputs, file.exists()) == ({}, False)
    assert "The images have 9 GB" in said


def test_the_cache_is_of_what_is_measured_and_only_for_a_machine_without_images_of_its_own(images):
    ((_, key),) = images("key")[0].items()
    assert images("key", ARGUMENTS="-s step --seed 7 --shard 1/2")[0] == {"key": key}
    assert images("key", ARGUMENTS="-s step -e tf2.15")[0]["key"] != key
    assert images("key", RUNNER_ENVIRONMENT="self-hosted", MACHINE_ID="aws")[0] == {"key": key}
    assert images("key", RUNNER_ENVIRONMENT="self-hosted")[0] == {}
    assert images("key", REGISTRY="ghcr.io/me/")[0] == {}


def test_an_issue_keeps_the_link_to_the_flame_graphs_until_its_change_is_confirmed_again(tmp_path, github):
    github.install(tmp_path)
    first, again = ("Confirmed on 2026-11-20: both sides were measured again in the run run-1.", "In the run run-2.")
    github.add(title="Slower", body=f"{first}\n\n[Workflow run](https://x/actions/runs/1)")
    github.save()
    for body, run_id in ((f"{first}\n\nMore.", "1"), (first.replace("run-1", "run-2"), "9"), (again, "9")):
        known = tmp_path / "issues.json"
        known.write_text(json.dumps(github.load().issues))
        step = {"step": "edit", "number": 1, "title": "Slower", "body": body, "labels": [], "why": "Text differs."}
        environ = {
            **os.environ, **ENVIRON, "PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_SERVER_URL": "https://x",
            "GITHUB_REPOSITORY": "a/b", "GITHUB_RUN_ID": "9",
        }  # fmt: skip
        script = [ROOT / ".github" / "nightly" / "issues", known]
        subprocess.run(script, env=environ, input=json.dumps([step]), text=True, check=True)
        text = github.load().issues[0]["body"]
        assert text.startswith(body)
        assert text.endswith(f"/actions/runs/{run_id})")


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
STEPS = [
    (path.name, step["run"])
    for path in [*WORKFLOWS, *sorted((ROOT / ".github" / "actions").rglob("action.yml"))]
    for job in (yaml.safe_load(path.read_text()).get("jobs") or {"": yaml.safe_load(path.read_text())["runs"]}).values()
    for step in job.get("steps", [])
    if "run" in step and not step["run"].startswith("make ")
]


@pytest.mark.parametrize(("workflow", "script"), [entry for entry in STEPS if entry[0] != "ci.yml"])
def test_every_step_is_a_script_of_the_repository(workflow, script):
    words = script.replace('"', "").replace("$GITHUB_ACTION_PATH", ".github/actions/measure").split()
    # `attempt` runs another one
    names = [word.removeprefix(".harness/") for word in words]
    for name in [names[0], *(name for name in names[1:] if name.startswith(".github/"))]:
        assert os.access(ROOT / name, os.X_OK), f"{workflow}: {script}"


def test_every_job_has_the_scripts_of_the_called_workflow_itself():
    """The repository that calls it has none, and its code isn't what writes to its history and issues."""
    for job in yaml.safe_load((ROOT / ".github" / "workflows" / "night.yml").read_text())["jobs"].values():
        checkouts = [step["with"] for step in job["steps"] if "checkout" in step.get("uses", "")]
        assert checkouts[-1]["repository"] == "${{ job.workflow_repository }}"
        assert (checkouts[-1]["ref"], checkouts[-1]["path"]) == ("${{ job.workflow_sha }}", ".harness")
        for step in job["steps"]:
            assert step.get("run", ".harness/").startswith(".harness/")
            assert step.get("uses", "actions/").startswith(("actions/", "./.harness/"))


def test_the_first_step_to_an_own_machine_is_the_setting_that_keeps_strangers_code_from_it():
    """A pull request may change `runs-on` in any workflow, so no file of the repository protects a machine."""
    text = (ROOT / "docs" / "how-to" / "nightly-runners.md").read_text()
    first = " ".join(text[text.index("\n1. ") : text.index("\n2. ")].split())
    assert first.startswith("1. **First, restrict who can run code on the machine.** ")
    assert "the pull request can change `runs-on` in a workflow" in first
    setting = "**Settings → Actions → General → Approval for running fork pull request workflows from contributors**"
    assert f"{setting}, and select *all external contributors*" in first
    assert "new private repository" in first


def test_this_repositorys_own_workflows_for_pull_requests_run_on_githubs_machines_without_write_access():
    for path in WORKFLOWS:
        workflow = yaml.safe_load(path.read_text())
        starts = workflow[True]  # `on`, as YAML 1.1 reads it
        assert "pull_request_target" not in starts
        if "pull_request" in starts:
            for job in workflow["jobs"].values():
                assert job["runs-on"] == "ubuntu-24.04"
                assert "write" not in json.dumps(job.get("permissions", {}))


def test_the_site_is_built_with_the_history_of_the_nights(night, project, remote, tmp_path):
    branch = tmp_path / "branch"
    shutil.copytree(ROOT / "docs" / "examples" / "week" / "nights", branch)
    git(branch, "init", "-q", "-b", "harness-history")
    git(branch, "add", ".")
    git(branch, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "A week")
    git(branch, "push", "-q", str(remote), "harness-history")
    make_project(project)
    shutil.copy(ROOT / "Makefile", project)
    for name in ("requirements.txt", "pyproject.toml", "images/uv.txt"):
        (project / name).touch()
    python = project / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    (project / ".venv" / ".ready").touch()
    ran = night(1, "documentation.yml")
    assert results(ran) == {"build": "success", "publish": "success"}, ran["build"].log
    site = tmp_path / "night-1" / "artifacts" / "github-pages"
    assert "<title>History of 7 runs" in (site / "history.html").read_text()
    assert re.search(r'href="(\.\./)*history.html"', (site / "index.html").read_text())
    assert 'href="../../history.html"' in (site / "docs" / "reference" / "page.html").read_text()


def test_shares_of_a_night_are_merged_and_a_machine_that_sent_none_is_named(tmp_path, project):
    whole, parts = merging.run(), [merging.run(calls=(call,)) for call in merging.CALLS]
    names = [group.name for group in whole.plan.groups]
    jobs = [{"night": "shared", "machine": name} for name in ("a", "b", "c", "d")]
    (tmp_path / "fork" / "artifacts" / "shared--d").mkdir(parents=True)
    (tmp_path / "fork" / "artifacts" / "shared--d" / "idle").touch()
    for number, (part, elsewhere) in enumerate(zip(parts, reversed(names), strict=True), 1):
        made = merging.sharded(part, number, 2, {elsewhere: 3 - number})
        artifact = tmp_path / "fork" / "artifacts" / f"shared--{'ab'[number - 1]}"
        folder = stored(artifact, made, merging.launches(part, seed=number))
        (artifact / "night").write_text(f"{folder.name}\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "harness").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m harness "$@"\n')
    (tmp_path / "bin" / "harness").chmod(0o755)
    environ = {
        **os.environ, "JOBS": json.dumps(jobs), "GITHUB_STEP_SUMMARY": str(tmp_path / "page"), "PYTHONPATH": str(ROOT),
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "HARNESS_DATA_DIR": str(tmp_path / "data"),
    }  # fmt: skip
    script = [".github/nightly/merge"]
    done = subprocess.run(script, cwd=project, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    assert "::error::c sent no run of the night shared." in done.stdout
    (merged,) = (project / "runs").iterdir()
    assert {launch["group"] for launch in map(json.loads, (merged / "launches.jsonl").read_text().splitlines())} == set(
        names
    )
    page = (tmp_path / "page").read_text()
    assert page.startswith("- **c sent no run of the night shared.**")
    assert "- d had nothing to measure in the night shared: its share of the plan is empty." in page
    assert "d sent no run" not in done.stdout
    assert "harness report" in page


#: A harness whose `matrix` ends with CODE, with a run if RUN is set. Its `history confirm` stores a decision, and is
#: killed with its job if KILLED is set.
HARNESS = """#!/bin/sh
echo "$@" >>"$RUNNER_TEMP/commands"
case "$1 $2" in
  matrix*) if [ -n "$RUN" ]; then mkdir -p "results/$RUN"; echo "{}" >"results/$RUN/run.json"; fi; exit "$CODE" ;;
  report*) echo "the table of $2" ;;
  "history confirm")
    echo decision >>"${HARNESS_HISTORY%.duckdb}.decisions.jsonl"
    if [ -n "$KILLED" ]; then kill -9 "$PPID"; fi ;;
esac
"""


@pytest.fixture
def measure(tmp_path):
    """Run the script that measures, with a fake harness; returns the process, the page and the results."""
    for name, text in {"harness": HARNESS, "docker": "#!/bin/sh\nexit 1\n"}.items():
        (tmp_path / "bin").mkdir(exist_ok=True)
        (tmp_path / "bin" / name).write_text(text)
        (tmp_path / "bin" / name).chmod(0o755)
    (tmp_path / "work").mkdir()

    def ran(arguments, **more):
        environ = {
            **os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(tmp_path / "page"), "MACHINE": "rack", "HISTORY": "", "CONFIRM_BUDGET": "1m",
            "ARGUMENTS": arguments, "RUN": "", "CODE": "0", "KILLED": "", **more,
        }  # fmt: skip
        script = [ROOT / ".github" / "actions" / "measure" / "measure"]
        done = subprocess.run(script, cwd=tmp_path / "work", env=environ, capture_output=True, text=True, check=False)
        page = tmp_path / "page"
        return done, page.read_text() if page.exists() else "", tmp_path / "work" / "results"

    return ran


@pytest.mark.parametrize(
    ("arguments", "option"),
    [("-s step", ""), ("--gpus 0,1", " --gpu"), ("--device cpu,gpu", " --gpu"), ("--device=gpu", " --gpu")],
)
def test_leftovers_are_removed_and_the_machine_is_checked_before_it_measures(measure, tmp_path, *, arguments, option):
    measure(arguments, RUN="run-1")
    first, second, third, *_ = (tmp_path / "commands").read_text().splitlines()
    assert (first, second) == ("clean", f"doctor --no-listen{option}")
    assert third.startswith(f"matrix {arguments} ")


COMPARE = "--base HEAD^1 --head HEAD -s * -e tf2.15 --fail-on slower"


def test_a_pull_request_whose_versions_do_different_work_shows_the_table_and_fails(measure):
    done, page, _ = measure(COMPARE, RUN="run-1", CODE="3")
    assert (done.returncode, page) == (3, "the table of results/run-1\n")


def test_a_pull_request_without_a_changed_scenario_has_no_run_and_succeeds(measure):
    done, page, _ = measure(COMPARE, CODE="3")
    assert (done.returncode, page) == (0, "### No scenario changed: nothing to set side by side\n")


def test_a_machine_whose_share_of_the_plan_is_empty_succeeds_and_says_so(measure):
    done, page, results = measure("-s step --seed 7 --shard 2/2")
    assert done.returncode == 0, done.stderr
    assert page == "### rack has nothing to measure: its share of the plan is empty\n"
    assert [path.name for path in results.iterdir()] == ["idle"]
    # a command that ends without a run and without a reason is an error
    assert measure("-s step")[0].returncode == 1


def test_a_decision_is_among_the_results_though_the_job_is_killed_at_its_time_limit(measure, tmp_path):
    done, _, results = measure("-s step", RUN="run-1", HISTORY=str(tmp_path / "branch"), KILLED="yes")
    assert done.returncode == -9
    assert (results / "decisions.jsonl").read_text() == "decision\n"


WAITS = """\
# /// script
# requires-python = ">=3.6"
# dependencies = []
#
# [tool.harness]
# title = "What waits"
# ///
import time


def scenario(bench):
    bench.measure(lambda: time.sleep(SECONDS))
"""


@pytest.fixture
def pull_request(tmp_path, project, remote):
    """Check out what GitHub makes of a pull request that changes how long a scenario waits: a merge, two commits deep.

    The workflow is the project's own, but for what it measures with: no TensorFlow, and as short as can be.
    """
    workflow = project / ".github" / "workflows" / "pull-request.yml"
    asked = "-e tf2.15 --budget 20m"
    assert asked in workflow.read_text()
    short = "-e new --backend local --trust --rounds 4 --warmup 1ms --measure 10ms"
    workflow.write_text(workflow.read_text().replace(asked, short))
    author = ("-c", "user.name=N", "-c", "user.email=n@example.org")

    def opened(before, after):
        def commit(seconds):
            (project / "scenarios" / "waits.py").write_text(WAITS.replace("SECONDS", seconds))
            git(project, "add", ".")
            git(project, *author, "commit", "-qm", "x")

        git(project, "init", "-q", "-b", "main")
        commit(before)
        git(project, "push", "-q", remote, "main")
        git(project, "switch", "-qc", "mine")
        commit(after)
        git(project, "switch", "-q", "main")
        git(project, *author, "merge", "-q", "--no-ff", "-m", "merge", "mine")
        git(project, "push", "-q", remote, "main:refs/pull/1/merge")
        shutil.rmtree(project)
        git(tmp_path, "init", "-q", project)
        git(project, "fetch", "-q", "--depth=2", remote.as_uri(), "refs/pull/1/merge")
        git(project, "checkout", "-q", "FETCH_HEAD")

    return opened


def test_a_pull_request_that_makes_a_scenario_slower_fails_and_writes_nothing(night, pull_request, github, remote):
    pull_request("0.01", "0.04")
    before = git(remote, "for-each-ref")
    ran = night(1, "pull-request.yml")["compare"]
    assert ran.result == "failure", ran.log
    # the base against the head, and the other scenario, which is as it was, left out
    assert "scenarios/ways.py is the same in HEAD^1 and HEAD, so it is not measured." in ran.log
    assert re.search(r"\| head vs base, new \| [345]\.\d+×\s.* \| slower +\|", ran.summary), ran.summary
    # it has the token of a stranger: no comment, no issue, nothing pushed
    assert github.load().writes == []
    assert git(remote, "for-each-ref") == before


def test_a_pull_request_that_changes_no_scenario_says_so(night, project):
    def commit():
        git(project, "add", ".")
        git(project, "-c", "user.name=N", "-c", "user.email=n@example.org", "commit", "-qm", "x", "--allow-empty")

    git(project, "init", "-q")
    commit()
    commit()
    ran = night(1, "pull-request.yml")["compare"]
    assert ran.result == "success", ran.log
    assert ran.summary == "### No scenario changed: nothing to set side by side\n"
