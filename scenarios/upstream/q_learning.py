# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "A step of Q-learning: three predictions of a row, and one training step"
# source = "https://github.com/tensorflow/tensorflow/issues/35124"
# tags   = ["upstream", "calls"]
#
# [tool.harness.axes]
# call = ["predict", "on_batch", "function"]
# rows = ["one", "batch"]
#
# [tool.harness.default]
# rows = "one"
#
# [[tool.harness.needs]]
# when     = { call = "function" }
# requires = ["tensorflow>=2.0"]
# reason   = "The custom step needs eager mode."
#
# [[tool.harness.claim]]
# issue    = "T#35124"
# reported = "Q-learning with predict and fit of single rows is about 10 times slower than in 1.14"
# worse    = { environment = "tf2.1", call = "predict" }
# better   = { environment = "tf1.14", call = "predict" }
# ratio    = [7, 12]
# hardware = "AMD Ryzen 7 1700, GTX 1050 Ti"
# version  = "2.1.0rc1"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#35124"
# reported = "with predict_on_batch and train_on_batch, an episode takes 5.5 to 6 s instead of about 70 s"
# worse    = { environment = "tf2.1", call = "predict" }
# better   = { environment = "tf2.1", call = "on_batch" }
# ratio    = [11, 13]
# hardware = "Colab"
# version  = "2.1.0rc1"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#46126"
# reported = "a custom training step and direct model calls are almost twice as fast as train_on_batch and predict"
# worse    = { environment = "tf2.4", call = "predict" }
# better   = { environment = "tf2.4", call = "function" }
# when     = { rows = "batch" }
# ratio    = [1.6, 2.5]
# hardware = "Colab, and a Mac"
# program  = "similar"
#
# [[tool.harness.compare]]
# name    = "methods for a batch vs predict and fit"
# along   = "call"
# plus    = "on_batch"
# against = "predict"
# [[tool.harness.compare]]
# name    = "a step of one's own vs predict and fit"
# along   = "call"
# plus    = "function"
# against = "predict"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""An inner step of Q-learning: two predictions for the target, one for the action, and a fit of a two-layer network.

call  predict: predict and fit (for a batch train_on_batch, as in the issue); on_batch: predict_on_batch and
      train_on_batch; function: calls of the model, and one gradient step with a tape, in tf.functions
rows  one: one row per call, which has five numbers; batch: 32 rows per call
"""

from kit import fixed_batch, fixed_weights, main

STATES, ACTIONS, BATCH = 5, 2, 32
DISCOUNT = 0.95
RATE = 0.01


def scenario(bench, *, call="predict", rows="one"):
    """Measure one step, which has four calls."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        model = make_model(keras)
        predict, train = make_calls(tf, model, call, rows)
        states = fixed_batch((1 if rows == "one" else BATCH, STATES), "float32")
        later = states[:, ::-1].copy()

    def step():
        np.argmax(np.asarray(predict(states)))
        target = 1.0 + DISCOUNT * np.max(np.asarray(predict(later)), axis=1)
        targets = np.array(predict(states))
        targets[:, 0] = target
        return train(states, targets)

    with bench.phase("first call"):
        step()
    biases = [float("{:.4g}".format(bias)) for bias in model.get_weights()[-1]]
    bench.measure(step)
    bench.fingerprint(biases_after_a_step=biases)


def make_model(keras):
    """Return two dense layers with constant weights, compiled with plain gradient descent."""
    inputs = keras.layers.Input((STATES,))
    hidden = keras.layers.Dense(10, activation="sigmoid")(inputs)
    model = keras.models.Model(inputs, keras.layers.Dense(ACTIONS)(hidden))
    model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    model.compile(keras.optimizers.SGD(RATE), "mse")
    return model


def make_calls(tf, model, call, rows):
    """Return the functions that predict for a batch and that train on a batch."""
    if call == "on_batch":
        return model.predict_on_batch, model.train_on_batch
    if call == "predict":
        train = model.train_on_batch if rows == "batch" else lambda x, y: model.fit(x, y, epochs=1, verbose=0)
        return lambda x: model.predict(x, verbose=0), train

    @tf.function
    def train(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(y - model(x, training=True)))
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))  # noqa: B905, Python 3.6
        return loss

    function = tf.function(model)

    def tensors(call):
        return lambda *arrays: call(*[tf.constant(array) for array in arrays])

    return tensors(function), tensors(train)


if __name__ == "__main__":
    main(scenario)
