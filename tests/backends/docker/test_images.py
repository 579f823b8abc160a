import dataclasses
import hashlib
import shutil
import threading
from dataclasses import replace

import pytest
import requests

from harness.backends.docker import images
from harness.backends.docker.images import OVERLAY_BYTES, Images
from harness.model.backend import ENVIRONMENT_BYTES, ImageState, KeptImage, Preparation, Stage, WheelRecipe
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, NothingPreparedError
from tests.backends.conftest import requirement_of
from tests.conftest import ROOT
from tests.errors import catch_text

BASE_IMAGE = "python:3.11-slim-bookworm"


class FakeEngine:
    """An engine whose images are in `had`: labels by name. `remote` is what a pull brings."""

    is_podman, is_here, address = False, True, "unix:///podman.sock"

    def __init__(self, had):
        self.api = self
        self.had, self.remote, self.pushed, self.filters = had, {}, [], []
        self.architecture = "x86_64"
        self.refusal = ""

    def inspect_image(self, name):
        from docker.errors import ImageNotFound

        if name not in self.had:
            raise ImageNotFound(name)
        return {"Id": f"sha256:{name}", "Config": {"Labels": self.had[name]}, "Size": 5}

    def images(self, filters):
        self.filters.append(filters)
        return [
            {"Id": f"sha256:{name}", "Labels": labels, "Size": 5, "RepoTags": [name, f"{name}-too"]}
            for name, labels in self.had.items()
            if name in filters["reference"]
        ]

    def pull(self, name, stream, decode):
        from docker.errors import NotFound

        if name not in self.remote:
            raise NotFound(f"{name} not found")
        yield {"status": "Pulling"}
        if self.refusal:
            yield {"error": self.refusal}
        self.had[name] = self.remote[name]

    def push(self, name, stream, decode):
        yield {"status": "Pushing"}
        if self.refusal:
            yield {"error": self.refusal}
        self.pushed.append(name)


def image_of(name):
    return f"sha256:harness/{name}:cpu"


class World:
    """A project, an engine that has the base of Python 3.11, and a builder that fails for what `broken` names.

    `interrupted` targets are built until the builder is stopped.
    """

    def __init__(self, root):
        self.root, self.engine = root, FakeEngine({BASE_IMAGE: None})
        self.targets, self.broken, self.interrupted = [], {}, set()
        self.is_stopped, self.stopped = False, threading.Event()
        self.locks = root / "images" / "locks"
        self.locks.mkdir()
        self.one, self.two = (requirement_of(self.locks, name) for name in ("one", "two"))

    def build(self, target, settings, tell, folder=None):
        self.targets.append((target, settings))
        tell("environment 1/1: x")
        if target in self.interrupted:
            self.stopped.wait()
        if target in self.broken:
            return f"ERROR: {self.broken[target]}"
        labels = {k.removeprefix("labels."): v for k, v in settings.items() if k.startswith("labels.")}
        self.engine.had[settings.get("tags") or f"harness/{target.removeprefix('cpu-')}:cpu"] = labels
        return ""

    def stop(self):
        self.is_stopped = True
        self.stopped.set()

    @property
    def images(self):
        return Images(self.engine, self.root)

    @property
    def built(self):
        return sorted(target for target, _ in self.targets)

    def check(self, *, uses_images):
        pass

    def prepare(self, *requirements, **more):
        self.steps = []
        return self.images.prepare(list(requirements), self.steps.append, **more)


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.delenv("REGISTRY", raising=False)
    monkeypatch.delenv("HARNESS_WHEELS", raising=False)
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=shutil.ignore_patterns("locks"))
    world = World(tmp_path)
    monkeypatch.setattr(images, "Builder", lambda *_: world)
    return world


def test_what_is_right_is_not_built_again_and_each_step_is_told(world):
    assert world.prepare(world.one, world.two) == Preparation({name: image_of(name) for name in ("one", "two")})
    steps = [step for step in world.steps if step.environment == "one"]
    assert [step.stage for step in steps] == [Stage.WAITING, Stage.WORKING, Stage.WORKING, Stage.READY]
    assert [str(step) for step in steps[1:3]] == ["one: building harness/one:cpu", "one: environment 1/1: x"]
    world.prepare(world.one, world.two)
    assert world.built == ["cpu-one", "cpu-two"]
    assert world.steps == []
    for label in ("harness.lock", "harness.recipe", "harness.python", "harness.from", "harness.base"):
        world.targets.clear()
        world.engine.had["harness/two:cpu"][label] = "another"
        world.prepare(world.one, world.two)
        assert world.built == ["cpu-two"], label
    # a base that is not here is not compared
    del world.engine.had[BASE_IMAGE]
    world.prepare(world.one, world.two)
    assert world.built == ["cpu-two"]
    assert world.images.unprepared([world.one]) == []


def test_states_are_told_by_one_question_for_images_and_bases(world, monkeypatch):
    world.prepare(world.one)
    world.engine.had["harness/two:cpu"] = None  # it was built without the harness
    states = world.images.states([world.one, world.two, requirement_of(world.locks, "three")])
    assert states[0] == KeptImage(ImageState.BUILT, image_of("one"), 5)
    assert (states[1].state, states[2]) == (ImageState.OUTDATED, KeptImage(ImageState.NOT_BUILT))
    world.engine.filters.clear()
    monkeypatch.setenv("REGISTRY", "example.org/team/")
    world.images.states([world.one, world.two])
    names = [f"example.org/team/harness/{name}:cpu" for name in ("one", "two")]
    assert world.engine.filters == [{"reference": [*names, BASE_IMAGE]}]


def test_podman_gets_all_settings_and_is_asked_for_each_image_by_its_name(world, monkeypatch, tmp_path):
    monkeypatch.setattr(world.engine, "is_podman", True, raising=False)
    builder = world.images._make_builder("x86_64")
    with world.images._make_settings(world.one) as settings:
        command = builder._make_command("cpu-one", settings, None)
    assert command[:6] == ["podman", "--remote", "--url", "unix:///podman.sock", "build", "--layers=false"]
    options = dict(zip(command[6:-1:2], command[7::2], strict=True))
    assert options["--file"] == "images/cpu.Dockerfile"
    assert options["--tag"] == "harness/one:cpu"
    assert {"PYTHON=3.11", "LOCK=one-cpu.txt", "harness.device=cpu"} < set(command)
    wheel = builder._make_command("wheel", {"contexts.source": "/x"}, tmp_path)
    assert {"images/wheel.Dockerfile", f"type=local,dest={tmp_path}", "source=/x"} < set(wheel)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CannotRunHereError, match="the podman command isn't installed"):
        builder.check(uses_images=False)
    labels = world.images.labels(world.one)
    world.engine.had["harness/one:cpu"] = labels
    assert world.images.states([world.one])[0].state is ImageState.BUILT
    assert world.engine.filters == []


def test_what_cuda_is_copied_from_counts(world):
    environment = dataclasses.replace(world.one.environment, cuda_image="cuda:10")
    on_gpu = dataclasses.replace(world.one, environment=environment, device=Device.GPU)
    world.engine.had["cuda:10"] = None
    labels = world.images.labels(on_gpu)
    assert labels["harness.from"] == f"{BASE_IMAGE} cuda:10"
    assert labels["harness.cuda_base"] == "sha256:cuda:10"
    world.engine.had["harness/one:gpu"] = {**labels, "harness.cuda_base": "another"}
    assert [image.state for image in world.images.states([on_gpu])] == [ImageState.OUTDATED]


def test_of_several_the_broken_one_is_unavailable_and_one_that_is_right_stays(world):
    world.broken["cpu-one"] = "no such package"
    prepared = world.prepare(world.one, world.two)
    assert "ERROR: no such package" in prepared.unavailable["one"].message
    assert prepared.images == {"two": image_of("two")}
    assert [step.stage for step in world.steps if step.environment == "one"][-1] is Stage.FAILED
    second = world.prepare(world.one, world.two)
    assert (second.images, list(second.unavailable)) == ({"two": image_of("two")}, ["one"])


def test_where_every_build_fails_nothing_runs_and_a_base_that_cannot_be_had_is_named(world, snapshot):
    def fail(words):
        world.broken["cpu-one"] = words
        return catch_text(NothingPreparedError, world.prepare, world.one)

    no_base = f"{BASE_IMAGE}: failed to resolve source metadata for registry/{BASE_IMAGE}"
    # where the engine has the base, something else is wrong
    messages = {"a package": fail("no such package"), "the base is here": fail(no_base)}
    del world.engine.had[BASE_IMAGE]
    messages["no base"] = fail(no_base)
    assert messages == snapshot


def test_an_interruption_stops_the_builds_and_says_no_more(world, monkeypatch):
    world.interrupted.add("cpu-one")

    def interrupt(futures):
        raise KeyboardInterrupt

    monkeypatch.setattr(images, "wait", interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.prepare(world.one)
    assert Stage.READY not in {step.stage for step in world.steps}


def test_folders_of_packages_and_of_locks_outside_the_project_are_given_to_the_builder(
    world, tmp_path_factory, monkeypatch
):
    folder = tmp_path_factory.mktemp("wheels")
    (folder / "six-1.13.0-py2.py3-none-any.whl").touch()
    monkeypatch.setenv("HARNESS_WHEELS", str(folder))
    locks = tmp_path_factory.mktemp("cache")
    world.prepare(requirement_of(locks, "three"))
    ((_, settings),) = world.targets
    assert "contexts.wheels" in settings
    assert settings["contexts.locks"] == str(locks)


def test_with_a_registry_images_are_pulled_before_they_are_built(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.engine.remote["example.org/harness/one:cpu"] = world.images.labels(world.one)
    assert world.prepare(world.one).images == {"one": "sha256:example.org/harness/one:cpu"}
    assert world.built == []


@pytest.mark.parametrize("refusal", ["", "unexpected EOF"])
def test_what_cannot_be_pulled_is_built(world, monkeypatch, refusal):
    monkeypatch.setenv("REGISTRY", "example.org/")
    if refusal:
        world.engine.remote["example.org/harness/one:cpu"] = {}
        world.engine.refusal = refusal
    # the builder of the test makes images without a registry's name: that it was called is what counts
    with pytest.raises(CannotRunHereError, match="no image"):
        world.prepare(world.one)
    assert world.built == ["cpu-one"]
    (sentence,) = [str(step) for step in world.steps if "the image will be built" in str(step)]
    assert (refusal or "not found") in sentence


def test_images_are_pushed_to_a_registry_that_takes_them(world, monkeypatch, snapshot):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.images.push([world.one, world.two], print)
    names = ["example.org/harness/one:cpu", "example.org/harness/two:cpu"]
    assert world.engine.pushed == names
    world.engine.refusal = "denied:\n\x1b[31mwho"
    refusal = catch_text(CannotRunHereError, world.images.push, [world.one], print)
    assert world.engine.pushed == names
    assert refusal == snapshot


def test_a_pull_that_is_stopped_takes_no_more(world):
    world.engine.remote["harness/x:cpu"] = {}
    world.images._transfer("pull", "harness/x:cpu", lambda: True)
    assert "harness/x:cpu" not in world.engine.had


def test_a_file_that_cannot_be_written_is_no_error_of_the_engine(world, tmp_path):
    chunks = [b"1", b"2"]
    world.engine.get_image = lambda reference: iter(chunks)
    world.images.save(BASE_IMAGE, tmp_path / "image.tar")
    assert (tmp_path / "image.tar").read_bytes() == b"12"
    with pytest.raises(OSError, match=r"a directory|exists"):
        world.images.save(BASE_IMAGE, tmp_path / "image.tar" / "image.tar")

    def break_off(reference):
        yield b"1"
        raise requests.ConnectionError("gone")

    world.engine.get_image = break_off
    with pytest.raises(CannotRunHereError, match=r"stopped answering during this request: save .*: gone"):
        world.images.save(BASE_IMAGE, tmp_path / "image.tar")
    assert (tmp_path / "image.tar").read_bytes() == b"12"


def over(base, name="one-mine-1"):
    """Return an environment with a wheel over another one."""
    environment = replace(
        base.environment, name=name, asked="one+mine@1", base="one", wheel="0/mine-1.0-py3-none-any.whl"
    )
    path = base.lock.path.with_name(f"{name}.txt")
    path.write_text(name)
    lock = replace(base.lock, path=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    return replace(base, environment=environment, lock=lock, base=base)


def test_a_wheel_goes_over_the_image_of_its_base_and_is_not_tried_without_it(world):
    wanted = over(world.one)
    world.prepare(wanted)
    assert world.built == ["cpu-one", "source-any"]
    assert world.targets[-1][1]["args.BASE"] == "harness/one:cpu"
    assert world.targets[-1][1]["args.REPLACED"] == "mine"
    world.engine.had["harness/one:cpu"] |= {"harness.recipe": "another"}
    world.engine.info = {}
    space = world.images.room([wanted, world.two])
    assert (space.images, space.needed) == (3, OVERLAY_BYTES + 2 * ENVIRONMENT_BYTES[Device.CPU])
    assert world.images.unprepared([wanted]) == [wanted]
    world.targets.clear()
    world.broken["cpu-one"] = "it fails"
    prepared = world.prepare(over(world.one), world.two)
    assert world.built == ["cpu-one", "cpu-two"]
    assert "it fails" in str(prepared.unavailable["one-mine-1"])


def test_a_wheel_is_built_from_the_files_and_its_failure_is_told(world, tmp_path):
    (tmp_path / "build.txt").write_text("")
    recipe = WheelRecipe("mine", "3.11", tmp_path, tmp_path / "build.txt", 5, "1.0+gabc")
    world.images.build_wheel(recipe, tmp_path / "out")
    target, settings = world.targets[-1]
    assert (target, settings["contexts.source"], settings["args.SOURCE_DATE_EPOCH"]) == ("wheel", str(tmp_path), "5")
    world.broken["wheel"] = "the last line"
    with pytest.raises(CannotRunHereError, match=r"of mine .*\nERROR: the last line"):
        world.images.build_wheel(recipe, tmp_path / "out")


@pytest.mark.parametrize("asked", ["", "linux/arm64"])
def test_a_processor_is_never_emulated_for_a_measurement(world, monkeypatch, asked):
    monkeypatch.setenv("DOCKER_DEFAULT_PLATFORM", asked)
    requirement = world.one
    if not asked:
        requirement = replace(requirement, environment=replace(requirement.environment, architecture="arm64"))
    with pytest.raises(CannotRunHereError, match="arm64, but the Docker Engine runs on x86_64"):
        world.prepare(requirement)
    assert not world.targets
