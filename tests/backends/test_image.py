import pytest

from harness.backends.image import BASE, CUDA, FROM, LOCK, Image, State, labels, states, tag
from harness.model.environment import Device
from tests.backends.conftest import ROOT, requirement_of

PYTHON_BASE = "python:3.11-slim-bookworm"


@pytest.fixture
def requirement(tmp_path):
    return requirement_of(tmp_path, "one")


def found(requirement, had, asked=None):
    """The state of one image, where the engine lists `had`: labels by name."""

    def ask(filters):
        if asked is not None:
            asked.append(filters)
        return [
            {"Id": f"id of {name}", "Labels": had[name], "Size": 5, "RepoTags": [name, f"{name}-too"]} for name in had
        ]

    ((state, image),) = states(ROOT, [requirement], ask)
    return state, image


def wanted(requirement):
    return labels(ROOT, requirement, lambda name: Image(f"id of {name}", {}))


def test_an_image_is_called_as_in_the_bake_file(requirement, monkeypatch):
    monkeypatch.delenv("REGISTRY", raising=False)
    assert tag(requirement) == "harness/one:cpu"
    monkeypatch.setenv("REGISTRY", "example.org/")
    assert tag(requirement) == "example.org/harness/one:cpu"


def test_what_is_not_listed_is_not_built(requirement):
    assert found(requirement, {}) == (State.NOT_BUILT, None)
    assert found(requirement, {"harness/two:cpu": None, PYTHON_BASE: None}) == (State.NOT_BUILT, None)


def test_what_has_the_labels_is_built(requirement):
    state, image = found(requirement, {"harness/one:cpu": wanted(requirement), PYTHON_BASE: None})
    assert state is State.BUILT
    assert (image.id, image.size_bytes) == ("id of harness/one:cpu", 5)


@pytest.mark.parametrize("label", [LOCK, FROM, BASE])
def test_a_label_that_differs_makes_it_outdated(requirement, label):
    had = {"harness/one:cpu": {**wanted(requirement), label: "another"}, PYTHON_BASE: None}
    assert found(requirement, had)[0] is State.OUTDATED


def test_an_image_that_was_built_without_the_harness_is_outdated(requirement):
    assert found(requirement, {"harness/one:cpu": None, PYTHON_BASE: None})[0] is State.OUTDATED


def test_a_base_that_the_engine_does_not_have_is_not_compared(requirement):
    had = {"harness/one:cpu": {**wanted(requirement), BASE: "pulled long ago"}}
    assert found(requirement, had)[0] is State.BUILT


def test_one_question_is_asked_for_images_and_bases(requirement, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/team/")
    asked = []
    state, _ = found(requirement, {"example.org/team/harness/one:cpu": wanted(requirement)}, asked)
    assert state is State.BUILT
    assert asked == [{"reference": ["example.org/team/harness/one:cpu", PYTHON_BASE]}]


def test_what_cuda_is_copied_from_counts(requirement):
    import dataclasses

    environment = dataclasses.replace(requirement.environment, cuda_image="cuda:10")
    on_gpu = dataclasses.replace(requirement, environment=environment, device=Device.GPU)
    made = wanted(on_gpu)
    assert (made[FROM], made[CUDA]) == (f"{PYTHON_BASE} cuda:10", "id of cuda:10")
    had = {"harness/one:gpu": {**made, CUDA: "another"}, "cuda:10": None, PYTHON_BASE: None}
    assert found(on_gpu, had)[0] is State.OUTDATED
