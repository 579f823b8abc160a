import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.docker.cuda import is_enough, list_cudnn_parts, list_libraries
from harness.backends.docker.cuda import judge as judge_all
from harness.catalog.environments import load_environments
from harness.model.environment import Environment

ENVIRONMENT = Environment(
    "tf2.10", "2.10.1", "3.8", "2022-12-01T00:00:00Z", cuda="11.2", cudnn="8.1", gpu_code="sm_70 compute_80"
)
ABSENT = "libcupti.so.11.2: cannot open shared object file: No such file or directory"
PARTS = {f"libcudnn_{part}.so.8": "" for part in ("ops_infer", "ops_train", "cnn_infer", "cnn_train")}
PARTS |= {"libcudnn_adv_infer.so.8": "", "libcudnn_adv_train.so.8": ""}


#: What fatbins.py read there.
CODE = {
    "/s/tensorflow/libtensorflow_cc.so.2": [["sm_70", "sm_80", "ptx_80"]],
    "/s/libcudnn_ops_infer.so.8": [["sm_50", "sm_70", "sm_80", "sm_90", "ptx_90"]],
    "/s/libcublas.so.11": [["sm_50", "sm_70", "sm_80", "sm_90"]],
}


def read(**changes):
    """What fatbins.py prints; `changes` by the start of a library's name."""
    code = {path: changes.get(re.sub(r".*/lib|\W.*", "", path), modules) for path, modules in CODE.items()}
    return {path: {"modules": [[1, 64, module] for module in modules], "unread": 0} for path, modules in code.items()}


def judge(environment, what, code=None):
    return judge_all(environment, what, {} if code is None else code)


def found(**changes):
    """What the probe prints of a complete image: CUDA 11.8 for a TensorFlow that was built with 11.2."""
    return {
        "asked": {
            "CudaRuntime": [["libcudart.so.11.0", ""]],
            "Cudnn": [["libcudnn.so.8", ""]],
            "Cupti": [["libcupti.so.11.2", ABSENT], ["libcupti.so", ""]],
        },
        "opened": {"libcudart.so.11.0": "11.8", "libcudnn.so.8": "8.7.0", "libcupti.so": "", **PARTS},
        "closed": {"libcupti.so.11.2": ABSENT},
        "ptxas": "11.8.89",
        "libdevice": "/usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
        "build": {"cuda_version": "11.2", "cudnn_version": "8", "cuda_compute_capabilities": ["sm_70", "compute_80"]},
        "broken": {},
        "trouble": "",
        **changes,
    }


def test_a_complete_image_takes_one_line():
    report = judge(ENVIRONMENT, found())
    assert report.is_complete
    assert "libcupti.so" in report.opened  # by its second name
    assert report.lines() == ["9 CUDA libraries open: CUDA 11.8 (built for 11.2), cuDNN 8.7.0 (built for 8.1)"]


def test_a_missing_library_comes_with_the_loaders_words():
    asked = found()["asked"] | {"Cupti": [["libcupti.so.11.2", ABSENT]]}
    report = judge(ENVIRONMENT, found(asked=asked))
    assert report.missing == {"libcupti.so.11.2": ABSENT}
    assert f"libcupti.so.11.2: MISSING, {ABSENT}" in report.lines()


def test_a_library_whose_own_libraries_are_missing_is_missing():
    words = "libcudnn_ops_infer.so.8: undefined symbol"
    opened = {soname: version for soname, version in found()["opened"].items() if soname != "libcudnn_ops_infer.so.8"}
    report = judge(ENVIRONMENT, found(opened=opened, closed={"libcudnn_ops_infer.so.8": words}))
    assert report.missing == {"libcudnn_ops_infer.so.8": words}


@pytest.mark.parametrize(
    ("part", "key", "value", "sentence"),
    [
        ("opened", "libcudart.so.11.0", "11.1", "CUDA is 11.1, but TensorFlow was built with 11.2."),
        ("opened", "libcudnn.so.8", "8.0.5", "cuDNN is 8.0.5, but TensorFlow was built with 8.1."),
        ("opened", "libcudnn.so.8", "9.1.0", "cuDNN is 9.1.0, but TensorFlow was built with 8.1."),
        (
            "build",
            "cuda_version",
            "11.8",
            "According to the wheel, CUDA is 11.8, but according to the catalog, it is 11.2.",
        ),
        ("build", "cudnn_version", "9", "According to the wheel, cuDNN is 9, but according to the catalog, it is 8."),
        (
            "build",
            "cuda_compute_capabilities",
            ["sm_70", "compute_90"],
            "According to the wheel, the GPU code is sm_70 compute_90, but according to the catalog, it is sm_70 "
            "compute_80.",
        ),
    ],
)
def test_what_the_catalogue_does_not_describe_disagrees(part, key, value, sentence):
    report = judge(ENVIRONMENT, found(**{part: {**found()[part], key: value}}))
    assert not report.is_complete
    assert report.disagreements == [sentence]


def test_an_image_that_brings_its_packages_has_to_have_those_that_scenarios_import():
    words = found(broken={"yaml": "ModuleNotFoundError: No module named 'yaml'"})
    assert judge(ENVIRONMENT, words).is_complete  # its lock names what is in it
    report = judge(dataclasses.replace(ENVIRONMENT, gpu_image="nvcr.io/tf:1"), words)
    assert report.disagreements == ["The module yaml can't be imported (ModuleNotFoundError: No module named 'yaml')."]


def test_builds_list_their_gpu_code_in_any_order():
    build = {"cuda_compute_capabilities": ["compute_80", "sm_70"]}
    assert judge(ENVIRONMENT, found(build=found()["build"] | build)).is_complete


def test_the_gpu_code_that_was_read_takes_a_line():
    report = judge(ENVIRONMENT, found(), read())
    assert report.is_complete
    assert report.lines()[1:] == [
        "GPU code: TensorFlow sm_70 compute_80, cuDNN sm_50 sm_70 sm_80 sm_90, cuBLAS sm_50 sm_70 sm_80 sm_90"
    ]


@pytest.mark.parametrize(
    ("catalogue", "changes", "sentence"),
    [
        (
            {},
            {"tensorflow_cc": [["sm_70", "sm_80"]]},
            "The libraries of TensorFlow contain this GPU code sm_70 sm_80; `gpu_code` in docker-bake.hcl is "
            "sm_70 compute_80.",
        ),
        (
            {},
            {"tensorflow_cc": [["sm_70", "sm_80", "ptx_80"], ["sm_70", "ptx_80:7.1"]]},
            "The libraries of TensorFlow contain this PTX without machine code compute_80 of PTX 7.1; "
            "`ptx_alone` in docker-bake.hcl is not set.",
        ),
        (
            {"ptx_alone": "compute_80 of PTX 7.1"},
            {},
            "The libraries of TensorFlow contain this PTX without machine code nothing; `ptx_alone` in "
            "docker-bake.hcl is compute_80 of PTX 7.1.",
        ),
        (
            {"cudnn_code": "sm_50 sm_70 sm_80 sm_90"},
            {"cudnn_ops_infer": [["sm_75", "sm_80"], ["sm_80"]]},
            "cuDNN has machine code for sm_80; `cudnn_code` in docker-bake.hcl is sm_50 sm_70 sm_80 sm_90.",
        ),
        (
            {},
            {"cublas": [["sm_80"]]},
            "cuBLAS contains no code for 7.0, which the catalog lists as supported.",
        ),
    ],
)
def test_gpu_code_that_the_catalogue_does_not_tell_disagrees(catalogue, changes, sentence):
    report = judge(dataclasses.replace(ENVIRONMENT, **catalogue), found(), read(**changes))
    assert not report.is_complete
    assert report.disagreements == [sentence]


def test_where_the_catalogue_does_not_know_cudnns_code_that_is_no_mistake():
    assert ENVIRONMENT.cudnn_code == ""
    assert judge(ENVIRONMENT, found(), read(cudnn_ops_infer=[["sm_120"]])).is_complete


def test_a_wheel_that_is_newer_than_the_catalog_has_the_code_that_was_read():
    nightly = dataclasses.replace(ENVIRONMENT, gpu_code="sm_70 compute_80", gpu_code_of="2.5.0")
    code = read(tensorflow_cc=[["sm_80", "sm_120", "ptx_120"]], cublas=[["sm_80", "sm_120"]])
    report = judge(nightly, found(build={}), code)
    assert report.is_complete
    assert report.environment.gpu_code == "sm_80 compute_120"
    assert report.environment.cudnn_code == "sm_50 sm_70 sm_80 sm_90"
    assert not report.environment.is_unread
    # nothing was read
    assert judge(nightly, found()).environment == nightly


@pytest.mark.parametrize("build", [{"cuda_version": "11.2.1"}, {}], ids=["a patch release", "no build info"])
def test_a_wheel_that_says_no_other_thing_agrees(build):
    assert judge(ENVIRONMENT, found(build=build)).is_complete


def test_a_tensorflow_that_asks_for_another_library_disagrees():
    asked = {**found()["asked"], "Cudnn": [["libcudnn.so.9", ""]]}
    report = judge(ENVIRONMENT, found(asked=asked, opened={**found()["opened"], "libcudnn.so.9": "9.1.0"}))
    assert (
        "TensorFlow loads libcudnn.so.9, but the CUDA and cuDNN in the catalog provide libcudnn.so.8."
        in report.disagreements
    )


def test_where_tensorflow_cannot_be_asked_the_catalogues_cuda_is_looked_for_and_that_is_said():
    report = judge(ENVIRONMENT, found(asked={}, trouble="TensorFlow does not start: no module"))
    assert "libcublas.so.11" in report.missing
    assert report.disagreements == ["TensorFlow does not start: no module"]


def test_xlas_tools_are_needed_where_cuda_comes_from_packages_and_only_noted_where_it_is_copied():
    assert len(judge(ENVIRONMENT, found(ptxas="", libdevice="")).disagreements) == 2
    copied = dataclasses.replace(ENVIRONMENT, cuda_image="tensorflow/tensorflow:2.4.0-gpu")
    report = judge(copied, found(ptxas=""))
    assert report.is_complete
    assert len(report.lines()) == 2


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
    first = {sonames[0] for sonames in list_libraries(*built).values()}
    wanted = {f"lib{name}" for name in asked.split()}
    assert wanted <= first
    assert first - wanted <= {"libcurand.so.10"}  # not asked for from 2.15 on


def test_where_cupti_is_newer_its_plain_name_will_do():
    assert list_libraries("11.2", "8.1")["Cupti"] == ("libcupti.so.11.2", "libcupti.so")


def test_every_environment_of_the_catalogue_has_its_libraries(project):
    for environment in load_environments(project).values():
        found = list_libraries(environment.cuda, environment.cudnn)
        assert {"CudaRuntime", "Cublas", "Cudnn"} <= found.keys()
        assert all(re.fullmatch(r"lib\w+\.so[.\d]*", soname) for sonames in found.values() for soname in sonames)


def test_cudnn_is_in_one_piece_up_to_7_and_then_in_several():
    assert list_cudnn_parts("7.6") == ()
    assert "libcudnn_ops_infer.so.8" in list_cudnn_parts("8.1")
    assert "libcudnn_ops.so.9" in list_cudnn_parts("9.3")


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
