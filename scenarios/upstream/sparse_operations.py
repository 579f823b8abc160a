# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.15"]
#
# [tool.harness]
# title  = "Operations on a sparse tensor, and on the same numbers in another form"
# source = "https://github.com/tensorflow/tensorflow/issues/46706"
# tags   = ["upstream", "kernels"]
#
# [tool.harness.axes]
# operation = ["multiply", "divide", "exp", "reduce_sum", "matmul", "layer"]
# form      = ["sparse", "dense", "segments"]
#
# [[tool.harness.exclude]]          # only sums have segments
# form      = "segments"
# operation = "multiply"
# [[tool.harness.exclude]]
# form      = "segments"
# operation = "divide"
# [[tool.harness.exclude]]
# form      = "segments"
# operation = "exp"
# [[tool.harness.exclude]]
# form      = "segments"
# operation = "matmul"
# [[tool.harness.exclude]]
# form      = "segments"
# operation = "layer"
#
# [[tool.harness.needs]]
# when     = { operation = "layer" }
# requires = ["tensorflow>=2.5,<2.16"]
# reason   = "A dense layer of Keras multiplies sparse inputs as such in 2.5 to 2.15."
#
# [[tool.harness.compare]]
# name    = "sparse vs dense"
# along   = "form"
# plus    = "sparse"
# against = "dense"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#46706"
# reported = "multiplying a matrix with 75 % zeros takes 0.58 s if it is sparse, and 0.051 s if it is dense"
# worse    = { environment = "tf2.4", form = "sparse" }
# better   = { environment = "tf2.4", form = "dense" }
# when     = { operation = "multiply" }
# ratio    = [6, 20]
# hardware = "Colab"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#46706"
# reported = "dividing a matrix with 75 % zeros takes 0.57 s if it is sparse, and 0.063 s if it is dense"
# worse    = { environment = "tf2.4", form = "sparse" }
# better   = { environment = "tf2.4", form = "dense" }
# when     = { operation = "divide" }
# ratio    = [5, 16]
# hardware = "Colab"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#46706"
# reported = "exp of a matrix with 75 % zeros takes 0.044 s if it is dense, and 0.012 s if it is sparse"
# worse    = { environment = "tf2.4", form = "dense" }
# better   = { environment = "tf2.4", form = "sparse" }
# when     = { operation = "exp" }
# ratio    = [2.4, 5.4]
# hardware = "Colab"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#46706"
# reported = "summing a matrix with 75 % zeros takes 1.2 s if it is sparse, and 0.019 s if it is dense"
# worse    = { environment = "tf2.4", form = "sparse" }
# better   = { environment = "tf2.4", form = "dense" }
# when     = { operation = "reduce_sum" }
# ratio    = [30, 120]
# hardware = "Colab"
# program  = "similar"
# [[tool.harness.claim]]
# issue    = "T#46706"
# reported = "a product with a matrix takes 0.16 s if 75 % zeros are in a sparse one, and 0.058 s if it is dense"
# worse    = { environment = "tf2.4", form = "sparse" }
# better   = { environment = "tf2.4", form = "dense" }
# when     = { operation = "matmul" }
# ratio    = [1.8, 4.2]
# hardware = "Colab"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#32763"
# reported = "tf.sparse.reduce_sum takes 0.298 s, and a segment sum of the same values 0.0017 s"
# worse    = { environment = "tf1.15", form = "sparse" }
# better   = { environment = "tf1.15", form = "segments" }
# when     = { operation = "reduce_sum" }
# ratio    = [60, 400]
# hardware = "a GPU, which the sparse sum does not use"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#50663"
# reported = "training on an input with 0.5 % of its numbers takes 44 s if it is sparse, and 20 s if it is dense"
# worse    = { environment = "tf2.5", form = "sparse" }
# better   = { environment = "tf2.5", form = "dense" }
# when     = { operation = "layer" }
# ratio    = [1.7, 2.8]
# hardware = "Quadro P1000"
# program  = "similar"
# ///
"""One operation on a sparse matrix, or on the same numbers in another form.

operation  multiply, divide: by a dense matrix; exp: of the stored numbers; reduce_sum: of each row; matmul: with a
           matrix of 100 columns. The matrix has 2,000 x 2,000 numbers, 75 % of them zeros. layer: `train_on_batch` of a
           dense layer of 2,328 units on 64 rows of 4,656 numbers, 99.5 % of them zeros
form       sparse: a sparse tensor; dense: a tensor with all numbers; segments: the stored numbers, and the row of each
           number
"""

from kit import eager_tensorflow, main

SIZE, ZEROS = 2000, 0.75
ROWS, COLUMNS, UNITS, MORE_ZEROS = 64, 4656, 2328, 0.995


def scenario(bench, *, operation="multiply", form="sparse"):
    """Measure one operation."""
    with bench.phase("import"):
        import numpy as np

        tf = eager_tensorflow()
        if operation == "layer":
            tf.keras.layers  # noqa: B018, later releases load Keras at its first use
    bench.device()
    with bench.phase("build"):
        noise = np.random.RandomState(7)
        shape, zeros = ((ROWS, COLUMNS), MORE_ZEROS) if operation == "layer" else ((SIZE, SIZE), ZEROS)
        x = (noise.random_sample(shape) * (noise.random_sample(shape) >= zeros)).astype("float32")
        matrix = tf.sparse.from_dense(x) if form != "dense" else tf.constant(x)
        if operation == "layer":
            step = train(tf, np, matrix, form)
        else:
            step = make_step(tf, matrix, tf.constant(noise.random_sample(shape).astype("float32") + 1), operation, form)
    with bench.phase("first call"):
        bench.fetch(tensors(step()))
    bench.measure(lambda: tensors(step()))
    bench.fingerprint(stored=int(np.count_nonzero(x)))


def tensors(result):
    """Return the values of a sparse tensor, or the tensor itself."""
    return result.values if hasattr(result, "values") else result


def make_step(tf, matrix, other, operation, form):
    """Return a function that runs the operation once."""
    sparse = form == "sparse"
    columns = other[:, :100]
    sums = {
        "sparse": lambda: tf.sparse.reduce_sum(matrix, axis=1),
        "dense": lambda: tf.reduce_sum(matrix, axis=1),
        "segments": lambda: tf.math.unsorted_segment_sum(matrix.values, matrix.indices[:, 0], SIZE),
    }
    return {
        "multiply": lambda: matrix * other,
        "divide": lambda: matrix / other,
        "exp": lambda: tf.exp(matrix.values if sparse else matrix),
        "reduce_sum": sums[form],
        "matmul": lambda: (tf.sparse.sparse_dense_matmul if sparse else tf.matmul)(matrix, columns),
    }[operation]


def train(tf, np, matrix, form):
    """Return a training step of a dense layer."""
    layers = tf.keras.layers
    inputs = layers.Input((COLUMNS,), sparse=form == "sparse")
    model = tf.keras.models.Model(inputs, layers.Dense(UNITS)(inputs))
    model.compile("sgd", "mse")
    y = np.zeros((ROWS, UNITS), "float32")
    return lambda: model.train_on_batch(matrix, y)


if __name__ == "__main__":
    main(scenario)
