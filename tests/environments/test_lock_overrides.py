import json

import pytest

from harness.environments import adhoc
from harness.environments.locks import Builds, describe_overrides, load_lock, lock_file, write_lock
from harness.environments.requested import parse_requested
from harness.model.environment import Device, Environment, Requirement, installed
from harness.model.errors import UsageError
from harness.project import Project
from tests.errors import catch, catch_text

BASE = Environment("tf2.15", "2.15.1", "3.11", "2024-03-20T00:00:00Z", cuda="12.2", cudnn="8.9", gpu_code="sm_80")
#: What the base has, and when all of it appeared.
OWN = ("numpy-1.26.4", "scipy-1.11.0", "keras-2.15.0", "six-1.16.0", "setuptools-69.0.0", "wheel-0.43.0")
DAY, LATER = "2024-01-10T12:00:00Z", "2024-06-01T12:00:00Z"
NEEDS = {"scipy-1.11.0": ["numpy<2"], "keras-2.15.0": ["six"]}


@pytest.fixture
def index(package_index):
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
def project(tmp_path):
    """A project whose catalogue is the base alone, with its lock."""
    entry = {key: getattr(BASE, key) for key in ("name", "tensorflow", "python", "as_of", "cuda", "cudnn", "gpu_code")}
    (tmp_path / "docker-bake.hcl").write_text(
        'variable "ENVIRONMENTS" { default = [' + json.dumps(entry).replace('":', '" =') + "] }\n"
    )
    (tmp_path / "scenarios").mkdir()
    return Project(tmp_path)


@pytest.fixture
def base(index, project):
    assert write_lock(project, BASE, Device.CPU)
    return load_lock(project, BASE, Device.CPU)


def override(text: str, project: Project, builds: Builds = Builds.KNOWN) -> Requirement:
    environments, (name,) = adhoc.add_requested({BASE.name: BASE}, [parse_requested(text)])
    return load_lock(project, environments[name], Device.CPU, builds=builds)


@pytest.mark.slow
def test_one_package_moves_and_all_other_lines_stay(index, base, project, snapshot):
    moved = override("tf2.15+numpy==1.26.9", project)
    assert moved.environment.name == "tf2.15-numpy-1.26.9"
    assert (moved.environment.base, moved.environment.asked) == ("tf2.15", "tf2.15+numpy==1.26.9")
    # the younger of both; six 1.17.0 is there by then, and nothing needs it
    assert moved.environment.as_of == "2024-06-03T00:00:00Z"
    assert (moved.environment.python, moved.environment.cuda) == (BASE.python, BASE.cuda)
    assert moved.lock.pins == {**base.lock.pins, "numpy": "1.26.9"}
    before, after = (set(requirement.lock.path.read_text().splitlines()) for requirement in (base, moved))
    assert {line.partition("==")[0] for line in before - after if "==" in line} == {"numpy"}
    # what is older than the base leaves its day
    index.add("numpy-1.20.0-py3-none-any", "2021-01-01T00:00:00Z")
    assert override("tf2.15+numpy==1.20.0", project).environment.as_of == BASE.as_of
    assert [describe_overrides(project, requirement) for requirement in (moved, base)] == snapshot

    # it is kept until its base has another lock
    questions = index.asked
    assert override("tf2.15 + numpy == 1.26.9", project) == moved
    assert override(moved.environment.name, project) == moved
    assert index.asked == questions
    lock = lock_file(project, BASE, Device.CPU)
    lock.write_text(lock.read_text().replace("six==1.16.0", "six==1.17.0"))
    assert override(moved.environment.name, project).lock.pins["six"] == "1.17.0"


@pytest.mark.slow
def test_what_a_moved_package_needs_moves_with_it_and_is_told(index, base, project, snapshot):
    moved = override("tf2.15+keras-nightly==2.16.0.dev2024060103", project)
    changes = {"keras-nightly": "2.16.0.dev2024060103", "six": "1.17.0"}
    assert moved.lock.pins == {name: base.lock.pins[name] for name in base.lock.pins if name != "keras"} | changes
    assert installed("keras", moved.lock.pins) == "2.16.0.dev2024060103"
    assert describe_overrides(project, moved) == snapshot
    # another Keras is installed beyond the limit of its TensorFlow
    index.add("keras-3.0.5-py3-none-any", DAY, ["six"])
    assert override("tf2.15+keras==3.0.5", project).lock.pins == {**base.lock.pins, "keras": "3.0.5"}


@pytest.mark.slow
def test_what_is_in_the_way_is_told_and_does_not_move(index, base, project, snapshot):
    index.add("numpy-2.0.0-py3-none-any", LATER)
    index.add("scipy-1.13.0-py3-none-any", LATER)
    error = catch(UsageError, override, "tf2.15+numpy==2.0.0", project)
    assert "numpy<2" in error.message
    assert error.advice == snapshot
    moved = override("tf2.15+numpy==2.0.0+scipy==1.13.0", project)
    assert moved.lock.pins == {**base.lock.pins, "numpy": "2.0.0", "scipy": "1.13.0"}
    # a range is of what there was on the base's day
    error = catch(UsageError, override, "tf2.15+numpy>1.26.4,<2", project)
    assert "numpy<2,>1.26.4" in error.message
    assert error.advice == snapshot


def test_tensorflow_moves_as_the_package_for_the_device(index, base, project):
    for package in ("tensorflow", "tensorflow_cpu"):
        name = f"{package}-2.15.2-cp311-cp311-manylinux2014_x86_64"
        index.add(name, LATER, ["numpy<3", "scipy", "keras>=2.15"])
    moved = override("tf2.15+tensorflow==2.15.2", project)
    assert (moved.environment.tensorflow, moved.environment.released) == ("2.15.2", "2024-06-01")
    assert moved.lock.pins == {**base.lock.pins, "tensorflow-cpu": "2.15.2"}


@pytest.mark.slow
@pytest.mark.usefixtures("base")
def test_packages_move_in_requirements_and_in_what_was_moved(index, project):
    index.add("tensorflow-2.15.1-cp311-cp311-manylinux2014_x86_64", DAY)
    moved = override("tensorflow==2.15.1+numpy==1.26.9", project)
    assert moved.environment.name == "tensorflow-2.15.1--numpy-1.26.9"
    assert moved.environment.base == "tensorflow-2.15.1"
    first = override("tf2.15+numpy==1.26.9", project)
    both = override(f"{first.environment.name}+six==1.17.0", project)
    assert both.environment == override("tf2.15+six==1.17.0+numpy==1.26.9", project).environment
    assert (both.environment.base, both.environment.asked) == ("tf2.15", "tf2.15+numpy==1.26.9+six==1.17.0")


@pytest.mark.slow
def test_a_package_that_only_is_added_is_installed_over_the_base(index, base, project):
    index.add("psutil-5.9.8-py3-none-any", DAY)
    index.add("psutil-6.0.0-py3-none-any", LATER)
    added = override("tf2.15+psutil", project, Builds.ALL)
    assert added.lock.pins == {**base.lock.pins, "psutil": "5.9.8"}
    assert added.base == base
    assert override("tf2.15+numpy==1.26.9", project).base is None
    # a base with added packages gets more of them
    both = override(f"{added.environment.name}+numpy==1.26.9", project, Builds.ALL)
    assert both.environment.asked == "tf2.15+psutil+numpy==1.26.9"


@pytest.mark.slow
def test_what_cannot_be_moved_is_told(index, base, project, snapshot):
    path = index.add("six-1.15.0-py3-none-any", DAY)
    index.yanked[path.name] = "wrong metadata"
    index.add("tensorflow-2.14.0-cp311-cp311-manylinux2014_x86_64", DAY)
    index.add("h5py-2.10.0-cp38-cp38-manylinux2014_x86_64", DAY)
    index.add_source("h5py-2.10.0", DAY)
    index.add_source("termcolor-1.1.0", DAY)
    ngc = Environment("old-ngc", "1.15.5", "3.8", "2024-03-20T00:00:00Z", gpu_image="image")
    catalogue = {BASE.name: BASE, ngc.name: ngc}
    texts = [
        *("tf2.51+numpy==1.26.9", "tf2.15+numpyy==1.26.9", "tf2.15+numpyy<2", "tf2.15+six==1.15.0"),
        *("tf2.15+tensorflow<2.15", "old-ngc+numpy==1.26.9"),
    ]
    errors = {text: catch_text(UsageError, adhoc.add_requested, catalogue, [parse_requested(text)]) for text in texts}
    # what would change nothing, and a source whose wheels are for other Pythons
    for text in ("tf2.15+numpy<2", "tf2.15+h5py==2.10.0"):
        errors[text] = catch_text(UsageError, override, text, project)
    assert errors == snapshot
    # one that never had wheels is built if it is trusted
    assert override("tf2.15+termcolor==1.1.0", project, Builds.ALL).lock.pins == {
        **base.lock.pins,
        "termcolor": "1.1.0",
    }
