import json
import runpy
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.files import hash_files
from harness.model.environment import Environment
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.issues import parse
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import GROWTH, MACHINE, Claim, ClaimSide, Comparison, Scenario
from harness.store.folder import RunFolder
from harness.upstream import bundle
from harness.upstream.bundle import files, write
from harness.upstream.bundle_subject import select, subject
from harness.upstream.issue import MOST
from tests.factories import broken, cell, launch, rounds, run, scenario
from tests.packageindex import PackageIndex, serving

PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"
OLD = Environment("tf2.0", "2.0.0", PYTHON, "2019-11-01T00:00:00Z")
NEW = Environment("tf2.1", "2.1.0", PYTHON, "2020-02-01T00:00:00Z")
NIGHTLY = Environment("nightly", "2.22.0.dev20261101", PYTHON, "2026-11-02T00:00:00Z")

GRAPH, EAGER = (cell("tf2.0", mode=mode) for mode in ("graph", "eager"))
TIMES = {EAGER: 0.03, GRAPH: 0.01}

TEXT = '''\
"""A step of nothing."""

from kit import main


def scenario(bench, call="fit", dtype="float32", mode="graph"):
    with bench.phase("import"):
        import tensorflow
    bench.once(lambda: (tensorflow, sum(range(100000 if mode == "eager" else 10))))


if __name__ == "__main__":
    main(scenario)
'''

#: The fields of the form, in its order.
TITLES = [
    "Issue type",
    "Have you reproduced the bug with TensorFlow Nightly?",
    "Source",
    "TensorFlow version",
    "Custom code",
    "OS platform and distribution",
    "Mobile device",
    "Python version",
    "Bazel version",
    "GCC/compiler version",
    "CUDA/cuDNN version",
    "GPU model and memory",
    "Current behavior?",
    "Expected behavior",
    "Standalone code to reproduce the issue",
    "Relevant log output",
]


def compared(along: str = "mode", of: str = "step", **changes: object) -> Scenario:
    entry = Comparison("one against the other", along=along, **({"plus": "graph"} if along == "mode" else {}), of=of)
    return scenario(compare=[entry], **changes)


def asked(members=tuple(TIMES), *, about: Scenario | None = None, environments=(OLD,), **changes) -> Run:
    pins = {environment.name: {"numpy": "1.17.4", "tensorflow": environment.tensorflow} for environment in environments}
    if NIGHTLY in environments:
        pins["nightly"] = {"numpy": "2.0.0", "tf-nightly-cpu": NIGHTLY.tensorflow}
    fields = {"scenarios": [about or compared()], "scripts": {"step": TEXT}, "reference": "tf2.0", "pins": pins}
    return run(members, environments=list(environments), **{**fields, **changes})


def made(results: Results, tracker: str = "tensorflow") -> dict[str, str]:
    return files(results, tracker, Path("results/run"), subject(results))


def issue(results: Results, tracker: str = "tensorflow") -> dict[str, str]:
    """The issue's fields by their titles."""
    parts = made(results, tracker)["issue.md"].split("### ")[1:]
    return {title: text.strip() for title, _, text in (part.partition("\n") for part in parts)}


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """The folder of a run that measured two modes of one release."""
    folder = RunFolder.create(tmp_path / "results", "run")
    folder.write_run(asked())
    for entry in rounds(TIMES):
        folder.append(entry)
    return folder.path


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    (tmp_path / "index").mkdir()
    with serving(tmp_path / "index") as found:
        monkeypatch.setenv("UV_DEFAULT_INDEX", f"{found.url}/simple")
        monkeypatch.setenv("UV_NO_CACHE", "1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        for name in ("UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_FIND_LINKS", "UV_OFFLINE"):
            monkeypatch.delenv(name, raising=False)
        yield found


def test_the_issue_is_in_the_order_of_the_form_with_what_was_measured() -> None:
    told = issue(Results(asked(), rounds(TIMES)))
    assert list(told) == TITLES
    assert told["Issue type"] == "Performance"
    assert told["TensorFlow version"] == "tensorflow 2.0.0"
    assert told["Have you reproduced the bug with TensorFlow Nightly?"].startswith("No: no nightly was measured")
    assert told["GPU model and memory"].startswith("none")
    assert told["Current behavior?"].startswith("eager takes 3.0")
    assert " times as long as graph (95 %: " in told["Current behavior?"]
    assert told["Expected behavior"] == "eager takes no longer than graph."
    assert "docker run --rm" in told["Standalone code to reproduce the issue"]
    assert f"python:{PYTHON}-slim-bookworm" in told["Standalone code to reproduce the issue"]
    assert "numpy==1.17.4" in told["Standalone code to reproduce the issue"]
    assert "round 5: eager: " in told["Relevant log output"]


def test_what_is_not_shown_is_not_told_as_if_it_were() -> None:
    results = Results(asked(), rounds({EAGER: 0.0101, GRAPH: 0.01}, spread=0.1))
    assert "The measurement doesn't establish that " in issue(results)["Current behavior?"]
    assert "It is not shown" not in issue(Results(asked(), rounds(TIMES)))["Current behavior?"]


def test_keras_is_asked_in_its_own_order() -> None:
    told = issue(Results(asked(), rounds(TIMES)), "keras")
    assert next(iter(told)) == "Have I written custom code"
    assert "uv venv" in told["Exact command to reproduce"]


def test_two_releases_have_an_environment_each() -> None:
    members = {cell("tf2.0"): 0.01, cell("tf2.1"): 0.02}
    results = Results(asked(members, about=compared("environment"), environments=(OLD, NEW)), rounds(members))
    found = made(results)
    assert {"requirements-tf2.0.txt", "requirements-tf2.1.txt"} < found.keys()
    assert "tf2.1/bin/python repro.py tf2.1/bin/python tf2.0/bin/python" in found["issue.md"]
    assert "python repro.py --only 1" in found["issue.md"]
    assert "tf2.1 takes 1.9" in found["issue.md"]


def test_what_the_lock_still_holds_is_told_with_its_hashes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed = f"numpy==1.17.4 \\\n    --hash=sha256:{'0' * 64}\ntensorflow==2.0.0 \\\n    --hash=sha256:{'1' * 64}\n"
    lock = tmp_path / "tf2.0-cpu.txt"
    monkeypatch.setattr(bundle, "lock_file", lambda *_: lock)
    lock.write_text(f"# TensorFlow 2.0.0\n{hashed}")
    assert made(Results(asked(), rounds(TIMES)))["requirements-tf2.0.txt"] == hashed
    assert "0" * 64 in made(Results(asked(), rounds(TIMES)))["repro.ipynb"]
    # another lock than that of the run has no hashes for it
    lock.write_text(hashed.replace("1.17.4", "1.17.5"))
    told = made(Results(asked(), rounds(TIMES)))
    assert told["requirements-tf2.0.txt"] == "numpy==1.17.4\ntensorflow==2.0.0\n"
    assert "numpy==1.17.4" in told["issue.md"]
    assert "--hash" not in told["issue.md"]


def test_a_container_starts_from_the_digest_that_the_engine_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    digest = "python@sha256:" + "a" * 64
    results = Results(asked(images={"tf2.0": "sha256:1"}), rounds(TIMES))
    monkeypatch.setattr("harness.backends.docker.engine.connect", lambda: None)
    for found, told, said in [(digest, digest, "In containers:"), ("", f"python:{PYTHON}-slim-bookworm", "by tag")]:
        monkeypatch.setattr("harness.backends.docker.images.find_public_base", lambda _, __, found=found: found)
        text = issue(results)["Standalone code to reproduce the issue"]
        assert f" {told} sh -c " in text
        assert said in text


def test_a_nightly_that_shows_it_too_is_told() -> None:
    members = {**TIMES, cell("nightly", mode="eager"): 0.02, cell("nightly", mode="graph"): 0.01}
    results = Results(asked(members, environments=(OLD, NIGHTLY)), rounds(members, spread=0.001))
    told = issue(results)["Have you reproduced the bug with TensorFlow Nightly?"]
    assert told.startswith("Yes, with 2.22.0.dev20261101: eager takes 2.0")
    members[cell("nightly", mode="eager")] = 0.005
    results = Results(asked(members, environments=(OLD, NIGHTLY)), rounds(members, spread=0.001))
    assert issue(results)["Have you reproduced the bug with TensorFlow Nightly?"].startswith("No, with 2.22")


def test_what_an_issue_claims_comes_first_with_its_outcome() -> None:
    claim = Claim(
        parse("T#33487"),
        "eager takes twice as long",
        ClaimSide("tf2.0", {"mode": "eager"}),
        ClaimSide("tf2.0", {"mode": "graph"}),
        ratio=(1.5, 2.5),
        when={"call": "fit"},
        hardware="a laptop",
    )
    results = Results(asked(about=compared(claims=[claim])), rounds(TIMES))
    told = issue(results)["Current behavior?"]
    assert "https://github.com/tensorflow/tensorflow/issues/33487 reports: eager takes twice as long" in told
    assert "(1.5 to 2.5 times; a laptop)" in told
    assert "| tf2.0 | larger | 3.0" in told


def test_a_claim_is_about_the_newest_release_in_which_it_holds() -> None:
    claim = Claim(
        parse("T#33487"),
        "eager takes twice as long",
        ClaimSide("tf2.0", {"mode": "eager"}),
        ClaimSide("tf2.0", {"mode": "graph"}),
        ratio=(1.5, 2.5),
        when={"call": "fit"},
    )
    times = {
        cell(name, mode=mode): 0.01 * (ratio if mode == "eager" else 1.0)
        for name, ratio in (("tf2.0", 2.0), ("tf2.1", 3.0), ("tf2.2", 1.0), ("nightly", 2.0))
        for mode in ("eager", "graph")
    }
    newest = replace(NEW, name="tf2.2", tensorflow="2.2.0")
    run = asked(times, about=compared(claims=[claim]), environments=(OLD, NEW, newest, NIGHTLY))
    about = subject(Results(run, rounds(times, spread=0.001)))
    assert [side.environment.name for side in about.sides] == ["tf2.1", "tf2.1"]


def test_a_claim_of_cells_that_the_run_does_not_have_is_not_told() -> None:
    sides = [ClaimSide("tf2.1", {"mode": mode}) for mode in ("eager", "graph")]
    claim = Claim(
        parse("T#33487"), "eager takes half as long", *reversed(sides), ratio=(1.5, 2.5), when={"call": "fit"}
    )
    about = subject(Results(asked(about=compared(claims=[claim])), rounds(TIMES)))
    assert about.claim is None
    assert about.worse.cell == EAGER


def test_a_merged_runs_machine_is_no_argument_of_the_scenario(tmp_path: Path) -> None:
    members = {cell("tf2.0", mode=mode, **{MACHINE: "a"}): seconds for mode, seconds in (("eager", 3), ("graph", 1))}
    about = compared()
    about = replace(about, axes={MACHINE: ["a", "b"], **about.axes})
    (tmp_path / "repro.py").write_text(made(Results(asked(members, about=about), rounds(members)))["repro.py"])
    sides = runpy.run_path(str(tmp_path / "repro.py"), run_name="repro")["SIDES"]
    assert [side["arguments"].keys() for side in sides] == [{"call", "dtype", "mode"}] * 2


def test_the_code_of_a_projects_scenario_is_the_measured_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measured, path = f'# /// script\n# [tool.harness]\n# title = "T"\n# ///\n{TEXT}', tmp_path / "scenarios" / "step.py"
    path.parent.mkdir()
    path.write_text(measured)
    (tmp_path / "docker-bake.hcl").touch()
    monkeypatch.setenv("HARNESS_PROJECT", str(tmp_path))
    who = ("-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        subprocess.run(["git", *who, *command], cwd=tmp_path, check=True)
    fields = {"scripts": {}, "own": {"step": hash_files({"step.py": measured.encode()})}}

    def code(**changes: object) -> str:
        return made(Results(asked(**{**fields, **changes}), rounds(TIMES)))["repro.py"]

    assert "range(100000 if" in code()
    path.write_text(measured.replace("100000", "7"))
    assert "range(100000 if" in code(commit="main+")
    with pytest.raises(UsageError, match=r"file of the scenario step changed after the run.* in git \(0123abcd\)"):
        code()
    # an older run has no hash
    assert "range(7 if" in code(own={})


def test_growth_of_memory_is_told_in_bytes_a_call() -> None:
    def leaking(of, slope):
        return [
            launch(of, 0.01, number, memory=[(at, 1e8 + at * slope * (1 + number / 100)) for at in range(0, 101, 10)])
            for number in range(1, 6)
        ]

    results = Results(asked(about=compared(of=GROWTH)), [*leaking(EAGER, 100_000), *leaking(GRAPH, 10)])
    about = subject(results)
    assert (about.of, about.worse.cell) == (GROWTH, EAGER)
    assert "eager memory growth: 101 KiB per call more than graph" in about.clause
    assert 'OF = "memory growth"' in made(results)["repro.py"]


def test_what_is_too_long_for_an_issue_is_left_to_the_attachment() -> None:
    long = TEXT + "\n\n" + "\n".join(f"# line {number} of very many" for number in range(4000)) + "\n"
    found = made(Results(asked(scripts={"step": long.replace("if __name__", "# the end\nif __name__")}), rounds(TIMES)))
    assert len(found["issue.md"]) < MOST
    text = TEXT.replace('"""A step of nothing."""', '"""' + "A step of nothing. " * 4000 + '"""')
    found = made(Results(asked(scripts={"step": text}), rounds(TIMES)))
    assert len(found["issue.md"]) < MOST
    assert "It is in the attachment, bundle.zip." in found["issue.md"]


def test_nothing_tells_the_machine_or_its_user(tmp_path: Path, measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home" / "jane-doe"
    home.mkdir(parents=True)
    secrets = ["jane-doe", "workstation-7", str(tmp_path), str(Path.cwd())]
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(bundle.getpass, "getuser", lambda: "jane-doe")
    monkeypatch.setattr(bundle.platform, "node", lambda: "workstation-7.lab")
    stored = RunFolder.open(measured)
    asked_here = replace(
        stored.read_run(),
        command=["harness", "matrix", "-s", str(home / "step.py"), "--results", str(tmp_path), "~/x/y.py"],
        folder=str(measured),
        scenarios=[compared(path=home / "step.py")],
        scripts={"step": TEXT.replace("A step of nothing.", f"Of jane-doe's, on workstation-7, in {home}/step.py.")},
    )
    stored.write_run(asked_here)
    write(measured, "tensorflow")
    texts = {path.name: path.read_text() for path in (measured / "bundle").iterdir()}
    with zipfile.ZipFile(measured / "bundle.zip") as archive:
        assert {name.removeprefix("bundle/"): archive.read(name).decode() for name in archive.namelist()} == texts
    assert set(texts) == {"issue.md", "repro.py", "repro.ipynb", "requirements-tf2.0.txt", "run.json"}
    for name, text in texts.items():
        assert not [secret for secret in secrets if secret in text], name
    assert json.loads(texts["run.json"])["command"][-1] == "y.py"


def test_a_word_of_the_code_stays_though_a_user_is_called_so(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(Results(asked(), rounds(TIMES)))["repro.py"]
    monkeypatch.setattr(bundle.getpass, "getuser", lambda: "bench")
    assert made(Results(asked(), rounds(TIMES)))["repro.py"] == before


def test_the_notebooks_cells_run_as_they_are(tmp_path: Path, measured: Path, index: PackageIndex) -> None:
    index.add("tensorflow-2.0.0-py3-none-any")
    index.add("numpy-1.17.4-py3-none-any")
    write(measured, "tensorflow")
    notebook = json.loads((measured / "bundle" / "repro.ipynb").read_text())
    assert notebook["nbformat"] == 4
    code = "\n".join(cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "code")
    there = tmp_path / "elsewhere"
    there.mkdir()
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=there, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "eager takes " in done.stdout.splitlines()[-2]
    # the environment is its own: the stand-in has no version
    assert "TensorFlow not imported" in done.stdout
    assert (there / "tf2.0" / "bin" / "python").exists()


def test_two_cells_are_compared_if_they_are_selected() -> None:
    about = select(Results(asked(), rounds(TIMES)), ["step"], ["tf2.*"], {})
    assert [side.cell for side in about.sides] == [EAGER, GRAPH]
    assert about.clause.startswith("eager takes 3.0")


def test_a_cell_without_a_result_has_a_script_and_no_text_for_an_issue() -> None:
    results = Results(asked(), [broken(EAGER, Status.FAILED), *rounds({GRAPH: 0.01})])
    about = select(results, [], [], {"mode": ["eager"]})
    assert [side.cell for side in about.sides] == [EAGER]
    found = files(results, "tensorflow", Path("results/run"), about)
    assert next(iter(found)) == "repro.py"
    assert "issue.md" not in found
    assert "no result for" in found["repro.py"]
    for way in ("tf2.0/bin/python repro.py", "docker run --rm"):
        assert way in found["repro.py"]


@pytest.mark.parametrize(
    ("environments", "axes", "message"),
    [
        ([], {"mode": ["lazy"]}, "Unknown value of mode: 'lazy'"),
        ([], {"mod": ["lazy"]}, "Unknown axis: 'mod'"),
        (["tf9"], {}, "Unknown environment: 'tf9'"),
        (["tf2.*"], {}, "4 cells are selected, but a script can run only 1 or 2"),
    ],
)
def test_a_selection_is_one_or_two_cells_of_the_run(environments, axes, message) -> None:
    members = [cell(name, mode=mode) for name in ("tf2.0", "tf2.1") for mode in ("graph", "eager")]
    results = Results(asked(members, environments=(OLD, NEW)), [])
    with pytest.raises(UsageError, match=message):
        select(results, [], environments, axes)


def test_what_cannot_be_told_is_a_sentence(measured: Path) -> None:
    with pytest.raises(UsageError, match="Invalid --for 'jax'"):
        write(measured, "jax")
    with pytest.raises(NothingSelectedError, match="doesn't contain a result"):
        made(Results(asked(), []))
    with pytest.raises(UsageError, match="step isn't in this project"):
        made(Results(asked(scripts={}), rounds(TIMES)))
    stored = RunFolder.open(measured)
    stored.write_run(asked(asked={"profile_calls": 50}))
    with pytest.raises(UsageError, match="has profiles instead of measurements"):
        write(measured, "tensorflow")
