# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A training step on batches from a Python generator"
# source = "https://github.com/tensorflow/tensorflow/issues/33024"
# tags   = ["upstream", "training"]
#
# [tool.harness.axes]
# call = ["fit_generator", "fit", "fit_arrays"]
#
# [[tool.harness.needs]]
# when     = { call = "fit_generator" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) removed fit_generator."
# advice   = "Use call=fit."
# [[tool.harness.needs]]
# when     = { call = "fit" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, fit doesn't accept a generator."
# advice   = "Use call=fit_generator."
#
# [[tool.harness.claim]]
# issue    = "T#33024"
# reported = "an epoch of fit_generator takes 83 s in 2.0, and took 12 s in 1.14"
# worse    = { environment = "tf2.0", call = "fit_generator" }
# better   = { environment = "tf1.14", call = "fit_generator" }
# ratio    = [5.5, 8.7]
# fixed    = "2.1"
# hardware = "RTX 2070, Core i9 9900K"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#13549"
# reported = "fit_generator is slow without waiting for input, and fit is fast (no number reported)"
# worse    = { environment = "tf2.0", call = "fit_generator" }
# better   = { environment = "tf2.0", call = "fit_arrays" }
# ratio    = [1.5, 10]
# hardware = "Core 2 Quad Q9300, CPU"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "a generator vs arrays"
# along   = "call"
# plus    = "fit_generator"
# against = "fit_arrays"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A training step of a small dense classifier for images of 28 × 28. A call trains on 30 batches of 32 images.

call  fit_generator, fit: a generator yields the same batch repeatedly; fit_arrays: `fit` on the batches as arrays
"""

from kit import fixed_batch, fixed_outputs, main

BATCHES, BATCH, PIXELS, CLASSES = 30, 32, 784, 10


def scenario(bench, *, call="fit_generator"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        inputs = keras.layers.Input((PIXELS,))
        hidden = keras.layers.Dense(128, activation="relu")(inputs)
        model = keras.models.Model(inputs, keras.layers.Dense(CLASSES, activation="softmax")(hidden))
        model.compile("sgd", "sparse_categorical_crossentropy")
        x = fixed_batch((BATCH, PIXELS), "float32")
        y = np.array([row % CLASSES for row in range(BATCH)], "float32")[:, None]
        generator = yield_forever(x, y)
        all_x, all_y = np.concatenate([x] * BATCHES), np.concatenate([y] * BATCHES)

    def epoch():
        if call == "fit_arrays":
            model.fit(all_x, all_y, batch_size=BATCH, epochs=1, verbose=0)
        elif call == "fit":
            model.fit(generator, steps_per_epoch=BATCHES, epochs=1, verbose=0)
        else:
            model.fit_generator(generator, steps_per_epoch=BATCHES, epochs=1, verbose=0)

    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.placed(model.weights)
    outputs = fixed_outputs(model, (BATCH, PIXELS), "float32")
    bench.fingerprint(parameters=int(model.count_params()), outputs=outputs)


def yield_forever(x, y):
    """Yield the same batch forever."""
    while True:
        yield x, y


if __name__ == "__main__":
    main(scenario)
