"""What the environments of a run hold."""

from dataclasses import replace

from harness.analysis.environments import NOT_KNOWN, software
from harness.model.environment import Environment
from harness.model.launch import Limits
from tests.factories import ENVIRONMENTS, run


def differing(planned):
    return {entry.name: list(entry.versions) for entry in software(planned) if entry.differs}


def same(planned):
    return [f"{entry.name} {entry.common}" for entry in software(planned) if not entry.differs and entry.common]


def compared(*packages):
    """A run of environments that have these packages, `a`, `b` and so on."""
    environments = [
        Environment(name, "2.0.0", "3.7", "2020-01-01T00:00:00Z")
        for name, _ in zip("abcdefghij", packages, strict=False)
    ]
    pins = {
        environment.name: {"tensorflow": "2.0.0", **has}
        for environment, has in zip(environments, packages, strict=True)
    }
    return run([], environments=environments, pins=pins, images={})


def test_what_differs_and_what_is_the_same():
    assert differing(run()) == {"TensorFlow": ["1.14.0", "2.0.0"], "Keras": ["2.2.5", "2.3.1"]}
    assert same(run()) == ["TensorFlow's package tensorflow", "Python 3.7", "NumPy 1.17.4", "six 1.13.0"]


def test_a_package_that_one_environment_lacks_differs():
    assert differing(compared({"six": "1"}, {})) == {"six": ["1", ""]}
    # some of the environments may differ where others do not
    (six,) = [entry for entry in software(compared({"six": "1"}, {"six": "1"}, {"six": "2"})) if entry.name == "six"]
    assert (six.differs_among([0, 1]), six.differs_among([1, 2])) == (False, True)
    # one by itself differs in nothing, and so does a run of none
    assert not differing(compared({"six": "1"}))
    assert "six 1" in same(compared({"six": "1"}))
    assert not differing(run([], images={}, pins={}))


def test_tensorflow_from_another_package_says_so():
    pins = {"tf1.14": {"tensorflow": "2.1.0"}, "tf2.0": {"tensorflow-cpu": "2.1.0"}}
    planned = run(environments=ENVIRONMENTS[:2], pins=pins)
    assert differing(planned) == {"TensorFlow's package": ["tensorflow", "tensorflow-cpu"]}
    assert "TensorFlow 2.1.0" in same(planned)


def test_what_was_not_recorded_is_no_difference():
    planned = run(pins={"tf1.14": {"tensorflow": "1.14.0", "keras": "2.2.5", "six": "1.13.0"}})
    assert "six 1.13.0" in same(planned)
    assert differing(planned) == {"TensorFlow": ["1.14.0", "2.0.0"], "Keras": ["2.2.5", "2.3.1"]}
    (six,) = [entry for entry in software(planned) if entry.name == "six"]
    assert six.versions == ["1.13.0", NOT_KNOWN]


def test_cuda_is_told_of_gpus_only():
    environments = [
        replace(environment, cuda=cuda, cudnn="7.4")
        for environment, cuda in zip(ENVIRONMENTS, ["10.0", "10.1"], strict=False)
    ]
    on_gpu = run(environments=environments, asked={"limits": Limits(gpus=("0",))})
    assert differing(on_gpu)["CUDA, of TensorFlow's build"] == ["10.0", "10.1"]
    assert "cuDNN, of TensorFlow's build 7.4" in same(on_gpu)
    assert not [name for name in differing(run(environments=environments)) if "CUDA" in name]
