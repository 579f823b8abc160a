from dataclasses import replace
from itertools import pairwise

import pytest
from packaging.version import Version

from harness.environments.catalog import load_environments, parse
from harness.files import get_cache_dir
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.project import Project
from tests.errors import catch, catch_text


def bake(*entries: str) -> str:
    return f'variable "ENVIRONMENTS" {{ default = [{", ".join(f"{{ {entry} }}" for entry in entries)}] }}\n'


GOOD = (
    'name = "tf1.14", tensorflow = "1.14.0", keras = "2.2.5", python = "3.7", released = "2019-06-19", '
    'as_of = "2019-09-01T00:00:00Z", cuda = "10.0", cudnn = "7.4", gpu_code = "sm_35 compute_70"'
)


def test_the_projects_own_catalogue_is_consistent(project):
    environments = load_environments(project)
    minors = {Version(environment.tensorflow).release[:2] for environment in environments.values()}
    for major in {major for major, _ in minors}:
        numbers = sorted(minor for number, minor in minors if number == major)
        assert numbers == list(range(numbers[0], numbers[-1] + 1)), "a gap between two releases"
    for name, environment in environments.items():
        release = Version(environment.tensorflow)
        minor = "tf{}.{}".format(*release.release)
        first = environments[minor]
        assert environment.title.startswith(f"TensorFlow {environment.tensorflow}")
        if environment.gpu_image:
            assert name.startswith(f"{minor}-")
            assert environment.devices == (Device.GPU,)
            continue
        assert name == minor or environment == replace(first, name=name, python=environment.python)
        assert name == (minor if environment == first else f"{minor}-py{environment.python}")
        assert bool(environment.cuda_image) == (release < Version("2.5"))
        # NVIDIA's packages of CUDA 11 are of November 2022
        if release >= Version("2.5"):
            assert (environment.cuda_as_of or environment.as_of) >= "2022-12-01"


def test_where_python_changes_between_two_releases_one_is_on_both_sides(project):
    ours = [environment for environment in load_environments(project).values() if not environment.gpu_image]
    pythons: dict[tuple[int, ...], set[str]] = {}
    for environment in sorted(ours, key=lambda environment: Version(environment.tensorflow)):
        pythons.setdefault(Version(environment.tensorflow).release[:2], set()).add(environment.python)
    for (before, older), (after, newer) in pairwise(pythons.items()):
        assert older & newer, f"No Python has both {before} and {after}."


def test_what_was_parsed_is_kept_until_the_file_changes(tmp_path, monkeypatch):
    project = Project(tmp_path)
    project.bake_file.write_text(bake(GOOD))
    first = load_environments(project)
    assert [environment.keras for environment in first.values()] == ["2.2.5"]
    # what is kept in another shape is read again
    (file,) = (get_cache_dir() / "catalog").iterdir()
    for text in ("3", "[3]", "[{}]", '[{"name": 1}]', "[" * 5000 + "]" * 5000, "\xff"):
        file.write_text(text)
        assert load_environments(project) == first, text
    monkeypatch.setattr("harness.environments.catalog.parse", lambda *_: pytest.fail("parsed again"))
    assert load_environments(project) == first
    project.bake_file.write_text(bake(GOOD) + "# changed\n")
    with pytest.raises(pytest.fail.Exception, match="parsed again"):
        load_environments(project)


def test_the_gpu_code_is_in_a_file_of_its_own(tmp_path):
    project = Project(tmp_path)
    project.bake_file.write_text(bake(GOOD.replace(', gpu_code = "sm_35 compute_70"', "")))
    assert load_environments(project)["tf1.14"].devices == (Device.CPU,)
    project.gpu_code_file.parent.mkdir()
    project.gpu_code_file.write_text('{"tf1.14": {"gpu_code": "sm_70"}}')
    assert load_environments(project)["tf1.14"].gpu_code == "sm_70"
    for text in ("[]", '{"tf1.14": 3}', "{", '{"tf1.14": {"gpu_code": 3}}'):
        project.gpu_code_file.write_text(text)
        catch(UsageError, load_environments, project)


def test_a_wrong_catalogue_gets_a_sentence_that_says_where(tmp_path, snapshot):
    changes = {
        "digits": "\nx = 1" + "0" * 5000,
        "no block": "variable = 3",
        "a block and an attribute": 'target = {}\ntarget "x" {}',
        "an object": "variable = {}",
        "another variable": 'variable "OTHER" {}',
        "twice": bake(GOOD, GOOD),
        "a key": bake(GOOD.replace("as_of", "when")),
        "a date": bake(GOOD.replace("2019-09-01T00:00:00Z", "2019-09-01")),
        "GPU code": bake(GOOD.replace('"sm_35 compute_70"', '"7.0"')),
        "a date of CUDA": bake(GOOD + ', cuda_as_of = "2022-12-01"'),
        "a version": bake(GOOD.replace('"1.14.0"', '"latest"')),
        "a Python": bake(GOOD.replace('"3.7"', '"3"')),
        "a name": bake(GOOD.replace("tf1.14", "../tf")),
        "a number": bake(GOOD.replace('"3.7"', "3.7")),
    }
    errors = {name: catch_text(UsageError, parse, text, "docker-bake.hcl") for name, text in changes.items()}
    for line, text in ((1, "variable {"), (2, "\ntarget = {")):
        assert f"docker-bake.hcl:{line} " in catch_text(UsageError, parse, text, "docker-bake.hcl")
    project = Project(tmp_path)
    for name, data in (("bytes", b"\xff"), ("size", b"#" * 200_000)):
        project.bake_file.write_bytes(data)
        errors[name] = catch_text(UsageError, load_environments, project).replace(str(tmp_path), "")
    assert errors == snapshot
    project.bake_file.write_text(f'variable "ENVIRONMENTS" {{ default = {"[" * 500}{"]" * 500} }}')
    catch(UsageError, load_environments, project)
