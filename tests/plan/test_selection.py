from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.environment import Device
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.scenario import Suite, SuitePart
from harness.plan.selection import Catalog, Selection, check_suites, parse_axes, remove_broken, resolve, select
from harness.project import Project
from harness.scenarios.catalog import read_suites
from tests.factories import scenario


def suite(name: str, *parts: SuitePart) -> Suite:
    return Suite(name, name, ["tf1.14", "tf2.0"], parts)


CATALOG = Catalog(
    environments=["tf1.14", "tf2.0", "tf2.15"],
    scenarios={
        "step": scenario(axes={"call": ["fit", "batch"], "mode": ["graph", "eager"], "dtype": ["float32", "float64"]}),
        "other": scenario("other", axes={"size": ["1", "10"]}, default={}),
    },
    suites={
        "quick": suite("quick", SuitePart("step", {"call": ["fit"]}), SuitePart("step", {"mode": ["eager"]})),
        "each": suite(
            "each",
            SuitePart("step", {"call": ["fit"], "mode": ["graph"]}, ["tf1*"]),
            SuitePart("step", {"call": ["fit"], "mode": ["eager"]}, ["tf2*"]),
        ),
    },
)


def chosen(**selection: object) -> list[str]:
    cells, _ = select(Selection(**selection), CATALOG, Device.CPU)  # type: ignore[arg-type]
    return [str(cell) for cell in cells]


def test_a_scenario_is_all_of_its_axes_and_the_reference_the_first_environment():
    cells = chosen(scenarios=["step"])
    assert len(cells) == 2 * 2 * 3
    assert cells[0] == "step tf1.14 fit graph float32"
    assert not any("float64" in cell for cell in cells)
    # an axis with a default opens when it is selected, and leaves out scenarios that lack it
    axes = {"dtype": ["float*"], "call": ["fit"], "mode": ["graph"]}
    cells = chosen(environments=["tf2.0"], axes=axes)
    assert cells == ["step tf2.0 fit graph float32", "step tf2.0 fit graph float64"]
    _, environments = select(Selection(scenarios=["other"], environments=["tf2.0", "tf1*"]), CATALOG, Device.CPU)
    assert environments == ["tf2.0", "tf1.14"]


OLD = replace(CATALOG, suites={"old": suite("old", SuitePart("step", {}, ["tf1*"]))})
#: What cannot be selected, and from which catalog.
WRONG: dict[str, tuple[dict[str, Any], Catalog]] = {
    "unknown environment": ({"environments": ["tf3"]}, CATALOG),
    "misspelt environment": ({"environments": ["tf1.41"]}, CATALOG),
    "misspelt scenario": ({"scenarios": ["stepp"]}, CATALOG),
    "misspelt suite": ({"suite": "qick"}, CATALOG),
    "misspelt axis": ({"axes": {"mod": ["graph"]}}, CATALOG),
    "misspelt axis of a scenario": ({"axes": {"dtpye": ["1"]}, "scenarios": ["step"]}, CATALOG),
    "misspelt axis of a suite": ({"axes": {"szie": ["1"]}, "suite": "quick"}, CATALOG),
    "misspelt value": ({"axes": {"mode": ["grph"]}}, CATALOG),
    "no value in the suite": ({"suite": "quick", "axes": {"call": ["batch"], "mode": ["graph"]}}, CATALOG),
    "no value in some scenario": ({"scenarios": ["step", "other"], "axes": {"size": ["1"], "dtype": ["f*"]}}, CATALOG),
    "no scenario of the suite": ({"suite": "quick", "scenarios": ["other", "o*"]}, CATALOG),
    "no scenario with both axes": (
        {"scenarios": ["step", "other"], "axes": {"mode": ["graph"], "size": ["1"]}},
        CATALOG,
    ),
    "no environment of the suite": ({"suite": "old", "environments": ["tf2.0", "tf2.15"]}, OLD),
    "empty catalog": ({}, replace(CATALOG, environments=[])),
    "unknown scenario of a suite": ({"suite": "x"}, replace(CATALOG, suites={"x": suite("x", SuitePart("stepp", {}))})),
    "unknown axis of a suite": (
        {"suite": "x"},
        replace(CATALOG, suites={"x": suite("x", SuitePart("step", {"moed": ["graph"]}))}),
    ),
}


def test_what_cannot_be_selected_is_told_with_what_can(snapshot):
    problems = {}
    for case, (selection, catalog) in WRONG.items():
        with pytest.raises((UsageError, NothingSelectedError)) as raised:
            select(Selection(**selection), catalog, Device.CPU)
        problems[case] = str(raised.value)
        assert isinstance(raised.value, NothingSelectedError) is case.startswith("no "), case
    assert problems == snapshot


VALUES = [str(i) for i in range(100)]


@pytest.mark.slow
def test_a_run_has_so_many_cells_and_no_more():
    large = scenario("large", axes={"one": [str(i) for i in range(1000)], "other": VALUES}, default={})
    catalog = replace(CATALOG, scenarios={"large": large})
    cells, _ = select(Selection(environments=["tf2.0"]), catalog, Device.CPU)
    assert len(cells) == 100_000
    with pytest.raises(UsageError, match="300,000 cells are selected; a run has at most 100,000"):
        select(Selection(), catalog, Device.CPU)


def test_axes_are_joined_and_a_suite_is_the_union_of_its_parts():
    assert parse_axes(["a=1,2", "b=x", "a=3"]) == {"a": ["1", "2", "3"], "b": ["x"]}
    assert parse_axes([" a = 1 ,, 2"]) == {"a": ["1", "2"]}
    for text in ("mode", "=1", "mode=", " =1", "mode= ", "xla=,", "cpus= , "):
        with pytest.raises(UsageError, match="AXIS=VALUE"):
            parse_axes([text])
    assert len(chosen(suite="quick")) == len(set(chosen(suite="quick"))) == 3 * 2
    assert chosen(suite="each") == ["step tf1.14 fit graph float32", "step tf2.0 fit eager float32"]
    assert chosen(suite="each", environments=["tf2.15"]) == ["step tf2.15 fit eager float32"]


NAMES = ["tf1.14", "tf1.15", "tf2.0", "tf2.10"]


def test_globs_take_names_in_their_order_and_a_release_to_come_is_the_newest():
    assert resolve(["tf2.*", "tf1.14", "tf2.0"], NAMES, "environment") == ["tf2.0", "tf2.10", "tf1.14"]
    assert resolve(["tf2.[0-5]"], NAMES, "environment") == ["tf2.0"]
    assert resolve(["Op-by op"], ["graph", "op_by_op"], "value") == ["op_by_op"]
    catalogue = ["tf1.14", "tf2.9", "tf2.21", "tf2.13-py3.11"]
    with pytest.raises(UsageError, match=r"Unknown environment: 'tf2\.99'\. The newest is tf2\.21\."):
        resolve(["tf2.99"], catalogue, "environment")
    with pytest.raises(UsageError, match=r"Unknown environment: 'tf2\.20'\. Did you mean"):
        resolve(["tf2.20"], catalogue, "environment")
    with pytest.raises(UsageError, match=r"Environments are releases of TensorFlow\.") as caught:
        resolve(["pytorch2.1"], catalogue, "environment")
    assert "+torch==" in str(caught.value)


@given(st.lists(st.text(min_size=1), unique=True, min_size=1), st.data())
def test_every_name_finds_itself_first(names, data):
    name = data.draw(st.sampled_from(names))
    assert resolve([name], names, "thing") == [name]


SPOILED_SUITE = Suite("all", "All", ["*"], [SuitePart("step", {}), SuitePart("broken", {})])
SPOILED = Catalog(["tf2.0"], {"step": scenario(), "other": scenario("other")}, {"all": SPOILED_SUITE})


def left(selection: Selection) -> tuple[list[str], list[str]]:
    selection, catalog, names = remove_broken(selection, SPOILED, ["broken"])
    if selection.suite:
        return names, [part.scenario for part in catalog.suites["all"].parts]
    return names, list(selection.scenarios)


def test_a_broken_scenario_is_taken_out_if_it_was_selected():
    assert left(Selection(scenarios=["step", "brok*"])) == (["step", "broken"], ["step"])
    assert left(Selection(suite="all")) == (["step", "broken"], ["step"])
    with pytest.raises(UsageError, match=r"Did you mean broken\?"):
        remove_broken(Selection(scenarios=["brokn"]), SPOILED, ["broken"])
    for selection in (Selection(scenarios=["step"]), Selection(suite="all", scenarios=["step", "other"])):
        assert remove_broken(selection, SPOILED, ["broken"]) == (selection, SPOILED, ["step"])


SUITES = """\
[few]
environments = ["tf2.*"]
[[few.select]]
scenario = "step"
mode = ["graph"]
call = ["fit"]
environment = ["tf2.0"]
[[few.select]]
scenario = "other"
"""
SCENARIOS = {"step": scenario(exclude=[{"mode": "eager", "call": "fit"}]), "other": scenario("other")}


MORE = ("tf1.14", "tf2.0", "tf2.15")


def problems(
    folder: Path,
    text: str,
    broken: tuple[str, ...] = (),
    only: list[str] | None = None,
    known: Sequence[str] = ("tf1.14", "tf2.0"),
) -> list[str]:
    (folder / "scenarios").mkdir(exist_ok=True)
    (folder / "scenarios" / "suites.toml").write_text(text)
    suites, findings = read_suites(Project(folder))
    scenarios = {name: SCENARIOS[name] for name in SCENARIOS if name not in broken}
    check_suites(Catalog(known, scenarios, suites), broken, findings, only)
    return [f"{problem.line}: {problem.text} {problem.fix}" for problem in findings.problems]


INSTEAD = """\
[few.instead]
"tf2.0" = [
  "tf2.1*",
  "tf1.14",
]
"""
MISSPELT = {
    "environment": ('"tf2.*"', '"tf3.*"'),
    "scenario": ('"step"', '"stepp"'),
    "axis": ("mode =", "mood ="),
    "value": ('"fit"', '"fti"'),
    "value of a setting": ("mode =", 'xla = ["fast"]\nmode ='),
    "environment of a part": ('"tf2.0"', '"tf2.1"'),
    "excluded combination": ('"graph"', '"eager"'),
}
MISPLACED = {
    "glob of a stand-in": ('"tf2.1*"', '"tf3.*"'),
    "stand-in": ('"tf1.14"', '"tf1.41"'),
    "role": ('"tf2.0" = ', '"tf2.9" = '),
    "role as a glob": ('"tf2.0" = ', '"tf2.*" = '),
    "role that is not in the suite": ('"tf2.0" = ', '"tf1.14" = '),
    "itself": ('"tf2.1*"', '"tf2.0"'),
}


def test_what_a_suite_cannot_name_is_told_with_its_line(tmp_path, snapshot):
    assert problems(tmp_path, SUITES) == []
    assert problems(tmp_path, SUITES.replace('"tf2.*"', '"tf2.0"') + INSTEAD, known=MORE) == []
    findings = {case: problems(tmp_path, SUITES.replace(*change, 1)) for case, change in MISSPELT.items()}
    findings |= {
        case: problems(tmp_path, SUITES + INSTEAD.replace(*change, 1), known=MORE) for case, change in MISPLACED.items()
    }
    assert findings == snapshot


def test_what_is_said_of_broken_scenarios_or_of_those_that_were_not_typed_is_not_judged(tmp_path):
    wrong = SUITES.replace("mode =", "mood =")
    assert problems(tmp_path, wrong, broken=("step",)) == problems(tmp_path, wrong, only=["other"]) == []
    assert len(problems(tmp_path, wrong, only=["step"])) == 1
