# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "The 100th power of a small matrix"
# source = "https://www.tensorflow.org/guide/intro_to_graphs"
# tags   = ["seed", "function"]
#
# [tool.harness.axes]
# mode = ["eager", "function", "switched"]
#
# [[tool.harness.needs]]
# devices = ["cpu"]
# reason  = "TensorFlow multiplies integers (int32) only on the CPU: a GPU kernel is missing."
# advice  = "Measure it on the CPU, without --gpu."
#
# [[tool.harness.compare]]
# name    = "function vs eager"
# along   = "mode"
# plus    = "function"
# against = "eager"
# [[tool.harness.compare]]
# name    = "eager vs a function switched to eager"
# along   = "mode"
# plus    = "eager"
# against = "switched"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The guide's matrix power: 100 products of 10 × 10 matrices, so small that overhead takes longer than the products.

mode    eager: plain Python; function: a tf.function, traced once; switched: the same function after
        `run_functions_eagerly(True)`, which runs it as Python again

As in the guide, the matrix contains int32 values. TensorFlow multiplies them only on the CPU: in every release, MatMul
has no GPU kernel for int32 (tensorflow/core/kernels/matmul_op*.cc).
"""

from kit import eager_switch, eager_tensorflow, fixed_matrix, main, power_of

EXPONENT = 100
DOCUMENT_CALLS = 1000


def scenario(bench, *, mode="eager"):
    """Measure one call."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        x = fixed_matrix(tf)
        power = power_of(tf) if mode == "eager" else tf.function(power_of(tf))
        eager_switch(tf)(mode == "switched")
    with bench.phase("first call"):
        values = power(x, EXPONENT).numpy()
    bench.measure(lambda: power(x, EXPONENT), document=DOCUMENT_CALLS)
    bench.fingerprint(values=values.ravel().tolist())


if __name__ == "__main__":
    main(scenario)
