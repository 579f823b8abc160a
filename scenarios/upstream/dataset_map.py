# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A function applied to every tensor: Dataset.map and a loop"
# source = "https://github.com/tensorflow/tensorflow/issues/40755"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# way = ["map", "loop"]
#
# [[tool.harness.compare]]
# name    = "map vs loop"
# along   = "way"
# plus    = "map"
# against = "loop"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#40755"
# reported = "iterating over a mapped dataset takes considerably longer than calling the function on each tensor"
# worse    = { environment = "tf2.2", way = "map" }
# better   = { environment = "tf2.2", way = "loop" }
# ratio    = [1.5, 10]              # no number in the thread
# hardware = "GTX 1080"
# program  = "similar"
# ///
"""A pass over 100 vectors of 1,024 floats that computes the Fourier transform of each vector. The time is per vector.

way  map: Dataset.map, and a loop over the dataset; loop: a loop over the tensors that calls the traced function
"""

from kit import main

VECTORS, LENGTH = 100, 1024


def scenario(bench, *, way="map"):
    """Measure one pass."""
    with bench.phase("import"):
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        values = tf.reshape(tf.linspace(0.0, 1.0, VECTORS * LENGTH), (VECTORS, LENGTH))

        @tf.function
        def transform(vector):
            return tf.abs(tf.signal.rfft(100 * vector))

        vectors = tf.unstack(values)
        dataset = tf.data.Dataset.from_tensor_slices(values).map(transform)

    def by_map():
        for result in dataset:  # noqa: B007, only the last is used
            pass
        return result

    def by_loop():
        for vector in vectors:
            result = transform(vector)
        return result

    step = by_map if way == "map" else by_loop
    with bench.phase("first call"):
        last = step()
    bench.measure(step, steps=VECTORS)
    bench.fingerprint(total=float(tf.reduce_sum(last)))


if __name__ == "__main__":
    main(scenario)
