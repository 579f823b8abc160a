from dataclasses import replace

from harness.environments import locks
from harness.environments.catalog import load_environments
from harness.environments.locks import load_lock, lock_file
from harness.model.environment import ARM64, X86_64, Device, Environment, installed, normalize, pins
from harness.model.errors import UsageError
from harness.project import Project
from tests.errors import catch_text


def test_pins_are_read_with_normalised_names():
    text = "absl_py==0.8.0 \\\n    --hash=sha256:ab\n    # via tensorflow\nGoogle.Pasta==0.1.7 ; python_version < '4'\n"
    assert pins(text) == {"absl-py": "0.8.0", "google-pasta": "0.1.7"}
    assert normalize("A__b.-C") == "a-b-c"

    # a nightly Keras stands for Keras, but not the one beside TensorFlow 2.5
    assert installed("keras", {"keras-nightly": "3.5.0.dev2024080103"}) == "3.5.0.dev2024080103"
    assert installed("keras", {"keras-nightly": "2.5.0.dev2021032900"}) is None


def test_the_projects_locks_are_those_of_its_environments_and_hold_what_they_name(project):
    environments = [
        environment
        for architecture in (X86_64, ARM64)
        for environment in load_environments(replace(project, architecture=architecture)).values()
    ]
    pairs = [(environment, device) for environment in environments for device in environment.devices]
    # a release has no wheel for arm64 before 2.7
    assert {environment.architecture for environment, _ in pairs if environment.release < (2, 7)} == {X86_64}
    assert sum(environment.architecture == ARM64 for environment, _ in pairs) >= 16
    assert {lock_file(project, *pair) for pair in pairs} == set(project.locks.iterdir())
    for environment, device in pairs:
        lock = load_lock(project, environment, device).lock
        assert installed("tensorflow", lock.pins) == environment.tensorflow
        assert not environment.keras or lock.pins["keras"] == environment.keras
        names = set(lock.pins) & {"tensorflow-cpu", "tensorflow-aarch64", "tensorflow-cpu-aws"}
        assert not names or ("tensorflow-cpu" in names) == (environment.architecture == X86_64)
        # old source packages are built with the lock's own tools
        assert environment.gpu_image or {"setuptools", "wheel"} <= set(lock.pins)
        if device is Device.GPU:
            has_cuda = environment.cuda_image or environment.gpu_image
            assert any(name.startswith("nvidia-cudnn-cu") for name in lock.pins) == (not has_cuda), environment.name
            assert "tensorflow-cpu" not in lock.pins


def test_a_lock_that_is_missing_or_pins_nothing_is_refused(tmp_path, monkeypatch, snapshot):
    environment = Environment(name="tf9.9", tensorflow="9.9.0", python="3.11", as_of="2030-01-01T00:00:00Z")
    project = Project(tmp_path)

    def refuse(data):
        if data is not None:
            lock.write_bytes(data)
        return catch_text(UsageError, load_lock, project, environment, Device.CPU).replace(str(tmp_path), "")

    lock = lock_file(project, environment, Device.CPU)
    lock.parent.mkdir(parents=True)
    errors = {"missing": refuse(None)}
    good = f"# a comment\nsix==1.13.0 ; python_version < '4' \\\n    --hash=sha256:{'ab' * 32}\n    # via here\n"
    lock.write_text(good)
    assert load_lock(project, environment, Device.CPU).lock.pins == {"six": "1.13.0"}
    lines = ("numpy>=1.16", "-r other.txt", "numpy @ file:x", "\xff", "SIX==1.2")
    errors |= {line: refuse(f"{good}{line}\n".encode("latin-1")) for line in lines}
    assert errors == snapshot
    # the advice works too, also if the file has no text
    lock.write_bytes(b"\xff")
    monkeypatch.setattr(locks, "resolve", lambda *_: good)
    assert locks.write_lock(project, environment, Device.CPU)
    for line in ("numpy==1.16.4 --index-url x", "--extra-index-url x", "    --hash=sha256:ab"):
        assert ":5: " in refuse(f"{good}{line}\n".encode())
