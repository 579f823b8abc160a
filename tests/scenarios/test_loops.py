"""The recorder of training loops, on stand-ins for what the releases of Keras have."""

import sys
from types import ModuleType

import pytest
from kit.loops import training_loops

ENGINE = "oldkeras.engine"


@pytest.fixture
def module(monkeypatch):
    """A function that puts a module of the stand-in's engine in its place."""

    def make(name, **contents):
        engine_module = ModuleType(f"{ENGINE}.{name}")
        vars(engine_module).update(contents)
        for content in contents.values():
            content.__module__ = engine_module.__name__
        monkeypatch.setitem(sys.modules, engine_module.__name__, engine_module)
        return engine_module

    return make


def model_of(module, **methods):
    plain = {"train_on_batch": lambda self: None, "train_function": None}
    model_class = type("Model", (), {**plain, **methods})
    module("training", Model=model_class)
    return model_class()


def test_what_is_reached_is_named_by_module_and_function_in_the_order_of_entry(module):
    arrays = module("training_arrays", fit_loop=lambda *arguments: eager.train_on_batch(*arguments, None))
    eager = module("training_eager", train_on_batch=lambda model, batch: None)
    model = model_of(module)
    assert (
        training_loops(lambda: (model, lambda: arrays.fit_loop(model)))
        == ("training_arrays.fit_loop, training_eager.train_on_batch",) * 2
    )


def test_the_first_call_and_a_later_one_are_apart_and_repeats_are_told_once(module):
    """As in TensorFlow 2.1: the eager step is run while it is traced, and never again."""
    eager = module("training_eager", train_on_batch=lambda model: None)
    traced = []

    def train(model):
        for _ in range(2):
            if not traced:
                eager.train_on_batch(model)
                eager.train_on_batch(model)
        traced.append(True)

    utils = module("training_v2_utils", train_on_batch=train)
    model = model_of(module)
    assert training_loops(lambda: (model, lambda: utils.train_on_batch(model))) == (
        "training_v2_utils.train_on_batch, training_eager.train_on_batch",
        "training_v2_utils.train_on_batch",
    )


def test_what_else_is_known_is_named_and_what_is_not_is_said(module):
    arrays = module("training_arrays_v1", fit_loop=lambda model: None)
    loop = type("Loop", (), {"__module__": f"{ENGINE}.training_v2"})
    compiled = type("GraphExecutionFunction", (), {"__module__": "tensorflow.python.keras.backend"})
    methods = {"_select_training_loop": lambda self, inputs: loop(), "make_train_function": lambda self, force: None}
    model = model_of(module, **methods)
    steps = {
        "training_v2.Loop": lambda: model._select_training_loop([]),
        "training_arrays_v1.fit_loop": lambda: arrays.fit_loop(model),
        "training.Model.make_train_function": lambda: model.make_train_function(False),
        "nothing that is known": lambda: None,
    }
    for name, step in steps.items():
        assert training_loops(lambda step=step: (model, step)) == (name, name)
    train = lambda: vars(model).update(train_function=compiled())  # noqa: E731
    assert training_loops(lambda: (model, train)) == ("backend.GraphExecutionFunction",) * 2


def test_everything_is_as_before_afterwards_even_when_the_step_raises(module):
    arrays = module("training_arrays", fit_loop=lambda model: 1 / 0)
    before = arrays.fit_loop
    model = model_of(module, make_train_function=lambda self: None)
    method = vars(type(model))["make_train_function"]
    with pytest.raises(ZeroDivisionError):
        training_loops(lambda: (model, lambda: arrays.fit_loop(model)))
    assert arrays.fit_loop is before
    assert vars(type(model))["make_train_function"] is method
