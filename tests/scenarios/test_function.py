"""The scenarios on tf.function and the kit's part in them, with NumPy in TensorFlow's place."""

from types import SimpleNamespace

import function_retracing
import matmul_loop
import numpy as np
from kit import fixed_matrix, power_of


def test_powers_and_sums_are_those_of_the_matrix_whatever_the_arguments():
    tf = SimpleNamespace(int32=np.int32, eye=np.eye, matmul=np.matmul, constant=np.array)
    matrix = fixed_matrix(tf)
    assert set(matrix.ravel()) == {-1, 0, 1}
    assert np.array_equal(power_of(tf)(matrix, 7), np.linalg.matrix_power(matrix, 7))
    tf = SimpleNamespace(ones=np.ones, constant=np.array)
    for argument in ("number", "tensor", "shape", "relaxed_shape", "signature", "traced"):
        values = function_retracing.make_arguments(tf, argument)
        assert function_retracing.call(np.sum, values) == [1, 2, 3, 4, 5, 6, 7, 8], argument
        assert len({np.shape(value) for value in values}) == (8 if argument in function_retracing.VECTORS else 1)


def test_the_option_to_relax_shapes_has_the_name_of_the_release():
    old, new = (
        lambda func=None, experimental_relax_shapes=False: None,
        lambda func=None, reduce_retracing=False, experimental_relax_shapes=None: None,
    )
    assert function_retracing.find_relaxing_option(old) == "experimental_relax_shapes"
    assert function_retracing.find_relaxing_option(new) == "reduce_retracing"


def test_a_nested_loop_does_the_work_of_a_flat_one(monkeypatch):
    monkeypatch.setattr(matmul_loop, "SIDE", 4)
    tf, ones = SimpleNamespace(zeros=np.zeros, matmul=np.matmul), np.ones((4, 4))
    flat, nested = (matmul_loop.make_compute(tf, structure)(ones, ones) for structure in ("flat", "nested"))
    assert np.array_equal(flat, nested)
    assert flat[0, 0] == 4 * 5**10  # 4, and ten times as much again and four times that
