"""The templates of the guide to schedulers, started as Slurm and Kubernetes do, on three machines."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import ROOT, Harness
from tests.documents import find_blocks

GUIDE = (ROOT / "docs" / "how-to" / "use-a-scheduler.md").read_text()

SUITE = """
[seed]
title = "Ways"
environments = ["old", "new"]
rounds = 1
[[seed.select]]
scenario = "ways"
way = ["fine"]
speed = ["fast", "slow"]
"""


def submit(harness: Harness, command: list[str], environ: dict[str, str]) -> None:
    """Start a job as a scheduler does, with short launches."""
    bin_folder = harness.root / "bin"
    bin_folder.mkdir(exist_ok=True)
    short = "--warmup 0s --measure 5ms"
    (bin_folder / "harness").write_text(f'#!/bin/sh\nexec {sys.executable} -m harness "$@" {short}\n')
    (bin_folder / "harness").chmod(0o755)
    variables = {**harness.environ, "PYTHONPATH": str(ROOT), "PATH": f"{bin_folder}:{os.environ['PATH']}", **environ}
    job = subprocess.run(command, env=variables, cwd=harness.root, capture_output=True, text=True, check=False)
    assert job.returncode == 0, job.stderr


def submit_to_slurm(harness: Harness, folder: Path) -> None:
    (script,) = find_blocks(GUIDE, "bash")
    assert "#SBATCH --array=1-3\n" in script
    (harness.root / "measure.sh").write_text(script)
    for number in "123":
        variables = {"SLURM_ARRAY_TASK_ID": number, "SLURMD_NODENAME": f"node-{number}", "USER": "me"}
        paths = {"SLURM_SUBMIT_DIR": str(harness.root), "TMPDIR": str(folder / "tmp")}
        submit(harness, ["bash", "measure.sh"], {**variables, **paths})
    (harness.root / "results" / "shards").rename(folder / "shards")


def submit_to_kubernetes(harness: Harness, folder: Path) -> None:
    (text,) = find_blocks(GUIDE, "yaml")
    job = yaml.safe_load(text)["spec"]
    assert (job["completionMode"], job["completions"]) == ("Indexed", 3)
    (container,) = job["template"]["spec"]["containers"]
    (node,) = [variable["name"] for variable in container["env"] if "valueFrom" in variable]
    (mount,) = container["volumeMounts"]
    values = {variable["name"]: variable.get("value", "") for variable in container["env"]}
    assert values["RESULTS"] == mount["mountPath"]
    for index in range(job["completions"]):
        variables = {"JOB_COMPLETION_INDEX": str(index), node: f"node-{index}", "RESULTS": str(folder / "shards")}
        submit(harness, [*container["command"], *container["args"]], variables)


@pytest.mark.slow
@pytest.mark.parametrize("run", [submit_to_slurm, submit_to_kubernetes])
def test_the_shards_of_a_template_make_one_run(harness, tmp_path, run):
    (harness.root / "scenarios" / "suites.toml").write_text(SUITE)
    run(harness, tmp_path)
    shards = sorted((tmp_path / "shards").iterdir())
    assert len(shards) == 2  # one shard has no group
    merged = harness("merge", *map(str, shards), "--results", str(tmp_path / "merged"))
    assert merged.returncode == 0, merged.stderr
    (folder,) = (tmp_path / "merged").iterdir()
    document = json.loads((folder / "run.json").read_text())
    cells = [cell for group in document["plan"]["groups"] for cell in group["cells"]]
    assert len(cells) == 4
    assert {group["machine"] for group in document["plan"]["groups"]} <= {f"node-{number}" for number in range(4)}
