import json
from pathlib import Path

import pytest

from harness.catalog import adhoc
from harness.catalog.locks import describe_overrides, load_lock, lock_file, write_lock
from harness.catalog.project import Project
from harness.model.environment import Device, Environment, Requirement, installed
from harness.model.errors import UsageError
from tests.packageindex import PackageIndex

BASE = Environment("tf2.15", "2.15.1", "3.11", "2024-03-20T00:00:00Z", cuda="12.2", cudnn="8.9", gpu_code="sm_80")
#: What the base has, and when all of it appeared.
OWN = ("numpy-1.26.4", "scipy-1.11.0", "keras-2.15.0", "six-1.16.0", "setuptools-69.0.0", "wheel-0.43.0")
DAY, LATER = "2024-01-10T12:00:00Z", "2024-06-01T12:00:00Z"
NEEDS = {"scipy-1.11.0": ["numpy<2"], "keras-2.15.0": ["six"]}


@pytest.fixture
def index(package_index: PackageIndex) -> PackageIndex:
    """An index with all that the base has, and younger versions of some."""
    for name in OWN:
        package_index.add(f"{name}-py3-none-any", DAY, NEEDS.get(name, ()))
    needs = ["numpy<3", "scipy", "keras<2.16,>=2.15"]
    package_index.add("tensorflow_cpu-2.15.1-cp311-cp311-manylinux2014_x86_64", DAY, needs)
    package_index.add("six-1.17.0-py3-none-any", LATER)
    package_index.add("numpy-1.26.9-py3-none-any", LATER)
    package_index.add("keras_nightly-2.16.0.dev2024060103-py3-none-any", LATER, ["six>=1.17"])
    return package_index


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose catalogue is the base alone, with its lock."""
    entry = {key: getattr(BASE, key) for key in ("name", "tensorflow", "python", "as_of", "cuda", "cudnn", "gpu_code")}
    (tmp_path / "docker-bake.hcl").write_text(
        'variable "ENVIRONMENTS" { default = [' + json.dumps(entry).replace('":', '" =') + "] }\n"
    )
    (tmp_path / "scenarios").mkdir()
    return Project(tmp_path)


@pytest.fixture
def base(index: PackageIndex, project: Project) -> Requirement:
    assert write_lock(project, BASE, Device.CPU)
    return load_lock(project, BASE, Device.CPU)


def made(text: str, project: Project) -> Requirement:
    known, (name,) = adhoc.add_requested({BASE.name: BASE}, [text])
    return load_lock(project, known[name], Device.CPU)


def test_one_package_moves_and_all_other_lines_stay(base: Requirement, project: Project) -> None:
    found = made("tf2.15+numpy==1.26.9", project)
    assert found.environment.name == "tf2.15-numpy-1.26.9"
    assert (found.environment.base, found.environment.asked) == ("tf2.15", "tf2.15+numpy==1.26.9")
    # the younger of both; six 1.17.0 is there by then, and nothing needs it
    assert found.environment.as_of == "2024-06-03T00:00:00Z"
    assert (found.environment.python, found.environment.cuda) == (BASE.python, BASE.cuda)
    assert found.lock.pins == {**base.lock.pins, "numpy": "1.26.9"}
    had, has = (set(value.lock.path.read_text().splitlines()) for value in (base, found))
    assert {line.partition("==")[0] for line in had - has if "==" in line} == {"numpy"}
    assert describe_overrides(project, found) == "tf2.15 with NumPy 1.26.9 instead of 1.26.4"
    assert describe_overrides(project, base) == ""


def test_what_is_older_than_the_base_leaves_its_day(index: PackageIndex, base: Requirement, project: Project) -> None:
    index.add("numpy-1.20.0-py3-none-any", "2021-01-01T00:00:00Z")
    assert made("tf2.15+numpy==1.20.0", project).environment.as_of == BASE.as_of


def test_a_range_is_of_what_there_was_on_the_bases_day(base: Requirement, project: Project) -> None:
    with pytest.raises(UsageError) as caught:
        made("tf2.15+numpy>1.26.4,<2", project)
    assert "numpy<2,>1.26.4 can't be installed in tf2.15" in caught.value.message
    assert "Or specify an exact version" in caught.value.advice


def test_what_a_moved_package_needs_moves_with_it_and_is_told(base: Requirement, project: Project) -> None:
    found = made("tf2.15+keras-nightly==2.16.0.dev2024060103", project)
    changed = {"keras-nightly": "2.16.0.dev2024060103", "six": "1.17.0"}
    assert found.lock.pins == {name: base.lock.pins[name] for name in base.lock.pins if name != "keras"} | changed
    assert installed("keras", found.lock.pins) == "2.16.0.dev2024060103"
    assert "keras-nightly 2.16.0.dev2024060103 instead of keras 2.15.0 and six 1.17.0" in describe_overrides(
        project, found
    )


def test_another_keras_is_installed_beyond_the_limit_of_its_tensorflow(
    index: PackageIndex, base: Requirement, project: Project
) -> None:
    index.add("keras-3.0.5-py3-none-any", DAY, ["six"])
    assert made("tf2.15+keras==3.0.5", project).lock.pins == {**base.lock.pins, "keras": "3.0.5"}


def test_what_is_in_the_way_is_told_and_does_not_move(index: PackageIndex, base: Requirement, project: Project) -> None:
    index.add("numpy-2.0.0-py3-none-any", LATER)
    index.add("scipy-1.13.0-py3-none-any", LATER)
    with pytest.raises(UsageError) as caught:
        made("tf2.15+numpy==2.0.0", project)
    assert "depends on numpy<2" in caught.value.message
    assert "tf2.15+numpy==2.0.0+PACKAGE==VERSION" in caught.value.advice
    assert "-e tensorflow==2.15.1,numpy==2.0.0" in caught.value.advice
    found = made("tf2.15+numpy==2.0.0+scipy==1.13.0", project)
    assert found.lock.pins == {**base.lock.pins, "numpy": "2.0.0", "scipy": "1.13.0"}


def test_tensorflow_moves_as_the_package_for_the_device(
    index: PackageIndex, base: Requirement, project: Project
) -> None:
    for package in ("tensorflow", "tensorflow_cpu"):
        name = f"{package}-2.15.2-cp311-cp311-manylinux2014_x86_64"
        index.add(name, LATER, ["numpy<3", "scipy", "keras>=2.15"])
    found = made("tf2.15+tensorflow==2.15.2", project)
    assert (found.environment.tensorflow, found.environment.released) == ("2.15.2", "2024-06-01")
    assert found.lock.pins == {**base.lock.pins, "tensorflow-cpu": "2.15.2"}


def test_packages_move_in_what_was_typed_and_in_what_was_moved(
    index: PackageIndex, base: Requirement, project: Project
) -> None:
    index.add("tensorflow-2.15.1-cp311-cp311-manylinux2014_x86_64", DAY)
    typed = made("tensorflow==2.15.1+numpy==1.26.9", project)
    assert typed.environment.name == "tensorflow-2.15.1--numpy-1.26.9"
    assert typed.environment.base == "tensorflow-2.15.1"
    first = made("tf2.15+numpy==1.26.9", project)
    both = made(f"{first.environment.name}+six==1.17.0", project)
    assert both.environment == made("tf2.15+six==1.17.0+numpy==1.26.9", project).environment
    assert (both.environment.base, both.environment.asked) == ("tf2.15", "tf2.15+numpy==1.26.9+six==1.17.0")


def test_it_is_kept_until_its_base_has_another_lock(index: PackageIndex, base: Requirement, project: Project) -> None:
    first = made("tf2.15+numpy==1.26.9", project)
    before = index.asked
    assert made("tf2.15 + numpy == 1.26.9", project) == first
    assert made(first.environment.name, project) == first
    assert index.asked == before
    lock = lock_file(project, BASE, Device.CPU)
    lock.write_text(lock.read_text().replace("six==1.16.0", "six==1.17.0"))
    assert made(first.environment.name, project).lock.pins["six"] == "1.17.0"


def test_what_is_so_already_is_refused(base: Requirement, project: Project) -> None:
    with pytest.raises(UsageError) as caught:
        made("tf2.15+numpy<2", project)
    assert caught.value.message == "tf2.15 already has numpy 1.26.4, so nothing would change."
    assert caught.value.advice == "Use -e tf2.15 instead."


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tf2.51+numpy==1.26.9", "Unknown environment 'tf2.51' in tf2.51+numpy==1.26.9. Did you mean tf2.15?"),
        (
            "tf2.15+numpyy==1.26.9",
            "numpyy 1.26.9 isn't available for Python 3.11 on x86-64. The package index lists no",
        ),
        ("tf2.15+numpyy<2", "numpyy<2 isn't available for Python 3.11 (the Python of tf2.15)"),
        ("tf2.15+six==1.15.0", "six 1.15.0 was yanked from the package index (wrong metadata)."),
        ("tf2.15+tensorflow<2.15", "pass an exact version of TensorFlow"),
        ("old-ngc+numpy==1.26.9", "Packages of old-ngc can't be replaced"),
    ],
)
def test_what_cannot_be_moved_is_a_sentence(index: PackageIndex, text: str, problem: str) -> None:
    path = index.add("six-1.15.0-py3-none-any", DAY)
    index.yanked[path.name] = "wrong metadata"
    index.add("tensorflow-2.14.0-cp311-cp311-manylinux2014_x86_64", DAY)
    own = Environment("old-ngc", "1.15.5", "3.8", "2024-03-20T00:00:00Z", gpu_image="image")
    with pytest.raises(UsageError) as caught:
        adhoc.add_requested({BASE.name: BASE, own.name: own}, [text])
    assert problem in caught.value.message


def test_a_source_whose_wheels_are_for_other_pythons_is_refused(
    index: PackageIndex, base: Requirement, project: Project
) -> None:
    index.add("h5py-2.10.0-cp38-cp38-manylinux2014_x86_64", DAY)
    index.add_source("h5py-2.10.0", DAY)
    index.add_source("termcolor-1.1.0", DAY)
    with pytest.raises(UsageError) as caught:
        made("tf2.15+h5py==2.10.0", project)
    assert "h5py 2.10.0 has wheels for Python 3.8, but not for 3.11 (the Python of tf2.15)" in caught.value.message
    # one that never had wheels is built
    assert made("tf2.15+termcolor==1.1.0", project).lock.pins == {**base.lock.pins, "termcolor": "1.1.0"}
