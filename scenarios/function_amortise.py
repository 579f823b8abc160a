# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Tracing a function, and calling it N times"
# source = "https://www.tensorflow.org/guide/intro_to_graphs"
# tags   = ["seed", "function"]
#
# [tool.harness.axes]
# mode  = ["eager", "function"]
# calls = { sweep = [1, 3, 10, 30, 100], unit = "calls" }
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
# name  = "release vs release"
# along = "environment"
# ///
"""After how many calls is a tf.function faster in total? The function is the matrix power of `function_power`.

A step includes everything: a new tf.function, its tracing, and N calls. In eager mode, it includes only the calls. At
the crossover point of the two modes, the calls have saved as much time as the tracing took. Some costs occur only in a
process's first trace, such as reading the source. They are in the phase "first call", and not in the steps.
"""

from kit import eager_tensorflow, fixed_matrix, main, power_of, traced_calls

EXPONENT = 100


def scenario(bench, *, mode="function", calls="10"):
    """Measure `calls` calls, and the tracing before them."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        step = traced_calls(tf, power_of(tf), mode, calls, fixed_matrix(tf), EXPONENT)
    with bench.phase("first call"):
        values = step(calls=1).numpy()
    bench.measure(step)
    bench.fingerprint(values=values.ravel().tolist())


if __name__ == "__main__":
    main(scenario)
