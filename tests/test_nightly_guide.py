"""The guides to nightly runs and CI jobs: commands run, files are valid, and workflows fit what they use."""

import pytest
import yaml

from tests.commands import git
from tests.conftest import ROOT
from tests.documents import find_blocks
from tests.workflow import install_harness, push_history, run_script

GUIDE, JOB = ((ROOT / "docs" / "how-to" / name).read_text() for name in ("run-nightly-in-ci.md", "measure-in-ci.md"))

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


COMMANDS = [line for block in find_blocks(GUIDE, "sh") for line in block.splitlines()]
#: The check of a pull request on your machine, before you push.
LOCAL = [block.removeprefix("$ ").strip() for block in find_blocks(JOB, "console") if "scenarios/mine.py" in block]
WORKFLOWS = [block for block in find_blocks(GUIDE + JOB, "yaml") if "uses: OWNER/harness" in block]


@pytest.fixture
def clone(tmp_path):
    """Return a clone of the fork with a local scenario, whose remote has a history."""
    remote, folder = tmp_path / "remote.git", tmp_path / "clone"
    git(tmp_path, "init", "-q", "--bare", remote)
    push_history(tmp_path / "seed", remote)
    git(tmp_path, "init", "-q", "-b", "main", folder)
    for name in (".github", "docker-bake.hcl", "images"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "scenarios").mkdir()
    for path in (ROOT / "scenarios").iterdir():
        (folder / "scenarios" / path.name).symlink_to(path)
    (folder / "scenarios" / "mine.py").write_text(MINE)
    git(folder, "add", "scenarios/mine.py")
    git(folder, "commit", "-qm", "mine")
    git(folder, "remote", "add", "origin", str(remote))
    (folder / "scenarios" / "mine.py").write_text(MINE.replace("1000", "1001"))
    return folder


@pytest.mark.slow
def test_every_command_runs_in_the_order_of_the_guide(clone, tmp_path, monkeypatch):
    monkeypatch.delenv("HARNESS_PROJECT", raising=False)
    install_harness(tmp_path / "bin")
    assert len(COMMANDS) > 12
    assert len(LOCAL) == 1
    for command in [*COMMANDS, *LOCAL]:
        if command.startswith("export "):
            monkeypatch.setenv(*command.removeprefix("export ").split("="))
            continue
        # keep the containers of other tests, which hold no lock that this user's `harness clean` knows
        engine = {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"} if command == "harness clean" else {}
        process = run_script("bash", "-c", command, cwd=clone, programs=tmp_path / "bin", **engine)
        assert process.returncode == 0, f"{command}\n{process.stdout}{process.stderr}"


@pytest.mark.slow
def test_every_file_of_machines_is_one(tmp_path):
    file, output = tmp_path / "nightly.toml", tmp_path / "output"
    for block in find_blocks(GUIDE, "toml"):
        file.write_text(block)
        output.write_text("")
        script = ROOT / ".github" / "nightly" / "plan"
        process = run_script(script, NIGHTLY_FILE=file, GITHUB_RUN_ID="1", GITHUB_OUTPUT=output)
        assert process.returncode == 0, process.stdout + process.stderr
        assert output.read_text().startswith('jobs=[{"night": ')


def required(inputs):
    return {name for name, definition in inputs.items() if definition.get("required")}


def test_every_workflow_gives_what_it_uses_the_inputs_and_permissions_that_it_needs():
    assert len(WORKFLOWS) == 6
    for block in WORKFLOWS:
        (job,) = yaml.safe_load(block)["jobs"].values()
        (caller,) = [step for step in [job, *job.get("steps", [])] if step.get("uses", "").startswith("OWNER/harness")]
        path, version = caller["uses"].removeprefix("OWNER/harness").strip("/").split("@")
        assert version == ("COMMIT" if path else "v1")
        if "steps" in job:
            inputs = yaml.safe_load((ROOT / path / "action.yml").read_text())["inputs"]
            assert required(inputs) <= caller.get("with", {}).keys() <= inputs.keys()
            continue
        called = yaml.safe_load((ROOT / path).read_text())
        inputs = (called[True]["workflow_call"] or {}).get("inputs", {})
        assert required(inputs) <= job.get("with", {}).keys() <= inputs.keys()
        # GitHub refuses to start a workflow whose jobs need more than the caller grants
        needed = [permission for value in called["jobs"].values() for permission in value["permissions"].items()]
        assert dict(sorted(needed)) == job["permissions"]


def test_the_workflow_for_pull_requests_is_our_own():
    block = next(block for block in WORKFLOWS if "name: Scenarios" in block)
    (job,) = yaml.safe_load(block)["jobs"].values()
    ours = yaml.safe_load((ROOT / ".github" / "workflows" / "pull-request.yml").read_text())["jobs"]["compare"]
    assert job["if"] == ours["if"]
    assert job["steps"][0] == ours["steps"][0] | {"with": job["steps"][0]["with"]}
    assert job["steps"][1]["with"] == {"comment": True}
    assert "with" not in ours["steps"][1]
