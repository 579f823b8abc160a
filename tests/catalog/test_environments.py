from pathlib import Path

import pytest

from harness.catalog.environments import load_environments, parse
from harness.catalog.project import Project
from harness.model.errors import UsageError


def bake(*entries: str) -> str:
    return (
        'variable "ENVIRONMENTS" {\n  default = [\n'
        + "".join(f"    {{ {entry} }},\n" for entry in entries)
        + "  ]\n}\n"
    )


GOOD = 'name = "tf1.14", tensorflow = "1.14.0", keras = "2.2.5", python = "3.7", as_of = "2019-09-01T00:00:00Z"'


def test_the_projects_own_catalogue_starts_with_the_famous_pair(project: Project) -> None:
    environments = load_environments(project)
    assert list(environments)[:2] == ["tf1.14", "tf2.0"]
    assert environments["tf1.14"].title == "TensorFlow 1.14.0 + Keras 2.2.5"
    assert environments["tf2.15"].keras == ""
    assert environments["tf2.16"].title == "TensorFlow 2.16.2"


def test_an_environment_is_one_line() -> None:
    (environment,) = parse(bake(GOOD), "file")
    assert (environment.name, environment.tensorflow, environment.keras, environment.python) == (
        "tf1.14",
        "1.14.0",
        "2.2.5",
        "3.7",
    )


def test_what_was_parsed_is_kept_until_the_file_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker-bake.hcl").write_text(bake(GOOD))
    first = load_environments(Project(tmp_path))
    monkeypatch.setattr("harness.catalog.environments.parse", lambda *_: pytest.fail("parsed again"))
    assert load_environments(Project(tmp_path)) == first
    (tmp_path / "docker-bake.hcl").write_text(bake(GOOD) + "# changed\n")
    with pytest.raises(pytest.fail.Exception, match="parsed again"):
        load_environments(Project(tmp_path))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("variable {", "not valid HCL"),
        ('variable "OTHER" {}', 'no `variable "ENVIRONMENTS"`'),
        (bake(GOOD, GOOD), "two environments named tf1.14"),
        (bake(GOOD.replace("as_of", "when")), "lacks `as_of`, has the unknown key `when`"),
        (bake(GOOD.replace("2019-09-01T00:00:00Z", "2019-09-01")), "not a whole instant"),
        (bake(GOOD.replace('"3.7"', '"3"')), "not X.Y"),
        (bake(GOOD.replace("tf1.14", "../tf")), "is not lower-case letters"),
        (bake(GOOD.replace('"3.7"', "3.7")), "not an object of strings"),
    ],
)
def test_a_wrong_catalogue_gets_a_sentence_that_says_where(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "docker-bake.hcl")
    assert problem in str(caught.value)
    assert "docker-bake.hcl" in str(caught.value)
