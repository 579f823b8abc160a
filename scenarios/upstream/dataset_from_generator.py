# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Batches of a dataset, from a generator and from an array"
# source = "https://github.com/tensorflow/tensorflow/issues/56258"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# source = ["generator", "slices", "batch_generator"]
#
# [[tool.harness.compare]]
# name  = "generator vs others"
# along = "source"
# plus  = "generator"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#56258"
# reported = "batches from from_generator take more than 10 times as long as from from_tensor_slices"
# worse    = { environment = "tf1.15", source = "generator" }
# better   = { environment = "tf1.15", source = "slices" }
# ratio    = [10, 100]
# hardware = "CPU, Ubuntu 18.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#14480"
# reported = "batching a generator's elements by Dataset.batch is about 30 times slower than in the generator itself"
# worse    = { environment = "tf1.14", source = "generator" }
# better   = { environment = "tf1.14", source = "batch_generator" }
# ratio    = [15, 60]               # on 1.4
# hardware = "GTX 980"
# version  = "1.4"
# program  = "similar"
# ///
"""A pass over a dataset of 2,000 numbers in batches of 200, per number.

source  generator: a generator yields numbers, which the dataset batches; slices: slices of an array, which the dataset
        batches; batch_generator: a generator yields whole batches
"""

from kit import eager_tensorflow, main

NUMBERS, BATCH = 2000, 200


def scenario(bench, *, source="generator"):
    """Measure one pass."""
    with bench.phase("import"):
        import numpy as np

        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        numbers = np.arange(NUMBERS, dtype="float32")
        dataset = make_dataset(tf, numbers, source)

    def step():
        for batch in dataset:  # noqa: B007, only the last is used
            pass
        return batch

    with bench.phase("first call"):
        last = step()
    bench.measure(step, steps=NUMBERS)
    bench.fingerprint(last=float(last.numpy().sum()), size=int(last.shape[0]))


def make_dataset(tf, numbers, source):
    """Return the dataset of batches."""
    make = tf.data.Dataset.from_generator
    if source == "slices":
        return tf.data.Dataset.from_tensor_slices(numbers).batch(BATCH)
    if source == "generator":
        return make(lambda: iter(numbers), tf.float32, ()).batch(BATCH)
    return make(lambda: iter(numbers.reshape(-1, BATCH)), tf.float32, (BATCH,))


if __name__ == "__main__":
    main(scenario)
