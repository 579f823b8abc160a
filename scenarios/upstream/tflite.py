# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Inference with TensorFlow Lite, by quantization"
# source = "https://github.com/tensorflow/tensorflow/issues/40183"
# tags   = ["upstream", "tflite"]
#
# [tool.harness.axes]
# model  = ["residual", "separable", "digits", "dense"]
# format = ["float", "dynamic", "int8", "float16", "float_plain", "keras"]
# rows   = ["1", "10"]
#
# [tool.harness.default]
# rows = "1"
#
# [[tool.harness.needs]]
# when     = { format = "float16" }
# requires = ["tensorflow>=2.1"]
# reason   = "The converter takes float16 as a supported type only in later releases."
# [[tool.harness.needs]]
# when     = { format = "float_plain" }
# requires = ["tensorflow>=2.6"]
# reason   = "Only later releases can leave XNNPACK out, which was no default before."
# advice   = "Use format=float."
#
# [[tool.harness.compare]]
# name    = "formats vs float"
# along   = "format"
# against = "float"
# plus    = "int8"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#40183"
# reported = "a ResNet takes 89 ms with TensorFlow Lite, and 40 ms with TensorFlow, in the nightly wheel of 2020-06-01"
# worse    = { environment = "tf2.3", format = "float" }
# better   = { environment = "tf2.3", format = "keras" }
# when     = { model = "residual" }
# ratio    = [1.8, 2.8]
# hardware = "Intel Core i7"
# version  = "a nightly wheel of 2020-06-01"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#40183"
# reported = "a ResNet takes 548 ms with dynamic range quantization, and 89 ms without"
# worse    = { environment = "tf2.3+tensorflow==2.3.1", format = "dynamic" }
# better   = { environment = "tf2.3+tensorflow==2.3.1", format = "float" }
# when     = { model = "residual" }
# ratio    = [4.9, 7.7]
# hardware = "Intel Core i7"
# version  = "a nightly wheel of 2020-06-01"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#40183"
# reported = "a ResNet takes 7 s with full integer quantization, and 89 ms without"
# worse    = { environment = "tf2.3", format = "int8" }
# better   = { environment = "tf2.3", format = "float" }
# when     = { model = "residual" }
# ratio    = [63, 98]
# hardware = "Intel Core i7"
# version  = "a nightly wheel of 2020-06-01"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#52105"
# reported = "a quantized convolution that 2.4 or later converts is 27 times as slow on x86-64 as one that 2.3 converts"
# worse    = { environment = "tf2.6", format = "dynamic" }
# better   = { environment = "tf2.3+tensorflow==2.3.1", format = "dynamic" }
# when     = { model = "residual" }
# ratio    = [21, 34]
# hardware = "Colab CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#52105"
# reported = "so in 2.6 it is 39 times as slow as without quantization: 0.75 s times 27, and 0.52 s"
# worse    = { environment = "tf2.6", format = "dynamic" }
# better   = { environment = "tf2.6", format = "float" }
# when     = { model = "residual" }
# ratio    = [30, 48]
# hardware = "Colab CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#49011"
# reported = "GPT-2 is 12 times as slow in int8 as in float32"
# worse    = { environment = "tf2.4", format = "int8" }
# better   = { environment = "tf2.4", format = "float" }
# when     = { model = "dense" }
# ratio    = [9.6, 15]
# hardware = "Colab CPU"
# version  = "May 2021: 2.5"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#49011"
# reported = "in the nightly wheel of 2.13 int8 is faster than float32: 74 and 94 ms"
# worse    = { environment = "tf2.13", format = "float" }
# better   = { environment = "tf2.13", format = "int8" }
# when     = { model = "dense" }
# ratio    = [1.05, 1.6]
# hardware = "Colab CPU"
# version  = "a nightly wheel of 2.13"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/model-optimization/issues/599"
# reported = "a network for digits takes 258 µs in int8, after training that is aware of it, and 41.8 µs in float32"
# worse    = { environment = "tf2.5", format = "int8" }
# better   = { environment = "tf2.5", format = "float" }
# when     = { model = "digits" }
# ratio    = [4.9, 7.7]
# hardware = "CPU, by TensorFlow Lite's own benchmark"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/model-optimization/issues/797"
# reported = "a transformer takes 1.42 s after post-training quantization, and 0.21 s before (August 2021)"
# worse    = { environment = "tf2.6", format = "dynamic" }
# better   = { environment = "tf2.6", format = "float" }
# when     = { model = "dense" }
# ratio    = [5.4, 8.5]
# hardware = "x86 CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/tflite-support/issues/214"
# reported = "a network infers 25 images a second in float32, and 2 in int8 (October 2020)"
# worse    = { environment = "tf2.3", format = "int8" }
# better   = { environment = "tf2.3", format = "float" }
# when     = { model = "separable" }
# ratio    = [10, 15.6]
# hardware = "Intel Core i9, 8 cores, 2.3 GHz"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/tflite-micro/issues/1617"
# reported = "VGGFace takes 44 s with full integer quantization in 2.3.1, and 0.28 s with Keras"
# worse    = { environment = "tf2.3", format = "int8" }
# better   = { environment = "tf2.3", format = "keras" }
# when     = { model = "residual" }
# ratio    = [126, 196]
# hardware = "Intel Core i9-11900K"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/tflite-micro/issues/1617"
# reported = "VGGFace takes 1.18 s with dynamic range quantization in 2.3.1, and 0.28 s with Keras"
# worse    = { environment = "tf2.3+tensorflow==2.3.1", format = "dynamic" }
# better   = { environment = "tf2.3+tensorflow==2.3.1", format = "keras" }
# when     = { model = "residual" }
# ratio    = [3.4, 5.3]
# hardware = "Intel Core i9-11900K"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/tflite-micro/issues/1617"
# reported = "VGGFace takes 1.81 s with float16 quantization in 2.3.1, and 0.28 s with Keras"
# worse    = { environment = "tf2.3", format = "float16" }
# better   = { environment = "tf2.3", format = "keras" }
# when     = { model = "residual" }
# ratio    = [5.2, 8.1]
# hardware = "Intel Core i9-11900K"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#38534"
# reported = "an SSD of MobileNetV2 takes 2,971 ms with full integer quantization, and 152 ms without, in 1.15"
# worse    = { environment = "tf1.15", format = "int8" }
# better   = { environment = "tf1.15", format = "float" }
# when     = { model = "separable" }
# ratio    = [15.6, 24.4]
# hardware = "CPU, Ubuntu 18.04"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#42954"
# reported = "a ResNet takes 55.6 ms after quantization in 1.15, and 17.2 ms before, with TensorFlow"
# worse    = { environment = "tf1.15", format = "dynamic" }
# better   = { environment = "tf1.15", format = "keras" }
# when     = { model = "residual" }
# ratio    = [2.6, 4.1]
# hardware = "Windows 10"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#23759"
# reported = "the network of an example is slower after quantization"
# worse    = { environment = "tf1.14", format = "dynamic" }
# better   = { environment = "tf1.14", format = "float" }
# when     = { model = "digits" }
# ratio    = [1.05, 5]              # no number that could be read
# hardware = "Colab CPU"
# version  = "1.13"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#40266"
# reported = "the time becomes extremely high after integer quantization, with various models, in 1.15 and 2.2"
# worse    = { environment = "tf2.2", format = "int8" }
# better   = { environment = "tf2.2", format = "float" }
# when     = { model = "separable" }
# ratio    = [2, 100]               # no number that could be read
# hardware = "Windows 10, and Colab CPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#37989"
# reported = "a U-Net is twice as slow with TensorFlow Lite as with TensorFlow, in the nightly wheel of 2020-03-27"
# worse    = { environment = "tf2.2", format = "float" }
# better   = { environment = "tf2.2", format = "keras" }
# when     = { model = "residual" }
# ratio    = [1.6, 2.5]
# hardware = "Ubuntu 18.04"
# version  = "a nightly wheel of 2020-03-27"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#57523"
# reported = "MobileNetV2 has no gain from XNNPACK, and is slower with it, in 2.8"
# worse    = { environment = "tf2.8", format = "float" }
# better   = { environment = "tf2.8", format = "float_plain" }
# when     = { model = "separable" }
# ratio    = [1.02, 2]              # no number that could be read
# hardware = "Debian 10"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#41580"
# reported = "a small BERT takes 1 ms with TensorFlow for one row, and 0.6 ms with TensorFlow Lite"
# worse    = { environment = "tf2.3", format = "keras" }
# better   = { environment = "tf2.3", format = "float" }
# when     = { model = "dense", rows = "1" }
# ratio    = [1.3, 2.1]
# hardware = "CentOS 7"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#41580"
# reported = "for ten rows it takes 5 ms with TensorFlow Lite, and 3 ms with TensorFlow"
# worse    = { environment = "tf2.3", format = "float" }
# better   = { environment = "tf2.3", format = "keras" }
# when     = { model = "dense", rows = "10" }
# ratio    = [1.3, 2.1]
# hardware = "CentOS 7"
# program  = "similar"
# ///
"""One inference with `tf.lite.Interpreter` in one thread. The models are small, and of the same kind as in the issues.

model   residual: 6 convolutions of 32 and 64 filters with additions, on 64 × 64 pixels; separable: the same with
        depthwise separable convolutions; digits: a convolution, a pooling and a dense layer on 28 × 28 pixels; dense: 4
        blocks of two dense layers and an addition on 16 × 128 numbers, as in a transformer
format  float: converted without quantization; dynamic: with dynamic range quantization (with convolutions, it fails in
        2.1.4, 2.2.3 and 2.3.4, but not in 2.3.1); int8: with full integer quantization; float16: with weights of 16
        bits; float_plain: like float, without XNNPACK; keras: the Keras model in a tf.function, without TensorFlow Lite
"""

import os
import tempfile

from kit import digits, fixed_batch, main, version

SHAPES = {"residual": (64, 64, 3), "separable": (64, 64, 3), "digits": (28, 28, 1), "dense": (16, 128)}


def scenario(bench, *, model="residual", format="float", rows="1"):
    """Convert the model, and measure one inference."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    if hasattr(tf.config, "threading"):
        tf.config.threading.set_intra_op_parallelism_threads(1)
    bench.device()
    shape = (int(rows),) + SHAPES[model]
    with bench.phase("build"):
        make = {"digits": make_digits, "dense": make_dense}.get(model, make_convolutions)
        network = make(keras, shape, model == "separable")
        weights = network.get_weights()
        network.set_weights(make_fixed(np, weights))
        batch = fixed_batch(shape, "float32")
        if format == "keras":
            step = make_predict(tf, network, batch)
        else:
            content = convert(tf, network, format, batch)
            step = make_invoke(tf, content, format, batch)
    with bench.phase("first call"):
        outputs = step()
    bench.measure(step)
    bench.observe("outputs", [float("{:.2g}".format(number)) for number in digits(outputs)[:4]])
    bench.fingerprint(shape=[int(size) for size in np.shape(outputs)], parameters=int(network.count_params()))


def make_fixed(np, weights):
    """Return constant noise for the weights. Scales and variances don't change."""
    noise = np.random.RandomState(42)
    return [
        (noise.standard_normal(weight.shape) * np.prod(weight.shape[:-1]) ** -0.5).astype("float32")
        if weight.ndim > 1
        else weight
        for weight in weights
    ]


def make_predict(tf, network, batch):
    """Return a step that runs the Keras model: in a tf.function or, in TensorFlow 1, in a session."""
    if not tf.executing_eagerly():
        return lambda: network.predict_on_batch(batch)
    function = tf.function(lambda batch: network(batch, training=False))
    tensor = tf.constant(batch)
    return lambda: function(tensor)


def convert(tf, network, format, batch):
    """Return the converted model, as bytes."""
    if version(tf.__version__) < (2, 0):
        path = os.path.join(tempfile.mkdtemp(), "model.h5")
        network.save(path)
        converter = tf.lite.TFLiteConverter.from_keras_model_file(path)
    elif version(tf.__version__) < (2, 16):
        converter = tf.lite.TFLiteConverter.from_keras_model(network)
    else:  # not all releases with Keras 3 can convert its models
        function = tf.function(lambda batch: network(batch, training=False))
        signature = tf.TensorSpec(batch.shape, tf.float32)
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function(signature)])
    if format in ("dynamic", "int8", "float16"):
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if format == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if format == "int8":
        converter.representative_dataset = lambda: ([batch] for _ in range(4))
        builtins = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        if hasattr(converter, "target_spec"):
            converter.target_spec.supported_ops = builtins
        else:
            converter.target_ops = builtins
    return converter.convert()


def make_invoke(tf, content, format, batch):
    """Return a step that runs the converted model."""
    options = {}
    if format == "float_plain":
        resolvers = tf.lite.experimental.OpResolverType
        options["experimental_op_resolver_type"] = resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tf.lite.Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    into, out = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]

    def step():
        interpreter.set_tensor(into, batch)
        interpreter.invoke()
        return interpreter.get_tensor(out)

    return step


def make_convolutions(keras, shape, separable):
    """Return a model of pairs of convolutions with additions."""
    layers = keras.layers
    inputs = layers.Input(shape[1:], shape[0])
    x = layers.Conv2D(32, 3, strides=2, padding="same", activation="relu")(inputs)
    for filters in (32, 64):
        if filters != 32:
            x = layers.Conv2D(filters, 1, strides=2)(x)
        block = x
        for _ in range(2):
            if separable:
                block = layers.DepthwiseConv2D(3, padding="same", activation="relu")(block)
                block = layers.Conv2D(filters, 1)(block)
            else:
                block = layers.Conv2D(filters, 3, padding="same", activation="relu")(block)
        x = layers.Add()([x, block])
    return keras.models.Model(inputs, layers.Dense(10, activation="softmax")(layers.GlobalAveragePooling2D()(x)))


def make_digits(keras, shape, _):
    """Return the model from the quantization examples."""
    layers = keras.layers
    inputs = layers.Input(shape[1:], shape[0])
    x = layers.MaxPooling2D((2, 2))(layers.Conv2D(12, (3, 3), activation="relu")(inputs))
    return keras.models.Model(inputs, layers.Dense(10)(layers.Flatten()(x)))


def make_dense(keras, shape, _):
    """Return a model of dense layers like those in a transformer."""
    layers = keras.layers
    inputs = x = layers.Input(shape[1:], shape[0])
    for _ in range(4):
        x = layers.Add()([x, layers.Dense(shape[-1])(layers.Dense(4 * shape[-1], activation="relu")(x))])
    return keras.models.Model(inputs, x)


if __name__ == "__main__":
    main(scenario)
