# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=2.0"]
#
# [tool.harness]
# title  = "A Python loop over a dataset, and over the same data without TensorFlow"
# source = "https://github.com/tensorflow/tensorflow/issues/59744"
# tags   = ["upstream", "data"]
#
# [tool.harness.axes]
# way      = ["dataset", "python"]
# elements = ["records", "numbers"]
#
# [[tool.harness.compare]]
# name    = "dataset vs python"
# along   = "way"
# plus    = "dataset"
# against = "python"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#59744"
# reported = "a loop over a dataset of records of 10 strings takes 78 times as long as over a Python generator"
# worse    = { environment = "tf2.11", way = "dataset" }
# better   = { environment = "tf2.11", way = "python" }
# ratio    = [40, 160]              # 1.42 s and 0.018 s for 10,000 records
# when     = { elements = "records" }
# hardware = "CPU, macOS"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#40634"
# reported = "a loop over the elements of a dataset takes almost 500 times as long as over the NumPy array"
# worse    = { environment = "tf2.2", way = "dataset" }
# better   = { environment = "tf2.2", way = "python" }
# ratio    = [250, 1000]
# when     = { elements = "numbers" }
# hardware = "Colab CPU"
# program  = "similar"
# ///
"""A loop over 1,000 elements that does nothing with them, per element.

elements  records: dictionaries of ten short strings; numbers: the numbers of an array of floats
way       dataset: a tf.data.Dataset of tensors; python: a generator of the same records, or the array itself
"""

from kit import main

ELEMENTS, FIELDS = 1000, 10
TEXT = "a short string"


def scenario(bench, *, way="dataset", elements="records"):
    """Measure one loop."""
    with bench.phase("import"):
        import numpy as np
        import tensorflow as tf
    bench.device()
    with bench.phase("build"):
        array = np.ones(ELEMENTS, dtype="float32")

        def records():
            for _ in range(ELEMENTS):
                yield {str(field): TEXT for field in range(FIELDS)}

        if way == "python":
            begin = records if elements == "records" else lambda: array
        else:
            columns = {str(field): [TEXT] * ELEMENTS for field in range(FIELDS)}
            dataset = tf.data.Dataset.from_tensor_slices(columns if elements == "records" else array)
            begin = lambda: dataset  # noqa: E731

    def step():
        for element in begin():  # noqa: B007, only the last is used
            pass
        return element

    with bench.phase("first call"):
        last = step()
    bench.measure(step, steps=ELEMENTS)
    bench.fingerprint(last=float(last) if elements == "numbers" else [read_text(last[name]) for name in sorted(last)])


def read_text(value):
    """Return the string itself, or the string in a tensor."""
    return value if isinstance(value, str) else value.numpy().decode()


if __name__ == "__main__":
    main(scenario)
