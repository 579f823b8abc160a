# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "One Keras training step"
# source = "https://stackoverflow.com/a/58653636"
# tags   = ["seed", "keras", "training"]
#
# [tool.harness.axes]
# model  = ["small", "medium", "large"]
# data   = ["small", "medium", "large"]
# call   = ["train_on_batch", "fit", "fit_epoch"]
# api    = ["keras", "tf.keras"]
# inputs = ["numpy", "dataset"]
# dtype  = ["float32", "float64"]
# mode   = ["graph", "eager", "op_by_op"]
# [tool.harness.default]            # other values are measured only if they are selected
# dtype = "float32"                 # the source uses float64, so its times include the cast
#
# [[tool.harness.exclude]]          # the sequence is shorter than the first filter
# model = "large"
# data  = "small"
#
# [[tool.harness.needs]]
# when     = { api = "keras" }
# requires = ["keras<2.4"]
# reason   = "In 2.4 and later, the package keras is tf.keras itself, or needs it for training."
# advice   = "Use api=tf.keras."
# [[tool.harness.needs]]
# when     = { api = "keras", mode = "eager" }
# requires = ["tensorflow>=2.0"]
# reason   = "The package keras creates placeholders, which TensorFlow 1 doesn't support in eager mode."
# [[tool.harness.needs]]
# when     = { api = "keras", mode = "op_by_op" }
# requires = ["keras>=2.4"]
# reason   = "Before 2.4, the package keras doesn't support run_eagerly."
# advice   = "Use api=tf.keras."
# [[tool.harness.needs]]
# when     = { api = "keras", inputs = "dataset", call = "fit" }
# requires = ["keras>=2.4"]
# reason   = "Before 2.4, the package keras can't fit datasets."
# advice   = "Use api=tf.keras."
# [[tool.harness.needs]]
# when     = { api = "keras", inputs = "dataset", call = "fit_epoch" }
# requires = ["keras>=2.4"]
# reason   = "Before 2.4, the package keras can't fit datasets."
# advice   = "Use api=tf.keras."
# [[tool.harness.needs]]
# when     = { mode = "graph" }
# requires = ["tensorflow<2.16"]
# reason   = "Keras 3 (TensorFlow 2.16 and later) can't train if eager execution is disabled."
# advice   = "Use mode=eager."
#
# [[tool.harness.compare]]
# name    = "each release in its default mode"
# along   = "environment"           # by its default mode
# pick    = [{ requires = ["tensorflow<2.0"], mode = "graph" }, { requires = ["tensorflow>=2.0"], mode = "eager" }]
# [[tool.harness.compare]]
# name    = "release vs release"
# along   = "environment"
# [[tool.harness.compare]]
# name    = "graph vs eager"
# along   = "mode"
# plus    = "graph"
# against = "eager"
# [tool.harness.profile]            # the functions that a profile counts as data handling, as MODULE.FUNCTION
# data = [
#   "*.convert_to_tensor*", "*.internal_convert_to_tensor", "constant_op.*", "*standardize*", "*.cast_*",
#   "*data_adapter*.*", "*_adapter.*", "dataset_ops.*", "iterator_ops.*", "epoch_iterator.*",
# ]
# ///
"""One Keras training step: "Why is TensorFlow 2 much slower than TensorFlow 1?", answered for any release.

Models, data, optimizer, seeds and iteration counts come from https://stackoverflow.com/a/58653636. The axes:

call    train_on_batch: one call per step; fit: one `fit` of one batch per step, as in the source, so that the time
        includes the setup; fit_epoch: many batches in one `fit`, per batch
api     keras: the separate package; tf.keras: the Keras in TensorFlow
mode    graph, eager: the release's code for that mode, which may be a compiled function; op_by_op: eager and never
        compiled. Keras 3 has no graph mode: it raises an error, or trains nothing
inputs  numpy: arrays; dataset: one batch, repeated forever; `train_on_batch` gets the tensors of the next batch
dtype   float32; float64: the types of NumPy's randn and randint, so float64 batches and int64 targets
"""

import random
import sys

from kit import NotAvailable, fixed_outputs, main, training_loops, version

BATCH = 32
CHANNELS = 30
SEQUENCE_LENGTH = {"small": 140, "medium": 1400, "large": 14000}  # by data
DOCUMENT_ITERATIONS = {"small": 200, "medium": 100, "large": 50}  # by model
# Filters, width, stride and padding of each model's convolutions.
CONVOLUTIONS = {
    "small": [(128, 40, 4, "same")],
    "medium": [(filters, 20, 1, "valid") for filters in (64, 128, 256, 256, 128, 64)],
    "large": [
        (64, 400, 4, "valid"),
        (128, 200, 1, "valid"),
        *[(256, 12, 1, "same")] * 40,
        (512, 20, 2, "valid"),
        (1028, 10, 2, "valid"),
        (256, 1, 1, "valid"),
    ],
}

# Batches in one `fit` of fit_epoch, by the larger of model and data. In graph mode, the setup of a `fit` on a dataset
# takes as long as 15 small steps, so there are several batches. But a slow machine must take three samples in a second.
EPOCH_BATCHES = {"small": 20, "medium": 10, "large": 4}
# The largest number of batches in one array, by data: 0.5 GB of float32, which TensorFlow copies again.
ARRAY_BATCHES = {"small": 200, "medium": 50, "large": 10}
# The source leaves out the first iterations, in which a GPU's clocks and choices of algorithms settle.
GPU_FIRST_CALLS = 10


def scenario(
    bench,
    *,
    model="small",
    data="small",
    call="train_on_batch",
    api="tf.keras",
    inputs="numpy",
    dtype="float32",
    mode="eager",
):
    """Measure one cell: choose the mode, initialize the device, build the model, train, and prove the training."""
    with bench.phase("import"):
        import tensorflow as tf

        choose_mode(tf, mode)  # first, because Keras also reads the mode when it is imported
        keras = import_keras(tf, api)
    refuse_symbols(tf, keras, mode)
    bench.device()

    shape = (BATCH, SEQUENCE_LENGTH[data], CHANNELS)
    batches = count_batches(bench, model, data, call, inputs)
    with bench.phase("build"):
        keras.backend.clear_session()
        set_seeds(tf)
        network = make_model(keras, model, shape)
        compile_model(tf, keras, network, mode)
        batch = make_batch(SEQUENCE_LENGTH[data], dtype)
        step = STEPS[inputs](tf, network, batch, call, batches)
    # The first call is always the call in the source, which builds the training function and the optimizer's slots.
    first = step if call == "train_on_batch" else lambda: network.train_on_batch(*batch)
    with bench.phase("first call"):
        first()
    settling = GPU_FIRST_CALLS if bench.device_name == "gpu" else 0
    for _ in range(settling):
        first()

    steps = bench.measure(step, steps=batches, document=DOCUMENT_ITERATIONS[model])
    report(bench, tf, keras, network, steps=1 + settling + steps, predict=lambda: fixed_outputs(network, shape, dtype))
    if bench.thorough:
        observe_loops(bench, tf, keras, call=call, inputs=inputs, dtype=dtype, mode=mode)


def choose_mode(tf, mode):
    """Switch to graph or eager mode if the release starts in the other mode."""
    if mode == "graph":
        if tf.executing_eagerly():
            tf.compat.v1.disable_eager_execution()
    elif not tf.executing_eagerly():
        tf.compat.v1.enable_eager_execution()


def import_keras(tf, api):
    """Import and return the Keras that `api` names. Later releases load tf.keras at its first use."""
    if api == "keras":
        import keras
    else:
        keras = tf.keras
    keras.layers  # noqa: B018
    return keras


def refuse_symbols(tf, keras, mode):
    """Raise NotAvailable if this Keras can't train in graph mode and raises an error.

    From 3.14 on, Keras raises no error: train_on_batch returns a symbolic loss, and the fingerprint shows that nothing
    was trained.
    """
    release = api_version(tf, keras)
    if mode == "graph" and (3, 0) <= version(release) < (3, 14):
        raise NotAvailable(
            "Keras {} cannot train a batch when eager execution is disabled: the step returns a symbolic tensor, which "
            "Keras can't convert to a number.".format(release)
        )


def set_seeds(tf):
    """Set the source's seeds, in its order."""
    import numpy as np

    np.random.seed(1)
    random.seed(2)
    tf.compat.v1.set_random_seed(3)


def make_batch(length, dtype):
    """Return one batch of normal noise, (32, length, 30), and targets of 0 and 1, (32, 1)."""
    import numpy as np

    x, y = np.random.randn(BATCH, length, CHANNELS), np.random.randint(0, 2, (BATCH, 1))
    return (x, y) if dtype == "float64" else (x.astype("float32"), y.astype("float32"))


def make_model(keras, name, batch_shape):
    """Return the source's model of that name, not compiled."""
    layers = keras.layers
    inputs = x = layers.Input(batch_shape=batch_shape)
    for filters, width, stride, padding in CONVOLUTIONS[name]:
        x = layers.Conv1D(filters, width, strides=stride, padding=padding)(x)
    x = layers.GlobalAveragePooling1D()(x)
    if name == "small":
        x = layers.Dropout(0.5)(x)
    else:
        x = layers.Dense(256, activation="relu")(x)
        x = layers.Dropout(0.5)(x)
        x = layers.Dense(128, activation="relu")(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.models.Model(inputs, layers.Dense(1, activation="sigmoid")(x))


def compile_model(tf, keras, network, mode):
    """Compile with Adam at 1e-4 and binary cross-entropy."""
    options = {"run_eagerly": True} if mode == "op_by_op" else {}
    network.compile(optimizer=make_adam(tf, keras, mode), loss="binary_crossentropy", **options)


def make_adam(tf, keras, mode):
    """Return Adam with a rate of 1e-4, as an object, because the name "adam" would mean a rate of 1e-3."""
    # Keras 2.2 has only `lr`, and Keras 3 has only `learning_rate`.
    rate = "lr" if version(api_version(tf, keras)) < (2, 3) else "learning_rate"
    # From 2.11 on, the default optimizers have no graph mode. Until Keras 3, the older optimizers are also available.
    legacy = mode == "graph" and (2, 11) <= version(tf.__version__) < (2, 16)
    optimizers = keras.optimizers.legacy if legacy else keras.optimizers
    return optimizers.Adam(**{rate: 1e-4})


def api_version(tf, keras):
    """Return the version of `keras`, or the version of TensorFlow if `keras` has none, as in 2.15."""
    return getattr(keras, "__version__", tf.__version__)


def count_batches(bench, model, data, call, inputs):
    """Return the number of steps per call. For fit_epoch, use the source's number if requested and memory allows it."""
    if call != "fit_epoch":
        return 1
    if not bench.document:
        return min(EPOCH_BATCHES[model], EPOCH_BATCHES[data])
    if inputs == "dataset":
        return DOCUMENT_ITERATIONS[model]
    return min(DOCUMENT_ITERATIONS[model], ARRAY_BATCHES[data])


def make_numpy_step(tf, network, batch, call, batches):
    """Return the timed function, with arrays as inputs. One call takes `batches` steps."""
    import numpy as np

    x, y = (np.concatenate([array] * batches) for array in batch)
    if call == "train_on_batch":
        return lambda: network.train_on_batch(x, y)
    return lambda: network.fit(x, y, batch_size=BATCH, epochs=1, verbose=0)


def make_dataset_step(tf, network, batch, call, batches):
    """Return the timed function, with a dataset that repeats one batch forever.

    It never ends, because releases handle the end of a dataset differently.
    """
    dataset = tf.data.Dataset.from_tensors(batch).repeat()
    if call != "train_on_batch":
        return lambda: network.fit(dataset, steps_per_epoch=batches, epochs=1, verbose=0)
    if tf.executing_eagerly():
        iterator = iter(dataset)
        return lambda: network.train_on_batch(*next(iterator))
    tensors = tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()
    return lambda: network.train_on_batch(*tensors)


STEPS = {"numpy": make_numpy_step, "dataset": make_dataset_step}


def report(bench, tf, keras, network, *, steps, predict):
    """Report the work and its proof: the model's predictions, and the number of steps according to both counters."""
    bench.observe("tensorflow", tf.__version__)
    bench.observe("keras", keras_version(tf, network))
    bench.observe("optimizer", type(network.optimizer).__name__)
    parameters = int(network.count_params())
    bench.observe("parameters", parameters)
    bench.placed(network.weights)
    # No single way to read the counter works in all releases: the function of Keras 2.3.1 fails on TF 2 in graph mode,
    # and Keras 3 has none. A new session could read it, but in the graph mode of Keras 3, the session might train.
    counter = network.optimizer.iterations
    counted = read_first(
        bench,
        "optimizer's counter",
        lambda: int(keras.backend.get_value(counter)),
        lambda: int(tf.keras.backend.get_value(counter)),
        lambda: int(counter.numpy()),
    )
    outputs = read_first(bench, "outputs", predict)  # last, since it sets the weights
    bench.fingerprint(parameters=parameters, outputs=outputs, steps_called=steps, steps_counted=counted)


def observe_loops(bench, tf, keras, *, call, inputs, dtype, mode):
    """Observe which of Keras's loops the first and later calls use. A small model shows it for every model."""

    def make():
        keras.backend.clear_session()
        network = make_model(keras, "small", (BATCH, SEQUENCE_LENGTH["small"], CHANNELS))
        compile_model(tf, keras, network, mode)
        return network, STEPS[inputs](tf, network, make_batch(SEQUENCE_LENGTH["small"], dtype), call, 1)

    loops = read_first(bench, "loop", lambda: training_loops(make))
    if loops:
        bench.observe("loop (first call)", loops[0])
        bench.observe("loop", loops[1])


def keras_version(tf, network):
    """Return the version of the Keras that made the model. From TF 2.6 on, tf.keras is the package keras."""
    root = sys.modules[type(network).__module__.partition(".")[0]]
    return tf.keras.__version__ if root is tf else root.__version__


def read_first(bench, name, *readers):
    """Return the result of the first reader that works. Without any, return None and observe the reasons as `name`."""
    problems = []
    for read in readers:
        try:
            return read()
        except Exception as error:  # noqa: BLE001, each release has its own
            problem = "{}: {}".format(type(error).__name__, " ".join(str(error).split()))
            problems += [] if problem in problems else [problem]
    bench.observe(name, "; ".join(problems))
    return None


if __name__ == "__main__":
    main(scenario)
