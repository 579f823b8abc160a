"""From one command to a report, in real containers: without TensorFlow, and with TensorFlow 1.14 and 2.0."""

import json
import re
import secrets
from pathlib import Path

import pytest

from harness import session
from harness.backends.docker.backend import DockerBackend
from harness.model.launch import Status
from tests.cli.conftest import SCENARIO
from tests.commands import run_harness
from tests.conftest import ROOT, copy_part

pytestmark = pytest.mark.docker

STEP = ["-s", "keras_step", "-a", "model=small", "-a", "data=small", "-a", "call=train_on_batch", "-a", "inputs=numpy"]


@pytest.fixture
def ways(project):
    """Make a project with two environments, of which one has an image, and a scenario."""
    project.add(f"test-{secrets.token_hex(4)}", "3.11")
    DockerBackend(project.root, "test").prepare(project.requirements, lambda _: None)
    project.add(f"test-{secrets.token_hex(4)}", "3.11", lock="# nothing: built in the run\n")
    copy_part("scenarios/kit", project.root)
    (project.root / "scenarios" / "ways.py").write_text(SCENARIO)
    return project


@pytest.mark.main_path
def test_a_run_of_two_environments_builds_the_missing_image_and_ends_with_a_report(ways, tmp_path):
    built, lacking = (requirement.environment.name for requirement in ways.requirements)
    short = ["--rounds", "2", "--warmup", "0ms", "--measure", "10ms", "--backend", "docker", "--results", str(tmp_path)]
    cells = ["-s", "ways", "-a", "way=fine", "-e", built, "-e", lacking]
    process = run_harness("matrix", *cells, *short, HARNESS_PROJECT=str(ways.root))
    assert process.returncode == 0, process.stderr
    (folder,) = [path for path in tmp_path.iterdir() if (path / "run.json").exists()]
    results = session.read(folder)
    assert {launch.status for launch in results.launches} == {Status.OK}
    assert {launch.cell.environment for launch in results.launches if launch.round} == {built, lacking}
    assert all(launch.image == results.run.images[launch.cell.environment] for launch in results.launches)
    report = (folder / "report.md").read_text()
    assert built in report
    assert lacking in report
    assert (folder / "report.html").read_text().endswith("</html>\n")


def read_launches(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]


@pytest.mark.tensorflow
def test_the_famous_question_is_answered(need_images, tmp_path):
    """Of tf.keras alone; images that are right are as their locks say, and not built again."""
    need_images("tf1.14", "tf2.0")
    environments = ["-e", "tf1.14", "-e", "tf2.0", "-a", "mode=graph,eager", "-a", "api=tf.keras"]
    short = ["--rounds", "2", "--warmup", "50ms", "--measure", "200ms", "--seed", "1", "--backend", "docker"]
    process = run_harness("matrix", *STEP, *environments, *short, "--results", str(tmp_path))
    assert process.returncode == 0, process.stderr
    assert "building" not in process.stderr
    (folder,) = tmp_path.iterdir()
    launches = read_launches(folder)
    assert {launch["status"] for launch in launches} == {"ok"}
    cells, times = set(), {}
    for launch in launches:
        proof, cell = launch["fingerprint"], json.dumps(launch["cell"])
        assert proof["steps_counted"] == proof["steps_called"]
        assert proof["parameters"] == 162049
        assert launch["phases"]["container start"] > 0
        assert launch["image"].startswith("sha256:")
        # a cell's first launch alone tells which training loop runs
        assert ("loop" in launch["observations"]) == (cell not in cells)
        cells.add(cell)
        if launch["role"] == "measure":
            seconds, steps = (sum(sample[key] for sample in launch["samples"]) for key in ("seconds", "steps"))
            times[launch["cell"]["environment"], launch["cell"]["axes"]["mode"]] = seconds / steps
    assert len(times) == len(cells) == 4
    assert times["tf2.0", "eager"] > times["tf1.14", "graph"]
    report = (folder / "report.md").read_text()
    # which comparison the answer names depends on what two rounds settle
    answer = report.splitlines()[2]
    assert answer.startswith("**")
    assert "2.0" in answer
    assert answer.strip("*") in " ".join(process.stdout.split())
    assert "Docker Engine" in report
    verified = run_harness("images", "verify", "tf1.14", "tf2.0")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert re.search(r"tf1\.14: all \d+ packages are as in the lock file", verified.stdout)


@pytest.mark.tensorflow
@pytest.mark.campaign
def test_a_cell_that_returns_at_once_and_trains_nothing_did_different_work(need_images, tmp_path):
    """Keras 3 with eager execution disabled: `train_on_batch` hands back a symbol, faster than any step."""
    need_images("tf2.21")
    text, scenario = (ROOT / "scenarios" / "keras_step.py").read_text(), tmp_path / "graph_step.py"
    needed = '# requires = ["tensorflow<2.16"]\n'
    assert needed in text
    scenario.write_text(text.replace(needed, '# requires = ["tensorflow"]\n'))
    short = ["--rounds", "1", "--warmup", "50ms", "--measure", "200ms", "--seed", "1", "--backend", "docker"]
    cells = ["-e", "tf2.21", "-a", "api=tf.keras", "-a", "mode=graph,eager"]
    process = run_harness(
        "matrix", "-s", str(scenario), *STEP[2:], *cells, *short, "--results", str(tmp_path / "results")
    )
    assert process.returncode == 0, process.stderr
    (folder,) = (tmp_path / "results").iterdir()
    proofs = {launch["cell"]["axes"]["mode"]: launch["fingerprint"] for launch in read_launches(folder)}
    assert proofs["eager"]["steps_counted"] == proofs["eager"]["steps_called"]
    assert proofs["graph"]["steps_counted"] is None
    *_, row = [line for line in (folder / "report.md").read_text().splitlines() if "| different work |" in line]
    assert "graph vs eager" in row
    assert "the framework's count can't be read" in row
