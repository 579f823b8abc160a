# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth of datasets from generators and arrays"
# source = "https://github.com/tensorflow/tensorflow/issues/57690"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# pipeline = ["object", "elements", "fit_generator", "fit_slices", "py_function"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#57690"
# reported = "an object that the generator of from_generator refers to is never released, after the dataset is left"
# worse    = { environment = "tf2.10", pipeline = "object" }
# bytes    = [700000, 1500000]      # the object has 1 MB
# of       = "memory growth"
# hardware = "Ubuntu 22.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#65675"
# reported = "iterating over a dataset of from_generator leaks in 2.16.1 with Python 3.11, and not with Python 3.10"
# worse    = { environment = "tf2.16", pipeline = "elements" }
# bytes    = [100000, 10000000]     # 1,000 elements; "tens of GB in one case"
# of       = "memory growth"
# hardware = "Docker"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#60659"
# reported = "with Python 3.11, fit on a dataset of from_generator leaks"
# worse    = { environment = "tf2.13-py3.11", pipeline = "fit_generator" }
# bytes    = [100000, 10000000]     # 100 batches; no number that could be read
# of       = "memory growth"
# hardware = "CPU, Ubuntu 22.04"
# version  = "2.12"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#41395"
# reported = "memory grows when fit iterates over from_tensor_slices of large images, in batches, repeated"
# worse    = { environment = "tf2.2", pipeline = "fit_slices" }
# bytes    = [1000000, 70000000]    # a batch of theirs has 33 MB; the curve's numbers were not to be read
# of       = "memory growth"
# hardware = "GeForce RTX 2080 Ti"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#35084"
# reported = "a dataset that parses its records by py_function is not freed in every step"
# worse    = { environment = "tf2.0", pipeline = "py_function" }
# bytes    = [100000, 10000000]     # no number that could be read
# of       = "memory growth"
# hardware = "Ubuntu 16.04"
# program  = "similar"
# ///
"""The memory that the process keeps after each of 20 rounds of a pipeline. The axis shows the work of a round.

pipeline  object: create a dataset whose generator refers to a new array of 1 MB, and take one element; elements: take
          1,000 elements of one dataset, which a generator yields; fit_generator: `fit` on 100 batches of such a
          dataset; fit_slices: `fit` on two batches of 8 images of 416 × 416, with from_tensor_slices; py_function:
          create a dataset of 100 records, which a py_function parses
"""

from kit import main

CALLS, ELEMENTS, BATCHES, RECORDS = 20, 1000, 100, 100
IMAGES, IMAGE, BATCH = 16, (416, 416, 3), 8


def scenario(bench, *, pipeline="object"):
    """Record the memory of the process over the rounds."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        make = {
            "object": make_objects,
            "elements": make_elements,
            "fit_generator": make_fit_generator,
            "fit_slices": make_fit_slices,
            "py_function": make_py_function,
        }[pipeline]
        step = make(tf, np)
    with bench.phase("first call"):
        elements = step()
    bench.memory(step, CALLS)
    bench.fingerprint(elements=elements)


def make_objects(tf, np):
    """Return a step that makes a dataset whose generator refers to an array, and takes one element."""

    def step():
        array = np.ones(1 << 17)

        def generate():
            while True:
                yield array[0]

        dataset = tf.data.Dataset.from_generator(generate, tf.float32, ())
        return len([float(element) for element in dataset.take(1)])

    return step


def make_elements(tf, np):
    """Return a step that takes the next elements of one dataset."""

    def generate():
        while True:
            yield np.ones(10, "float32")

    elements = iter(tf.data.Dataset.from_generator(generate, tf.float32, (10,)))

    def step():
        for _ in range(ELEMENTS):
            next(elements)
        return ELEMENTS

    return step


def make_fit_generator(tf, np):
    """Return a step that trains on the next batches of one dataset."""

    def generate():
        while True:
            yield np.ones((32, 1, 10), "float32"), np.ones((32, 1, 1), "float32")

    dataset = tf.data.Dataset.from_generator(generate, (tf.float32, tf.float32), ((32, 1, 10), (32, 1, 1)))
    return make_fit(tf, dataset, (1, 10), BATCHES)


def make_fit_slices(tf, np):
    """Return a step that trains on two batches of large images."""
    arrays = np.ones((IMAGES,) + IMAGE), np.zeros((IMAGES, 1))
    dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(BATCH).repeat()
    return make_fit(tf, dataset, IMAGE, IMAGES // BATCH)


def make_fit(tf, dataset, shape, batches):
    """Return a step that trains a dense layer on a number of batches."""
    layers = [tf.keras.layers.Dense(1, input_shape=shape)]
    if len(shape) == 3:
        layers.insert(0, tf.keras.layers.GlobalAveragePooling2D(input_shape=shape))
    model = tf.keras.models.Sequential(layers)
    model.compile(optimizer="sgd", loss="mse")

    def step():
        model.fit(dataset, steps_per_epoch=batches, epochs=1, verbose=0)
        return batches

    return step


def make_py_function(tf, np):
    """Return a step that makes a dataset of records, and parses all of them."""

    def generate():
        for _ in range(RECORDS):
            yield "1,2,3,4,5,6,7,8"

    def parse_text(record):
        return ",".join(str(int(number) + 1) for number in record.numpy().decode().split(","))

    def parse(record):
        return tf.strings.split([tf.py_function(parse_text, [record], tf.string)], sep=",").values

    def step():
        dataset = tf.data.Dataset.from_generator(generate, tf.string, ()).map(parse)
        return sum(1 for _ in dataset)

    return step


if __name__ == "__main__":
    main(scenario)
