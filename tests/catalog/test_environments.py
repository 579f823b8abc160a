from dataclasses import replace
from pathlib import Path

import pytest
from packaging.version import Version

from harness.catalog.environments import load_environments, parse
from harness.catalog.project import Project
from harness.model.environment import Device
from harness.model.errors import UsageError


def bake(*entries: str) -> str:
    return (
        'variable "ENVIRONMENTS" {\n  default = [\n'
        + "".join(f"    {{ {entry} }},\n" for entry in entries)
        + "  ]\n}\n"
    )


GOOD = (
    'name = "tf1.14", tensorflow = "1.14.0", keras = "2.2.5", python = "3.7", released = "2019-06-19", '
    'as_of = "2019-09-01T00:00:00Z", cuda = "10.0", cudnn = "7.4", gpu_code = "sm_35 compute_70"'
)


def test_the_projects_own_catalogue_has_every_minor_release_and_the_bridges_between_pythons(project: Project) -> None:
    environments = load_environments(project)
    minors = [f"tf1.{minor}" for minor in (14, 15)] + [f"tf2.{minor}" for minor in range(22)]
    assert set(environments) == {*minors, "tf2.2-py3.7", "tf2.13-py3.11", "tf1.15-ngc"}
    for name in minors:
        assert environments[name].tensorflow.startswith(name.removeprefix("tf") + ".")
    for bridge, name in (("tf2.2-py3.7", "tf2.2"), ("tf2.13-py3.11", "tf2.13")):
        there, here = environments[bridge], environments[name]
        assert there.python != here.python
        assert replace(there, name=here.name, python=here.python) == here
    assert environments["tf1.14"].title == "TensorFlow 1.14.0 + Keras 2.2.5"
    assert environments["tf2.15"].keras == ""
    assert environments["tf1.15-ngc"].devices == (Device.GPU,)


def test_cuda_comes_from_an_image_or_from_packages_that_were_there(project: Project) -> None:
    for environment in load_environments(project).values():
        release = Version(environment.tensorflow)
        if environment.gpu_image:
            continue
        assert bool(environment.cuda_image) == (release < Version("2.5"))
        # NVIDIA's packages of CUDA 11 are of November 2022
        if release >= Version("2.5"):
            assert (environment.cuda_as_of or environment.as_of) >= "2022-12-01"


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
        (bake(GOOD.replace('"sm_35 compute_70"', '"7.0"')), "not such as `sm_60 sm_70 compute_80`"),
        (bake(GOOD + ', cuda_as_of = "2022-12-01"'), "`cuda_as_of` is '2022-12-01', not a whole instant"),
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
