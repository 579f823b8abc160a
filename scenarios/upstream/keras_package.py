# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow", "keras<2.4"]
#
# [tool.harness]
# title  = "predict of tf.keras, and of the package keras"
# source = "https://github.com/tensorflow/tensorflow/issues/31975"
# tags   = ["upstream", "calls"]
#
# [tool.harness.axes]
# api = ["tf.keras", "keras"]
#
# [[tool.harness.compare]]
# name    = "tf.keras vs keras"
# along   = "api"
# plus    = "tf.keras"
# against = "keras"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#31975"
# reported = "a call of predict takes 70 ms with tf.keras, and 35 ms with keras"
# worse    = { environment = "tf1.14", api = "tf.keras" }
# better   = { environment = "tf1.14", api = "keras" }
# ratio    = [1.6, 2.5]
# hardware = "GTX 1080 Ti"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#40412"
# reported = "repeated calls of predict are significantly slower with tf.keras than with keras"
# worse    = { environment = "tf2.2", api = "tf.keras" }
# better   = { environment = "tf2.2", api = "keras" }
# ratio    = [1.5, 30]              # the numbers are in a notebook
# hardware = "Colab"
# program  = "similar"
# ///
"""A prediction for one row of 16 numbers with a small dense network.

The package keras 2.2 or 2.3 has its own code, which runs a session or a graph of TensorFlow.
"""

from kit import digits, fixed_batch, fixed_weights, main


def scenario(bench, *, api="tf.keras"):
    """Measure one prediction."""
    with bench.phase("import"):
        import tensorflow as tf

        if api == "keras":
            import keras
        else:
            keras = tf.keras
    bench.device()
    with bench.phase("build"):
        inputs = outputs = keras.layers.Input((16,))
        for units in (64, 64, 1):
            outputs = keras.layers.Dense(units, activation="tanh")(outputs)
        model = keras.models.Model(inputs, outputs)
        model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
        x = fixed_batch((1, 16), "float32")

    def step():
        return model.predict(x, verbose=0)

    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(outputs=[float("{:.4g}".format(value)) for value in digits(step())])


if __name__ == "__main__":
    main(scenario)
