# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Batches and windows of a dataset, made in different ways"
# source = "https://github.com/tensorflow/tensorflow/issues/43703"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# way = [
#     "named_windows", "stacked_windows", "sequence", "shift_100", "shift_1000", "map_then_batch", "batch_then_map",
# ]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#43703"
# reported = "windows of named features take 10 times as long as windows of one tensor, which are named afterwards"
# worse    = { environment = "tf2.3", way = "named_windows" }
# better   = { environment = "tf2.3", way = "stacked_windows" }
# ratio    = [5, 15]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#44046"
# reported = "windows by flat_map are much slower than a Sequence of Keras (no number reported)"
# worse    = { environment = "tf2.3", way = "stacked_windows" }
# better   = { environment = "tf2.3", way = "sequence" }
# ratio    = [2, 1000]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#37013"
# reported = "the larger the shift of the windows, the slower is the dataset (no number could be read)"
# worse    = { environment = "tf2.1", way = "shift_1000" }
# better   = { environment = "tf2.1", way = "shift_100" }
# ratio    = [2, 12]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#53169"
# reported = "parsing records before they are batched is too slow, compared with parsing batches (no number reported)"
# worse    = { environment = "tf2.6", way = "map_then_batch" }
# better   = { environment = "tf2.6", way = "batch_then_map" }
# ratio    = [1.5, 50]
# hardware = "not reported"
# program  = "similar"
# ///
"""A pass over ten batches of 32 elements, per batch.

way  named_windows: windows of 24 rows with 5 named features, each feature batched separately; stacked_windows: windows
     of one tensor with 5 columns, which get names afterwards; sequence: the same windows, as slices of a NumPy array;
     shift_100, shift_1000: windows of 10 elements of a range, which start 100 or 1,000 elements apart; map_then_batch,
     batch_then_map: records of three numbers, parsed one by one or batch by batch
"""

from kit import main

FEATURES, LENGTH, BATCH, BATCHES = 5, 24, 32, 10


def scenario(bench, *, way="named_windows"):
    """Measure ten batches."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        rows = np.random.RandomState(7).random_sample((BATCH * BATCHES + LENGTH - 1, FEATURES)).astype("float32")
        make_iterable = (lambda: sequence(np, rows)) if way == "sequence" else iterator(MAKERS[way](tf, rows))

    def step():
        count = 0
        for batch in make_iterable():  # noqa: B007, it only has to arrive
            count += 1
        return count

    with bench.phase("first call"):
        count = step()
    bench.measure(step, steps=BATCHES)
    bench.fingerprint(batches=count)


def iterator(dataset):
    """Return a function that returns the dataset, for a new pass over it."""
    return lambda: dataset


def sequence(np, rows):
    """Yield batches of windows by feature name, as `__getitem__` of a Keras Sequence would return them."""
    for batch in range(BATCHES):
        windows = np.stack([rows[i : i + LENGTH] for i in range(batch * BATCH, (batch + 1) * BATCH)])
        yield {str(feature): windows[:, :, feature] for feature in range(FEATURES)}


def named_windows(tf, rows):
    """Return batches of windows. Before batching, a window is a dictionary with one dataset per feature name."""
    columns = {str(feature): rows[:, feature] for feature in range(FEATURES)}
    single = getattr(tf.data.experimental, "get_single_element", None)

    def gather(window):
        return {
            name: single(values.batch(LENGTH)) if single else values.batch(LENGTH).get_single_element()
            for name, values in window.items()
        }

    dataset = tf.data.Dataset.from_tensor_slices(columns).window(LENGTH, shift=1, drop_remainder=True)
    return dataset.map(gather).batch(BATCH)


def stacked_windows(tf, rows):
    """Return batches of windows of one tensor, whose columns get names afterwards."""
    dataset = tf.data.Dataset.from_tensor_slices(rows).window(LENGTH, shift=1, drop_remainder=True)
    dataset = dataset.flat_map(lambda window: window.batch(LENGTH))
    return dataset.map(lambda x: {str(feature): x[:, feature] for feature in range(FEATURES)}).batch(BATCH)


def make_shifted(shift):
    """Return a function that makes batches of windows that start `shift` elements apart."""

    def make(tf, rows):
        dataset = tf.data.Dataset.range(BATCH * BATCHES * shift).window(10, shift=shift, drop_remainder=True)
        return dataset.flat_map(lambda window: window.batch(10)).batch(BATCH)

    return make


def make_records(tf):
    """Return a dataset of serialized examples with three numbers each, and the features for their parser."""
    number = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0]))
    example = tf.train.Example(features=tf.train.Features(feature=dict.fromkeys("abc", number)))
    dataset = tf.data.Dataset.from_tensors(example.SerializeToString()).repeat(BATCH * BATCHES)
    return dataset, {name: tf.io.FixedLenFeature([1], tf.float32) for name in "abc"}


def map_then_batch(tf, rows):
    """Return a dataset of records that are parsed one by one."""
    dataset, features = make_records(tf)
    return dataset.map(lambda record: tf.io.parse_single_example(record, features)).batch(BATCH)


def batch_then_map(tf, rows):
    """Return a dataset of records that are parsed batch by batch."""
    dataset, features = make_records(tf)
    return dataset.batch(BATCH).map(lambda batch: tf.io.parse_example(batch, features))


MAKERS = {
    "named_windows": named_windows,
    "stacked_windows": stacked_windows,
    "shift_100": make_shifted(100),
    "shift_1000": make_shifted(1000),
    "map_then_batch": map_then_batch,
    "batch_then_map": batch_then_map,
}


if __name__ == "__main__":
    main(scenario)
