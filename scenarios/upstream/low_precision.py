# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "float16, bfloat16 and float32 numbers on a CPU"
# source = "https://github.com/tensorflow/tensorflow/issues/24738"
# tags   = ["upstream", "kernels"]
#
# [tool.harness.axes]
# work  = ["matmul", "add", "train"]
# dtype = ["float16", "bfloat16", "float32"]
#
# [[tool.harness.needs]]
# when     = { work = "train" }
# requires = ["tensorflow>=2.1"]
# reason   = "Keras has precision policies in 2.1 and later."
#
# [[tool.harness.compare]]
# name    = "float16 vs float32"
# along   = "dtype"
# plus    = "float16"
# against = "float32"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#24738"
# reported = "a matmul of two matrices of 768 x 768 is much slower in float16 than in float32"
# worse    = { environment = "tf1.14", dtype = "float16" }
# better   = { environment = "tf1.14", dtype = "float32" }
# when     = { work = "matmul" }
# ratio    = [2, 1000]              # no number could be read
# hardware = "CPU with 24 threads"
# version  = "1.12.0"
# program  = "same"
#
# [[tool.harness.claim]]
# issue    = "T#37975"
# reported = "the sum of two tensors takes twice as long in bfloat16 as in float32"
# worse    = { environment = "tf2.1", dtype = "bfloat16" }
# better   = { environment = "tf2.1", dtype = "float32" }
# when     = { work = "add" }
# ratio    = [1.6, 2.5]
# hardware = "CPU, CentOS 7.6"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#42422"
# reported = "training in float16 is much slower than in float32 on a CPU without such operations"
# worse    = { environment = "tf2.2", dtype = "float16" }
# better   = { environment = "tf2.2", dtype = "float32" }
# when     = { work = "train" }
# ratio    = [1.5, 50]              # no number could be read
# hardware = "Intel Xeon Gold 6242, ResNet50"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#59050"
# reported = "with the policy mixed_bfloat16, training is about 500 times slower (a triager: about 20 times)"
# worse    = { environment = "tf2.11", dtype = "bfloat16" }
# better   = { environment = "tf2.11", dtype = "float32" }
# when     = { work = "train" }
# ratio    = [15, 500]
# hardware = "A10 and A100, for which 2.11 has few operations in bfloat16"
# program  = "similar"
# ///
"""One operation or one training step, by the type of its numbers.

work   matmul: two matrices of 768 x 768; add: two tensors of 6.4 million numbers; train: `train_on_batch` of two
       convolutions and a dense layer on 16 images of 32 x 32, with the mixed-precision policy of that type
"""

from kit import eager_tensorflow, fixed_batch, main

SHAPES = {"matmul": (1, 768, 768), "add": (1, 224, 224, 128), "train": (16, 32, 32, 3)}


def scenario(bench, *, work="matmul", dtype="float16"):
    """Measure one operation or step."""
    with bench.phase("import"):
        tf = eager_tensorflow()
        if work == "train":
            tf.keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        x = fixed_batch(SHAPES[work], "float32")
        step = train(tf, x, dtype) if work == "train" else operation(tf, x, work, dtype)
    with bench.phase("first call"):
        bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(shape=list(SHAPES[work]))


def operation(tf, x, work, dtype):
    """Return a step that computes the product or the sum of two tensors of that type."""
    operand = tf.cast(tf.constant(x), getattr(tf, dtype))
    combine = tf.matmul if work == "matmul" else tf.add
    return lambda: combine(operand, operand)


def train(tf, x, dtype):
    """Return a training step with the policy of that type."""
    mixed = tf.keras.mixed_precision
    use = mixed.set_global_policy if hasattr(mixed, "set_global_policy") else mixed.experimental.set_policy
    use("float32" if dtype == "float32" else "mixed_" + dtype)
    layers = tf.keras.layers
    inputs = outputs = layers.Input(x.shape[1:])
    for _ in range(2):
        outputs = layers.Conv2D(32, 3, padding="same", activation="relu")(outputs)
    outputs = layers.Dense(10)(layers.GlobalAveragePooling2D()(outputs))
    model = tf.keras.models.Model(inputs, layers.Activation("linear", dtype="float32")(outputs))
    model.compile("sgd", "mse")
    y = fixed_batch((len(x), 10), "float32")
    return lambda: model.train_on_batch(x, y)


if __name__ == "__main__":
    main(scenario)
