"""The lines under "Reproduce" of a real report, typed as they stand there."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.docker.test_matrix import ROOT, harness

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]


@pytest.fixture(scope="module")
def lines(engine, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the report of a run of two releases, as short as can be, says of running it again without the harness."""
    results = tmp_path_factory.mktemp("results")
    step = [
        "-s",
        "keras_step",
        "-a",
        "model=small",
        "-a",
        "data=small",
        "-a",
        "call=train_on_batch",
        "-a",
        "inputs=numpy",
    ]
    asked = [
        *step,
        "-a",
        "api=tf.keras",
        "-a",
        "mode=graph,eager",
        "-e",
        "tf1.14",
        "-e",
        "tf2.0",
        "--backend",
        "docker",
    ]
    done = harness(
        "matrix", *asked, "--rounds", "1", "--warmup", "10ms", "--measure", "50ms", "--results", str(results)
    )
    assert done.returncode == 0, done.stderr
    (folder,) = results.iterdir()
    again = (folder / "report.md").read_text().split("## Reproduce")[1]
    return [line for line in again.splitlines() if line.startswith("docker ")]


def typed(line: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """A line as a person types it in the project's folder."""
    return subprocess.run(
        ["sh", "-c", line],
        cwd=ROOT,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_images_are_those_of_the_bake_file(lines: list[str]) -> None:
    (bake,) = [line for line in lines if line.startswith("docker buildx bake")]
    done = typed(f"{bake} --print")
    assert done.returncode == 0, done.stderr
    targets = json.loads(done.stdout)["target"]
    tags = {tag for target in targets.values() for tag in target["tags"]}
    used = {image for line in lines for image in re.findall(r"\S*harness/\S+:cpu", line)}
    assert used == tags


def test_each_line_runs_its_cell_and_prints_a_number(lines: list[str]) -> None:
    by_hand = [line for line in lines if line.startswith("docker run")]
    assert len(by_hand) == 2
    for line in by_hand:
        done = typed(line)
        assert done.returncode == 0, done.stderr
        assert re.search(r"^step +mean [0-9.]+ ms", done.stdout, re.MULTILINE)


def test_what_a_scenario_keeps_has_a_place(lines: list[str], tmp_path: Path) -> None:
    """The folder where a launch starts by hand can be written to, and the project's cannot."""
    line = next(line for line in lines if line.startswith("docker run"))
    head = line.partition(" python ")[0]
    assert typed(f"{head} sh -c 'echo kept > artifact && cat artifact'").stdout == "kept\n"
    assert typed(f"{head} sh -c 'echo x > /scenarios/x'").returncode != 0
