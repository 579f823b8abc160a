# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "Memory growth per minimal call"
# source = "https://github.com/tensorflow/tensorflow/issues/62551"
# tags   = ["upstream", "memory"]
#
# [tool.harness.axes]
# call = ["zeros", "identity"]
#
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
# of    = "memory growth"
#
# [[tool.harness.claim]]
# issue    = "T#62551"
# reported = "with Python 3.11 even tf.zeros((1,)) leaks; with Python 3.10 the same release does not"
# worse    = { environment = "tf2.15", call = "zeros" }
# bytes    = [10, 1000]             # 500,000 calls; the printed growth was not to be read
# of       = "memory growth"
# hardware = "Debian 11"
# program  = "same"
#
# [[tool.harness.claim]]
# issue    = "T#57982"
# reported = "calls of a tf.function that returns its argument leak memory in 2.8, 2.9 and 2.10, but not in 2.5"
# worse    = { environment = "tf2.10", call = "identity" }
# bytes    = [10, 1000]             # "small", and it "increases quite quickly"
# of       = "memory growth"
# hardware = "CPU, Ubuntu and Windows; also in T#50765"
# program  = "same"
# ///
"""The memory growth over 20,000 minimal calls.

call  zeros: tf.zeros((1,)) in eager mode; identity: a traced function that returns its argument, 6 × 6 × 7 zeros
"""

from kit import main

CALLS = 20000


def scenario(bench, *, call="zeros"):
    """Record the memory of the process over the calls."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        image = tf.zeros((6, 6, 7))
        identity = tf.function(lambda image: image)
    step = (lambda: tf.zeros((1,))) if call == "zeros" else (lambda: identity(image))
    with bench.phase("first call"):
        result = step()
    bench.memory(step, CALLS)
    bench.fingerprint(shape=[int(size) for size in result.shape])


if __name__ == "__main__":
    main(scenario)
