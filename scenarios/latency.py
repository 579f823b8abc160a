# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Latency of one prediction"
# tags   = ["latency", "calls"]
#
# [tool.harness.axes]
# call = ["predict", "model(x)", "function", "tflite"]
#
# [[tool.harness.needs]]
# requires = ["tensorflow>=2.3"]
# reason   = "Earlier releases have no `from_concrete_functions` that converts this function, or no eager call."
#
# [[tool.harness.compare]]
# name    = "p50: predict vs a call"
# along   = "call"
# plus    = "predict"
# against = "model(x)"
# of      = "p50"
# [[tool.harness.compare]]
# name    = "p50: TFLite vs a call"
# along   = "call"
# plus    = "tflite"
# against = "model(x)"
# of      = "p50"
# [[tool.harness.compare]]
# name    = "p95: predict vs a call"
# along   = "call"
# plus    = "predict"
# against = "model(x)"
# of      = "p95"
# [[tool.harness.compare]]
# name    = "p95: TFLite vs a call"
# along   = "call"
# plus    = "tflite"
# against = "model(x)"
# of      = "p95"
# [[tool.harness.compare]]
# name    = "p99: predict vs a call"
# along   = "call"
# plus    = "predict"
# against = "model(x)"
# of      = "p99"
# [[tool.harness.compare]]
# name    = "p99: TFLite vs a call"
# along   = "call"
# plus    = "tflite"
# against = "model(x)"
# of      = "p99"
# [[tool.harness.compare]]
# name  = "p50 of releases"
# along = "environment"
# of    = "p50"
# [[tool.harness.compare]]
# name  = "p95 of releases"
# along = "environment"
# of    = "p95"
# [[tool.harness.compare]]
# name  = "p99 of releases"
# along = "environment"
# of    = "p99"
# ///
"""The time until one prediction is available, by method: percentiles over single predictions.

A dense network with two hidden layers predicts one row, as a server does for one request.

call    predict: the method of Keras; model(x): a call of the model with a tensor; function: the same call in a
        tf.function; tflite: the same function, converted for the TFLite interpreter
"""

from kit import digits, eager_tensorflow, fixed_batch, fixed_weights, main

FEATURES, UNITS = 32, 64


def scenario(bench, *, call="predict"):
    """Measure one prediction."""
    with bench.phase("import"):
        tf = eager_tensorflow()
        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        model = make_model(keras)
        step = make_step(tf, model, call, fixed_batch((1, FEATURES), "float32"))
    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(outputs=digits(step()))


def make_model(keras):
    """Return a dense network with constant weights."""
    inputs = outputs = keras.layers.Input((FEATURES,))
    for units in (UNITS, UNITS):
        outputs = keras.layers.Dense(units, activation="relu")(outputs)
    model = keras.models.Model(inputs, keras.layers.Dense(1)(outputs))
    model.set_weights(fixed_weights([weight.shape for weight in model.get_weights()]))
    return model


def make_step(tf, model, call, x):
    """Return the function that makes one prediction."""
    if call == "predict":
        return lambda: model.predict(x, verbose=0)
    tensor = tf.constant(x)
    if call == "model(x)":
        return lambda: model(tensor)
    function = tf.function(model, input_signature=[tf.TensorSpec(x.shape, tf.float32)])
    return make_interpreter(tf, function, x) if call == "tflite" else lambda: function(tensor)


def make_interpreter(tf, function, x):
    """Return a function that sets the input of a TFLite interpreter, invokes it, and returns the output."""
    converted = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()]).convert()
    interpreter = tf.lite.Interpreter(model_content=converted)
    interpreter.allocate_tensors()
    (first,), (last,) = interpreter.get_input_details(), interpreter.get_output_details()

    def predict():
        interpreter.set_tensor(first["index"], x)
        interpreter.invoke()
        return interpreter.get_tensor(last["index"])

    return predict


if __name__ == "__main__":
    main(scenario)
