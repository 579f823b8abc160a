"""The Keras step without TensorFlow: its header, and what it decides by version, data and protocol."""

import inspect
import re
import tomllib
from types import SimpleNamespace

import keras_step
import pytest


@pytest.fixture(scope="module")
def header(scenarios):
    text = (scenarios / "keras_step.py").read_text()
    block = re.search(r"(?m)^# /// script\s*$\n((?:#(?: .*)?\n)+?)# ///\s*$", text)
    return tomllib.loads("\n".join(line[2:] for line in block.group(1).splitlines()))["tool"]["harness"]


def test_the_scenario_takes_the_header_s_axes_in_their_order_and_defaults_are_values(header):
    parameters = list(inspect.signature(keras_step.scenario).parameters.values())[1:]
    assert [parameter.name for parameter in parameters] == list(header["axes"])
    assert all(parameter.default in header["axes"][parameter.name] for parameter in parameters)
    assert all(value in header["axes"][axis] for axis, value in header["default"].items())


def test_conditions_name_axes_and_values_that_exist(header):
    for condition in header["exclude"] + [need["when"] for need in header["needs"]]:
        assert all(value in header["axes"][axis] for axis, value in condition.items())
    for comparison in header["compare"]:
        assert comparison["along"] in {"environment", *header["axes"]}


def test_there_are_eight_pairs_of_model_and_data(header):
    axes, (excluded,) = header["axes"], header["exclude"]
    pairs = [{"model": model, "data": data} for model in axes["model"] for data in axes["data"]]
    assert len([pair for pair in pairs if pair != excluded]) == 8


def test_versions_compare_as_numbers():
    assert keras_step.version("2.15.1") > keras_step.version("2.2.4-tf")
    assert keras_step.version("2.5.0.dev2021032900") == (2, 5)


@pytest.mark.parametrize(
    ("tensorflow", "keras", "mode", "expected"),
    [
        ("1.14.0", "2.2.5", "graph", ("current", "lr")),
        ("2.0.0", "2.3.1", "graph", ("current", "learning_rate")),
        ("2.10.1", "2.10.0", "graph", ("current", "learning_rate")),
        ("2.15.1", None, "graph", ("legacy", "learning_rate")),
        ("2.15.1", None, "eager", ("current", "learning_rate")),
        ("2.21.0", "3.15.1", "op_by_op", ("current", "learning_rate")),
    ],
)
def test_which_adam_and_what_its_rate_is_called(tensorflow, keras, mode, expected):
    def adam(kind):
        return lambda **options: (kind, *options)

    optimizers = SimpleNamespace(Adam=adam("current"), legacy=SimpleNamespace(Adam=adam("legacy")))
    module = SimpleNamespace(optimizers=optimizers)
    if keras:
        module.__version__ = keras
    assert keras_step.make_adam(SimpleNamespace(__version__=tensorflow), module, mode) == expected


@pytest.mark.parametrize(
    ("document", "model", "data", "call", "inputs", "batches"),
    [
        (False, "small", "small", "train_on_batch", "numpy", 1),
        (True, "small", "small", "fit", "numpy", 1),
        (False, "small", "small", "fit_epoch", "dataset", 50),
        (False, "medium", "small", "fit_epoch", "numpy", 10),
        (False, "small", "large", "fit_epoch", "numpy", 4),
        (True, "small", "small", "fit_epoch", "numpy", 200),
        (True, "small", "large", "fit_epoch", "numpy", 10),
        (True, "large", "large", "fit_epoch", "dataset", 50),
    ],
)
def test_how_many_batches_one_fit_takes(document, model, data, call, inputs, batches):  # noqa: PLR0917
    bench = SimpleNamespace(document=document)
    assert keras_step.batches_in_call(bench, model, data, call, inputs) == batches


def test_the_counter_is_read_by_whichever_reader_works():
    def fails(_):
        raise NotImplementedError("numpy() is only available when eager execution is enabled.")

    def library(get_value):
        return SimpleNamespace(backend=SimpleNamespace(get_value=get_value))

    network = SimpleNamespace(optimizer=SimpleNamespace(iterations="7"))
    tf = SimpleNamespace(keras=library(int))
    assert keras_step.optimizer_steps(tf, library(fails), network) == (7, None)
    counted, problem = keras_step.optimizer_steps(SimpleNamespace(keras=library(fails)), library(fails), network)
    assert counted is None
    assert "NotImplementedError: numpy() is only available" in problem
