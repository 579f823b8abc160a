from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version

from harness.catalog.environments import load_environments, parse
from harness.catalog.project import Project
from harness.files import get_cache_dir
from harness.model.environment import Device
from harness.model.errors import UsageError


def bake(*entries: str) -> str:
    return f'variable "ENVIRONMENTS" {{ default = [{", ".join(f"{{ {entry} }}" for entry in entries)}] }}\n'


GOOD = (
    'name = "tf1.14", tensorflow = "1.14.0", keras = "2.2.5", python = "3.7", released = "2019-06-19", '
    'as_of = "2019-09-01T00:00:00Z", cuda = "10.0", cudnn = "7.4", gpu_code = "sm_35 compute_70"'
)


def test_the_projects_own_catalogue_has_no_gap_between_its_releases(project: Project) -> None:
    minors = {Version(environment.tensorflow).release[:2] for environment in load_environments(project).values()}
    for major in {major for major, _ in minors}:
        numbers = sorted(minor for each, minor in minors if each == major)
        assert numbers == list(range(numbers[0], numbers[-1] + 1))


def test_a_name_is_the_release_and_what_sets_it_apart(project: Project) -> None:
    environments = load_environments(project)
    for name, environment in environments.items():
        minor = "tf{}.{}".format(*Version(environment.tensorflow).release)
        first = environments[minor]
        if environment.gpu_image:
            assert name.startswith(f"{minor}-")
            assert environment.devices == (Device.GPU,)
        else:
            assert name == minor or environment == replace(first, name=name, python=environment.python)
            assert name == (minor if environment == first else f"{minor}-py{environment.python}")
        assert environment.title.startswith(f"TensorFlow {environment.tensorflow}")


def test_where_python_changes_between_two_releases_one_is_on_both_sides(project: Project) -> None:
    ours = [environment for environment in load_environments(project).values() if not environment.gpu_image]
    pythons: dict[tuple[int, ...], set[str]] = {}
    for environment in sorted(ours, key=lambda environment: Version(environment.tensorflow)):
        pythons.setdefault(Version(environment.tensorflow).release[:2], set()).add(environment.python)
    for (before, older), (after, newer) in pairwise(pythons.items()):
        assert older & newer, f"No Python has both {before} and {after}."


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
    (found,) = parse(bake(GOOD), "file")
    assert (found.name, found.tensorflow, found.keras, found.python) == ("tf1.14", "1.14.0", "2.2.5", "3.7")


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
        ("variable {", "docker-bake.hcl:1 is not valid HCL"),
        ("\ntarget = {", "docker-bake.hcl:2 is not valid HCL"),
        ("\nx = 1" + "0" * 5000, "docker-bake.hcl:2 is not valid HCL: expected integers of at most 4,000 digits"),
        ("variable = 3", 'no `variable "ENVIRONMENTS"`'),
        ("variable = {}", 'no `variable "ENVIRONMENTS"`'),
        ('variable "OTHER" {}', 'no `variable "ENVIRONMENTS"`'),
        (bake(GOOD, GOOD), "two environments named tf1.14"),
        (bake(GOOD.replace("as_of", "when")), "`as_of` is missing, `when` is not a known key"),
        (bake(GOOD.replace("2019-09-01T00:00:00Z", "2019-09-01")), "expected a date and time"),
        (bake(GOOD.replace('"sm_35 compute_70"', '"7.0"')), "expected architectures such as `sm_60 sm_70 compute_80`"),
        (bake(GOOD + ', cuda_as_of = "2022-12-01"'), "invalid `cuda_as_of` '2022-12-01': expected a date and time"),
        (bake(GOOD.replace('"3.7"', '"3"')), "expected X.Y"),
        (bake(GOOD.replace("tf1.14", "../tf")), "invalid `name` '../tf': expected lower-case letters"),
        (bake(GOOD.replace('"3.7"', "3.7")), "expected an object of strings"),
    ],
)
def test_a_wrong_catalogue_gets_a_sentence_that_says_where(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "docker-bake.hcl")
    assert problem in str(caught.value)
    assert "docker-bake.hcl" in str(caught.value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"\xff", "it isn't UTF-8"),
        (
            b'variable "ENVIRONMENTS" { default = ' + b"[" * 2000 + b"]" * 2000 + b"}",
            "nested too deep|is not valid HCL",
        ),
        (b"#" * 200_000, "it is larger than"),
    ],
)
def test_a_catalogue_that_cannot_be_read_gets_a_sentence(tmp_path: Path, data: bytes, told: str) -> None:
    (tmp_path / "docker-bake.hcl").write_bytes(data)
    with pytest.raises(UsageError, match=told):
        load_environments(Project(tmp_path))


@pytest.mark.parametrize("kept", ["3", "[3]", "[{}]", '[{"name": 1}]', "[" * 5000 + "]" * 5000, "\xff"])
def test_what_is_kept_of_a_catalogue_in_another_shape_is_read_again(tmp_path: Path, kept: str) -> None:
    project = Project(tmp_path)
    project.bake_file.write_text(bake(GOOD))
    found = load_environments(project)
    (file,) = (get_cache_dir() / "catalog").iterdir()
    file.write_text(kept)
    assert load_environments(project) == found
