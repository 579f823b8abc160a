"""An environment that was typed, as a real image of the generic target, with its lock in the user's cache."""

import hashlib
import secrets
from dataclasses import replace

import pytest

from harness.backends.docker.backend import DockerBackend
from harness.catalog.locks import load_lock, lock_file
from harness.catalog.project import Project
from harness.model.environment import Device, Environment

pytestmark = pytest.mark.docker


def test_what_was_typed_is_built_from_its_lock_in_the_cache(project):
    project.add(f"test-{secrets.token_hex(4)}", "3.11")
    text = f"tensorflow==2.{secrets.randbelow(10**6)}"
    name = text.replace("==", "-")
    environment = Environment(name, text.partition("==")[2], "3.11", "2030-01-01T00:00:00Z", asked=text)
    lock = lock_file(Project(project.root), environment, Device.CPU)
    lock.parent.mkdir(parents=True)
    lock.write_text("# nothing\n")
    requirement = load_lock(Project(project.root), environment, Device.CPU)
    assert requirement.lock.sha256 == hashlib.sha256(b"# nothing\n").hexdigest()

    project.requirements.append(requirement)
    backend = DockerBackend(project.root, "test")
    prepared = backend.prepare([requirement], lambda _: None)
    assert prepared.images[name].startswith("sha256:")
    image = backend.images.find(requirement)
    assert image is not None
    assert image.labels["harness.environment"] == name
    assert image.labels["harness.tensorflow"] == environment.tensorflow
    assert backend.verify(requirement).is_right
    changed = replace(requirement, lock=replace(requirement.lock, sha256="another"))
    assert backend.images.unprepared([requirement, changed]) == [changed]
