# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Behavior of functions, and differences from Python"
# source = "https://www.tensorflow.org/guide/intro_to_graphs"
# tags   = ["seed", "function", "behaviour"]
#
# [tool.harness.axes]
# experiment = [
#   "same_value", "branches", "polymorphism", "retracing", "eager_switch", "side_effects", "non_strict", "print_count",
# ]
#
# [[tool.harness.expect]]
# observation = "plain"
# value       = 12.0
# when        = { experiment = "same_value" }
# [[tool.harness.expect]]
# observation = "as a function"
# value       = 12.0
# when        = { experiment = "same_value" }
# [[tool.harness.expect]]
# observation = "nested"
# value       = 12.0
# when        = { experiment = "same_value" }
# [[tool.harness.expect]]
# observation = "relu of 1 and -1"
# value       = [1, 0]
# when        = { experiment = "branches" }
# [[tool.harness.expect]]
# observation = "generated code has if_stmt"
# value       = true
# when        = { experiment = "branches" }
# [[tool.harness.expect]]
# observation = "graphs after each call"
# value       = [1, 2, 3, 3, 3]
# when        = { experiment = "polymorphism" }
# [[tool.harness.expect]]
# observation = "traces after each call"
# value       = [1, 1, 2, 3]
# when        = { experiment = "retracing" }
# [[tool.harness.expect]]
# observation = "same values"
# value       = true
# when        = { experiment = "eager_switch" }
# [[tool.harness.expect]]
# observation = "prints in 3 calls"
# value       = 1
# when        = { experiment = "side_effects" }
# [[tool.harness.expect]]
# observation = "prints in 3 calls, switched to eager"
# value       = 3
# when        = { experiment = "side_effects" }
# [[tool.harness.expect]]
# observation = "unused gather, eager"
# value       = "InvalidArgumentError"
# when        = { experiment = "non_strict" }
# [[tool.harness.expect]]
# observation = "unused gather, function"
# value       = "no error"
# when        = { experiment = "non_strict" }
# [[tool.harness.expect]]            # the lesson on speeding up training
# observation = "prints in 10 calls"
# value       = 10
# when        = { experiment = "print_count" }
# [[tool.harness.expect]]
# observation = "prints in 10 calls of the function"
# value       = 1
# when        = { experiment = "print_count" }
# ///
"""The guide's experiments on tf.function that don't measure times, each in a separate process.

The last experiment comes from the lesson.

experiment  same_value: a function and a nested function give the same value as plain Python; branches: the graph of an
            `if` on a tensor has both branches; polymorphism: one graph per signature; retracing: new Python numbers
            cause retracing, new tensors don't; eager_switch: functions are switched to plain Python and back;
            side_effects: `print` runs only during tracing; non_strict: a graph leaves out operations whose results
            aren't used, even if they would raise errors; print_count: how often ten calls of a function print
"""

import contextlib
import io
import re

from kit import catch_error, eager_switch, eager_tensorflow, main


def scenario(bench, *, experiment="same_value"):
    """Run one experiment, and time nothing."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    EXPERIMENTS[experiment](bench, tf)


def same_value(bench, tf):
    """Compute x·y + b in plain Python, in a function, and in a function that calls a function."""

    def inner(x, y, b):
        return tf.matmul(x, y) + b

    traced = tf.function(inner)

    @tf.function
    def outer(x, y, b):
        return traced(x, y, b)

    arguments = tf.constant([[1.0, 2.0]]), tf.constant([[2.0], [3.0]]), tf.constant(4.0)
    for name, function in [("plain", inner), ("as a function", traced), ("nested", outer)]:
        bench.observe(name, float(function(*arguments).numpy()[0, 0]))


def branches(bench, tf):
    """Show AutoGraph's code for an `if` on a tensor, and the graph with one function per branch."""

    def simple_relu(x):
        if tf.greater(x, 0):
            return x
        else:  # noqa: RET505, as the guide has it
            return 0

    relu = tf.function(simple_relu)
    bench.observe("relu of 1 and -1", [int(relu(tf.constant(number)).numpy()) for number in (1, -1)])
    graph = relu.get_concrete_function(tf.constant(1)).graph
    bench.observe("operations of the graph", [operation.type for operation in graph.get_operations()])
    for function in sorted(graph.as_graph_def().library.function, key=lambda definition: definition.signature.name):
        name = re.search(r"cond_(?:true|false)", function.signature.name)
        if name:  # the number of other functions, such as those for gradients, differs between releases
            bench.observe("operations of " + name.group(), [node.op for node in function.node_def])
    code = tf.autograph.to_code(simple_relu)
    bench.observe("generated code has if_stmt", "if_stmt" in code)
    bench.observe("generated code", code)


def polymorphism(bench, tf):
    """Count the graphs of a function after each of the guide's five calls, and after five more calls."""
    import numpy as np

    function, traces = make_counted(tf, lambda x: tf.maximum(0.0, x))
    constant = tf.constant
    guide = [constant(5.5), [1, -1], constant([3.0, -3.0]), constant(-2.5), constant([-1.0, 1.0])]
    bench.observe("graphs after each call", count_traces(function, traces, guide))
    more = [[1, -1], [2, -1], np.float32(1.5), np.ones(2, "float32"), 3.0]
    bench.observe(
        "graphs after more: two lists, NumPy scalar and array, Python float", count_traces(function, traces, more)
    )
    tell = getattr(function, "pretty_printed_concrete_signatures", None)
    bench.observe("pretty_printed_concrete_signatures", tell() if tell else "the method doesn't exist")


def retracing(bench, tf):
    """Count the traces of a function after calls with two tensors and then with two Python numbers."""
    function, traces = make_counted(tf, lambda x: x * x + tf.constant(2))
    bench.observe("traces after each call", count_traces(function, traces, [tf.constant(2), tf.constant(3), 2, 3]))


def make_counted(tf, body):
    """Return a tf.function with this body, and a list that gets one more item whenever the function is traced."""
    traces = []

    @tf.function
    def function(x):
        traces.append("function")  # Python code, which runs only while tracing
        return body(x)

    return function, traces


def count_traces(function, traces, arguments):
    """Call the function with each argument, and return the number of traces after each call."""
    result = []
    for argument in arguments:
        function(argument)
        result.append(len(traces))
    return result


def eager_switching(bench, tf):
    """Compute the guide's mean squared error in a function, after the switch to eager, and after the switch back."""
    mse = tf.function(lambda labels, predictions: tf.reduce_mean(tf.pow(labels - predictions, 2)))
    switch = eager_switch(tf)
    values = []
    for on in (False, True, False):
        switch(on)
        values.append(int(mse(*numbers(tf)).numpy()))
    bench.observe("same values", len(set(values)) == 1)
    bench.observe("values before, switched and after", values)
    bench.observe("switches", [name for name in sorted(dir(tf.config)) if name.endswith("run_functions_eagerly")])


def numbers(tf):
    """Return five constant labels and predictions. In the guide, they are random."""
    return tf.constant([1, 5, 2, 8, 3]), tf.constant([4, 0, 3, 6, 9])


def side_effects(bench, tf):
    """Count how often a function prints in three calls, and in three more after the switch to eager."""

    @tf.function
    def mse(labels, predictions):
        print("Calculating MSE!")
        return tf.reduce_mean(tf.pow(labels - predictions, 2))

    bench.observe("prints in 3 calls", count_prints(lambda: mse(*numbers(tf)), calls=3))
    eager_switch(tf)(True)
    bench.observe("prints in 3 calls, switched to eager", count_prints(lambda: mse(*numbers(tf)), calls=3))


def compare_prints(bench, tf):
    """Count how often `print` runs in ten calls of a plain Python function and of the same tf.function."""

    def doubled(x):
        print("Doubling!")
        return x + x

    function, x = tf.function(doubled), tf.constant(1.0)
    bench.observe("prints in 10 calls", count_prints(lambda: doubled(x), calls=10))
    bench.observe("prints in 10 calls of the function", count_prints(lambda: function(x), calls=10))


def count_prints(call, calls):
    """Return the number of lines that Python prints in `calls` calls."""
    with contextlib.redirect_stdout(io.StringIO()) as output:
        for _ in range(calls):
            call()
    return len(output.getvalue().splitlines())


def non_strict(bench, tf):
    """Gather with an index that is out of range, in a function that doesn't use the result.

    It runs on the CPU, because a GPU returns zeros instead of raising an error.
    """

    def unused(x):
        tf.gather(x, [1])
        return x

    def used(x):
        return tf.gather(x, [1])

    cases = [
        ("unused gather, eager", unused),
        ("unused gather, function", tf.function(unused)),
        ("used gather, function", tf.function(used)),
    ]
    with tf.device("/CPU:0"):
        x = tf.constant([0.0])
        for name, function in cases:
            failure = catch_error(lambda function=function: function(x))
            bench.observe(name, failure.error)
            if failure.says:
                bench.observe(name + ", says", failure.says)


EXPERIMENTS = {
    "same_value": same_value,
    "branches": branches,
    "polymorphism": polymorphism,
    "retracing": retracing,
    "eager_switch": eager_switching,
    "side_effects": side_effects,
    "non_strict": non_strict,
    "print_count": compare_prints,
}

if __name__ == "__main__":
    main(scenario)
