"""The catalogue's words for what fat binaries hold."""

import json

from bench import gpu_code
from harness.backends.gpu_code import LibraryCode, describe_libraries
from harness.environments.catalog import load_environments
from harness.model.gpu import GpuCode
from harness.project import Project
from tests.conftest import ROOT

TENSORFLOW = "/packages/tensorflow/libtensorflow_cc.so.2"
OPS, ADV, CNN = (f"/packages/nvidia/libcudnn_{part}.so.9" for part in ("ops", "adv", "cnn"))


def test_machine_code_with_ptx_is_compute_and_cublas_is_two_libraries():
    assert describe_libraries({TENSORFLOW: [["sm_35", "ptx_35", "sm_70", "ptx_70"], ["sm_35", "sm_70"]]}).gpu_code == (
        "compute_35 compute_70"
    )
    assert (
        describe_libraries({TENSORFLOW: [["sm_70", "sm_100", "sm_80", "ptx_80"]]}).gpu_code == "sm_70 compute_80 sm_100"
    )
    assert describe_libraries({}) == LibraryCode()
    libraries = {"/l/libcublas.so.12": [["sm_50"], ["sm_90"]], "/l/libcublasLt.so.12": [["sm_90"], ["sm_100"]]}
    assert describe_libraries(libraries) == LibraryCode(cublas_code="sm_90")


def test_where_a_module_has_ptx_for_what_others_have_machine_code_for():
    others = [["sm_60", "sm_70", "sm_90", "ptx_90"]] * 3
    for module, ptx_alone in (
        (["sm_60", "sm_70", "ptx_90:8.5/sm_90a"], "compute_90 of PTX 8.5 for sm_90a"),
        (["sm_60", "sm_70", "sm_90", "ptx_90:8.5/sm_90"], ""),
        (["ptx_90:8.5/sm_90"], ""),  # what is linked has its machine code elsewhere
        (["sm_60"], ""),  # a kernel for an old GPU alone: no newer one asks for it
        (["sm_60", "ptx_100:8.6/sm_100"], ""),  # nothing else has code for that one
    ):
        libraries = {TENSORFLOW: others, "/packages/tensorflow/_pywrap.so": [module]}
        assert describe_libraries(libraries).ptx_alone == ptx_alone, module


def test_cudnn_has_what_all_of_its_parts_have_kernels_for_single_gpus_aside():
    libraries = {
        OPS: [["sm_75", "sm_80", "sm_90", "ptx_90"], ["sm_75", "sm_80", "sm_90"]],
        ADV: [["sm_70", "sm_75", "sm_80", "sm_90"]],
        CNN: [["sm_75", "sm_80", "sm_90"], ["sm_75"]],
        "/packages/nvidia/libcudnn_engines_precompiled.so.9": [["sm_50"]],
        TENSORFLOW: [["sm_60"]],
    }
    assert describe_libraries(libraries).cudnn_code == "sm_75 sm_80 sm_90"
    assert describe_libraries({**libraries, ADV: [["sm_80"], ["sm_80", "sm_90"]]}).cudnn_code == "sm_80"
    assert (
        describe_libraries({"/usr/lib/libcudnn.so.7.6.4": [["sm_30", "sm_70"], ["sm_75"]]}).cudnn_code
        == "sm_30 sm_70 sm_75"
    )


STORED = json.loads(gpu_code.KEPT.read_text())
CATALOG = load_environments(Project(ROOT))
READ = [
    name
    for name, environment in CATALOG.items()
    if (wheels := gpu_code.list_wheels(environment)) and STORED.keys() >= set(wheels)
]


def test_the_catalogue_says_what_was_read_in_the_wheels_of_its_locks():
    assert {f"tf2.{minor}" for minor in range(5, 22)} <= set(READ)
    for name in READ:
        environment = CATALOG[name]
        code = describe_libraries(
            {
                library: [line.split()[2:] for line in modules]
                for wheel in gpu_code.list_wheels(environment)
                for library, modules in STORED[wheel].items()
            }
        )
        assert (environment.gpu_code, environment.ptx_alone) == (code.gpu_code, code.ptx_alone), name
        # CUDA that is copied from an image is in no wheel
        assert code.cudnn_code == ("" if environment.cuda_image else environment.cudnn_code), name
        cudnn, cublas = GpuCode.parse(code.cudnn_code), GpuCode.parse(code.cublas_code)
        needed = [entry for entry in GpuCode.parse(environment.gpu_code).machine if cudnn.runs_on(entry)]
        assert all(cublas.runs_on(entry) for entry in needed), name
