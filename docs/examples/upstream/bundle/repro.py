"""train_on_batch on arrays, from release to release.

Measured: tf2.16 takes 19.8 times as long as tf2.15 (95 %: 11.7 to 33.3) (network=lstm, mode=default).

Run it in virtual environments:

    uv venv --seed --python 3.11 tf2.16
    uv pip install --python tf2.16 $(grep -oE '^(setuptools|wheel)==[^ ]+' requirements-tf2.16.txt)
    uv pip install --python tf2.16 --no-deps --no-build-isolation -r requirements-tf2.16.txt
    uv venv --seed --python 3.11 tf2.15
    uv pip install --python tf2.15 $(grep -oE '^(setuptools|wheel)==[^ ]+' requirements-tf2.15.txt)
    uv pip install --python tf2.15 --no-deps --no-build-isolation -r requirements-tf2.15.txt
    tf2.16/bin/python repro.py tf2.16/bin/python tf2.15/bin/python

In containers:

    docker run --rm -v "$PWD":/bundle -w /bundle python:3.11-slim-bookworm sh -c 'pip install -q $(grep -oE "^(setuptools|wheel)==[^ ]+" requirements-tf2.16.txt) && pip install -q --no-deps --no-build-isolation -r requirements-tf2.16.txt && python repro.py --only 0'
    docker run --rm -v "$PWD":/bundle -w /bundle python:3.11-slim-bookworm sh -c 'pip install -q $(grep -oE "^(setuptools|wheel)==[^ ]+" requirements-tf2.15.txt) && pip install -q --no-deps --no-build-isolation -r requirements-tf2.15.txt && python repro.py --only 1'

One `train_on_batch` of a NumPy batch, in each release's default mode or in graph mode.

network  conv: one convolution over 140 time steps of 30 channels and two dense layers; lstm: 20 LSTM units on one time
         step and three small dense layers, in batches of 250; deep: ten convolutions over 1,400 time steps, 10 % of the
         work in the issue
"""

import gc
import json
import os
import subprocess
import sys
from contextlib import contextmanager
from time import perf_counter

# What is compared; the first was measured to take longer, or more. Each is run in fresh processes, in turn.
SIDES = [
    {"label": "tf2.16", "arguments": {"network": "lstm", "mode": "default"}, "environ": {}},
    {"label": "tf2.15", "arguments": {"network": "lstm", "mode": "default"}, "environ": {}},
]
OF = "step"  # what of a process is compared
ROUNDS = 5
WARM_UP, MEASURE, SAMPLE = 0.5, 1.5, 0.02  # seconds


class NotAvailable(Exception):
    """What the work raises where a release does not have what it needs."""


class Bench:
    """What the work below is given. `numbers` is what was measured, by name."""

    document, thorough, device_name, environment = False, False, "cpu", None

    def __init__(self, axes):
        self.axes = axes
        self.numbers = {}

    @contextmanager
    def phase(self, name):
        started = perf_counter()
        yield
        self.numbers[name] = perf_counter() - started

    def device(self):
        tf = sys.modules["tensorflow"]
        if tf.executing_eagerly():
            tf.constant(1.0).numpy()  # so that this is in no other number

    def fetch(self, values):
        if isinstance(values, dict):
            self.fetch(list(values.values()))
        elif isinstance(values, (list, tuple)):
            for value in values:
                self.fetch(value)
        elif hasattr(values, "numpy"):
            try:
                values.numpy()  # a GPU has done its work then
            except Exception:  # of a graph: there is nothing to wait for
                pass
        return values

    def timed(self, step, calls=1):
        started = perf_counter()
        for _ in range(calls):
            result = step()
        self.fetch(result)
        return (perf_counter() - started) / calls, result

    def measure(self, step, steps=1, document=1):
        first, _ = self.timed(step)
        made, samples, calls = 1, [], max(1, int(SAMPLE / first))
        warm = perf_counter() + WARM_UP
        gc.collect()
        while perf_counter() < warm + MEASURE or len(samples) < 3:
            seconds, _ = self.timed(step, calls)
            made += calls
            if perf_counter() > warm or not samples:
                samples.append(seconds / steps)
        self.numbers["step"] = sorted(samples)[len(samples) // 2]
        return made * steps

    def once(self, step):
        gc.collect()
        self.numbers["step"], result = self.timed(step)
        return result

    def memory(self, step, calls, steps=1):
        warm = calls // 10
        for _ in range(warm):
            step()
        before = resident_bytes()
        seconds, _ = self.timed(step, calls)
        self.numbers.update({"step": seconds / steps, "memory growth": (resident_bytes() - before) / calls})
        return (warm + calls) * steps

    def observe(self, name, value):
        if isinstance(value, (int, float)):
            self.numbers[name] = value

    def fingerprint(self, **values):
        pass

    placed = artifact = fingerprint


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# ---------------------------------------------------------------- the work
def fixed_batch(shape, dtype):
    """Return constant normal noise, plus a separate level for each channel of each row.

    Without these levels, an average over a row would always be about 0.
    """
    import numpy as np

    noise = np.random.RandomState(7)
    levels = noise.standard_normal((shape[0],) + (1,) * (len(shape) - 2) + shape[-1:])
    return (levels + noise.standard_normal(shape)).astype(dtype)


def digits(values):
    """Return the numbers of an array or tensor as a flat list of floats, to the 7 digits of a float32."""
    import numpy as np  # imported here, because an import before TensorFlow would be in no phase

    return [float("{:.7g}".format(value)) for value in np.ravel(values)]


def fixed_weights(shapes):
    """Return constant weights of these shapes: normal noise, scaled so that layers keep the size of their inputs.

    Kernels are divided by the square root of their number of inputs, and biases by 10. Use them only for kernels and
    biases: the values can be negative, but the variance in a batch normalization can't.
    """
    import numpy as np

    noise = np.random.RandomState(42)
    return [
        noise.standard_normal(shape) * (0.1 if len(shape) == 1 else np.prod(shape[:-1]) ** -0.5) for shape in shapes
    ]


def fixed_outputs(model, shape, dtype):
    """Return the model's predictions for a constant batch as floats, to the 7 digits of a float32.

    shape, dtype: the shape and the type of the batch. This function replaces the model's weights, so call it last.
    Raises TensorFlow's own errors if the weights can't be set or the prediction fails.
    """
    model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    return digits(model.predict_on_batch(fixed_batch(shape, dtype)))


BATCHES = {"conv": (32, 140, 30), "lstm": (250, 1, 14), "deep": (8, 1400, 30)}


def scenario(bench, *, network="conv", mode="default"):
    """Measure one training step."""
    with bench.phase("import"):
        import tensorflow as tf

        if mode == "graph" and tf.executing_eagerly():
            tf.compat.v1.disable_eager_execution()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    shape = BATCHES[network]
    with bench.phase("build"):
        model = make_model(keras, network)
        model.compile("sgd", "binary_crossentropy")
        x = fixed_batch(shape, "float32")
        y = (x.reshape(len(x), -1)[:, :1] > 0).astype("float32")
    with bench.phase("first call"):
        model.train_on_batch(x, y)
    bench.measure(lambda: model.train_on_batch(x, y), document=200)
    bench.fingerprint(parameters=int(model.count_params()), outputs=fixed_outputs(model, shape, "float32"))


def make_model(keras, network):
    """Return the model of that name, which computes a number between 0 and 1 for each row."""
    layers = keras.layers
    inputs = x = layers.Input(BATCHES[network][1:])
    if network == "lstm":
        x = layers.LSTM(20)(x)
        for units in (20, 16, 8):
            x = layers.Dense(units, activation="relu")(x)
    elif network == "conv":
        x = layers.Conv1D(128, 40, strides=4, padding="same")(x)
    else:
        x = layers.Conv1D(64, 40, strides=4)(x)
        for _ in range(8):
            x = layers.Conv1D(64, 12, padding="same")(x)
        x = layers.Conv1D(128, 20, strides=2)(x)
    if network != "lstm":
        x = layers.GlobalAveragePooling1D()(x)
        x = layers.Dense(64, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))

# ---------------------------------------------------------------- run it


def child(side):
    """Do one side's work in this process, and print its numbers as the last line."""
    bench = Bench(side["arguments"])
    scenario(bench, **side["arguments"])
    try:
        import resource

        bench.numbers["peak memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    except ImportError:
        pass
    tensorflow = getattr(sys.modules.get("tensorflow"), "__version__", "not imported")
    print()
    print(json.dumps({"value": bench.numbers[OF], "tensorflow": tensorflow, "python": sys.version.split()[0]}))


def shown(value):
    if OF in ("memory growth", "peak memory"):
        return "{:,.0f} bytes".format(value)
    return "{:,.4g}".format(value) if OF == "traces" else "{:,.4g} ms".format(value * 1000)


def main(arguments):
    if arguments[:1] == ["--child"]:
        return child(SIDES[int(arguments[1])])
    chosen = list(range(len(SIDES)))
    if arguments[:1] == ["--only"]:
        chosen = [int(arguments[1])]
        arguments = arguments[2:]
    pythons = dict(zip(chosen, (arguments or [sys.executable]) * len(SIDES)))
    values = {place: [] for place in chosen}
    for number in range(ROUNDS):
        for place in chosen[:: -1 if number % 2 else 1]:
            side = SIDES[place]
            command = [pythons[place], os.path.abspath(__file__), "--child", str(place)]
            environ = dict(os.environ, **side["environ"])
            done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, universal_newlines=True)
            if done.returncode:
                sys.exit("{}: exit status {}".format(side["label"], done.returncode))
            told = json.loads(done.stdout.strip().splitlines()[-1])
            values[place].append(told["value"])
            place_in = "{label} (TensorFlow {tensorflow}, Python {python})".format(label=side["label"], **told)
            print("round {}: {} {}: {}".format(number + 1, place_in, OF, shown(told["value"])), flush=True)
    if len(chosen) == 2 and all(value > 0 for place in chosen for value in values[place]):
        ratios = sorted(one / other for one, other in zip(values[0], values[1]))
        text = "{} takes {:.3g} times as much as {} ({:.3g} to {:.3g} over {} rounds)"
        labels = [side["label"] for side in SIDES]
        print(text.format(labels[0], ratios[ROUNDS // 2], labels[1], ratios[0], ratios[-1], ROUNDS))


if __name__ == "__main__":
    main(sys.argv[1:])
