import dataclasses
import shutil

import pytest

from harness.backends.docker import recipe
from harness.model.environment import Device
from harness.model.errors import HarnessError
from tests.backends.conftest import requirement_of
from tests.conftest import ROOT


@pytest.fixture(autouse=True)
def no_registry(monkeypatch):
    monkeypatch.delenv("REGISTRY", raising=False)


@pytest.fixture
def root(tmp_path):
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=shutil.ignore_patterns("locks"))
    (tmp_path / "images" / "locks").mkdir()
    return tmp_path


@pytest.fixture
def make(root):
    """A requirement whose lock lies in the project; `changes` are its environment's."""

    def make(device=Device.CPU, **changes):
        requirement = requirement_of(root / "images" / "locks", "tf2.2-py3.7", "3.7")
        environment = dataclasses.replace(requirement.environment, **changes)
        return dataclasses.replace(requirement, environment=environment, device=device)

    return make


def test_names_follow_the_bake_file_have_the_registry_before_them_and_are_others_for_arm64(make, monkeypatch, root):
    assert recipe.name_target(make().environment, Device.CPU) == "cpu-tf2-2-py3-7"
    assert recipe.name_target(make().environment, Device.GPU) == "gpu-tf2-2-py3-7"
    assert recipe.make_tag(make()) == "harness/tf2.2-py3.7:cpu"
    requirement = make(tensorflow="2.15.1", architecture="arm64")
    assert recipe.make_tag(requirement) == "harness/tf2.2-py3.7:cpu-arm64"
    assert list(recipe.find_bases(root, requirement)) == [f"arm64v8/{PYTHON}"]
    assert sorted(recipe.find_all_bases(root, requirement)) == sorted([f"arm64v8/{UV}", f"arm64v8/{PYTHON}"])
    monkeypatch.setenv("REGISTRY", "example.org/")
    assert recipe.make_tag(make(Device.GPU)) == "example.org/harness/tf2.2-py3.7:gpu"


PYTHON, UV = "python:3.7-slim-bookworm", "python:3.11-slim-bookworm"


def test_bases_are_the_last_stages_and_what_cuda_is_copied_from_and_a_build_needs_uvs_too(root, make):
    ngc = make(Device.GPU, gpu_image="example.org/tensorflow:1")
    for requirement, bases, all_bases in (
        (make(), [PYTHON], [UV, PYTHON]),
        (make(cuda_image="cuda:10"), [PYTHON], [UV, PYTHON]),
        (make(Device.GPU, cuda_image="cuda:10"), [PYTHON, "cuda:10"], [UV, PYTHON, "cuda:10"]),
        (ngc, ["example.org/tensorflow:1"], ["example.org/tensorflow:1"]),
    ):
        assert list(recipe.find_bases(root, requirement)) == bases
        assert sorted(recipe.find_all_bases(root, requirement)) == sorted(all_bases)
    assert recipe.find_dockerfile(root, ngc).name == "ngc.Dockerfile"


def test_packages_that_are_added_only_are_a_layer_over_the_image_of_the_base(root, make):
    requirement = dataclasses.replace(make(name="added", asked="tf2.2-py3.7+six"), base=make())
    settings = recipe.make_settings(root, requirement)
    assert settings["dockerfile"] == recipe.find_dockerfile(root, requirement).name == "added.Dockerfile"
    assert settings["args.BASE"] == recipe.find_bases(root, requirement)[0] == "harness/tf2.2-py3.7:cpu"
    assert sorted(recipe.find_all_bases(root, requirement)) == sorted([UV, PYTHON])
    (root / "images" / "cpu.Dockerfile").write_text("RUN true\n")
    with pytest.raises(HarnessError, match="doesn't contain a FROM line"):
        recipe.find_bases(root, make())


def test_the_digest_is_of_all_that_the_dockerfile_copies(root):
    dockerfile = root / "images" / "cpu.Dockerfile"
    digests = {recipe.hash_recipe(dockerfile)}
    for name in ("cpu.Dockerfile", "install.sh", "uv.txt"):
        with (root / "images" / name).open("a") as file:
            file.write("\n# changed\n")
        recipe.hash_recipe.cache_clear()
        digests.add(recipe.hash_recipe(dockerfile))
    assert len(digests) == 4


def test_settings_are_what_the_bake_file_does_not_say(root, make, tmp_path_factory):
    assert recipe.make_settings(root, make()) == {}
    folder = tmp_path_factory.mktemp("cache")
    settings = recipe.make_settings(root, requirement_of(folder, "one"))
    assert settings == {"contexts.locks": str(folder), "args.LOCK": "one-cpu.txt"}
    requirement = make(asked="tensorflow==2.2.0", tensorflow="2.2.0", keras="2.3.1")
    assert recipe.name_target(requirement.environment, Device.CPU) == "cpu-any"
    assert recipe.make_settings(root, requirement) == {
        "tags": "harness/tf2.2-py3.7:cpu",
        "args.PYTHON": "3.7",
        "args.LOCK": "tf2.2-py3.7-cpu.txt",
        "labels.harness.environment": "tf2.2-py3.7",
        "labels.harness.device": "cpu",
        "labels.harness.tensorflow": "2.2.0",
        "labels.harness.keras": "2.3.1",
        "labels.harness.python": "3.7",
        "labels.harness.as_of": requirement.environment.as_of,
    }
    copied = recipe.make_settings(root, make(Device.GPU, asked="x", cuda_image="cuda:10"))
    assert (copied["args.CUDA"], copied["args.CUDA_IMAGE"]) == ("image", "cuda:10")
    assert "args.CUDA" not in recipe.make_settings(root, make(Device.GPU, asked="x"))
