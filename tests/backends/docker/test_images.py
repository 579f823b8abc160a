import dataclasses
import hashlib
import shutil
import threading
from dataclasses import replace

import pytest

from harness.backends.docker import images
from harness.backends.docker.images import Images, find_public_base
from harness.backends.docker.recipe import BASE, CUDA, FROM, LOCK, PYTHON, RECIPE
from harness.model.backend import ImageState, KeptImage, Preparation, PreparationStep, Stage, WheelRecipe
from harness.model.environment import Device
from harness.model.errors import CannotRunHereError, UsageError
from tests.backends.conftest import ROOT, requirement_of

BASE_IMAGE = "python:3.11-slim-bookworm"


class FakeEngine:
    """An engine whose images are in `had`: labels by name. `remote` is what a pull brings; `asked` are the filters."""

    def __init__(self, had):
        self.api = self
        self.had, self.remote, self.pushed, self.asked = had, {}, [], []
        self.refusal = ""

    def inspect_image(self, name):
        from docker.errors import ImageNotFound

        if name not in self.had:
            raise ImageNotFound(name)
        return {"Id": f"sha256:{name}", "Config": {"Labels": self.had[name]}, "Size": 5}

    def images(self, filters):
        self.asked.append(filters)
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


@pytest.fixture
def world(tmp_path, monkeypatch):
    """A project, an engine that has the base of Python 3.11, and a builder that fails for what `broken` names."""
    monkeypatch.delenv("REGISTRY", raising=False)
    monkeypatch.delenv("HARNESS_WHEELS", raising=False)
    shutil.copytree(ROOT / "images", tmp_path / "images", ignore=shutil.ignore_patterns("locks"))
    locks = tmp_path / "images" / "locks"
    locks.mkdir()
    engine = FakeEngine({BASE_IMAGE: None})
    built, broken, interrupted, after = [], {}, set(), {}

    class FakeBuilder:
        def __init__(self, root):
            self.is_stopped = False
            self.stopped = threading.Event()

        def build(self, target, settings, tell, folder=None):
            built.append((target, settings))
            tell("environment 1/1: x")
            if target in interrupted:
                self.stopped.wait()
            if target in after:
                assert after[target].wait(30)
            if target in broken:
                return f"ERROR: {broken[target]}"
            labels = {k.removeprefix("labels."): v for k, v in settings.items() if k.startswith("labels.")}
            engine.had[settings.get("tags") or f"harness/{target.removeprefix('cpu-')}:cpu"] = labels
            return ""

        def stop(self):
            self.is_stopped = True
            self.stopped.set()

    monkeypatch.setattr(images, "check", lambda: None)
    monkeypatch.setattr(images, "check_driver", lambda: None)
    monkeypatch.setattr(images, "Builder", FakeBuilder)

    class World:
        def __init__(self):
            self.engine, self.broken, self.interrupted, self.after = engine, broken, interrupted, after
            self.locks = locks
            self.one, self.two = requirement_of(locks, "one"), requirement_of(locks, "two")

        @property
        def images(self):
            return Images(engine, tmp_path)

        @property
        def built(self):
            return sorted(target for target, _ in built)

        @property
        def targets(self):
            return built

        @property
        def settings(self):
            return built[0][1]

        def prepare(self, *requirements, **more):
            self.steps = []
            return self.images.prepare(list(requirements), self.steps.append, **more)

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
    world.engine.had["harness/two:cpu"][label] = "another"
    world.prepare(world.one, world.two)
    assert world.built == ["cpu-one", "cpu-two", "cpu-two"]


def test_states_are_told(world):
    world.prepare(world.one)
    had, never = world.images.states([world.one, world.two])
    assert had == KeptImage(ImageState.BUILT, "sha256:harness/one:cpu", 5)
    assert never == KeptImage(ImageState.NOT_BUILT)


def test_an_image_that_was_built_without_the_harness_is_outdated(world):
    world.engine.had["harness/one:cpu"] = None
    assert [image.state for image in world.images.states([world.one])] == [ImageState.OUTDATED]


def test_one_question_is_asked_for_images_and_bases(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/team/")
    world.images.states([world.one, world.two])
    names = [f"example.org/team/harness/{name}:cpu" for name in ("one", "two")]
    assert world.engine.asked == [{"reference": [*names, BASE_IMAGE]}]


def test_what_cuda_is_copied_from_counts(world):
    environment = dataclasses.replace(world.one.environment, cuda_image="cuda:10")
    on_gpu = dataclasses.replace(world.one, environment=environment, device=Device.GPU)
    world.engine.had["cuda:10"] = None
    made = world.images.labels(on_gpu)
    assert (made[FROM], made[CUDA]) == (f"{BASE_IMAGE} cuda:10", "sha256:cuda:10")
    world.engine.had["harness/one:gpu"] = {**made, CUDA: "another"}
    assert [image.state for image in world.images.states([on_gpu])] == [ImageState.OUTDATED]


def test_a_base_that_is_not_here_is_not_compared(world):
    world.prepare(world.one)
    del world.engine.had[BASE_IMAGE]
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
    base = BASE_IMAGE
    world.broken["cpu-one"] = f"{base}: failed to resolve source metadata for registry/{base}"
    with pytest.raises(CannotRunHereError) as had:
        world.prepare(world.one)
    assert "docker pull" not in had.value.advice  # the engine has it: something else is wrong
    del world.engine.had[base]
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

    monkeypatch.setattr(images, "as_completed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        world.prepare(world.one)
    assert Stage.READY not in {step.stage for step in world.steps}


class Ready:
    """Hears which images are there while others are being made; `last` may be made once it heard of `until`."""

    def __init__(self, world, last, until):
        self.heard, self.until = [], until
        world.after[last] = self.event = threading.Event()

    def __call__(self, name, progress, is_making):
        assert is_making()
        self.heard.append(name)
        progress(PreparationStep(name, "tried"))
        if name == self.until:
            self.event.set()


def test_while_others_are_made_it_is_told_which_images_are_there(world):
    three = requirement_of(world.locks, "three")
    world.prepare(world.one)
    ready = Ready(world, "cpu-three", until="two")
    world.prepare(three, world.two, world.one, meanwhile=ready)
    assert ready.heard == ["one", "two"]
    assert [step.environment for step in world.steps if step.words == "tried"] == ["one", "two"]


def test_where_nothing_is_made_nothing_is_told_to_be_there_early(world):
    world.prepare(world.one, world.two)
    heard = []
    world.prepare(world.one, world.two, meanwhile=lambda *told: heard.append(told))
    assert heard == []


def test_what_could_not_be_made_is_not_told_to_be_there(world):
    world.prepare(world.one)
    world.broken["cpu-two"] = "no such package"
    ready = Ready(world, "cpu-three", until="one")
    world.prepare(world.one, world.two, requirement_of(world.locks, "three"), meanwhile=ready)
    # the third may be there before the second has failed
    assert ready.heard[0] == "one"
    assert "two" not in ready.heard


def test_what_fails_in_an_image_that_is_there_stops_the_builds(world):
    world.prepare(world.one)
    world.interrupted.add("cpu-two")

    def refuse(*_):
        raise CannotRunHereError("The Docker Engine answers no more.")

    with pytest.raises(CannotRunHereError, match="answers no more"):
        world.prepare(world.one, world.two, meanwhile=refuse)
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
    world.engine.remote["example.org/harness/one:cpu"] = world.images.labels(world.one)
    assert world.prepare(world.one).images == {"one": "sha256:example.org/harness/one:cpu"}
    assert world.built == []


@pytest.mark.parametrize("refusal", ["", "unexpected EOF"])
def test_what_cannot_be_pulled_is_built(world, monkeypatch, refusal):
    monkeypatch.setenv("REGISTRY", "example.org/")
    if refusal:
        world.engine.remote["example.org/harness/one:cpu"] = {}
        world.engine.refusal = refusal
    # the builder of the test makes images without a registry's name: that it was asked is what counts
    with pytest.raises(CannotRunHereError, match="the build produced no image"):
        world.prepare(world.one)
    assert world.built == ["cpu-one"]
    (said,) = [str(step) for step in world.steps if "the image will be built" in str(step)]
    assert (refusal or "not found") in said


def test_pushing_needs_a_registry(world):
    with pytest.raises(UsageError, match=r"REGISTRY is not set(.|\n)*REGISTRY=registry\.example\.org/team/"):
        world.images.push([world.one], print)


def test_images_are_pushed(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.images.push([world.one, world.two], print)
    assert world.engine.pushed == ["example.org/harness/one:cpu", "example.org/harness/two:cpu"]


def test_a_refused_push_is_a_sentence(world, monkeypatch):
    monkeypatch.setenv("REGISTRY", "example.org/")
    world.engine.refusal = "denied:\n\x1b[31mwho"
    with pytest.raises(
        CannotRunHereError, match=r"Docker Engine refused to push example\.org/harness/one:cpu: denied: \\x1b\[31mwho"
    ):
        world.images.push([world.one], print)
    assert world.engine.pushed == []


def test_a_pull_that_is_stopped_takes_no_more(world):
    world.engine.remote["harness/x:cpu"] = {}
    world.images._transfer("pull", "harness/x:cpu", lambda: True)
    assert "harness/x:cpu" not in world.engine.had


@pytest.mark.parametrize(
    ("digests", "told"),
    [
        (["python@sha256:ab"], "python@sha256:ab"),
        (["registry.example/python@sha256:cd", "python@sha256:ab"], "python@sha256:ab"),
        (["registry.example/python@sha256:cd"], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_a_base_is_told_by_the_digest_that_others_can_pull_it_by(digests, told):
    class Engine(FakeEngine):
        def inspect_image(self, name):
            return super().inspect_image(name) | {"RepoDigests": digests}

    had = {"sha256:1": {FROM: BASE_IMAGE, BASE: "sha256:2"}, "sha256:2": {}, "sha256:3": {}}
    assert find_public_base(Engine(had), "sha256:1") == told
    # neither of what is not one of ours, nor of what is not there
    assert find_public_base(Engine(had), "sha256:3") == ""
    assert find_public_base(Engine(had), "sha256:4") == ""


def over(base, name="one-mine-1"):
    """Return an environment with a wheel over another one."""
    environment = replace(
        base.environment, name=name, asked="one+mine@1", base="one", wheel="0/mine-1.0-py3-none-any.whl"
    )
    path = base.lock.path.with_name(f"{name}.txt")
    path.write_text(name)
    lock = replace(base.lock, path=path, sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    return replace(base, environment=environment, lock=lock, base=base)


def test_a_wheel_goes_over_the_image_of_its_base_which_is_built_first(world):
    wanted = over(world.one)
    world.prepare(wanted)
    assert world.built == ["cpu-one", "source-any"]
    assert world.targets[-1][1]["args.BASE"] == "harness/one:cpu"
    assert world.targets[-1][1]["args.REPLACED"] == "mine"


def test_if_the_base_cannot_be_built_the_other_is_not_tried(world):
    world.broken["cpu-one"] = "it fails"
    made = world.prepare(over(world.one), world.two)
    assert world.built == ["cpu-one", "cpu-two"]
    assert "it fails" in str(made.unavailable["one-mine-1"])


def test_an_image_over_an_outdated_base_is_outdated(world):
    wanted = over(world.one)
    world.prepare(wanted)
    world.engine.had["harness/one:cpu"] |= {"harness.recipe": "another"}
    assert world.images.unprepared([wanted]) == [wanted]


def test_a_wheel_is_built_from_the_files_and_its_failure_is_told(world, tmp_path):
    (tmp_path / "build.txt").write_text("")
    recipe = WheelRecipe("mine", "3.11", tmp_path, tmp_path / "build.txt", 5, "1.0+gabc")
    world.images.build_wheel(recipe, tmp_path / "out")
    target, settings = world.targets[-1]
    assert (target, settings["contexts.source"], settings["args.SOURCE_DATE_EPOCH"]) == ("wheel", str(tmp_path), "5")
    world.broken["wheel"] = "the last line"
    with pytest.raises(CannotRunHereError, match="The wheel of mine could not be built:\nERROR: the last line"):
        world.images.build_wheel(recipe, tmp_path / "out")
