import shutil

import pytest

from harness.backends import images as module
from harness.backends.images import BASE, LOCK, PYTHON, RECIPE, Images, base_of, recipe, target
from harness.model.errors import CannotRunHereError, HarnessError, UnavailableError
from tests.backends.conftest import ROOT, requirement_of


class FakeApi:
    """An engine's images by name, and what a pull brings."""

    def __init__(self, images, remote=()):
        self.images = images
        self.remote = dict(remote)

    def inspect_image(self, name):
        from docker.errors import ImageNotFound

        if name not in self.images:
            raise ImageNotFound(name)
        return {"Id": f"sha256:{name}", "Config": {"Labels": self.images[name]}}

    def pull(self, name):
        from docker.errors import NotFound

        if name not in self.remote:
            raise NotFound(f"{name} not found")
        self.images[name] = self.remote[name]


class FakeEngine:
    def __init__(self, api):
        self.api = api


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A project, an engine that has the base of Python 3.11, and a builder that fails for what `broken` names."""
    monkeypatch.delenv("REGISTRY", raising=False)
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=shutil.ignore_patterns("locks"))
    api = FakeApi({"python:3.11-slim-bookworm": None})
    built, broken = [], set()

    def bake(root, targets, progress):
        names = [each.name for each in targets]
        built.append(names)
        if broken & set(names):
            return f"ERROR: {names[0]}"
        for each in targets:
            api.images[f"harness/{each.name.removeprefix('cpu-')}:cpu"] = dict(each.labels)
        return ""

    monkeypatch.setattr(module, "check", lambda: None)
    monkeypatch.setattr(module, "bake", bake)
    monkeypatch.setattr(module, "bake_quietly", bake)

    class World:
        def __init__(self):
            self.root, self.api, self.built, self.broken = tmp_path, api, built, broken
            self.one, self.two = requirement_of(tmp_path, "one"), requirement_of(tmp_path, "two")

        def prepare(self, *requirements):
            self.lines = []
            return Images(FakeEngine(api), tmp_path).prepare(list(requirements), self.lines.append)

    return World()


def test_what_is_right_is_not_built_again(world):
    assert world.prepare(world.one, world.two) == {"one": "sha256:harness/one:cpu", "two": "sha256:harness/two:cpu"}
    world.prepare(world.one, world.two)
    assert world.built == [["cpu-one", "cpu-two"]]


@pytest.mark.parametrize("label", [LOCK, RECIPE, PYTHON, BASE])
def test_each_label_that_differs_makes_a_new_build(world, label):
    world.prepare(world.one, world.two)
    world.api.images["harness/two:cpu"][label] = "another"
    world.prepare(world.one, world.two)
    assert world.built[1:] == [["cpu-two"]]


def test_a_base_that_is_not_here_is_not_compared(world):
    world.prepare(world.one)
    del world.api.images["python:3.11-slim-bookworm"]
    world.prepare(world.one)
    assert len(world.built) == 1


def test_of_several_the_broken_one_is_unavailable(world):
    world.broken.add("cpu-one")
    prepared = world.prepare(world.one, world.two)
    assert isinstance(prepared["one"], UnavailableError)
    assert "ERROR: cpu-one" in str(prepared["one"])
    assert prepared["two"] == "sha256:harness/two:cpu"


def test_where_every_build_fails_nothing_runs(world):
    world.broken.add("cpu-one")
    with pytest.raises(CannotRunHereError, match=r"ERROR: cpu-one\n--backend local"):
        world.prepare(world.one)


def test_an_image_that_is_right_stays_when_another_cannot_be_built(world):
    world.prepare(world.one)
    world.broken.add("cpu-two")
    prepared = world.prepare(world.one, world.two)
    assert prepared["one"] == "sha256:harness/one:cpu"
    assert isinstance(prepared["two"], UnavailableError)


def test_with_a_registry_images_are_pulled_before_they_are_built(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    images = Images(FakeEngine(world.api), world.root)
    assert images.tag(world.one) == "example.org/harness/one:cpu"
    world.api.remote["example.org/harness/one:cpu"] = images.labels(world.one)
    assert world.prepare(world.one) == {"one": "sha256:example.org/harness/one:cpu"}
    assert world.built == []


def test_what_cannot_be_pulled_is_built(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "")
    world.api.remote = {}
    monkeypatch.setattr(Images, "tag", lambda self, requirement: f"harness/{requirement.environment.name}:cpu")
    images = Images(FakeEngine(world.api), world.root)
    images._registry = "example.org/"
    assert images.prepare([world.one], print) == {"one": "sha256:harness/one:cpu"}


def test_names_follow_the_bake_file(world):
    assert target(requirement_of(world.root, "tf2.2-py3.7")) == "cpu-tf2-2-py3-7"


def test_the_base_is_the_last_stages(world):
    dockerfile = world.root / "images" / "cpu.Dockerfile"
    assert base_of(dockerfile, "3.7") == "python:3.7-slim-bookworm"
    dockerfile.write_text("RUN true\n")
    with pytest.raises(HarnessError, match="no FROM line"):
        base_of(dockerfile, "3.7")


def test_the_recipe_is_all_that_the_dockerfile_copies(world):
    dockerfile = world.root / "images" / "cpu.Dockerfile"
    first = recipe(dockerfile)
    for name in ("cpu.Dockerfile", "install.sh", "uv.txt"):
        with (world.root / "images" / name).open("a") as file:
            file.write("\n# changed\n")
        recipe.cache_clear()
        assert recipe(dockerfile) != first
