"""The Keras step without TensorFlow: its header, and what it decides by version, data and protocol."""

from contextlib import nullcontext
from types import SimpleNamespace

import keras_step
import pytest
from kit import NotAvailable


def make_library(version, **attributes):
    return SimpleNamespace(**attributes, **({"__version__": version} if version else {}))


def test_which_adam_and_what_its_rate_is_called():
    def make_adam(kind):
        return lambda **options: (kind, *options)

    optimizers = SimpleNamespace(Adam=make_adam("current"), legacy=SimpleNamespace(Adam=make_adam("legacy")))
    for tensorflow, keras, mode, expected in [
        ("1.14.0", "2.2.5", "graph", ("current", "lr")),
        ("2.0.0", "2.3.1", "graph", ("current", "learning_rate")),
        ("2.10.1", "2.10.0", "graph", ("current", "learning_rate")),
        ("2.15.1", None, "graph", ("legacy", "learning_rate")),
        ("2.15.1", None, "eager", ("current", "learning_rate")),
        ("2.16.2", "3.4.1", "eager", ("current", "learning_rate")),
        ("2.21.0", "3.15.1", "graph", ("current", "learning_rate")),
        ("2.21.0", "3.15.1", "op_by_op", ("current", "learning_rate")),
    ]:
        module = make_library(keras, optimizers=optimizers)
        assert keras_step.make_adam(make_library(tensorflow), module, mode) == expected, (tensorflow, mode)


def test_how_many_batches_one_fit_takes():
    for document, *cell, batches in [
        (False, "small", "small", "train_on_batch", "numpy", 1),
        (True, "small", "small", "fit", "numpy", 1),
        (False, "small", "small", "fit_epoch", "dataset", 20),
        (False, "medium", "small", "fit_epoch", "numpy", 10),
        (False, "small", "large", "fit_epoch", "numpy", 4),
        (True, "small", "small", "fit_epoch", "numpy", 200),
        (True, "small", "large", "fit_epoch", "numpy", 10),
        (True, "large", "large", "fit_epoch", "dataset", 50),
    ]:
        assert keras_step.count_batches(SimpleNamespace(document=document), *cell) == batches, (document, cell)


def test_where_keras_itself_says_that_it_trains_nothing_the_cell_is_not_available():
    for tensorflow, keras, mode, is_refused in [
        ("2.15.1", None, "graph", False),
        ("2.16.2", "3.4.1", "graph", True),
        ("2.16.2", "3.4.1", "eager", False),
        ("2.20.0", "3.13.2", "graph", True),
        ("2.21.0", "3.14.0", "graph", False),
    ]:
        with pytest.raises(NotAvailable, match=f"Keras {keras} cannot") if is_refused else nullcontext():
            keras_step.refuse_symbols(make_library(tensorflow), make_library(keras), mode)


class Seen:
    def __init__(self):
        self.observations = {}
        self.values = {}

    def observe(self, name, value):
        self.observations[name] = value

    def fingerprint(self, **values):
        self.values.update(values)

    def placed(self, values):
        """On the CPU, nobody asks."""


def library(get_value):
    return SimpleNamespace(backend=SimpleNamespace(get_value=get_value), __version__="2.3.1")


def eager_only(_):
    raise NotImplementedError("numpy() is only available\nwhen eager execution is enabled.")


class Network(SimpleNamespace):
    """A model of a module whose version is known, trained for seven steps."""

    __module__ = "pytest"

    def count_params(self):
        return 162_049


def reported(own_value, builtin, counter, predict):
    """What `report` says of a model whose counter the two libraries, and the counter itself, read or refuse to."""
    bench = Seen()
    network = Network(optimizer=SimpleNamespace(iterations=counter), weights=[])
    tf = SimpleNamespace(keras=library(builtin), __version__="2.0.0")
    keras_step.report(bench, tf, library(own_value), network, steps=7, predict=predict)
    return bench


def test_the_fingerprint_has_both_counts_of_the_steps_by_whichever_reader_works():
    order = []
    bench = reported(lambda _: order.append("counter") or 7, eager_only, "7", lambda: order.append("outputs") or [0.5])
    assert bench.values == {"parameters": 162_049, "outputs": [0.5], "steps_called": 7, "steps_counted": 7}
    assert set(bench.observations) == {"tensorflow", "keras", "optimizer", "parameters"}
    # the weights are set for the outputs
    assert order == ["counter", "outputs"]
    readers = [(eager_only, int, "6"), (eager_only, eager_only, SimpleNamespace(numpy=lambda: 6.0))]
    for own, builtin, counter in [*readers, (int, eager_only, "6")]:
        counted = reported(own, builtin, counter, lambda: [0.5]).values["steps_counted"]
        assert (counted, type(counted)) == (6, int)
    bench = reported(eager_only, eager_only, SimpleNamespace(numpy=lambda: eager_only(0)), lambda: eager_only(0))
    assert (bench.values["outputs"], bench.values["steps_counted"]) == (None, None)
    why = "NotImplementedError: numpy() is only available when eager execution is enabled."
    assert (bench.observations["outputs"], bench.observations["optimizer's counter"]) == (why, why)
    reasons = reported(eager_only, eager_only, "no number", lambda: [0.5]).observations["optimizer's counter"]
    assert reasons == f"{why}; AttributeError: 'str' object has no attribute 'numpy'"
