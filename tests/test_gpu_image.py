import dataclasses
import re

import pytest

from bench.gpu_image import CudaReport, is_enough, judge, list_cudnn_parts, list_libraries
from harness.environments.catalog import load_environments
from harness.model.environment import Device, Environment

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
    """Return the output of fatbins.py. `changes` are by the start of a library's name."""
    return {path: changes.get(re.sub(r".*/lib|\W.*", "", path), modules) for path, modules in CODE.items()}


def probe(**changes):
    """Return the probe's output for a complete image: CUDA 11.8 for a TensorFlow that was built with 11.2."""
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


def judge_change(part: str, value: object, *, code=None, **catalog: object) -> CudaReport:
    """Judge a complete image, except that the probe's output differs in one part."""
    return judge(dataclasses.replace(ENVIRONMENT, **catalog), probe(**{part: value} if part else {}), code or {})


def test_a_complete_image_takes_one_line_and_a_missing_library_comes_with_the_loaders_words():
    report = judge(ENVIRONMENT, probe(), {})
    assert report.is_complete
    assert "libcupti.so" in report.opened  # by its second name
    assert len(report.lines()) == 1
    report = judge(ENVIRONMENT, probe(), read())
    assert report.is_complete
    assert report.lines() == [
        "9 CUDA libraries open: CUDA 11.8 (built for 11.2), cuDNN 8.7.0 (built for 8.1)",
        "GPU code: TensorFlow sm_70 compute_80, cuDNN sm_50 sm_70 sm_80 sm_90, cuBLAS sm_50 sm_70 sm_80 sm_90",
    ]
    report = judge_change("asked", probe()["asked"] | {"Cupti": [["libcupti.so.11.2", ABSENT]]})
    assert report.missing == {"libcupti.so.11.2": ABSENT}
    assert f"libcupti.so.11.2: MISSING, {ABSENT}" in report.lines()
    words = "libcudnn_ops_infer.so.8: undefined symbol"
    versions = {soname: version for soname, version in probe()["opened"].items() if soname != "libcudnn_ops_infer.so.8"}
    report = judge(ENVIRONMENT, probe(opened=versions, closed={"libcudnn_ops_infer.so.8": words}), {})
    assert report.missing == {"libcudnn_ops_infer.so.8": words}


#: What the probe says in place of one part of a complete image.
OTHERS = {
    "CUDA is older": ("opened", {"libcudart.so.11.0": "11.1"}),
    "cuDNN is older": ("opened", {"libcudnn.so.8": "8.0.5"}),
    "cuDNN is of another major version": ("opened", {"libcudnn.so.8": "9.1.0"}),
    "the wheel has another CUDA": ("build", {"cuda_version": "11.8"}),
    "the wheel has another cuDNN": ("build", {"cudnn_version": "9"}),
    "the wheel has other GPU code": ("build", {"cuda_compute_capabilities": ["sm_70", "compute_90"]}),
}
#: What was read in the libraries, and what the catalog says of them.
OTHER_CODE = {
    "machine code": (read(tensorflow_cc=[["sm_70", "sm_80"]]), {}),
    "PTX alone": (read(tensorflow_cc=[["sm_70", "sm_80", "ptx_80"], ["sm_70", "ptx_80:7.1/sm_80"]]), {}),
    "no PTX alone": (read(), {"ptx_alone": "compute_80 of PTX 7.1"}),
    "cuDNN": (read(cudnn_ops_infer=[["sm_75", "sm_80"], ["sm_80"]]), {"cudnn_code": "sm_50 sm_70 sm_80 sm_90"}),
    "cuBLAS": (read(cublas=[["sm_80"]]), {}),
}


def test_what_the_catalogue_does_not_describe_disagrees(snapshot):
    reports = {case: judge_change(part, {**probe()[part], **changes}) for case, (part, changes) in OTHERS.items()}
    reports |= {case: judge_change("", None, code=code, **catalog) for case, (code, catalog) in OTHER_CODE.items()}
    # an image that brings its packages has to have those that scenarios import; another one's lock names what is in it
    broken = {"yaml": "ModuleNotFoundError: No module named 'yaml'"}
    assert judge_change("broken", broken).is_complete
    reports["a module"] = judge_change("broken", broken, gpu_image="nvcr.io/tf:1")
    requests = {**probe()["asked"], "Cudnn": [["libcudnn.so.9", ""]]}
    versions = {**probe()["opened"], "libcudnn.so.9": "9.1.0"}
    reports["another library"] = judge(ENVIRONMENT, probe(asked=requests, opened=versions), {})
    # where TensorFlow can't be asked, the catalogue's CUDA is looked for
    reports["no TensorFlow"] = judge(ENVIRONMENT, probe(asked={}, trouble="TensorFlow does not start: no module"), {})
    assert "libcublas.so.11" in reports["no TensorFlow"].missing
    reports["no tools of XLA"] = judge(ENVIRONMENT, probe(ptxas="", libdevice=""), {})
    assert [case for case, report in reports.items() if report.is_complete] == []
    assert {case: report.disagreements for case, report in reports.items()} == snapshot


def test_what_says_no_other_thing_agrees():
    for changes in (
        {"cuda_compute_capabilities": ["compute_80", "sm_70"]},  # in any order
        {"cuda_version": "11.2.1"},
    ):
        assert judge_change("build", {**probe()["build"], **changes}).is_complete, changes
    assert judge_change("build", {}).is_complete
    # the catalogue does not know cuDNN's code
    assert ENVIRONMENT.cudnn_code == ""
    assert judge(ENVIRONMENT, probe(), read(cudnn_ops_infer=[["sm_120"]])).is_complete
    # where CUDA is copied, XLA's tools are only noted
    report = judge_change("ptxas", "", cuda_image="tensorflow/tensorflow:2.4.0-gpu")
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


def test_the_names_are_those_that_tensorflow_asks_for():
    for built, names in ASKED.items():
        first = {sonames[0] for sonames in list_libraries(*built).values()}
        wanted = {f"lib{name}" for name in names.split()}
        assert wanted <= first, built
        assert first - wanted <= {"libcurand.so.10"}, built  # not asked for from 2.15 on
    # where CUPTI is newer, its plain name will do
    assert list_libraries("11.2", "8.1")["Cupti"] == ("libcupti.so.11.2", "libcupti.so")
    # cuDNN is in one piece up to 7, and then in several
    assert list_cudnn_parts("7.6") == ()
    assert "libcudnn_ops_infer.so.8" in list_cudnn_parts("8.1")
    assert "libcudnn_ops.so.9" in list_cudnn_parts("9.3")


def test_a_newer_minor_version_is_enough_and_an_older_one_is_not():
    for version, built, enough in (
        ("11.8", "11.2", True),
        ("11.8.1", "11.8", True),
        ("12.9", "12.10", False),
        ("8.0.5", "8.1", False),
    ):
        assert is_enough(version, built) is enough, (version, built)


@pytest.mark.slow
def test_every_environment_of_the_catalogue_has_its_libraries(project):
    for environment in load_environments(project).values():
        if Device.GPU not in environment.devices:
            continue
        libraries = list_libraries(environment.cuda, environment.cudnn)
        assert {"CudaRuntime", "Cublas", "Cudnn"} <= libraries.keys()
        assert all(re.fullmatch(r"lib\w+\.so[.\d]*", soname) for sonames in libraries.values() for soname in sonames)
