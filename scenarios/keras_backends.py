# /// script
# requires-python = ">=3.9"
# dependencies = ["keras>=3"]
#
# [tool.harness]
# title  = "Keras 3 on its backends"
# source = "https://github.com/keras-team/keras/issues/22561"
# tags   = ["keras", "backends"]
#
# [tool.harness.axes]
# network = ["dense", "convolution", "lstm"]
# call    = ["train_on_batch", "fit", "predict_on_batch", "call"]
#
# [tool.harness.env]
# KERAS_BACKEND = ["tensorflow", "jax", "torch"]
#
# [tool.harness.default]
# KERAS_BACKEND = "tensorflow"      # the others need their packages in the environment
#
# [[tool.harness.compare]]
# name    = "JAX vs TensorFlow"
# along   = "KERAS_BACKEND"
# plus    = "jax"
# against = "tensorflow"
# [[tool.harness.compare]]
# name    = "PyTorch vs TensorFlow"
# along   = "KERAS_BACKEND"
# plus    = "torch"
# against = "tensorflow"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The same network, weights and batch on each backend of Keras 3, as Keras runs them by default.

network  dense: four layers of 256 units; convolution: three layers on images of 32 by 32; lstm: 64 units, 32 time steps
call     train_on_batch, predict_on_batch: one call per step; fit: ten batches in one `fit`, per batch; call: a call of
         the model
"""

from kit import digits, fixed_batch, fixed_weights, main

BATCH, BATCHES = 32, 10
SHAPES = {"dense": (256,), "convolution": (32, 32, 3), "lstm": (32, 16)}


def scenario(bench, *, network="dense", call="train_on_batch"):
    """Measure one step."""
    with bench.phase("import"):
        import keras
    backend = keras.backend.backend()
    if backend == "tensorflow":
        bench.device()
    with bench.phase("build"):
        model = make_model(keras, network)
        model.compile("sgd", "mean_squared_error")
        model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
        x = fixed_batch((BATCH, *SHAPES[network]), "float32")
        y = x.reshape((BATCH, -1))[:, :1]
        many_x, many_y = (values.repeat(BATCHES, axis=0) for values in (x, y))
    outputs = digits(model.predict_on_batch(x))[:8]
    losses = [digits(model.train_on_batch(x, y))[0] for _ in range(2)]
    calls = {
        "train_on_batch": lambda: model.train_on_batch(x, y),
        "fit": lambda: model.fit(many_x, many_y, batch_size=BATCH, shuffle=False, verbose=0) and None,
        "predict_on_batch": lambda: model.predict_on_batch(x),
        "call": lambda: model(x),
    }
    with bench.phase("first call"):
        bench.fetch(calls[call]())
    steps = bench.measure(calls[call], steps=BATCHES if call == "fit" else 1)
    bench.observe("keras", keras.__version__)
    bench.observe("backend", backend)
    trained = {"train_on_batch": 3 + steps, "fit": 2 + BATCHES + steps}.get(call, 2)
    counted = int(keras.ops.convert_to_numpy(model.optimizer.iterations))
    bench.fingerprint(outputs=outputs, losses=losses, steps_called=trained, steps_counted=counted)


def make_model(keras, network):
    """Return the network of that name, not compiled."""
    layers = keras.layers
    inputs = x = layers.Input(SHAPES[network])
    if network == "dense":
        for _ in range(4):
            x = layers.Dense(256, activation="relu")(x)
    elif network == "convolution":
        for filters in (32, 64, 64):
            x = layers.Conv2D(filters, 3, strides=2, padding="same", activation="relu")(x)
        x = layers.GlobalAveragePooling2D()(x)
    else:
        x = layers.LSTM(64)(x)
    return keras.Model(inputs, layers.Dense(1)(x))


if __name__ == "__main__":
    main(scenario)
