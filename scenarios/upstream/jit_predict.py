# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A prediction compiled by XLA: predict, and a tf.function of the model"
# source = "https://github.com/keras-team/keras/issues/18062"
# tags   = ["upstream", "calls"]
#
# [tool.harness.axes]
# call = ["predict", "function"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.9"]
# reason   = "compile accepts jit_compile only from about 2.9 on."
#
# [[tool.harness.claim]]
# issue    = "K#18062"
# reported = "10 predictions take 0.74 s with predict, compiled with jit_compile, and 0.050 s with a compiled function"
# worse    = { environment = "tf2.12", call = "predict" }
# better   = { environment = "tf2.12", call = "function" }
# ratio    = [11.8, 18.4]
# hardware = "not reported"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "TK#212"
# reported = "the same issue in the tf-keras repository"
# worse    = { environment = "tf2.12", call = "predict" }
# better   = { environment = "tf2.12", call = "function" }
# ratio    = [11.8, 18.4]
# hardware = "not reported"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "predict vs a function"
# along   = "call"
# plus    = "predict"
# against = "function"
# [[tool.harness.compare]]
# name  = "releases"
# along = "environment"
# ///
"""A prediction for ten images of 32 × 32 with three convolutions, compiled by XLA.

The issue uses a MobileNetV3Large on images of 224 × 224. Compared with the issue on a CPU, computation takes a smaller
share of the time. Compared with the issue on a GPU, it takes about the same share.
"""

from kit import fixed_batch, fixed_weights, main

SHAPE = (10, 32, 32, 3)


def scenario(bench, *, call="predict"):
    """Measure one prediction."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = x = keras.layers.Input(SHAPE[1:])
        for filters in (8, 16, 16):
            x = keras.layers.Conv2D(filters, 3, strides=2, activation="relu")(x)
        model = keras.models.Model(inputs, keras.layers.Dense(10)(keras.layers.Flatten()(x)))
        model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
        images = tf.constant(fixed_batch(SHAPE, "float32"))
        if call == "predict":
            model.compile(jit_compile=True)
        function = tf.function(lambda x: model(x, training=False), jit_compile=True)

    def predict():
        return model.predict(images, verbose=0) if call == "predict" else function(images)

    with bench.phase("first call"):
        outputs = np.ravel(bench.fetch(predict()))[:10]
    bench.measure(predict, document=10)
    bench.fingerprint(outputs=[float("{:.4g}".format(output)) for output in outputs])


if __name__ == "__main__":
    main(scenario)
