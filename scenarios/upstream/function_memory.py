# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per call of a tf.function"
# source = "https://github.com/tensorflow/tensorflow/issues/124972"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# calls = ["traced", "lengths", "numbers", "new_functions"]
#
# [[tool.harness.compare]]
# name    = "a trace a call vs none"
# along   = "calls"
# plus    = "lengths"
# against = "traced"
# of      = "memory growth"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#124972"
# reported = "a tf.function called with vectors of many lengths keeps one graph per length, without a limit"
# worse    = { environment = "tf2.21", calls = "lengths" }
# bytes    = [10000, 1000000]       # no number that could be read; a small graph takes some tens of kilobytes
# of       = "memory growth"
# hardware = "Windows 11"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#124972"
# reported = "the graphs are never freed, although the function is deleted and garbage is collected"
# worse    = { environment = "tf2.21", calls = "new_functions" }
# bytes    = [10000, 1000000]       # as above
# of       = "memory growth"
# hardware = "Windows 11"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#31842"
# reported = "a step that gets its step number as a Python number is traced each time, and training runs out of memory"
# worse    = { environment = "tf2.0", calls = "numbers" }
# bytes    = [10000, 1000000]       # no number in the thread: theirs was a large model
# of       = "memory growth"
# hardware = "P100, 16 GB"
# version  = "2.0.0-beta1"
# program  = "similar"
# ///
"""The memory that the process keeps after 100 calls of a small function, which sums a vector.

calls  lengths: one function, and a vector of a different length for each call; numbers: one function, and a different
       Python number for each call; new_functions: a new function for each call, which isn't used again, with a vector
       of a different length; traced: one function, and always the same vector
"""

from kit import main

CALLS = 100


def scenario(bench, *, calls="traced"):
    """Record the memory of the process over the calls."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        vector = tf.ones([8])
        counter = [0]

        def total(x, scale=1):
            return tf.reduce_sum(x * tf.cast(scale, tf.float32))

        function = tf.function(total)

    def lengths():
        counter[0] += 1
        return function(tf.ones([counter[0]]))

    def numbers():
        counter[0] += 1
        return function(vector, counter[0])

    def new_functions():
        counter[0] += 1
        return tf.function(total)(tf.ones([counter[0]]))

    step = {"traced": lambda: function(vector), "lengths": lengths, "numbers": numbers, "new_functions": new_functions}
    with bench.phase("first call"):
        bench.fingerprint(total=float(function(vector)))
    bench.memory(step[calls], CALLS)


if __name__ == "__main__":
    main(scenario)
