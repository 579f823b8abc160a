# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.3"]
#
# [tool.harness]
# title  = "predict of networks with a bidirectional LSTM"
# source = "https://github.com/keras-team/keras/issues/18971"
# tags   = ["upstream", "layers"]
#
# [tool.harness.axes]
# network = ["lstm", "distributed", "direct"]
#
# [[tool.harness.compare]]
# name    = "TimeDistributed vs Dense alone"
# along   = "network"
# plus    = "distributed"
# against = "direct"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "K#18971"
# reported = "inference of a bidirectional LSTM is about 70 % slower in 2.15 than in 2.7, release by release"
# worse    = { environment = "tf2.15" }
# better   = { environment = "tf2.7" }
# when     = { network = "lstm" }
# ratio    = [1.4, 2]
# hardware = "CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "K#21179"
# reported = "TimeDistributed makes inference a lot slower in Keras 3.9 than in Keras 2 (no number reported)"
# worse    = { environment = "tf2.18" }
# better   = { environment = "tf2.15" }
# when     = { network = "distributed" }
# ratio    = [1.3, 20]
# hardware = "not reported"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "K#21179"
# reported = "in Keras 3.9, TimeDistributed is the bottleneck of the network"
# worse    = { environment = "tf2.18", network = "distributed" }
# better   = { environment = "tf2.18", network = "direct" }
# ratio    = [1.5, 20]
# hardware = "not reported"
# program  = "similar"
# ///
"""One prediction of a recurrent network.

network  lstm: a bidirectional LSTM of 64 units and a dense layer, on one row of 50 x 32; distributed: a convolution, a
         bidirectional LSTM of 32 units, a transposed convolution, and TimeDistributed around a dense layer of one unit,
         on one row of 200 x 1; direct: the same network without TimeDistributed
"""

from kit import fixed_batch, main

SHAPES = {"lstm": (1, 50, 32), "distributed": (1, 200, 1), "direct": (1, 200, 1)}


def scenario(bench, *, network="lstm"):
    """Measure one prediction."""
    with bench.phase("import"):
        import tensorflow as tf

        layers = tf.keras.layers
    bench.device()
    with bench.phase("build"):
        model = make_model(tf.keras.models, layers, network)
        x = fixed_batch(SHAPES[network], "float32")

    def step():
        return model.predict(x, verbose=0)

    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(parameters=int(model.count_params()))


def make_model(models, layers, network):
    """Return the network of that name."""
    if network == "lstm":
        inputs = layers.Input(SHAPES[network][1:])
        return models.Model(inputs, layers.Dense(1)(layers.Bidirectional(layers.LSTM(64))(inputs)))
    inputs = layers.Input((None, 1))
    outputs = layers.Activation("relu")(layers.Conv1D(32, 5, strides=2, padding="same")(inputs))
    outputs = layers.Bidirectional(layers.LSTM(32, return_sequences=True))(outputs)
    outputs = layers.Conv1DTranspose(32, 5, strides=2, padding="same")(outputs)
    dense = layers.Dense(1, activation="sigmoid")
    return models.Model(inputs, (layers.TimeDistributed(dense) if network == "distributed" else dense)(outputs))


if __name__ == "__main__":
    main(scenario)
