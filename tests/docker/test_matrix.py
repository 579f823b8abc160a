"""The whole thing: real TensorFlow 1.14 and 2.0 in real containers, from one command to a report."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.docker, pytest.mark.tensorflow]

ROOT = Path(__file__).parents[2]
STEP = ["-s", "keras_step", "-a", "model=small", "-a", "data=small", "-a", "call=train_on_batch", "-a", "inputs=numpy"]


def harness(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def run(engine, tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """One run of both releases, as short as can be."""
    results = tmp_path_factory.mktemp("results")
    environments = ["-e", "tf1.14", "-e", "tf2.0", "-a", "mode=graph,eager"]
    short = ["--rounds", "2", "--warmup", "50ms", "--measure", "200ms", "--seed", "1", "--backend", "docker"]
    done = harness("matrix", *STEP, *environments, *short, "--results", str(results))
    assert done.returncode == 0, done.stderr
    (folder,) = results.iterdir()
    return done, folder


def test_images_are_as_their_locks_say(run) -> None:
    done = harness("images", "verify", "tf1.14", "tf2.0")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"tf1\.14: all \d+ packages are as in the lock file", done.stdout)


def test_images_that_are_right_are_not_built_again(run) -> None:
    done = harness("images", "build", "tf1.14", "tf2.0")
    assert done.returncode == 0
    assert "building" not in done.stderr
    assert "sha256:" in done.stdout


def test_every_cell_that_exists_has_its_samples_and_took_the_steps_it_says(run) -> None:
    _, folder = run
    launches = [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]
    assert {launch["status"] for launch in launches} == {"ok"}
    # seven cells, and a control in one of the two groups; a round may have been disturbed, and done again; two lengths
    # are given, so the pilot launched one cell of each environment
    assert len([launch for launch in launches if launch["round"] and launch["attempt"] == 0]) == 8 * 2
    assert 2 <= len([launch for launch in launches if not launch["round"]]) <= 3
    for launch in launches:
        assert launch["fingerprint"]["steps_counted"] == launch["fingerprint"]["steps_called"]
        assert launch["fingerprint"]["parameters"] == 162049
        assert launch["phases"]["container start"] > 0
        assert launch["image"].startswith("sha256:")


def test_each_cell_s_first_launch_alone_told_which_training_loop_runs(run) -> None:
    _, folder = run
    known = set()
    for line in (folder / "launches.jsonl").read_text().splitlines():
        launch = json.loads(line)
        cell = json.dumps(launch["cell"])
        assert ("loop" in launch["observations"]) == (cell not in known)
        known.add(cell)


def test_the_report_answers_the_famous_question(run) -> None:
    done, folder = run
    report = (folder / "report.md").read_text()
    # which comparison the answer names depends on what two rounds settle
    answer = report.splitlines()[2]
    assert answer.startswith("**")
    assert "2.0" in answer
    assert "The same in all rows: model = small, data = small, call = train_on_batch, inputs = numpy." in report
    assert "tf.keras" in report
    assert "The package keras creates placeholders" in report
    assert "Docker Engine" in report
    assert answer.strip("*") in " ".join(done.stdout.split())


def test_tensorflow_2_0_eager_takes_longer_than_1_14_graph(run) -> None:
    _, folder = run
    times: dict[tuple[str, str], float] = {}
    for line in (folder / "launches.jsonl").read_text().splitlines():
        launch = json.loads(line)
        if launch["cell"]["axes"]["api"] == "tf.keras" and launch["role"] == "measure":
            samples = launch["samples"]
            centre = sum(sample["seconds"] for sample in samples) / sum(sample["steps"] for sample in samples)
            times[launch["cell"]["environment"], launch["cell"]["axes"]["mode"]] = centre
    assert times["tf2.0", "eager"] > times["tf1.14", "graph"]


def test_an_interruption_leaves_no_container(run, engine, tmp_path: Path) -> None:
    running = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "harness",
            "matrix",
            *STEP,
            "-e",
            "tf1.14",
            "--backend",
            "docker",
            "--results",
            tmp_path,
        ],
        cwd=ROOT,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=dict(os.environ),
    )
    with running:
        assert running.stderr is not None
        for line in running.stderr:
            if line.startswith("[1/"):
                break
        running.send_signal(signal.SIGINT)
        words = running.stderr.read()
    assert running.returncode == 130
    assert "To continue: harness matrix --resume" in words
    (folder,) = tmp_path.iterdir()
    assert not engine.api.containers(all=True, filters={"label": f"harness.run={folder.name}"})
    assert (folder / "report.md").exists()


def test_a_cell_that_returns_at_once_and_trains_nothing_did_different_work(engine, tmp_path: Path) -> None:
    """Keras 3 with eager execution disabled: `train_on_batch` hands back a symbol, faster than any step."""
    text, scenario = (ROOT / "scenarios" / "keras_step.py").read_text(), tmp_path / "graph_step.py"
    needed = '# requires = ["tensorflow<2.16"]\n'
    assert needed in text
    scenario.write_text(text.replace(needed, '# requires = ["tensorflow"]\n'))
    short = ["--rounds", "1", "--warmup", "50ms", "--measure", "200ms", "--seed", "1", "--backend", "docker"]
    cells = ["-e", "tf2.21", "-a", "api=tf.keras", "-a", "mode=graph,eager"]
    done = harness("matrix", "-s", str(scenario), *STEP[2:], *cells, *short, "--results", str(tmp_path / "results"))
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results").iterdir()
    stored = [json.loads(line) for line in (folder / "launches.jsonl").read_text().splitlines()]
    proofs = {launch["cell"]["axes"]["mode"]: launch["fingerprint"] for launch in stored}
    assert proofs["eager"]["steps_counted"] == proofs["eager"]["steps_called"]
    assert proofs["graph"]["steps_counted"] is None
    *_, line = [text for text in (folder / "report.md").read_text().splitlines() if "| different work |" in text]
    assert "graph vs eager" in line
    assert "the framework's count can't be read" in line
