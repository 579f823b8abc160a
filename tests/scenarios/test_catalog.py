from dataclasses import asdict, replace
from pathlib import Path

import pytest

from harness.environments.catalog import load_environments
from harness.files import hash_files
from harness.history.nightly_file import read_nightly_file
from harness.model.environment import Device
from harness.model.errors import FileError, UsageError
from harness.plan.selection import Catalog, Selection, select
from harness.plan.settings import add_setting_axes
from harness.project import Project
from harness.scenarios.catalog import (
    find_files_of,
    find_scenario_files,
    find_scenarios,
    load_scenario,
    load_suites,
    read_kit_files,
)
from tests.errors import catch_text


@pytest.mark.slow
def test_every_scenario_can_be_read_and_every_suite_selects_cells_that_exist(project):
    result = find_scenarios(project)
    assert not result.broken

    environments = list(load_environments(project))
    catalog = Catalog(environments=environments, scenarios=result.scenarios, suites=load_suites(project))
    assert {"headline", "releases"} <= set(catalog.suites)
    for suite in catalog.suites:
        selection = Selection(suite=suite)
        assert select(selection, add_setting_axes(selection, catalog), Device.CPU)[0]


def test_files_keep_their_folders_and_stay_out_of_the_kits(project, tmp_path):
    assert {"kit/__init__.py", "kit/__main__.py"} <= set(read_kit_files(project))
    for name in ("mine.py", "base/mine.py", "head/mine.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    scenario = load_scenario(project.scenarios / "keras_step.py")
    names = ["base/mine.py", "head/mine.py"]
    scenario = replace(scenario, path=tmp_path / "mine.py", files=names)
    expected = {name: name.encode() for name in ("mine.py", *names)}
    assert find_files_of(scenario, {"kit/a.py": b""}) == {**expected, "kit/a.py": b""}
    # a fingerprint tells names and contents apart
    assert hash_files({"a": b"b"}) != hash_files({"ab": b""})
    assert hash_files({"a": b"1", "b": b"2"}) == hash_files({"b": b"2", "a": b"1"})
    for name in ("kit/job.json", "kit/__init__.py", "./kit/data.csv", "kit"):
        assert repr(name) in catch_text(UsageError, find_files_of, replace(scenario, files=[name]), {})


def test_a_users_scenarios_stand_beside_those_of_the_harness(project, tmp_path):
    (tmp_path / "mine.py").write_text("# /// script\n# ///\n")
    (tmp_path / "another_tools.py").write_text("print('nothing of ours')\n")
    both = find_scenario_files(replace(project, own=tmp_path))
    assert set(both) - set(find_scenario_files(project)) == {tmp_path / "mine.py"}
    assert both == sorted(both, key=lambda path: path.stem)
    assert find_scenario_files(replace(project, own=tmp_path / "none")) == find_scenario_files(project)


def test_scenarios_of_upstream_issues_lie_a_folder_below_and_no_two_share_a_name(project, tmp_path, snapshot):
    upstream, above = tmp_path / "scenarios" / "upstream", tmp_path / "scenarios"
    upstream.mkdir(parents=True)
    for path in (upstream / "leaks.py", above / "steps.py"):
        path.write_text("# /// script\n# [tool.harness]\n# ///\ndef scenario(bench): pass\n")
    scenarios = find_scenarios(Project(tmp_path)).scenarios
    assert {name: entry.path for name, entry in scenarios.items()} == {
        "leaks": upstream / "leaks.py",
        "steps": above / "steps.py",
    }
    for path in (upstream / "steps.py", tmp_path / "keras_step.py"):
        path.write_text("# /// script\n# ///\n")
    texts = {
        "missing": catch_text(FileError, load_scenario, tmp_path / "none.py"),
        "a user's": catch_text(FileError, find_scenario_files, replace(project, own=tmp_path)),
        "two of ours": catch_text(FileError, find_scenario_files, Project(tmp_path)),
    }
    assert {name: text.replace(str(tmp_path), "") for name, text in texts.items()} == snapshot


SUITES = """\
[quick]
title = "One cell"
environments = ["tf1.14", "tf2.*"]
rounds = 3
budget = "20m"
measure = "400ms"

[quick.instead]
"tf1.14" = ["tf1.15-ngc", "tf2.*"]

[[quick.select]]
scenario = "step"
mode = ["graph"]
size = [1, 32.0]
environment = ["tf1.14"]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "scenarios").mkdir()
    return tmp_path


def problems(folder: Path, text: str) -> list[str]:
    path = folder / "scenarios" / "suites.toml"
    path.write_text(text)
    with pytest.raises(FileError) as caught:
        load_suites(Project(folder))
    assert all(problem.path == path for problem in caught.value.problems)
    return [f"{problem.line}: {problem.text} {problem.fix}".strip() for problem in caught.value.problems]


def test_a_suite_is_what_is_selected_where_and_for_how_long(folder, snapshot):
    assert load_suites(Project(folder)) == {}
    (folder / "scenarios" / "suites.toml").write_text(SUITES)
    assert {name: asdict(suite) for name, suite in load_suites(Project(folder)).items()} == snapshot


CHANGES = [
    ("title", "titel"),
    ('"One cell"', "1"),
    ("rounds = 3", "rounds = true"),
    ("rounds = 3", "rounds = 0"),
    ('"20m"', "20"),
    ('["tf1.14", "tf2.*"]', '"tf1.14"'),
    ('["tf1.15-ngc", "tf2.*"]', '"tf2.*"'),
    ('"tf1.14" =', "tf1.14 ="),
    ('[quick.instead]\n"tf1.14" =', "instead ="),
    ('scenario = "step"', ""),
    ('["graph"]', '"graph"'),
    ("[quick]", "other = 1\n[quick]"),
]


def test_what_is_wrong_with_a_suite_is_told_with_its_line(folder, snapshot):
    texts = {new or old: SUITES.replace(old, new, 1) for old, new in CHANGES}
    texts["no part"] = SUITES.partition("[[")[0]
    assert {change: problems(folder, text) for change, text in texts.items()} == snapshot
    assert problems(folder, SUITES.replace("[quick]", "[quick"))[0].startswith("1: ")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("scenarios/suites.toml", lambda path: load_suites(Project(path.parents[1]))),
        ("docker-bake.hcl", lambda path: load_environments(Project(path.parent))),
        ("nightly.toml", read_nightly_file),
    ],
)
def test_no_error_quotes_a_file_elsewhere_to_which_a_file_of_the_project_is_a_link(name, read, tmp_path):
    path = tmp_path / "project" / name
    path.parent.mkdir(parents=True)
    path.symlink_to(tmp_path / "elsewhere")
    for text in ("root:$6$s3cret:19000::", 'password = "s3cret"', '["s3cret"]', "[db]\npassword=s3cret"):
        (tmp_path / "elsewhere").write_text(text)
        refusal = catch_text(UsageError, read, path)
        assert refusal.startswith(f"{path} is a link to a file outside its folder")
        assert "s3cret" not in refusal
