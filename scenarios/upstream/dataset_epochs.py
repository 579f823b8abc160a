# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "An epoch of a dataset: the first and the second, with a cache, and shuffled"
# source = "https://github.com/tensorflow/tensorflow/issues/47067"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# pipeline = ["file", "shuffled", "plain"]
# epoch    = ["first", "second"]
#
# [[tool.harness.compare]]
# name    = "second vs first"
# along   = "epoch"
# plus    = "second"
# against = "first"
# [[tool.harness.compare]]
# name    = "shuffled vs plain"
# along   = "pipeline"
# plus    = "shuffled"
# against = "plain"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#44050"
# reported = "with a cache on disk, the first epoch takes 2,287 s, and the second 3,974 s"
# worse    = { environment = "tf2.2", epoch = "second" }
# better   = { environment = "tf2.2", epoch = "first" }
# when     = { pipeline = "file" }
# ratio    = [1.4, 2.1]
# hardware = "Cloud AI platform with a P100"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#47067"
# reported = "the first epoch of a shuffled dataset takes 335 s in 2.4, and 249 s in 2.3"
# worse    = { environment = "tf2.4" }
# better   = { environment = "tf2.3" }
# when     = { pipeline = "shuffled", epoch = "first" }
# ratio    = [1.2, 1.5]
# hardware = "not reported; Ubuntu 20.04"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#47067"
# reported = "the first epoch of a shuffled dataset takes 276 s in a nightly wheel before 2.5, and 249 s in 2.3"
# worse    = { environment = "tf2.5" }
# better   = { environment = "tf2.3" }
# when     = { pipeline = "shuffled", epoch = "first" }
# ratio    = [1.05, 1.2]
# hardware = "not reported; Ubuntu 20.04"
# version  = "a nightly wheel before 2.5"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#17958"
# reported = "shuffling slows down iterations (a maintainer saw 8 ms per batch of 5,000, and 4 ms without)"
# worse    = { environment = "tf1.14", pipeline = "shuffled" }
# better   = { environment = "tf1.14", pipeline = "plain" }
# when     = { epoch = "first" }
# ratio    = [1.5, 2.5]
# hardware = "GTX 1060"
# version  = "1.4"
# program  = "similar"
# ///
"""One pass over a dataset in batches of 64, per element.

pipeline  file: 2,000 elements of 10,000 numbers are computed and cached in a file; shuffled: 20,000 elements of 500
          numbers, cached in memory and shuffled with a buffer of 8,192; plain: the same elements, not shuffled
epoch     first: all elements are computed; second: they come from the cache
"""

import os
import tempfile

from kit import eager_tensorflow, main

SIZES = {"file": (2000, 10000), "shuffled": (20000, 500), "plain": (20000, 500)}
BATCH, BUFFER = 64, 8192


def scenario(bench, *, pipeline="file", epoch="first"):
    """Time one epoch."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    elements, numbers = SIZES[pipeline]
    with tempfile.TemporaryDirectory() as folder:
        with bench.phase("build"):
            dataset = tf.data.Dataset.range(elements).map(lambda i: tf.fill([numbers], tf.cast(i, tf.float32)))
            dataset = dataset.cache(os.path.join(folder, "cache") if pipeline == "file" else "")
            if pipeline == "shuffled":
                dataset = dataset.shuffle(BUFFER)
            dataset = dataset.batch(BATCH).prefetch(1)

        def run():
            batches = 0
            for batch in dataset:  # noqa: B007, it only has to arrive
                batches += 1
            return batches

        if epoch == "second":
            with bench.phase("first epoch"):
                run()
        batches = bench.once(run)
    bench.fingerprint(batches=batches)


if __name__ == "__main__":
    main(scenario)
