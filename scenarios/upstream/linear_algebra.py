# /// script
# requires-python = ">=3.6"
# dependencies = ["tensorflow>=1.14"]
#
# [tool.harness]
# title  = "Linear algebra and a Fourier transform: TensorFlow and NumPy"
# source = "https://github.com/tensorflow/tensorflow/issues/42967"
# tags   = ["upstream", "kernels"]
#
# [tool.harness.axes]
# operation = ["eig", "svd", "inverse", "matmul", "fft"]
# library   = ["tensorflow", "numpy"]
#
# [[tool.harness.needs]]
# when     = { operation = "eig", library = "tensorflow" }
# requires = ["tensorflow>=2.3"]
# reason   = "tf.linalg.eig is available in 2.3 and later."
#
# [[tool.harness.compare]]
# name    = "TensorFlow vs NumPy"
# along   = "library"
# plus    = "tensorflow"
# against = "numpy"
# [[tool.harness.compare]]
# name  = "release vs release"
# along = "environment"
#
# [[tool.harness.claim]]
# issue    = "T#42967"
# reported = "the eigenvalues of a matrix of 400 x 400 take 5.04 s, and 0.08 s with NumPy"
# worse    = { environment = "tf2.3", library = "tensorflow" }
# better   = { environment = "tf2.3", library = "numpy" }
# when     = { operation = "eig" }
# ratio    = [40, 100]
# hardware = "CPU of a Mac; the same on Linux"
# program  = "same"
#
# [[tool.harness.claim]]
# issue    = "T#13222"
# reported = "a singular value decomposition is up to 20 times slower than with NumPy"
# worse    = { environment = "tf1.14", library = "tensorflow" }
# better   = { environment = "tf1.14", library = "numpy" }
# when     = { operation = "svd" }
# ratio    = [2, 25]                # 20 is what another thread, 17352, cites of this one, for 1.5 and older
# hardware = "not reported; Ubuntu 16.10"
# version  = "September 2017: 1.3 or earlier"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#221"
# reported = "the inverse of a matrix is slower than with NumPy (no number could be read)"
# worse    = { environment = "tf1.14", library = "tensorflow" }
# better   = { environment = "tf1.14", library = "numpy" }
# when     = { operation = "inverse" }
# ratio    = [1.2, 20]              # in 2020 somebody saw 1.3 s, and 2.6 s with NumPy
# hardware = "not reported"
# version  = "0.5"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#13376"
# reported = "a matmul is slower than numpy.dot (a maintainer saw 38 and 36 ms on the CPU)"
# worse    = { environment = "tf1.14", library = "tensorflow" }
# better   = { environment = "tf1.14", library = "numpy" }
# when     = { operation = "matmul" }
# ratio    = [1.1, 10]
# hardware = "not reported"
# version  = "1.3"
# program  = "similar"
#
# [[tool.harness.claim]]
# issue    = "T#6541"
# reported = "the Fourier transform of tf.signal is slower on the CPU than NumPy's (no number could be read)"
# worse    = { environment = "tf2.11", library = "tensorflow" }
# better   = { environment = "tf2.11", library = "numpy" }
# when     = { operation = "fft" }
# ratio    = [1.2, 20]
# hardware = "not reported; Ubuntu 16.04"
# version  = "0.12, and again 2.11"
# program  = "similar"
# ///
"""One operation on normal noise, with TensorFlow in eager mode or with NumPy.

operation  eig: eigenvalues and eigenvectors of a matrix of 400 x 400 float64 numbers; svd: the full singular value
           decomposition of 512 x 512 float32 numbers; inverse, matmul: of 1,024 x 1,024 float32 numbers; fft: 64
           signals of 16,384 complex64 numbers
"""

from kit import eager_tensorflow, main

SIZES = {"eig": (400, 400), "svd": (512, 512), "inverse": (1024, 1024), "matmul": (1024, 1024), "fft": (64, 16384)}
TYPES = {"eig": "float64", "fft": "complex64"}


def scenario(bench, *, operation="eig", library="tensorflow"):
    """Measure one operation."""
    with bench.phase("import"):
        import numpy as np

        tf = eager_tensorflow()
    bench.device()
    with bench.phase("build"):
        x = np.random.RandomState(7).standard_normal(SIZES[operation]).astype(TYPES.get(operation, "float32"))
        if operation == "inverse":
            x += 64 * np.eye(len(x), dtype="float32")  # so that rounding doesn't change the digits
        step = by_numpy(np, x, operation) if library == "numpy" else by_tensorflow(tf, tf.constant(x), operation)
    with bench.phase("first call"):
        result = bench.fetch(step())
    bench.measure(step)
    bench.fingerprint(total=float("{:.3g}".format(sizes(np, result, operation))))


def by_tensorflow(tf, x, operation):
    """Return a step that runs the operation with TensorFlow."""
    if operation == "eig":
        return lambda: tf.linalg.eig(x)
    if operation == "svd":
        return lambda: tf.linalg.svd(x)
    if operation == "inverse":
        return lambda: tf.linalg.inv(x)
    return (lambda: tf.matmul(x, x)) if operation == "matmul" else (lambda: tf.signal.fft(x))


def by_numpy(np, x, operation):
    """Return a step that runs the operation with NumPy."""
    if operation == "eig":
        return lambda: np.linalg.eig(x)
    if operation == "svd":
        return lambda: np.linalg.svd(x)
    if operation == "inverse":
        return lambda: np.linalg.inv(x)
    return (lambda: np.dot(x, x)) if operation == "matmul" else (lambda: np.fft.fft(x))


def sizes(np, result, operation):
    """Return the sum of absolute values. Of several results, use only the eigenvalues or singular values."""
    arrays = [np.asarray(array) for array in (result if operation in ("eig", "svd") else [result])]
    chosen = [array for array in arrays if array.ndim == 1] if operation in ("eig", "svd") else arrays
    return float(np.abs(chosen[0].astype("complex128")).sum())


if __name__ == "__main__":
    main(scenario)
