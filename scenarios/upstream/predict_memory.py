# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Memory growth per call of predict"
# source = "https://github.com/tensorflow/tensorflow/issues/33009"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# call = ["predict", "predict_on_batch", "model"]
#
# [[tool.harness.needs]]
# when     = { call = "model" }
# requires = ["tensorflow>=2.0"]
# reason   = "Without eager execution, each call of the model adds to its graph."
#
# [[tool.harness.compare]]
# name  = "predict vs others"
# along = "call"
# plus  = "predict"
# of    = "memory growth"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#33009"
# reported = "in 2.0 a loop of predict of one row with a tiny model takes over 10 GB in 10 minutes; in 1.14 it does not"
# worse    = { environment = "tf2.0", call = "predict" }
# bytes    = [80000, 700000]        # 17 MB a second, by calls of 5 to 40 ms
# of       = "memory growth"
# hardware = "GeForce 840M, and CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#38598"
# reported = "the memory of a process grows steadily with calls of predict in 2.1.0 and 2.2"
# worse    = { environment = "tf2.2", call = "predict" }
# bytes    = [500, 100000]          # the curve's numbers were not to be read
# of       = "memory growth"
# hardware = "CPU, in Docker"
# program  = "similar"
# fixed    = "2.3"
#
# [[tool.harness.claim]]
# issue    = "T#44711"
# reported = "predict keeps about 0.35 GB after 50,000 inputs, and calls of the model keep nothing"
# worse    = { environment = "tf2.3", call = "predict" }
# bytes    = [3500, 14000]          # 7,000
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#33030"
# reported = "a loop of predict and fit leaks in 2.0 until it crashes, and a later nightly wheel is better"
# worse    = { environment = "tf2.0", call = "predict" }
# bytes    = [50000, 700000]        # no number that could be read
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
# fixed    = "2.1"
#
# [[tool.harness.claim]]
# issue    = "T#58676"
# reported = "predict on arrays takes more and more memory in 2.10 to 2.12, but not in 2.8"
# worse    = { environment = "tf2.11", call = "predict" }
# bytes    = [20000, 1000000]       # no number for a small model
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
# ///
"""The memory growth over 200 calls with one row of 10 numbers. The model has dense layers of 32 units and 2 units.

call  predict: the method of Keras; predict_on_batch: the workaround in the issues; model: a call of the model
"""

from kit import main

CALLS = 200


def scenario(bench, *, call="predict"):
    """Record the memory of the process over the calls."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((10,))
        outputs = keras.layers.Dense(2)(keras.layers.Dense(32)(inputs))
        model = keras.models.Model(inputs, outputs)
        model.compile(optimizer="adam", loss="mse")
        row = np.ones((1, 10), "float32")
    steps = {
        "predict": lambda: model.predict(row, verbose=0),
        "predict_on_batch": lambda: model.predict_on_batch(row),
        "model": lambda: model(row),
    }
    with bench.phase("first call"):
        result = steps[call]()
    bench.memory(steps[call], CALLS)
    bench.fingerprint(shape=[int(size) for size in result.shape], parameters=int(model.count_params()))


if __name__ == "__main__":
    main(scenario)
