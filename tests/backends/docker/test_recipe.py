import dataclasses
import shutil

import pytest

from harness.backends.docker import recipe
from harness.model.environment import Device
from harness.model.errors import HarnessError
from tests.backends.conftest import ROOT, requirement_of


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
        made = requirement_of(root / "images" / "locks", "tf2.2-py3.7", "3.7")
        environment = dataclasses.replace(made.environment, **changes)
        return dataclasses.replace(made, environment=environment, device=device)

    return make


def test_names_follow_the_bake_file(make):
    assert recipe.name_target(make().environment, Device.CPU) == "cpu-tf2-2-py3-7"
    assert recipe.name_target(make().environment, Device.GPU) == "gpu-tf2-2-py3-7"


def test_the_registry_is_part_of_an_images_name(make, monkeypatch):
    assert recipe.make_tag(make()) == "harness/tf2.2-py3.7:cpu"
    monkeypatch.setenv("REGISTRY", "example.org/")
    assert recipe.make_tag(make(Device.GPU)) == "example.org/harness/tf2.2-py3.7:gpu"


def test_the_base_is_the_last_stages(root, make):
    assert recipe.find_bases(root, make()) == ("python:3.7-slim-bookworm",)


def test_a_dockerfile_without_a_base_is_told(root, make):
    (root / "images" / "cpu.Dockerfile").write_text("RUN true\n")
    with pytest.raises(HarnessError, match="doesn't contain a FROM line"):
        recipe.find_bases(root, make())


def test_what_cuda_is_copied_from_is_a_base_of_the_gpu_image(root, make):
    assert recipe.find_bases(root, make(cuda_image="cuda:10")) == ("python:3.7-slim-bookworm",)
    assert recipe.find_bases(root, make(Device.GPU, cuda_image="cuda:10")) == ("python:3.7-slim-bookworm", "cuda:10")


def test_an_image_with_a_tensorflow_of_its_own_is_the_base(root, make):
    requirement = make(Device.GPU, gpu_image="example.org/tensorflow:1")
    assert recipe.find_bases(root, requirement) == ("example.org/tensorflow:1",)
    assert recipe.find_dockerfile(root, requirement).name == "ngc.Dockerfile"


def test_the_digest_is_of_all_that_the_dockerfile_copies(root):
    dockerfile = root / "images" / "cpu.Dockerfile"
    seen = {recipe.hash_recipe(dockerfile)}
    for name in ("cpu.Dockerfile", "install.sh", "uv.txt"):
        with (root / "images" / name).open("a") as file:
            file.write("\n# changed\n")
        recipe.hash_recipe.cache_clear()
        seen.add(recipe.hash_recipe(dockerfile))
    assert len(seen) == 4


def test_of_a_listed_environment_nothing_is_set(root, make):
    assert recipe.make_settings(root, make()) == {}


def test_a_lock_outside_the_project_is_read_where_it_lies(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    settings = recipe.make_settings(root, requirement_of(folder, "one"))
    assert settings == {"contexts.locks": str(folder), "args.LOCK": "one-cpu.txt"}


def test_of_an_environment_that_is_not_listed_all_is_set(root, make):
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


def test_its_cuda_is_copied_where_no_packages_have_it(root, make):
    copied = recipe.make_settings(root, make(Device.GPU, asked="x", cuda_image="cuda:10"))
    assert (copied["args.CUDA"], copied["args.CUDA_IMAGE"]) == ("image", "cuda:10")
    assert "args.CUDA" not in recipe.make_settings(root, make(Device.GPU, asked="x"))


def test_a_build_needs_the_environments_python_and_the_one_that_uv_has(root, make):
    assert sorted(recipe.find_all_bases(root, make())) == ["python:3.11-slim-bookworm", "python:3.7-slim-bookworm"]


def test_a_gpus_build_needs_the_image_that_cuda_comes_from_too(root, make):
    gpu = recipe.find_all_bases(root, make(Device.GPU, cuda_image="tensorflow/tensorflow:2.4.0-gpu"))
    assert sorted(gpu)[-1] == "tensorflow/tensorflow:2.4.0-gpu"
    assert len(gpu) == 3


def test_an_image_with_a_tensorflow_of_its_own_is_all_that_its_build_needs(root, make):
    assert recipe.find_all_bases(root, make(Device.GPU, gpu_image="registry/image:1")) == ["registry/image:1"]
