import tomllib
from pathlib import Path

import pytest

from harness.catalog.toml import Findings
from harness.model.scenario import Suite, SuitePart
from harness.plan.selection import Catalog, check_suites
from tests.factories import scenario

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


def problems(text: str, broken: tuple[str, ...] = (), only: list[str] | None = None) -> list[str]:
    suites = {}
    for name, table in tomllib.loads(text).items():
        parts = [
            SuitePart(
                part["scenario"],
                {axis: values for axis, values in part.items() if axis not in ("scenario", "environment")},
                part.get("environment", ()),
            )
            for part in table["select"]
        ]
        suites[name] = Suite(name, name, table["environments"], parts)
    findings = Findings(Path("suites.toml"), text)
    known = {name: SCENARIOS[name] for name in SCENARIOS if name not in broken}
    check_suites(Catalog(["tf1.14", "tf2.0"], known, suites), broken, findings, only)
    return [f"{problem.line}: {problem.text} {problem.fix}" for problem in findings.problems]


def test_a_suite_whose_names_all_exist_has_no_problem() -> None:
    assert problems(SUITES) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('"tf2.*"', '"tf3.*"', "2: There is no environment 'tf3.*'."),
        ('"step"', '"stepp"', "4: There is no scenario 'stepp'. Did you mean `step`?"),
        ("mode =", "mood =", "5: step has no axis 'mood'. Did you mean `mode`?"),
        ('"fit"', '"fti"', "6: There is no value of call 'fti'. Did you mean fit?"),
        ('"tf2.0"', '"tf2.1"', "7: There is no environment 'tf2.1'."),
        ('"graph"', '"eager"', "4: This part selects nothing: the scenario's header excludes all of it."),
    ],
)
def test_a_name_that_matches_nothing_is_told_with_its_line(old: str, new: str, told: str) -> None:
    (found,) = problems(SUITES.replace(old, new, 1))
    assert found.startswith(told)


def test_what_is_said_of_a_broken_scenario_is_not_judged() -> None:
    assert problems(SUITES.replace("mode =", "mood ="), broken=("step",)) == []


def test_only_what_is_said_of_the_scenarios_that_were_typed_is_judged() -> None:
    wrong = SUITES.replace("mode =", "mood =")
    assert problems(wrong, only=["other"]) == []
    assert len(problems(wrong, only=["step"])) == 1
