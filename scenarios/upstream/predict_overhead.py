# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A prediction of one small batch, by method"
# source = "https://github.com/tensorflow/tensorflow/issues/40261"
# tags   = ["upstream", "calls"]
#
# [tool.harness.axes]
# call     = ["predict", "predict_on_batch", "model(x)", "function"]
# network  = ["identity", "dense"]
# compiled = ["no", "yes"]
#
# [tool.harness.default]
# network  = "identity"
# compiled = "no"
#
# [[tool.harness.needs]]
# when     = { call = "model(x)" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, such a call creates a symbolic tensor and computes nothing."
# [[tool.harness.needs]]
# when     = { call = "function" }
# requires = ["tensorflow>=2.0"]
# reason   = "In TensorFlow 1, such a call creates a symbolic tensor and computes nothing."
#
# [[tool.harness.needs]]
# when     = { network = "identity" }
# requires = ["tensorflow>=2.0"]
# reason   = "TensorFlow 1 can't feed and fetch the same tensor."
# advice   = "Use network=dense."
#
# [[tool.harness.claim]]
# issue    = "T#40261"
# reported = "100 predictions of one row by the identity: 3.5 s with predict, 0.013 s by calling the model"
# worse    = { environment = "tf2.2", call = "predict" }
# better   = { environment = "tf2.2", call = "model(x)" }
# ratio    = [200, 300]
# hardware = "not reported; a maintainer's machine"
# version  = "a nightly wheel of June 2020"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#40261"
# reported = "100 calls of predict take 0.13 s in 2.0 and about 3 s in 2.2"
# worse    = { environment = "tf2.2", call = "predict" }
# better   = { environment = "tf2.0", call = "predict" }
# ratio    = [18, 29]
# hardware = "Intel i7 5930, CPU"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#33340"
# reported = "after compile, predict takes about 10 times as long as before"
# worse    = { environment = "tf2.0", compiled = "yes" }
# better   = { environment = "tf2.0", compiled = "no" }
# ratio    = [8, 12.5]
# when     = { call = "predict", network = "dense" }
# hardware = "GTX 1060, Windows"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "predict vs a call"
# along   = "call"
# plus    = "predict"
# against = "model(x)"
# [[tool.harness.compare]]
# name    = "compiled vs not"
# along   = "compiled"
# plus    = "yes"
# against = "no"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The overhead of a prediction.

The model is the identity with one row, or a small dense network with 32 rows.

call      predict, predict_on_batch: Keras's methods; model(x): a call of the model with a tensor; function: the same
          call in a tf.function
compiled  yes: the model is compiled first, after which predict uses another loop (only in 2.0)
"""

from kit import digits, fixed_batch, fixed_weights, main

SHAPES = {"identity": (1, 1, 1), "dense": (32, 16)}


def scenario(bench, *, call="predict", network="identity", compiled="no"):
    """Measure one prediction."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        model = make_model(keras, network)
        if compiled == "yes":
            model.compile("sgd", "mse")
        step = make_step(tf, model, call, fixed_batch(SHAPES[network], "float32"))
    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step, document=100)
    bench.fingerprint(outputs=digits(step()))


def make_model(keras, network):
    """Return the identity, or three dense layers with constant weights."""
    inputs = outputs = keras.layers.Input(SHAPES[network][1:])
    if network == "dense":
        for units in (64, 64, 1):
            outputs = keras.layers.Dense(units)(outputs)
    model = keras.models.Model(inputs, outputs)
    model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    return model


def make_step(tf, model, call, x):
    """Return a function that makes one prediction."""
    if call == "predict":
        return lambda: model.predict(x, verbose=0)
    if call == "predict_on_batch":
        return lambda: model.predict_on_batch(x)
    function = tf.function(model) if call == "function" else model
    tensor = tf.constant(x)
    return lambda: function(tensor)


if __name__ == "__main__":
    main(scenario)
