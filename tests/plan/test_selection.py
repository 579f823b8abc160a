from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.project import Project
from harness.catalog.scenarios import read_suites
from harness.model.environment import Device
from harness.model.errors import NothingSelectedError, UsageError
from harness.model.scenario import Suite, SuitePart
from harness.plan.selection import Catalog, Selection, check_suites, parse_axes, remove_broken, resolve, select
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


def test_a_scenario_is_all_of_its_axes_in_every_environment_less_the_defaulted_ones() -> None:
    cells = chosen(scenarios=["step"])
    assert len(cells) == 2 * 2 * 3
    assert cells[0] == "step tf1.14 fit graph float32"
    assert not any("float64" in cell for cell in cells)


def test_an_axis_with_a_default_opens_when_it_is_selected() -> None:
    axes = {"dtype": ["float*"], "call": ["fit"], "mode": ["graph"]}
    cells = chosen(scenarios=["step"], environments=["tf2.0"], axes=axes)
    assert cells == ["step tf2.0 fit graph float32", "step tf2.0 fit graph float64"]


def test_a_suite_is_the_union_of_its_parts_each_cell_once() -> None:
    cells = chosen(suite="quick")
    assert len(cells) == len(set(cells)) == 3 * 2


def test_the_reference_is_the_first_environment_typed() -> None:
    _, environments = select(Selection(scenarios=["other"], environments=["tf2.0", "tf1*"]), CATALOG, Device.CPU)
    assert environments == ["tf2.0", "tf1.14"]


def test_an_axis_leaves_out_scenarios_that_lack_it() -> None:
    assert {cell.split()[0] for cell in chosen(axes={"size": ["10"]})} == {"other"}


@pytest.mark.parametrize(
    ("selection", "problem"),
    [
        ({"environments": ["tf3"]}, "Unknown environment: 'tf3'"),
        ({"environments": ["tf1.41"]}, "Did you mean tf1.14?\nValid names: tf1.14, tf2.0, tf2.15."),
        ({"scenarios": ["stepp"]}, "Did you mean step?"),
        ({"suite": "qick"}, "Unknown suite: 'qick'. Did you mean quick?"),
        ({"axes": {"mod": ["graph"]}}, "Unknown axis: 'mod'. Did you mean mode?"),
        ({"axes": {"dtpye": ["1"]}, "scenarios": ["step"]}, "Did you mean dtype?\nValid names: call, mode, dtype, "),
        ({"axes": {"szie": ["1"]}, "suite": "quick"}, "Unknown axis: 'szie'.\nValid names: call, mode, dtype, "),
        ({"axes": {"mode": ["grph"]}}, "Unknown value of the axis mode: 'grph'. Did you mean graph?"),
    ],
)
def test_a_misspelt_name_is_a_usage_error(selection: dict[str, object], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        chosen(**selection)
    assert problem in str(caught.value)


def test_an_empty_selection_says_which_filter_emptied_it() -> None:
    with pytest.raises(NothingSelectedError) as caught:
        chosen(suite="quick", axes={"call": ["batch"], "mode": ["graph"]})
    assert "--axis mode=graph excludes all 1 combinations" in str(caught.value)
    assert "The combinations have mode eager." in str(caught.value)


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        ({"mode": ["graph"], "size": ["1"]}, "No scenario with the axis size is selected."),
        ({"size": ["1"], "mode": ["graph"]}, "No scenario with the axis mode is selected."),
    ],
)
def test_two_filters_of_which_no_scenario_has_both_axes(axes: dict[str, list[str]], told: str) -> None:
    with pytest.raises(NothingSelectedError) as caught:
        chosen(scenarios=["step", "other"], axes=axes)
    assert told in str(caught.value)


def test_a_run_has_so_many_cells_and_no_more() -> None:
    large = scenario(
        "large", axes={"one": [str(i) for i in range(1000)], "other": [str(i) for i in range(40)]}, default={}
    )
    catalog = replace(CATALOG, scenarios={"large": large})
    with pytest.raises(UsageError, match="120,000 cells are selected; a run has at most 100,000"):
        select(Selection(), catalog, Device.CPU)
    cells, _ = select(Selection(environments=["tf2.0"]), catalog, Device.CPU)
    assert len(cells) == 40_000


def test_axes_are_parsed_and_joined() -> None:
    assert parse_axes(["a=1,2", "b=x", "a=3"]) == {"a": ["1", "2", "3"], "b": ["x"]}
    with pytest.raises(UsageError, match="AXIS=VALUE"):
        parse_axes(["mode"])


def test_a_part_of_a_suite_may_be_for_some_environments_alone() -> None:
    assert chosen(suite="each") == ["step tf1.14 fit graph float32", "step tf2.0 fit eager float32"]
    assert chosen(suite="each", environments=["tf2.15"]) == ["step tf2.15 fit eager float32"]


def test_a_suite_that_has_nothing_in_the_environments_says_so() -> None:
    only = Catalog(CATALOG.environments, CATALOG.scenarios, {"old": suite("old", SuitePart("step", {}, ["tf1*"]))})
    with pytest.raises(NothingSelectedError, match=r"the suite old doesn't include tf2\.0"):
        select(Selection(suite="old", environments=["tf2.0"]), only, Device.CPU)


NAMES = ["tf1.14", "tf1.15", "tf2.0", "tf2.10"]


def test_globs_take_names_in_the_order_typed_each_once() -> None:
    assert resolve(["tf2.*", "tf1.14", "tf2.0"], NAMES, "environment") == ["tf2.0", "tf2.10", "tf1.14"]


def test_a_range_of_a_glob_is_kept() -> None:
    assert resolve(["tf2.[0-5]"], [f"tf2.{minor}" for minor in range(10)], "environment") == [
        f"tf2.{minor}" for minor in range(6)
    ]


def test_spaces_dashes_and_case_make_no_difference() -> None:
    assert resolve(["Op-by op"], ["graph", "op_by_op"], "value") == ["op_by_op"]


def test_a_release_that_is_to_come_gets_the_newest() -> None:
    catalogue = ["tf1.14", "tf2.9", "tf2.21", "tf2.13-py3.11"]
    with pytest.raises(UsageError, match=r"Unknown environment: 'tf2\.99'\. The newest is tf2\.21\."):
        resolve(["tf2.99"], catalogue, "environment")
    with pytest.raises(UsageError, match=r"Unknown environment: 'tf2\.20'\. Did you mean"):
        resolve(["tf2.20"], catalogue, "environment")


@given(st.lists(st.text(min_size=1), unique=True, min_size=1), st.data())
def test_every_name_finds_itself_first(names: list[str], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(names))
    assert resolve([name], names, "thing") == [name]


SPOILED_SUITE = Suite("all", "All", ["*"], [SuitePart("step", {}), SuitePart("broken", {})])
SPOILED = Catalog(["tf2.0"], {"step": scenario(), "other": scenario("other")}, {"all": SPOILED_SUITE})


def left(selection: Selection) -> tuple[list[str], list[str]]:
    """What is selected, broken or not, and what is left of it in the suite or by name."""
    selection, catalog, names = remove_broken(selection, SPOILED, ["broken"])
    if selection.suite:
        return names, [part.scenario for part in catalog.suites["all"].parts]
    return names, list(selection.scenarios)


def test_a_broken_scenario_is_taken_out_of_what_was_typed() -> None:
    assert left(Selection(scenarios=["step", "brok*"])) == (["step", "broken"], ["step"])


def test_a_broken_scenario_is_taken_out_of_a_suite() -> None:
    assert left(Selection(suite="all")) == (["step", "broken"], ["step"])


def test_a_broken_scenario_that_was_not_selected_changes_nothing() -> None:
    selection = Selection(scenarios=["step"])
    assert remove_broken(selection, SPOILED, ["broken"]) == (selection, SPOILED, ["step"])


def test_of_a_suite_what_was_typed_beside_it_counts() -> None:
    selection = Selection(suite="all", scenarios=["step", "other"])
    assert remove_broken(selection, SPOILED, ["broken"]) == (selection, SPOILED, ["step"])


def test_a_name_of_no_scenario_is_told_beside_the_broken_ones() -> None:
    with pytest.raises(UsageError, match=r"Did you mean broken\?"):
        remove_broken(Selection(scenarios=["brokn"]), SPOILED, ["broken"])


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


def test_a_suite_whose_names_all_exist_has_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, SUITES) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"tf2.*"', '"tf3.*"', "2: Unknown environment: 'tf3.*'."),
        ('"step"', '"stepp"', "4: Unknown scenario: 'stepp'. Did you mean step?"),
        ("mode =", "mood =", "5: Unknown axis of step: 'mood'. Did you mean `mode`?"),
        ('"fit"', '"fti"', "6: Unknown value of call: 'fti'. Did you mean fit?"),
        ('"tf2.0"', '"tf2.1"', "7: Unknown environment: 'tf2.1'."),
        ('"graph"', '"eager"', "4: This part selects nothing: the scenario's header excludes all its combinations."),
    ],
)
def test_a_name_that_matches_nothing_is_told_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    (found,) = problems(tmp_path, SUITES.replace(old, new, 1))
    assert found.startswith(told)


INSTEAD = """\
[few.instead]
"tf2.0" = [
  "tf2.1*",
  "tf1.14",
]
"""


def test_stand_ins_whose_names_all_exist_are_no_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, SUITES.replace('"tf2.*"', '"tf2.0"') + INSTEAD, known=MORE) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"tf2.1*"', '"tf3.*"', "12: Unknown environment: 'tf3.*'."),
        ('"tf1.14"', '"tf1.41"', "13: Unknown environment: 'tf1.41'. Did you mean tf1.14?"),
        ('"tf2.0" = ', '"tf2.9" = ', "11: Unknown environment: 'tf2.9'."),
        ('"tf2.0" = ', '"tf2.*" = ', "11: Unknown environment: 'tf2.*'."),
        (
            '"tf2.0" = ',
            '"tf1.14" = ',
            "11: The environment tf1.14 isn't in the suite few. Remove the line, or add the environment to",
        ),
        ('"tf2.1*"', '"tf2.0"', "11: tf2.0 can't replace itself."),
    ],
)
def test_what_cannot_be_of_stand_ins_is_told_with_its_line(tmp_path: Path, old: str, new: str, told: str) -> None:
    assert problems(tmp_path, SUITES + INSTEAD.replace(old, new, 1), known=MORE)[0].startswith(told)


def test_what_is_said_of_a_broken_scenario_is_not_judged(tmp_path: Path) -> None:
    assert problems(tmp_path, SUITES.replace("mode =", "mood ="), broken=("step",)) == []


def test_only_what_is_said_of_the_scenarios_that_were_typed_is_judged(tmp_path: Path) -> None:
    wrong = SUITES.replace("mode =", "mood =")
    assert problems(tmp_path, wrong, only=["other"]) == []
    assert len(problems(tmp_path, wrong, only=["step"])) == 1
