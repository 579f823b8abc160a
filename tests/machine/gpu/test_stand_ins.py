"""What NVIDIA's own Python package tells of the stand-ins' cards: the library is C, as the driver's is."""

import ctypes
import json
import os
import subprocess
import sys
from itertools import product
from typing import Any

import numpy as np

from tests.stand_in.gpus import MIG, RTX_3090, T4, Machine

READ = """
import json
from harness.machine.gpu.host import read
host = read()
cards = [[card.index, card.name, card.capability, card.memory_bytes >> 30, card.pci, card.uuid, card.is_partitioned,
          [[part.index, part.name, part.memory_bytes >> 30, part.uuid] for part in card.instances]]
         for card in host.gpus]
print(json.dumps([bool(host.absent), host.driver, host.cuda, cards]))
"""


def run_script(machine: Machine, script: str = READ) -> Any:
    environ = {**os.environ, **machine.environ()}
    completed = subprocess.run([sys.executable, "-c", script], env=environ, capture_output=True, text=True, check=True)
    return json.loads(completed.stdout)


def test_cards_and_instances_are_read(stand_ins):
    uuid = "00000000-57a4-d000-0000-000000000000"
    t4 = [0, "Tesla T4", [7, 5], 15, "0000:01:00.0", f"GPU-{uuid}", False, []]
    other = "GPU-00000001-57a4-d000-0000-000000000001"
    rtx = [1, "NVIDIA GeForce RTX 3090", [8, 6], 24, "0000:02:00.0", other, False, []]
    assert run_script(Machine(stand_ins, [T4, RTX_3090])) == [False, "550.54.15", [12, 4], [t4, rtx]]
    instance = ["0:0", "NVIDIA A100-SXM4-40GB MIG 3g.20gb", 20, f"MIG-{uuid}"]
    a100 = [0, "NVIDIA A100-SXM4-40GB", [8, 0], 40, "0000:01:00.0", f"GPU-{uuid}", True, [instance]]
    assert run_script(Machine(stand_ins, [MIG]))[3] == [a100]


def test_a_driver_decides_which_cuda_it_knows(stand_ins):
    versions = {"470.82.01": [11, 4], "537.1": [12, 2], "580.65.06": [13, 0]}
    machines = {driver: Machine(stand_ins, [T4], {"STAND_IN_DRIVER": driver}) for driver in versions}
    assert {driver: run_script(machine)[2] for driver, machine in machines.items()} == versions


def test_a_card_that_the_driver_loses_in_mid_launch_is_survived_and_reported(stand_ins):
    script = """
import json, threading
from harness.machine.gpu.host import keep_driver_loaded, read
from harness.machine.gpu.monitor import GpuMonitor
cards = read().gpus
with keep_driver_loaded(cards), GpuMonitor(cards, every=0.0) as watching:
    for thread in [thread for thread in threading.enumerate() if thread.name == "gpu watch"]:  # none where it has ended
        thread.join(60)
print(json.dumps(watching.resources({})))
"""
    assert run_script(Machine(stand_ins, [T4], {"STAND_IN_NVML_LOST_AFTER": "20"}), script) == {"gpu_lost": 1.0}


def address(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def test_small_products_of_matrices_are_computed(stand_ins):
    library = ctypes.CDLL(str(stand_ins / "libcublas.so.12"))
    random, size = np.random.default_rng(0), ctypes.c_longlong
    kinds = {"S": "float32", "D": "float64"}
    for letter, is_a_transposed, is_b_transposed in product(kinds, [False, True], [False, True]):
        kind = kinds[letter]
        # a batch of two, of which each matrix is stored by columns
        a, b, c = (random.normal(size=(2, *shape)).astype(kind) for shape in [(3, 4), (4, 5), (3, 5)])
        stored_a = np.ascontiguousarray(a if is_a_transposed else a.swapaxes(1, 2))
        stored_b = np.ascontiguousarray(b if is_b_transposed else b.swapaxes(1, 2))
        stored_c, alpha, beta = np.ascontiguousarray(c.swapaxes(1, 2)), np.array(1.5, kind), np.array(0.5, kind)
        getattr(library, f"cublas{letter}gemmStridedBatched")(
            *(None, int(is_a_transposed), int(is_b_transposed), 3, 5, 4, address(alpha)),
            *(address(stored_a), stored_a.shape[2], size(12), address(stored_b), stored_b.shape[2], size(20)),
            *(address(beta), address(stored_c), 3, size(15), 2),
        )
        np.testing.assert_allclose(stored_c.swapaxes(1, 2), 1.5 * a @ b + 0.5 * c, rtol=1e-5)
