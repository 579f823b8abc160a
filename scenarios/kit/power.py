"""The matrix power that is timed in the guide to graphs: https://www.tensorflow.org/guide/intro_to_graphs."""

SIDE = 10


def fixed_matrix(tf):
    """Return a constant int32 matrix of shape (10, 10) with values from -1 to 1. In the guide, it is random."""
    import numpy as np

    return tf.constant(np.random.RandomState(0).randint(-1, 2, (SIDE, SIDE)), tf.int32)


def power_of(tf):
    """Return the guide's function `power(x, y)`: the matrix `x` to the power of the Python integer `y`, by y products.

    The integers overflow, but in the same way in every release.
    """

    def power(x, y):
        result = tf.eye(SIDE, dtype=tf.int32)
        for _ in range(y):
            result = tf.matmul(x, result)
        return result

    return power
