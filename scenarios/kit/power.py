"""The powers of a matrix that the guide to graphs times: https://www.tensorflow.org/guide/intro_to_graphs."""

SIDE = 10


def fixed_matrix(tf):
    """The matrix, (10, 10) of int32, each -1, 0 or 1: the guide draws it, and here it is always the same."""
    import numpy as np

    return tf.constant(np.random.RandomState(0).randint(-1, 2, (SIDE, SIDE)), tf.int32)


def power_of(tf):
    """The guide's function `power(x, y)`: the matrix `x` to the power of the Python number `y`, by y products.

    Whole numbers overflow, and the same way everywhere.
    """

    def power(x, y):
        result = tf.eye(SIDE, dtype=tf.int32)
        for _ in range(y):
            result = tf.matmul(x, result)
        return result

    return power
