# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow"]
#
# [tool.harness]
# title  = "Conversions between Python lists, NumPy arrays and tensors"
# source = "https://github.com/tensorflow/tensorflow/issues/44555"
# tags   = ["upstream", "conversions"]
#
# [tool.harness.axes]
# work = ["images_to_tensor", "floats_to_tensor", "tensors_to_array", "mean_of_tensors", "elements"]
# way  = ["slow", "fast"]
#
# [[tool.harness.compare]]
# name    = "slow vs fast"
# along   = "way"
# plus    = "slow"
# against = "fast"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#44555"
# reported = "convert_to_tensor of a list of images is slow, and fast if NumPy makes one array of them first"
# worse    = { environment = "tf2.3", way = "slow" }
# better   = { environment = "tf2.3", way = "fast" }
# when     = { work = "images_to_tensor" }
# ratio    = [5, 1000]              # no number that could be read
# hardware = "Quadro M2200, Ubuntu 18.04 in Docker"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "https://github.com/tensorflow/similarity/issues/210"
# reported = "convert_to_tensor of a list of floats is super slow, and super fast of an array of it"
# worse    = { environment = "tf2.7", way = "slow" }
# better   = { environment = "tf2.7", way = "fast" }
# when     = { work = "floats_to_tensor" }
# ratio    = [2, 100]               # no number of the fast way; 15 ms for a conversion
# hardware = "Colab, with a GPU"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#27692"
# reported = "np.array of a list of tensors is orders of magnitude slower in 2.0 than it was"
# worse    = { environment = "tf2.0", way = "slow" }
# better   = { environment = "tf2.0", way = "fast" }
# when     = { work = "tensors_to_array" }
# ratio    = [100, 100000]          # "orders of magnitude"
# hardware = "Colab CPU"
# version  = "2.0.0.dev20190405"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#25439"
# reported = "np.array of a list of tensors is unusable, and of their arrays is fast"
# worse    = { environment = "tf1.14", way = "slow" }
# better   = { environment = "tf1.14", way = "fast" }
# when     = { work = "tensors_to_array" }
# ratio    = [100, 100000]          # "exponentially longer"
# hardware = "GTX 1060 Max Q"
# version  = "1.12"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#26711"
# reported = "NumPy's functions are considerably slow on a list of tensors"
# worse    = { environment = "tf2.0", way = "slow" }
# better   = { environment = "tf2.0", way = "fast" }
# when     = { work = "mean_of_tensors" }
# ratio    = [10, 100000]           # no number that could be read
# hardware = "V100"
# version  = "2.0.0-alpha0"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#42120"
# reported = "copying 100 tensors of 1,792 floats one by one takes 13 to 60 s, and is instantaneous with arrays"
# worse    = { environment = "tf2.17", way = "slow" }
# better   = { environment = "tf2.17", way = "fast" }
# when     = { work = "elements" }
# ratio    = [20, 10000]            # by the C API of Python in the annoy package
# hardware = "no GPU; Windows 10, and Docker"
# program  = "same"
#
# ///
"""One conversion.

work  images_to_tensor: 5 arrays of 200 × 200 × 3 integers; floats_to_tensor: 50,000 Python floats; tensors_to_array:
      20 tensors of 20 × 20 floats, to one array; mean_of_tensors: np.mean of these tensors; elements: 1,792 floats of a
      tensor, one by one
way   slow: the list of arrays, floats or tensors, or each element of the tensor, is converted directly; fast: first,
      NumPy makes one array of the list, or the tensors are converted to arrays
"""

from kit import eager_tensorflow, main


def scenario(bench, *, work="images_to_tensor", way="slow"):
    """Measure one conversion."""
    with bench.phase("import"):
        import numpy as np

        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        make = {
            "images_to_tensor": make_images,
            "floats_to_tensor": make_floats,
            "tensors_to_array": make_tensors,
            "mean_of_tensors": make_mean,
            "elements": make_elements,
        }[work]
        steps = dict(zip(("slow", "fast"), make(tf, np)))  # noqa: B905, Python 3.6
    with bench.phase("first call"):
        result = np.asarray(steps[way]())
    bench.measure(steps[way])
    bench.fingerprint(shape=[int(size) for size in result.shape], total=float("{:.4g}".format(float(result.sum()))))


def make_images(tf, np):
    """Return the slow and the fast way to convert a list of arrays to a tensor."""
    images = [np.full((200, 200, 3), number) for number in range(5)]
    return lambda: tf.convert_to_tensor(images), lambda: tf.convert_to_tensor(np.asarray(images))


def make_floats(tf, np):
    """Return the slow and the fast way to convert a list of floats to a tensor."""
    floats = np.linspace(0, 1, 50000).tolist()
    return lambda: tf.convert_to_tensor(floats), lambda: tf.convert_to_tensor(np.array(floats, "float32"))


def make_tensors(tf, np):
    """Return the slow and the fast way to convert a list of tensors to an array."""
    tensors = [tf.ones((20, 20)) for _ in range(20)]
    return lambda: np.array(tensors), lambda: np.array([tensor.numpy() for tensor in tensors])


def make_mean(tf, np):
    """Return the slow and the fast way to compute the mean of a list of tensors."""
    tensors = [tf.ones((20, 20)) for _ in range(20)]
    return lambda: np.mean(tensors), lambda: np.mean([tensor.numpy() for tensor in tensors])


def make_elements(tf, np):
    """Return the slow and the fast way to read the elements of a tensor."""
    tensor = tf.ones((1792,))
    array = tensor.numpy()
    return lambda: [float(tensor[at]) for at in range(1792)], lambda: [float(array[at]) for at in range(1792)]


if __name__ == "__main__":
    main(scenario)
