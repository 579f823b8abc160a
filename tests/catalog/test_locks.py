import re
from pathlib import Path

import pytest

from harness.catalog.environments import load_environments
from harness.catalog.locks import load_lock, lock_file
from harness.catalog.project import Project
from harness.model.environment import Device, Environment, installed, normalize, pins
from harness.model.errors import UsageError


def test_pins_are_read_with_normalised_names() -> None:
    text = "absl_py==0.8.0 \\\n    --hash=sha256:ab\n    # via tensorflow\nGoogle.Pasta==0.1.7 ; python_version < '4'\n"
    assert pins(text) == {"absl-py": "0.8.0", "google-pasta": "0.1.7"}
    assert normalize("A__b.-C") == "a-b-c"


def test_a_nightly_keras_stands_for_keras_but_the_one_beside_tensorflow_2_5() -> None:
    assert installed("keras", {"keras-nightly": "3.5.0.dev2024080103"}) == "3.5.0.dev2024080103"
    assert installed("keras", {"keras-nightly": "2.5.0.dev2021032900"}) is None


def test_every_environment_has_a_lock_that_holds_its_tensorflow_and_keras(project: Project) -> None:
    for environment in load_environments(project).values():
        for device in environment.devices:
            lock = load_lock(project, environment, device).lock
            assert installed("tensorflow", lock.pins) == environment.tensorflow
            assert not environment.keras or lock.pins["keras"] == environment.keras
            # old source packages are built with the lock's own tools
            assert environment.gpu_image or {"setuptools", "wheel"} <= set(lock.pins)


def test_a_gpus_lock_has_cuda_where_no_image_brings_it(project: Project) -> None:
    with_gpu = [environment for environment in load_environments(project).values() if Device.GPU in environment.devices]
    assert with_gpu
    for environment in with_gpu:
        pins = load_lock(project, environment, Device.GPU).lock.pins
        brought = environment.cuda_image or environment.gpu_image
        assert any(name.startswith("nvidia-cudnn-cu") for name in pins) == (not brought), environment.name
        assert "tensorflow-cpu" not in pins


def test_every_requirement_of_every_lock_is_hashed_and_no_registry_is_named(project: Project) -> None:
    for path in sorted(project.locks.glob("*.txt")):
        text = path.read_text()
        assert "://" not in re.sub(r"(?m)^#.*$", "", text)
        for block in re.split(r"(?m)^(?=[A-Za-z])", text)[1:]:
            assert "--hash=sha256:" in block, block


def test_a_missing_lock_says_how_to_make_it(project: Project) -> None:
    environment = Environment(name="tf9.9", tensorflow="9.9.0", python="3.11", as_of="2030-01-01T00:00:00Z")
    with pytest.raises(UsageError, match=r"harness images lock tf9\.9"):
        load_lock(project, environment, Device.CPU)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("numpy>=1.16", "neither an exact version nor a hash"),
        ("numpy==1.16.4 --index-url x", "neither an exact version nor a hash"),
        ("--extra-index-url x", "neither an exact version nor a hash"),
        ("-r other.txt", "neither an exact version nor a hash"),
        ("numpy @ file:x", "neither an exact version nor a hash"),
        ("    --hash=sha256:ab", "neither an exact version nor a hash"),
        ("\xff", "neither an exact version nor a hash"),
        ("SIX==1.2", "is listed twice"),
    ],
)
def test_a_line_of_a_lock_that_pins_nothing_is_refused(tmp_path: Path, line: str, told: str) -> None:
    environment = Environment(name="tf9.9", tensorflow="9.9.0", python="3.11", as_of="2030-01-01T00:00:00Z")
    lock = lock_file(Project(tmp_path), environment, Device.CPU)
    lock.parent.mkdir(parents=True)
    good = f"# a comment\nsix==1.13.0 ; python_version < '4' \\\n    --hash=sha256:{'ab' * 32}\n    # via here\n"
    lock.write_text(good)
    assert load_lock(Project(tmp_path), environment, Device.CPU).lock.pins == {"six": "1.13.0"}
    lock.write_bytes(good.encode() + line.encode("latin-1") + b"\n")
    with pytest.raises(UsageError, match=rf":5: .*{told}"):
        load_lock(Project(tmp_path), environment, Device.CPU)


def test_no_lock_is_left_of_what_is_no_environment(project: Project) -> None:
    known = {
        lock_file(project, environment, device)
        for environment in load_environments(project).values()
        for device in environment.devices
    }
    assert known == set(project.locks.iterdir())
