import shutil
import threading

import pytest

from harness.backends.docker import images
from harness.backends.docker.images import Images
from harness.backends.docker.recipe import BASE, FROM, LOCK, PYTHON, RECIPE
from harness.model.backend import ImageState, Preparation, Stage
from harness.model.errors import CannotRunHereError, UsageError
from tests.backends.conftest import ROOT, requirement_of


class FakeApi:
    """An engine's images by name, what a pull brings, and what was pushed."""

    def __init__(self, images):
        self.images = images
        self.remote = {}
        self.pushed = []
        self.refusal = ""

    def inspect_image(self, name):
        from docker.errors import ImageNotFound

        if name not in self.images:
            raise ImageNotFound(name)
        return {"Id": f"sha256:{name}", "Config": {"Labels": self.images[name]}, "Size": 5}

    def images_of(self, names):
        return [
            {"Id": f"sha256:{name}", "Labels": labels, "Size": 5, "RepoTags": [name]}
            for name, labels in self.images.items()
            if name in names
        ]

    def pull(self, name, stream, decode):
        from docker.errors import NotFound

        if name not in self.remote:
            raise NotFound(f"{name} not found")
        yield {"status": "Pulling"}
        if self.refusal:
            yield {"error": self.refusal}
        self.images[name] = self.remote[name]

    def push(self, name, stream, decode):
        yield {"status": "Pushing"}
        if self.refusal:
            yield {"error": self.refusal}
        self.pushed.append(name)


class Api:
    """The SDK's face of it, where `images` is a question."""

    def __init__(self, fake):
        self._fake = fake
        self.inspect_image, self.pull, self.push = fake.inspect_image, fake.pull, fake.push

    def images(self, filters):
        return self._fake.images_of(filters["reference"])


class FakeEngine:
    def __init__(self, fake):
        self.api = Api(fake)


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A project, an engine that has the base of Python 3.11, and a builder that fails for what `broken` names."""
    monkeypatch.delenv("REGISTRY", raising=False)
    monkeypatch.delenv("HARNESS_WHEELS", raising=False)
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=shutil.ignore_patterns("locks"))
    locks = tmp_path / "images" / "locks"
    locks.mkdir()
    api = FakeApi({"python:3.11-slim-bookworm": None})
    built, broken, interrupted = [], {}, set()

    class FakeBuilder:
        def __init__(self, root):
            self.is_stopped = False
            self.stopped = threading.Event()

        def build(self, target, settings, tell):
            built.append((target, settings))
            tell("environment 1/1: x")
            if target in interrupted:
                self.stopped.wait()
            if target in broken:
                return f"ERROR: {broken[target]}"
            labels = {k.removeprefix("labels."): v for k, v in settings.items() if k.startswith("labels.")}
            api.images[f"harness/{target.removeprefix('cpu-')}:cpu"] = labels
            return ""

        def stop(self):
            self.is_stopped = True
            self.stopped.set()

    monkeypatch.setattr(images, "check", lambda: None)
    monkeypatch.setattr(images, "Builder", FakeBuilder)

    class World:
        def __init__(self):
            self.api, self.broken, self.interrupted = api, broken, interrupted
            self.one, self.two = requirement_of(locks, "one"), requirement_of(locks, "two")

        @property
        def images(self):
            return Images(FakeEngine(api), tmp_path)

        @property
        def built(self):
            return sorted(target for target, _ in built)

        @property
        def settings(self):
            return built[0][1]

        def prepare(self, *requirements):
            self.steps = []
            return self.images.prepare(list(requirements), self.steps.append)

    return World()


def test_what_is_right_is_not_built_again(world):
    made = {"one": "sha256:harness/one:cpu", "two": "sha256:harness/two:cpu"}
    assert world.prepare(world.one, world.two) == Preparation(made)
    world.prepare(world.one, world.two)
    assert world.built == ["cpu-one", "cpu-two"]
    assert world.steps == []


def test_each_step_is_told(world):
    world.prepare(world.one)
    assert [(step.environment, step.stage) for step in world.steps] == [
        ("one", Stage.WAITING),
        ("one", Stage.WORKING),
        ("one", Stage.WORKING),
        ("one", Stage.READY),
    ]
    assert [str(step) for step in world.steps[1:3]] == ["one: building harness/one:cpu", "one: environment 1/1: x"]


@pytest.mark.parametrize("label", [LOCK, RECIPE, PYTHON, FROM, BASE])
def test_each_label_that_differs_makes_a_new_build(world, label):
    world.prepare(world.one, world.two)
    world.api.images["harness/two:cpu"][label] = "another"
    world.prepare(world.one, world.two)
    assert world.built == ["cpu-one", "cpu-two", "cpu-two"]


def test_states_are_told(world):
    world.prepare(world.one)
    states = world.images.states([world.one, world.two])
    assert [image.state for image in states] == [ImageState.BUILT, ImageState.NOT_BUILT]


def test_a_base_that_is_not_here_is_not_compared(world):
    world.prepare(world.one)
    del world.api.images["python:3.11-slim-bookworm"]
    world.prepare(world.one)
    assert world.built == ["cpu-one"]
    assert world.images.unprepared([world.one]) == []


def test_of_several_the_broken_one_is_unavailable(world):
    world.broken["cpu-one"] = "no such package"
    prepared = world.prepare(world.one, world.two)
    assert "ERROR: no such package" in prepared.unavailable["one"].message
    assert prepared.images == {"two": "sha256:harness/two:cpu"}
    assert [step.stage for step in world.steps if step.environment == "one"][-1] is Stage.FAILED


def test_where_every_build_fails_nothing_runs(world):
    world.broken["cpu-one"] = "no such package"
    with pytest.raises(CannotRunHereError, match=r"ERROR: no such package\n--backend local"):
        world.prepare(world.one)


def test_a_base_that_cannot_be_had_is_named_with_the_ways_to_get_it(world):
    base = "python:3.11-slim-bookworm"
    world.broken["cpu-one"] = f"{base}: failed to resolve source metadata for registry/{base}"
    with pytest.raises(CannotRunHereError) as had:
        world.prepare(world.one)
    assert "docker pull" not in had.value.advice  # the engine has it: something else is wrong
    del world.api.images[base]
    with pytest.raises(CannotRunHereError) as lacking:
        world.prepare(world.one)
    assert f"docker pull {base}" in lacking.value.advice
    assert "harness images unpack" in lacking.value.advice


def test_an_image_that_is_right_stays_when_another_cannot_be_built(world):
    world.prepare(world.one)
    world.broken["cpu-two"] = "no such package"
    prepared = world.prepare(world.one, world.two)
    assert prepared.images == {"one": "sha256:harness/one:cpu"}
    assert list(prepared.unavailable) == ["two"]


def test_an_interruption_stops_the_builds_and_says_no_more(world, monkeypatch):
    world.interrupted.add("cpu-one")

    def interrupt(futures):
        raise KeyboardInterrupt

    monkeypatch.setattr(images, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.prepare(world.one)
    assert Stage.READY not in {step.stage for step in world.steps}


def test_a_folder_of_packages_is_given_to_the_builder(world, tmp_path, monkeypatch):
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / "six-1.13.0-py2.py3-none-any.whl").touch()
    monkeypatch.setenv("HARNESS_WHEELS", str(folder))
    world.prepare(world.one)
    assert "contexts.wheels" in world.settings


def test_a_lock_outside_the_project_is_given_to_the_builder(world, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cache")
    world.prepare(requirement_of(folder, "three"))
    assert world.settings["contexts.locks"] == str(folder)


def test_with_a_registry_images_are_pulled_before_they_are_built(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.api.remote["example.org/harness/one:cpu"] = world.images.labels(world.one)
    assert world.prepare(world.one).images == {"one": "sha256:example.org/harness/one:cpu"}
    assert world.built == []


@pytest.mark.parametrize("refusal", ["", "unexpected EOF"])
def test_what_cannot_be_pulled_is_built(world, monkeypatch, refusal):
    monkeypatch.setenv("REGISTRY", "example.org/")
    if refusal:
        world.api.remote["example.org/harness/one:cpu"] = {}
        world.api.refusal = refusal
    # the builder of the test makes images without a registry's name: that it was asked is what counts
    with pytest.raises(CannotRunHereError, match="the builder left no image"):
        world.prepare(world.one)
    assert world.built == ["cpu-one"]
    (said,) = [str(step) for step in world.steps if "it will be built" in str(step)]
    assert (refusal or "not found") in said


def test_pushing_needs_a_registry(world):
    with pytest.raises(UsageError, match=r"REGISTRY is not set(.|\n)*REGISTRY=registry\.example\.org/team/"):
        world.images.push([world.one], print)


def test_images_are_pushed(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.images.push([world.one, world.two], print)
    assert world.api.pushed == ["example.org/harness/one:cpu", "example.org/harness/two:cpu"]


def test_a_refused_push_is_a_sentence(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.api.refusal = "denied: who are you?"
    with pytest.raises(CannotRunHereError, match=r"would not push example\.org/harness/one:cpu: denied: who are you\?"):
        world.images.push([world.one], print)
    assert world.api.pushed == []


class Engine:
    """Sends messages; `left` are those that were not asked for."""

    def __init__(self, *messages):
        self.left = list(messages)
        self.api = self

    def pull(self, tag, stream, decode):
        while self.left:
            yield self.left.pop(0)

    push = pull


@pytest.mark.parametrize("way", ["push", "pull"])
def test_an_error_on_the_way_is_a_sentence(way):
    engine = Engine({"status": "layer 1"}, {"error": "unexpected\n\x1b[31mEOF"})
    with pytest.raises(CannotRunHereError, match=rf"would not {way} harness/x:cpu: unexpected \\x1b\[31mEOF"):
        Images(engine, ROOT)._transfer(way, "harness/x:cpu")


def test_a_pull_can_be_stopped():
    engine = Engine({"status": "layer 1"}, {"status": "layer 2"})
    Images(engine, ROOT)._transfer("pull", "harness/x:cpu", lambda: True)
    assert engine.left == [{"status": "layer 2"}]


def test_a_transfer_goes_to_its_end():
    engine = Engine({"status": "layer 1"}, {"status": "layer 2"})
    Images(engine, ROOT)._transfer("push", "harness/x:cpu")
    assert engine.left == []
