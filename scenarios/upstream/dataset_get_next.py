# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A large batch of a shuffled, cached and repeated dataset"
# source = "https://github.com/tensorflow/tensorflow/issues/60822"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# order = ["shuffle", "plain"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#60822"
# reported = "get_next of a shuffled, cached, repeated and batched dataset is significantly slower in 2.7 and later"
# worse    = { environment = "tf2.7", order = "shuffle" }
# better   = { environment = "tf2.6", order = "shuffle" }
# ratio    = [1.3, 10]              # no number in the thread
# hardware = "CentOS 7"
# program  = "similar"
# ///
"""One batch of 8,192 rows from a dataset of 21,000 rows of 373 floats and a label.

order  shuffle: the dataset is shuffled before it is cached, as in the issue; plain: it isn't shuffled
"""

from kit import main

ROWS, COLUMNS, BATCH = 21000, 373, 8192


def scenario(bench, *, order="shuffle"):
    """Measure one batch, after the cache has been filled."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        dataset = tf.data.Dataset.from_tensor_slices((tf.ones((ROWS, COLUMNS)), tf.ones((ROWS, 1))))
        if order == "shuffle":
            dataset = dataset.shuffle(ROWS)
        dataset = dataset.cache().repeat().batch(BATCH, drop_remainder=True)
        batches = iter(dataset.prefetch(tf.data.experimental.AUTOTUNE))
    with bench.phase("first call"):
        for _ in range(1 + ROWS // BATCH):
            rows, labels = next(batches)
    bench.measure(lambda: next(batches))
    bench.fingerprint(rows=float(tf.reduce_sum(rows)), labels=float(tf.reduce_sum(labels)))


if __name__ == "__main__":
    main(scenario)
