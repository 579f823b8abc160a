"""What NVIDIA's own Python package tells of the stand-ins' cards: the library is C, as the driver's is."""

import json
import os
import subprocess
import sys
from typing import Any

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
