# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A step of fit for small networks, by release"
# source = "https://github.com/tensorflow/tensorflow/issues/33911"
# tags   = ["upstream", "training", "not reproduced"]
#
# [tool.harness.axes]
# network = ["regression", "recurrent", "classifier"]
# inputs  = ["arrays", "dataset"]
#
# [tool.harness.default]
# inputs = "arrays"
#
# [[tool.harness.exclude]]
# network = "regression"
# inputs  = "dataset"
# [[tool.harness.exclude]]
# network = "classifier"
# inputs  = "dataset"
#
# [[tool.harness.claim]]
# issue    = "T#33911"
# reported = "2.0 is about 3 times slower than 1.14 (the reporter could not reproduce it later)"
# worse    = { environment = "tf2.0" }
# better   = { environment = "tf1.14" }
# when     = { network = "regression" }
# ratio    = [2.4, 3.8]
# hardware = "CPU"
# program  = "same"
# [[tool.harness.claim]]
# issue    = "T#27472"
# reported = "fit on a dataset is 10 times slower than on arrays, 22 ms per step (a maintainer could not reproduce it)"
# worse    = { environment = "tf2.0", inputs = "dataset" }
# better   = { environment = "tf2.0", inputs = "arrays" }
# when     = { network = "recurrent" }
# ratio    = [8, 12.5]
# hardware = "not reported"
# version  = "2.0.0-alpha0"
# program  = "same"
# [[tool.harness.claim]]
# issue    = "T#29151"
# reported = "1.12 takes almost twice as long as 1.5 (a triager saw the opposite)"
# worse    = { environment = "tf1.15" }
# better   = { environment = "tf1.14" }
# when     = { network = "classifier" }
# ratio    = [1.6, 2.2]
# hardware = "Tesla T4"
# version  = "1.12 and 1.5"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "a dataset vs arrays"
# along   = "inputs"
# plus    = "dataset"
# against = "arrays"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""A training step from issues whose claims the reporter or a maintainer couldn't reproduce. A call has 50 steps.

network  regression: 8 numbers, three layers of 40 units, 9 outputs; recurrent: 100 units of a simple recurrent layer
         over ten time steps, batches of 10; classifier: images of 28 × 28, one layer of 128 units. T#29151 is about
         1.12 and 1.5. harness has no images of these releases, so 1.15 and 1.14 replace them
"""

from kit import fixed_batch, fixed_outputs, main

BATCHES = 50
SHAPES = {"regression": (32, 8), "recurrent": (10, 10, 1), "classifier": (50, 784)}
OUTPUTS = {"regression": 9, "recurrent": 1, "classifier": 10}


def scenario(bench, *, network="regression", inputs="arrays"):
    """Measure one step."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    shape = SHAPES[network]
    with bench.phase("build"):
        model = make_model(keras, network)
        model.compile("sgd", "mse")
        x = np.concatenate([fixed_batch(shape, "float32")] * BATCHES)
        y = np.zeros((len(x), OUTPUTS[network]), "float32")
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(shape[0]).prefetch(1)

    def epoch():
        if inputs == "dataset":
            model.fit(dataset, epochs=1, verbose=0)
        else:
            model.fit(x, y, batch_size=shape[0], epochs=1, verbose=0)

    with bench.phase("first call"):
        bench.fetch(epoch())
    bench.measure(epoch, steps=BATCHES)
    bench.placed(model.weights)
    bench.fingerprint(parameters=int(model.count_params()), outputs=fixed_outputs(model, shape, "float32"))


def make_model(keras, network):
    """Return the network of that name."""
    layers = keras.layers
    inputs = x = layers.Input(SHAPES[network][1:])
    if network == "recurrent":
        x = layers.SimpleRNN(100)(x)
    for units in {"regression": [40] * 3, "recurrent": [100], "classifier": [128]}[network]:
        x = layers.Dense(units, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(OUTPUTS[network])(x))


if __name__ == "__main__":
    main(scenario)
