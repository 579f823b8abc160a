"""What NVIDIA's own Python package tells of the stand-ins' cards: the library is C, as the driver's is."""

import ctypes
import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.stand_in.gpus import H100, MIG, RTX_3090, T4, Machine, StandIn

SAYS = """
from harness.machine.gpu.host import read
host = read()
print(host.absent or host.driver)
for card in host.cards:
    print(card.index, card.name, card.capability, card.memory_bytes // 2**30, card.pci, card.uuid, card.is_partitioned)
    for instance in card.instances:
        print(instance.index, instance.name, instance.memory_bytes // 2**30, instance.uuid)
"""


def said(machine: Machine, script: str = SAYS) -> list[str]:
    environ = {**os.environ, **machine.environ()}
    done = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_two_cards_are_told_apart(stand_ins: Path) -> None:
    assert said(Machine(stand_ins, [T4, RTX_3090])) == [
        "550.54.15",
        "0 Tesla T4 (7, 5) 15 0000:01:00.0 GPU-00000000-57a4-d000-0000-000000000000 False",
        "1 NVIDIA GeForce RTX 3090 (8, 6) 24 0000:02:00.0 GPU-00000001-57a4-d000-0000-000000000001 False",
    ]


def test_a_divided_card_has_an_instance(stand_ins: Path) -> None:
    assert said(Machine(stand_ins, [MIG])) == [
        "550.54.15",
        "0 NVIDIA A100-SXM4-40GB (8, 0) 40 0000:01:00.0 GPU-00000000-57a4-d000-0000-000000000000 True",
        "0:0 NVIDIA A100-SXM4-40GB MIG 3g.20gb 20 MIG-00000000-57a4-d000-0000-000000000000",
    ]


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ({}, "the NVIDIA driver 550.54.15 sees no GPU"),
        ({"STAND_IN_NVML_INIT": "9"}, "the NVIDIA driver is not loaded"),
        ({"STAND_IN_NVML_INIT": "18"}, "the NVIDIA driver was updated but not reloaded"),
    ],
)
def test_a_machine_without_a_gpu_that_works_says_why(stand_ins: Path, faults: dict[str, str], words: str) -> None:
    assert said(Machine(stand_ins, [] if not faults else [T4], faults))[0].startswith(words)


@pytest.mark.parametrize(
    ("driver", "cuda"), [("470.82.01", (11, 4)), ("535.104.05", (12, 2)), ("537.1", (12, 2)), ("580.65.06", (13, 0))]
)
def test_a_driver_decides_which_cuda_it_knows(stand_ins: Path, driver: str, cuda: tuple[int, int]) -> None:
    script = "from harness.machine.gpu.host import read; print(read().driver, read().cuda)"
    assert said(Machine(stand_ins, [T4], {"STAND_IN_DRIVER": driver}), script) == [f"{driver} {cuda}"]


@pytest.mark.parametrize(
    ("card", "driver"),
    [(H100, "470.82.01"), (RTX_3090, "450.80.02"), (StandIn("NVIDIA B200", "10.0", 180), "550.54.15")],
)
def test_a_card_that_is_newer_than_the_driver_is_refused(stand_ins: Path, card: StandIn, driver: str) -> None:
    environ = {**os.environ, **Machine(stand_ins, [card], {"STAND_IN_DRIVER": driver}).environ()}
    command = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libnvidia-ml.so.1')"]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert done.stderr.startswith(f"stand-in: the driver {driver} is older than the {card.name} ({card.capability})")


def test_a_card_has_the_number_of_its_device_node(stand_ins: Path) -> None:
    script = (
        "import pynvml; pynvml.nvmlInit(); handle = pynvml.nvmlDeviceGetHandleByIndex(1); "
        "print(pynvml.nvmlDeviceGetMinorNumber(handle))"
    )
    assert said(Machine(stand_ins, [T4, RTX_3090]), script) == ["1"]


STARTS = """
import ctypes
cuda, name = ctypes.CDLL("libcuda.so.1"), ctypes.c_char_p()
code = cuda.cuInit(0)
cuda.cuGetErrorName(code, ctypes.byref(name))
print(code, name.value.decode())
"""


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("0", "CUDA_SUCCESS"),
        ("100", "CUDA_ERROR_NO_DEVICE"),
        ("802", "CUDA_ERROR_SYSTEM_NOT_READY"),
        ("803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
        ("804", "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"),
    ],
)
def test_a_driver_that_does_not_start_says_why(stand_ins: Path, code: str, name: str) -> None:
    assert said(Machine(stand_ins, [T4], {"STAND_IN_CUINIT": code}), STARTS) == [f"{code} {name}"]


WATCHES = """
import json, threading
from harness.machine.gpu.host import keep_driver_loaded, read
from harness.machine.gpu.monitor import GpuMonitor
cards = read().cards
with keep_driver_loaded(cards), GpuMonitor(cards, every=0.0) as watching:
    for thread in [each for each in threading.enumerate() if each.name == "gpu watch"]:  # none where it has ended
        thread.join(60)
print(json.dumps(watching.resources({})))
"""


def test_a_card_that_the_driver_loses_in_mid_launch_is_survived_and_said(stand_ins: Path) -> None:
    assert said(Machine(stand_ins, [T4], {"STAND_IN_NVML_LOST_AFTER": "20"}), WATCHES) == ['{"gpu_lost": 1.0}']


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


@pytest.mark.parametrize(("letter", "kind"), [("S", "float32"), ("D", "float64")])
@pytest.mark.parametrize(("is_a_transposed", "is_b_transposed"), [*product([False, True], repeat=2)])
def test_small_products_of_matrices_are_computed(
    stand_ins: Path, letter: str, kind: str, is_a_transposed: bool, is_b_transposed: bool
) -> None:
    multiply = getattr(ctypes.CDLL(str(stand_ins / "libcublas.so.12")), f"cublas{letter}gemmStridedBatched")
    random = np.random.default_rng(0)
    # a batch of two, of which each matrix is stored by columns
    a, b, c = (random.normal(size=(2, *shape)).astype(kind) for shape in [(3, 4), (4, 5), (3, 5)])
    stored_a = np.ascontiguousarray(a if is_a_transposed else a.swapaxes(1, 2))
    stored_b = np.ascontiguousarray(b if is_b_transposed else b.swapaxes(1, 2))
    stored_c, alpha, beta = np.ascontiguousarray(c.swapaxes(1, 2)), np.array(1.5, kind), np.array(0.5, kind)
    size = ctypes.c_longlong
    multiply(
        *(None, int(is_a_transposed), int(is_b_transposed), 3, 5, 4, address(alpha)),
        *(address(stored_a), stored_a.shape[2], size(12), address(stored_b), stored_b.shape[2], size(20)),
        *(address(beta), address(stored_c), 3, size(15), 2),
    )
    np.testing.assert_allclose(stored_c.swapaxes(1, 2), 1.5 * a @ b + 0.5 * c, rtol=1e-5)


def test_a_matrix_times_a_vector_is_computed_where_elements_are_apart(stand_ins: Path) -> None:
    multiply = ctypes.CDLL(str(stand_ins / "libcublas.so.12")).cublasSgemv_v2
    a, x, y = np.arange(12, dtype="float32").reshape(3, 4), np.arange(6, dtype="float32"), np.full(8, 9, "float32")
    stored, one, zero = np.ascontiguousarray(a.T), np.array(1, "float32"), np.array(0, "float32")
    multiply(None, 1, 3, 4, address(one), address(stored), 3, address(x), 2, address(zero), address(y), 2)
    assert y[::2].tolist() == (a.T @ x[::2]).tolist()
    assert y[1::2].tolist() == [9.0] * 4
