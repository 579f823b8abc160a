import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.cuda_libraries import is_enough, libraries, parts
from harness.catalog.environments import load_environments

#: What the loaders of real wheels asked for (1.14.0, 2.3.4, 2.4.4, 2.10.1, 2.15.1, 2.21.0), in their own order.
ASKED = {
    ("10.0", "7.4"): "cudart.so.10.0 cublas.so.10.0 cufft.so.10.0 curand.so.10.0 cusolver.so.10.0 cusparse.so.10.0 "
    "cudnn.so.7 cupti.so.10.0",
    ("10.1", "7.6"): "cudart.so.10.1 cublas.so.10 cufft.so.10 curand.so.10 cusolver.so.10 cusparse.so.10 "
    "cudnn.so.7 cupti.so.10.1",
    ("11.0", "8.0"): "cudart.so.11.0 cublas.so.11 cublasLt.so.11 cufft.so.10 curand.so.10 cusolver.so.10 "
    "cusparse.so.11 cudnn.so.8 cupti.so.11.0",
    ("11.2", "8.1"): "cudart.so.11.0 cublas.so.11 cublasLt.so.11 cufft.so.10 curand.so.10 cusolver.so.11 "
    "cusparse.so.11 cudnn.so.8 cupti.so.11.2",
    ("12.2", "8.9"): "cudart.so.12 cublas.so.12 cublasLt.so.12 cufft.so.11 cusolver.so.11 cusparse.so.12 "
    "cudnn.so.8 cupti.so.12",
    ("12.5", "9.3"): "cudart.so.12 cublas.so.12 cublasLt.so.12 cufft.so.11 cusolver.so.11 cusparse.so.12 "
    "cudnn.so.9 cupti.so.12",
}

versions = st.builds("{}.{}".format, st.integers(7, 13), st.integers(0, 20))


@pytest.mark.parametrize(("built", "asked"), ASKED.items())
def test_the_names_are_those_that_tensorflow_asks_for(built, asked):
    first = {library.sonames[0] for library in libraries(*built)}
    wanted = {f"lib{name}" for name in asked.split()}
    assert wanted <= first
    assert first - wanted <= {"libcurand.so.10"}  # not asked for from 2.15 on


def test_where_cupti_is_newer_its_plain_name_will_do():
    found = {library.name: library.sonames for library in libraries("11.2", "8.1")}
    assert found["Cupti"] == ("libcupti.so.11.2", "libcupti.so")


def test_every_environment_of_the_catalogue_has_its_libraries(project):
    for environment in load_environments(project).values():
        found = libraries(environment.cuda, environment.cudnn)
        assert {"CudaRuntime", "Cublas", "Cudnn"} <= {library.name for library in found}
        assert all(re.fullmatch(r"lib\w+\.so[.\d]*", soname) for library in found for soname in library.sonames)


def test_cudnn_is_in_one_piece_up_to_7_and_then_in_several():
    assert parts("7.6") == ()
    assert "libcudnn_ops_infer.so.8" in parts("8.1")
    assert "libcudnn_ops.so.9" in parts("9.3")


@given(versions, versions)
def test_one_of_two_versions_serves_the_other_only_within_a_major_version(left, right):
    same = left.partition(".")[0] == right.partition(".")[0]
    assert (is_enough(left, right) or is_enough(right, left)) == same


@pytest.mark.parametrize(
    ("found", "built", "enough"),
    [("11.8", "11.2", True), ("11.8.1", "11.8", True), ("12.9", "12.10", False), ("8.0.5", "8.1", False)],
)
def test_a_newer_minor_version_is_enough_and_an_older_one_is_not(found, built, enough):
    assert is_enough(found, built) is enough
