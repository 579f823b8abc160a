# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per array that numpy() returns"
# source = "https://github.com/tensorflow/tensorflow/issues/61524"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# value = ["variable", "tensor"]
#
# [[tool.harness.compare]]
# name    = "variable vs tensor"
# along   = "value"
# plus    = "variable"
# against = "tensor"
# of      = "memory growth"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#61524"
# reported = "numpy() of a layer's weights makes a copy of them"
# worse    = { environment = "tf2.12", value = "variable" }
# bytes    = [7000000, 12000000]    # a variable of 10 MB; theirs has 1.2 GB
# of       = "memory growth"
# hardware = "not reported"
# program  = "similar"
# ///
"""The memory growth over 40 calls of numpy(), whose arrays are all kept.

value  variable: the kernel of a dense layer, 2.5 million floats; tensor: a tensor of the same shape
"""

from kit import main

ARRAYS, ROWS, COLUMNS = 40, 2500, 1000


def scenario(bench, *, value="variable"):
    """Record the memory of the process while numpy() returns one array after the other."""
    with bench.phase("import"):
        import tensorflow as tf

        keras = tf.keras
        keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        layer = keras.layers.Dense(COLUMNS, use_bias=False, kernel_initializer="ones")
        layer.build((None, ROWS))
        source = layer.kernel if value == "variable" else tf.ones((ROWS, COLUMNS))
        arrays = []
    with bench.phase("first call"):
        array = source.numpy()
    bench.memory(lambda: arrays.append(source.numpy()), ARRAYS)
    bench.fingerprint(shape=[int(size) for size in array.shape], total=float(array.sum()))


if __name__ == "__main__":
    main(scenario)
