from pathlib import Path

import pytest

from harness.catalog.project import Project
from harness.catalog.scenarios import load_suites
from harness.model.errors import FileError
from harness.model.scenario import SuitePart

SUITES = """\
[quick]
title = "One cell"
environments = ["tf1.14", "tf2.*"]
rounds = 3
budget = "20m"
measure = "400ms"

[[quick.select]]
scenario = "step"
mode = ["graph"]
size = [1, 32.0]
environment = ["tf1.14"]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "scenarios").mkdir()
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "scenarios" / "suites.toml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        load_suites(Project(folder))
    assert all(problem.path == path for problem in caught.value.problems)
    return [f"{problem.line}: {problem.text} {problem.fix}" for problem in caught.value.problems]


def test_a_suite_is_what_is_selected_where_and_for_how_long(folder: Path) -> None:
    (folder / "scenarios" / "suites.toml").write_text(SUITES)
    (suite,) = load_suites(Project(folder)).values()
    assert suite.parts == [SuitePart("step", {"mode": ["graph"], "size": ["1", "32"]}, ["tf1.14"])]
    assert (suite.title, suite.rounds, suite.budget) == ("One cell", 3, "20m")
    assert (suite.warmup, suite.measure) == ("", "400ms")


def test_a_project_may_have_no_suites(folder: Path) -> None:
    assert load_suites(Project(folder)) == {}


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[quick]", "[quick", "1: This is not valid TOML:"),
        ("title", "titel", "2: `quick.titel` is not a known key. Did you mean `title`?"),
        ('"One cell"', "1", "2: `quick.title` must be a string."),
        ("rounds = 3", "rounds = true", "4: `quick.rounds` must be a whole number above 0."),
        ("rounds = 3", "rounds = 0", "4: `quick.rounds` must be a whole number above 0."),
        ('"20m"', "20", '5: `quick.budget` must be a string. Put it in quotes: budget = "20".'),
        ('["tf1.14", "tf2.*"]', '"tf1.14"', "3: `quick.environments` must be a list of strings."),
        ('scenario = "step"', "", "8: `quick.select.scenario` is missing."),
        ('["graph"]', '"graph"', "10: `quick.select.mode` must be a list of strings."),
        ("[quick]", "other = 1\n[quick]", "1: `other` must be a table. Write [other]."),
    ],
)
def test_what_is_wrong_is_told_with_its_line(folder: Path, old: str, new: str, told: str) -> None:
    assert old in SUITES
    assert problems(folder, SUITES.replace(old, new, 1))[0].startswith(told)


def test_a_suite_of_nothing_is_told(folder: Path) -> None:
    assert problems(folder, SUITES.partition("[[")[0])[0].startswith(
        "1: `quick.select` is missing. Write [[quick.select]] with"
    )
