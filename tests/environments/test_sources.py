from dataclasses import asdict
from datetime import UTC, datetime

import pytest

from harness.environments import sources
from harness.environments.requested import FromSource, Named
from harness.environments.sources import parse_place
from harness.model.environment import Device, Environment, Lock, Requirement, pins
from harness.model.errors import UsageError
from tests.errors import catch_text
from tests.packageindex import PackageIndex

BASE = Environment("tf2.21", "2.21.0", "3.11", "2026-04-15T00:00:00Z", keras="3.14.0")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_source_is_on_this_machine_or_has_an_address():
    places = {
        ("/keras", ""): True,
        ("~/keras", "https://host/a/keras"): True,
        ("git+file:///keras@v3", ""): True,
        ("git+https://host/a/keras@v3", "/clone"): False,
        ("v3", ""): False,
        ("v3", "/clone"): True,
        ("v3", "git+file:///clone"): True,
        ("v3", "https://host/a/keras"): False,
        ("pr/12", ""): False,
        ("pr/12", "file:///server"): True,
    }
    assert {
        (place, repository): parse_place(FromSource(Named("tf2.21"), "keras", place), repository).is_on_this_machine
        for place, repository in places
    } == places


@pytest.fixture
def requirement(tmp_path):
    path = tmp_path / "base.txt"
    path.write_text("absl-py==2.0 \\\n    --hash=sha256:aa\nkeras==3.14.0 \\\n    --hash=sha256:bb\nsix==1.0\n")
    return Requirement(BASE, Device.CPU, Lock(path, "0" * 64, pins(path.read_text())))


def keras_wheel(index: PackageIndex, *requires: str) -> sources.Wheel:
    return sources.keep_wheel(index.add("keras-3.15.0-py3-none-any", requires=requires), "keras", "3.11")


def test_the_lock_has_the_wheel_in_place_of_the_package(requirement, tmp_path, snapshot):
    wheel = keras_wheel(
        PackageIndex(tmp_path),
        "absl-py>=1",
        "rich; python_version < '3.9'",
        "tensorflow; extra == 'tf'",
        "tomli; python_full_version < '3.11.2'",
        "pypy-fixes; platform_python_implementation == 'PyPy'",
    )
    environment = sources.make_environment(BASE, "keras", wheel, ("3f2a91c", "3f2a91c4b2d1"), "commit 3f2a91c4b2d1")
    changes = {key: value for key, value in asdict(environment).items() if value != asdict(BASE)[key]}
    assert changes.pop("wheel") == wheel.name
    assert changes == snapshot
    lines = sources.make_lock_lines(environment, requirement)
    assert pins(lines) == {"absl-py": "2.0", "keras": "3.15.0", "six": "1.0"}
    assert f"--hash=sha256:{wheel.name.split('/')[0]}" in lines


def test_a_wheel_is_of_the_package_for_the_python_and_needs_what_the_base_has(requirement, tmp_path, snapshot):
    index = PackageIndex(tmp_path)
    names = ["numpy-2.0.0-cp312-cp312-manylinux_2_28_x86_64", "numpy-2.0.0-cp311-cp311-win_amd64"]
    wheels = [index.add(name) for name in (*names, "keras-3.15.0-py3-none-any")]
    texts = [catch_text(UsageError, sources.keep_wheel, wheel, "numpy", "3.11") for wheel in wheels]
    environment = sources.make_environment(BASE, "keras", keras_wheel(index, "rich", "absl-py>=3"), ("a", "b"), "c")
    texts.append(catch_text(UsageError, sources.make_lock_lines, environment, requirement))
    assert [text.replace(str(tmp_path), "") for text in texts] == snapshot
    # a wheel of TensorFlow takes the place of all its packages
    wheel = sources.keep_wheel(index.add("tensorflow-2.22.0-cp311-cp311-manylinux_2_27_x86_64"), "tensorflow", "3.11")
    environment = sources.make_environment(BASE, "tensorflow", wheel, ("a", "b"), "c")
    assert (environment.tensorflow, "tensorflow-cpu" in environment.replaced) == ("2.22.0", True)


def test_what_a_build_needs_is_locked_as_of_the_instant(package_index, tmp_path):
    package_index.add("setuptools-70.0-py3-none-any", "2025-01-01T00:00:00Z")
    package_index.add("setuptools-80.0-py3-none-any", "2026-02-01T00:00:00Z")
    package_index.add("wheel-0.45-py3-none-any", "2025-01-01T00:00:00Z")
    (tmp_path / "source").mkdir()
    assert pins(sources.build_lock(tmp_path / "source", "3.11", NOW)) == {"setuptools": "70.0", "wheel": "0.45"}


def test_a_source_is_a_package_of_that_name_whose_build_needs_packages_of_the_index_only(tmp_path, snapshot):
    project = tmp_path / "pyproject.toml"
    errors = {"nothing": catch_text(UsageError, sources.check_name, tmp_path, "keras")}
    project.write_text("[project]\nname = 'other'\n")
    errors["another name"] = catch_text(UsageError, sources.check_name, tmp_path, "keras")
    nested = f"x; {'(' * 3000}os_name > ''{')' * 3000}"
    for requirement in ("x @ https://example.org/x.whl", "--index-url=x", nested):
        project.write_text(f'[build-system]\nrequires = ["{requirement}"]\n')
        errors[requirement[:30]] = catch_text(UsageError, sources.build_lock, tmp_path, "3.11", NOW)
    assert {name: text.replace(str(tmp_path), "") for name, text in errors.items()} == snapshot
    project.write_text("[")
    assert project.name in catch_text(UsageError, sources.check_name, tmp_path, "keras")
