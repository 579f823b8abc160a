"""Real builds."""

import dataclasses
import secrets

import pytest

from harness.backends.docker import DockerBackend
from harness.backends.images import BASE, LOCK, PYTHON, RECIPE
from harness.model.environment import Lock
from harness.model.errors import CannotRunHereError, UnavailableError

pytestmark = pytest.mark.docker

#: A Python that never had such an image: no registry and no machine has it.
NO_BASE = "3.0"


def name():
    return f"test-{secrets.token_hex(4)}"


def prepare(project):
    lines = []
    backend = DockerBackend(project.root, "test")
    return backend.prepare(project.requirements, lines.append), lines


def test_an_image_says_what_it_was_made_from(made, docker, requirement):
    image = docker.images.right(requirement)
    wanted = docker.images.labels(requirement)
    assert {label: image.labels[label] for label in (LOCK, RECIPE, PYTHON, BASE)} == wanted
    assert image.labels["harness.environment"] == requirement.environment.name


def test_what_is_right_is_not_built_again(made):
    prepared, lines = prepare(made[0])
    assert lines == []
    assert next(iter(prepared.values())).startswith("sha256:")


def test_of_several_the_broken_one_is_unavailable_with_the_builders_words(project):
    good, bad = project.add(name(), "3.11"), project.add(name(), NO_BASE)
    prepared, lines = prepare(project)
    assert prepared[good.environment.name].startswith("sha256:")
    error = prepared[bad.environment.name]
    assert isinstance(error, UnavailableError)
    assert f"python:{NO_BASE}-slim-bookworm" in error.message
    assert "ERROR" in error.message
    assert lines


def test_where_no_base_can_be_had_nothing_runs(project):
    project.add(name(), NO_BASE)
    with pytest.raises(CannotRunHereError) as error:
        prepare(project)
    assert f"python:{NO_BASE}-slim-bookworm" in error.value.message
    assert "--backend local" in error.value.advice


def test_a_broken_recipe_shows_its_own_words(project):
    project.add(name(), "3.11", lock="no such requirement line\n")
    with pytest.raises(CannotRunHereError, match="no such requirement line"):
        prepare(project)


def test_an_image_like_its_lock_has_no_differences(docker, requirement):
    assert not docker.verify(requirement)


def test_an_image_that_lacks_a_package_is_told(docker, requirement):
    lock = Lock(requirement.lock.path, requirement.lock.sha256, {"numpy": "1.16.4"})
    assert docker.verify(dataclasses.replace(requirement, lock=lock)).missing == {"numpy": "1.16.4"}
