# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Calls of a tf.function, by the kind of argument"
# source = "https://www.tensorflow.org/guide/intro_to_graphs"
# tags   = ["seed", "function"]
#
# [tool.harness.axes]
# argument = ["number", "tensor", "shape", "relaxed_shape", "signature", "traced"]
#
# [[tool.harness.expect]]
# observation = "traces"
# value       = 8
# when        = { argument = "number" }
# [[tool.harness.expect]]
# observation = "traces"
# value       = 1
# when        = { argument = "tensor" }
# [[tool.harness.expect]]
# observation = "traces"
# value       = 8
# when        = { argument = "shape" }
# [[tool.harness.expect]]
# observation = "traces"
# value       = 1
# when        = { argument = "signature" }
# [[tool.harness.expect]]
# observation = "traces"
# value       = 0
# when        = { argument = "traced" }
#
# [[tool.harness.compare]]
# name  = "without tracing"
# along = "argument"
# plus  = "traced"                  # how much less time a call takes where nothing is traced
# [[tool.harness.compare]]
# name    = "tensors vs Python numbers"
# along   = "argument"
# plus    = "tensor"
# against = "number"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# ///
"""The cost of retracing: eight calls of a new function with the numbers 1 to 8. The time is per call, with tracing.

argument  number: Python numbers, one trace each; tensor: scalars, one trace; shape: vectors of 1 to 8 ones, one trace
          per length; relaxed_shape: the same vectors, but the function may treat the length as unknown; signature: the
          same vectors, and an input signature with an unknown length; traced: scalars, and a function that is already
          traced, so that only the calls are timed

The function returns the sum of its argument, so all arguments give the same eight numbers.
"""

import inspect

from kit import eager_tensorflow, main

CALLS = range(1, 9)
VECTORS = ("shape", "relaxed_shape", "signature")


def scenario(bench, *, argument="tensor"):
    """Measure eight calls, and count the traces that they cause."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    traces = []
    with bench.phase("build"):
        values = make_arguments(tf, argument)
        new = make_function_maker(tf, argument, traces)
        if argument == "traced":
            function = new()
            function(values[0])
            new = lambda: function  # noqa: E731
    del traces[:]
    with bench.phase("first call"):
        totals = bench.fetch(call(new(), values))
    bench.observe("traces", len(traces))

    bench.measure(lambda: call(new(), values), steps=len(values))
    bench.fingerprint(totals=[float(total.numpy()) for total in totals])


def make_arguments(tf, argument):
    """Return eight arguments whose sums are 1 to 8."""
    if argument == "number":
        return [float(number) for number in CALLS]
    if argument in VECTORS:
        return [tf.ones([number]) for number in CALLS]
    return [tf.constant(float(number)) for number in CALLS]


def make_function_maker(tf, argument, traces):
    """Return a function that makes a new tf.function, which sums its argument. Each trace adds an item to `traces`."""

    def total(x):
        traces.append("total")  # Python code, which runs only while tracing
        return tf.reduce_sum(x)

    options = {}
    if argument == "relaxed_shape":
        options[find_relaxing_option(tf.function)] = True
    elif argument == "signature":
        options["input_signature"] = [tf.TensorSpec([None], tf.float32)]
    return lambda: tf.function(total, **options)


def find_relaxing_option(function):
    """Return the name, in this release, of the option of tf.function that treats a changing dimension as unknown."""
    new = "reduce_retracing"
    return new if new in inspect.signature(function).parameters else "experimental_relax_shapes"


def call(function, values):
    """Return the function's results for all values."""
    results = []
    for value in values:
        results.append(function(value))  # noqa: PERF401, before Python 3.12, a comprehension adds a stack frame
    return results


if __name__ == "__main__":
    main(scenario)
