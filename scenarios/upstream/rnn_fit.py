# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A step of fit of a recurrent network"
# source = "https://github.com/tensorflow/tensorflow/issues/46515"
# tags   = ["upstream", "layers"]
#
# [tool.harness.axes]
# layer = ["SimpleRNN", "LSTM", "GRU"]
# mode  = ["eager", "graph"]
#
# [[tool.harness.needs]]
# when     = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't fit if eager execution is disabled."
# advice   = "Use mode=eager."
#
# [[tool.harness.compare]]
# name    = "eager vs graph"
# along   = "mode"
# plus    = "eager"
# against = "graph"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#46515"
# reported = "a basic recurrent network trains about 10 % slower in 2.4 than in 2.3, on the CPU and on the GPU"
# worse    = { environment = "tf2.4" }
# better   = { environment = "tf2.3" }
# ratio    = [1.05, 1.2]
# when     = { layer = "SimpleRNN", mode = "eager" }
# hardware = "Colab, CPU and GPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#33052"
# reported = "eager mode and control flow v2 make the training of a recurrent network significantly slower"
# worse    = { environment = "tf2.0", mode = "eager" }
# better   = { environment = "tf2.0", mode = "graph" }
# ratio    = [1.2, 5]               # no number in the thread; in 2020 a maintainer saw no difference any more
# when     = { layer = "SimpleRNN" }
# hardware = "GTX 980 Ti"
# program  = "similar"
# ///
"""A step of `fit` on 20 batches of 16 sequences: 50 time steps of 20 numbers, 32 units, and one number as label.

layer  the recurrent layer before the dense layer of one unit
mode   eager: TensorFlow 2's default; graph: without eager execution, and without control flow v2
"""

from kit import main

BATCHES, BATCH = 20, 16
TIME_STEPS, WIDTH, UNITS = 50, 20, 32


def scenario(bench, *, layer="SimpleRNN", mode="eager"):
    """Measure one epoch, per batch."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        if mode == "graph":
            tf.compat.v1.disable_eager_execution()
            tf.compat.v1.disable_control_flow_v2()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((TIME_STEPS, WIDTH))
        outputs = keras.layers.Dense(1)(getattr(keras.layers, layer)(UNITS)(inputs))
        model = keras.models.Model(inputs, outputs)
        model.compile(optimizer="sgd", loss="mse")
        x = np.ones((BATCHES * BATCH, TIME_STEPS, WIDTH), "float32")
        y = np.ones((BATCHES * BATCH, 1), "float32")

    def step():
        return model.fit(x, y, batch_size=BATCH, epochs=1, verbose=0).history["loss"]

    with bench.phase("first call"):
        step()
    bench.measure(step, steps=BATCHES)
    bench.placed(model.weights)
    bench.fingerprint(parameters=int(model.count_params()))


if __name__ == "__main__":
    main(scenario)
