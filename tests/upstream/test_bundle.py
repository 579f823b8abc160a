import json
import re
import runpy
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.results import Results
from harness.files import hash_files
from harness.model.environment import Environment
from harness.model.errors import UsageError
from harness.model.issues import parse
from harness.model.launch import Status
from harness.model.run import Run
from harness.model.scenario import GROWTH, MACHINE, Claim, ClaimSide, Comparison, Scenario
from harness.store.folder import RunFolder
from harness.upstream import bundle
from harness.upstream.bundle import files, write
from harness.upstream.bundle_subject import select, subject
from harness.upstream.issue import MOST
from tests.errors import read_refusal
from tests.factories import broken, cell, launch, rounds, run, scenario
from tests.workflow import git

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


def compared(along: str = "mode", of: str = "step", **changes: object) -> Scenario:
    entry = Comparison("one against the other", along=along, **({"plus": "graph"} if along == "mode" else {}), of=of)
    return scenario(compare=[entry], **changes)


def make_run(members=tuple(TIMES), *, about: Scenario | None = None, environments=(OLD,), **changes) -> Run:
    pins = {environment.name: {"numpy": "1.17.4", "tensorflow": environment.tensorflow} for environment in environments}
    if NIGHTLY in environments:
        pins["nightly"] = {"numpy": "2.0.0", "tf-nightly-cpu": NIGHTLY.tensorflow}
    fields = {"scenarios": [about or compared()], "scripts": {"step": TEXT}, "reference": "tf2.0", "pins": pins}
    return run(members, environments=list(environments), **{**fields, **changes})


def make_files(results: Results) -> dict[str, str]:
    return files(results, Path("results/run"), subject(results))


def read_issue(results: Results) -> dict[str, str]:
    parts = make_files(results)["issue.md"].split("### ")[1:]
    return {title: text.strip() for title, _, text in (part.partition("\n") for part in parts)}


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    folder = RunFolder.create(tmp_path / "results", "run")
    folder.write_run(make_run())
    for entry in rounds(TIMES):
        folder.append(entry)
    return folder.path


def test_issues_are_in_the_order_of_the_form(golden):
    results = Results(make_run(environments=(replace(OLD, python="3.7"),)), rounds(TIMES))
    text = make_files(results)["issue.md"]
    code = re.search("(?s)```python\n(.*?)```", text)
    assert code
    assert text.replace(code[1], "…\n") == golden
    assert "doesn't establish" not in text
    # what is not shown is not said as if it were
    unclear = Results(make_run(), rounds({EAGER: 0.0101, GRAPH: 0.01}, spread=0.1))
    assert "doesn't establish" in read_issue(unclear)["Current behavior?"]


def test_two_releases_have_environments_and_a_nightly_that_shows_it_is_named():
    members = {cell("tf2.0"): 0.01, cell("tf2.1"): 0.02}
    results = Results(make_run(members, about=compared("environment"), environments=(OLD, NEW)), rounds(members))
    texts = make_files(results)
    assert {"requirements-tf2.0.txt", "requirements-tf2.1.txt"} < texts.keys()
    for words in (
        "tf2.1/bin/python repro.py tf2.1/bin/python tf2.0/bin/python",
        "python repro.py --only 1",
        "tf2.1 takes 1.9",
    ):
        assert words in texts["issue.md"]
    for seconds, answer in ((0.02, "Yes, with 2.22.0.dev20261101: eager takes 2.0"), (0.005, "No, with 2.22")):
        times = {**TIMES, cell("nightly", mode="eager"): seconds, cell("nightly", mode="graph"): 0.01}
        results = Results(make_run(times, environments=(OLD, NIGHTLY)), rounds(times, spread=0.001))
        assert read_issue(results)["Have you reproduced the bug with TensorFlow Nightly?"].startswith(answer)


def make_claim(environment: str = "tf2.0", worse: str = "eager", **changes: object) -> Claim:
    better = {"eager": "graph", "graph": "eager"}[worse]
    sides = [ClaimSide(environment, {"mode": mode}) for mode in (worse, better)]
    claim = Claim(parse("T#33487"), "it takes twice as long", *sides, ratio=(1.5, 2.5), when={"call": "fit"})
    return replace(claim, **changes)  # type: ignore[arg-type]


def test_what_an_issue_claims_comes_first_with_its_outcome():
    claim = make_claim(hardware="a laptop")
    results = Results(make_run(about=compared(claims=[claim])), rounds(TIMES))
    text = read_issue(results)["Current behavior?"]
    assert f"https://github.com/tensorflow/tensorflow/issues/33487 reports: {claim.reported}" in text
    assert "(1.5 to 2.5 times; a laptop)" in text
    assert re.search(r"\| tf2.0 +\| larger +\| 3\.0", text)
    # a claim about cells that the run does not have is left out
    about = subject(Results(make_run(about=compared(claims=[make_claim("tf2.1", "graph")])), rounds(TIMES)))
    assert about.claim is None
    assert about.worse.cell == EAGER


def test_a_claim_is_about_the_newest_release_in_which_it_holds():
    times = {
        cell(name, mode=mode): 0.01 * (ratio if mode == "eager" else 1.0)
        for name, ratio in (("tf2.0", 2.0), ("tf2.1", 3.0), ("tf2.2", 1.0), ("nightly", 2.0))
        for mode in ("eager", "graph")
    }
    newest = replace(NEW, name="tf2.2", tensorflow="2.2.0")
    run = make_run(times, about=compared(claims=[make_claim()]), environments=(OLD, NEW, newest, NIGHTLY))
    about = subject(Results(run, rounds(times, spread=0.001)))
    assert [side.environment.name for side in about.sides] == ["tf2.1", "tf2.1"]


def test_a_merged_runs_machine_is_no_argument_of_the_scenario(tmp_path):
    members = {cell("tf2.0", mode=mode, **{MACHINE: "a"}): seconds for mode, seconds in (("eager", 3), ("graph", 1))}
    about = compared()
    about = replace(about, axes={MACHINE: ["a", "b"], **about.axes})
    (tmp_path / "repro.py").write_text(make_files(Results(make_run(members, about=about), rounds(members)))["repro.py"])
    sides = runpy.run_path(str(tmp_path / "repro.py"), run_name="repro")["SIDES"]
    assert [side["arguments"].keys() for side in sides] == [{"call", "dtype", "mode"}] * 2


def test_the_code_of_a_projects_scenario_is_the_measured_one(tmp_path, monkeypatch):
    measured, path = f'# /// script\n# [tool.harness]\n# title = "T"\n# ///\n{TEXT}', tmp_path / "scenarios" / "step.py"
    path.parent.mkdir()
    path.write_text(measured)
    (tmp_path / "docker-bake.hcl").touch()
    monkeypatch.setenv("HARNESS_PROJECT", str(tmp_path))
    for command in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "one"]):
        git(tmp_path, *command)
    fields = {"scripts": {}, "own": {"step": hash_files({"step.py": measured.encode()})}}

    def code(**changes: object) -> str:
        return make_files(Results(make_run(**{**fields, **changes}), rounds(TIMES)))["repro.py"]

    assert "range(100000 if" in code()
    path.write_text(measured.replace("100000", "7"))
    assert "range(100000 if" in code(commit="main+")
    with pytest.raises(UsageError, match=r"scenario step .*\(0123abcd\)"):
        code()
    # an older run has no hash
    assert "range(7 if" in code(own={})


def test_growth_is_told_in_bytes_a_call_and_what_is_too_long_is_left_to_the_attachment():
    def leaking(of, slope):
        return [
            launch(of, 0.01, number, memory=[(at, 1e8 + at * slope * (1 + number / 100)) for at in range(0, 101, 10)])
            for number in range(1, 6)
        ]

    results = Results(make_run(about=compared(of=GROWTH)), [*leaking(EAGER, 100_000), *leaking(GRAPH, 10)])
    about = subject(results)
    assert (about.of, about.worse.cell) == (GROWTH, EAGER)
    assert "eager memory growth: 101 KiB per call more than graph" in about.clause
    assert 'OF = "memory growth"' in make_files(results)["repro.py"]
    lines = TEXT + "".join(f"# line {number} of very many\n" for number in range(4000))
    docstring = TEXT.replace("A step of nothing.", "A step of nothing. " * 4000)
    for script in (lines, docstring):
        texts = make_files(Results(make_run(scripts={"step": script}), rounds(TIMES)))
        assert len(texts["issue.md"]) < MOST
    assert "bundle.zip" in texts["issue.md"]


def test_nothing_tells_the_machine_or_its_user(tmp_path, measured, monkeypatch):
    home = tmp_path / "home" / "jane-doe@lab"
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
        host={"kernel": f"{home}/linux"},
        scenarios=[compared(path=home / "step.py")],
        scripts={"step": TEXT.replace("A step of nothing.", f"Of jane-doe's, on workstation-7, in {home}/step.py.")},
    )
    stored.write_run(asked_here)
    write(measured)
    texts = {path.name: path.read_text() for path in (measured / "bundle").iterdir()}
    with zipfile.ZipFile(measured / "bundle.zip") as archive:
        assert {name.removeprefix("bundle/"): archive.read(name).decode() for name in archive.namelist()} == texts
    assert set(texts) == {"issue.md", "repro.py", "requirements-tf2.0.txt", "run.json"}
    for name, text in texts.items():
        assert not [secret for secret in secrets if secret in text], name
    assert json.loads(texts["run.json"])["command"][-1] == "y.py"


def test_two_cells_are_compared_if_selected_and_one_without_a_result_has_a_script():
    about = select(Results(make_run(), rounds(TIMES)), ["step"], ["tf2.*"], {})
    assert [side.cell for side in about.sides] == [EAGER, GRAPH]
    assert about.clause.startswith("eager takes 3.0")
    results = Results(make_run(), [broken(EAGER, Status.FAILED), *rounds({GRAPH: 0.01})])
    about = select(results, [], [], {"mode": ["eager"]})
    assert [side.cell for side in about.sides] == [EAGER]
    texts = files(results, Path("results/run"), about)
    assert next(iter(texts)) == "repro.py"
    assert "issue.md" not in texts
    for words in ("no result for", "tf2.0/bin/python repro.py", "docker run --rm"):
        assert words in texts["repro.py"]


def test_what_has_no_bundle_is_refused(measured, snapshot):
    members = [cell(name, mode=mode) for name in ("tf2.0", "tf2.1") for mode in ("graph", "eager")]
    four = Results(make_run(members, environments=(OLD, NEW)), [])
    selections: list[tuple[list[str], dict[str, list[str]]]] = [
        ([], {"mode": ["lazy"]}),
        ([], {"mod": ["lazy"]}),
        (["tf9"], {}),
        (["tf2.*"], {}),
    ]
    refusals = {
        f"{names} {axes}": read_refusal(lambda names=names, axes=axes: select(four, [], names, axes))  # type: ignore[misc]
        for names, axes in selections
    }
    refusals["no result"] = read_refusal(lambda: make_files(Results(make_run(), [])))
    refusals["no script"] = read_refusal(lambda: make_files(Results(make_run(scripts={}), rounds(TIMES))))
    RunFolder.open(measured).write_run(make_run(asked={"profile_calls": 50}))
    refusals["profiles"] = read_refusal(lambda: write(measured), measured)
    assert refusals == snapshot
