# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.15"]
#
# [tool.harness]
# title  = "A function applied to every element: map_fn, vectorized_map, and all elements at once"
# source = "https://github.com/tensorflow/tensorflow/issues/24774"
# tags   = ["upstream", "functions"]
#
# [tool.harness.axes]
# way = ["map_fn", "vectorized_map", "whole"]
#
# [[tool.harness.compare]]
# name    = "map_fn vs vectorized_map"
# along   = "way"
# plus    = "map_fn"
# against = "vectorized_map"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#24774"
# reported = "map_fn over many elements is slow (the answer: use vectorized_map)"
# worse    = { environment = "tf2.1", way = "map_fn" }
# better   = { environment = "tf2.1", way = "vectorized_map" }
# ratio    = [10, 1000]             # no number in the thread; TensorFlow's guide has one to two orders of magnitude
# hardware = "not reported"
# version  = "1.12"
# program  = "similar"
# ///
"""One call of a traced function that squares each of 2,000 numbers.

way  map_fn: one number after the other, in a TensorFlow loop; vectorized_map: TensorFlow rewrites the function for all
     numbers at once; whole: the function is applied to the vector
"""

from kit import digits, eager_tensorflow, main

ELEMENTS = 2000


def scenario(bench, *, way="map_fn"):
    """Measure one call."""
    with bench.phase("import"):
        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        values = tf.linspace(0.0, 1.0, ELEMENTS)

        def square(x):
            return x * x

        def mapped(values):
            if way == "map_fn":
                return tf.map_fn(square, values)
            return tf.vectorized_map(square, values) if way == "vectorized_map" else square(values)

        function = tf.function(mapped)
    with bench.phase("first call"):
        squares = bench.fetch(function(values))
    bench.measure(lambda: function(values))
    bench.fingerprint(total=digits(tf.reduce_sum(squares)))


if __name__ == "__main__":
    main(scenario)
