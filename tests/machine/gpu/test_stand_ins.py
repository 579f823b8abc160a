"""What NVIDIA's own Python package tells of the stand-ins' cards: the library is C, as the driver's is."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stand_in.gpus import MIG, RTX_3090, T4, Machine

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


WATCHES = """
import json, threading
from harness.machine.gpu.host import kept_open, read
from harness.machine.gpu.monitor import Watch
cards = read().cards
with kept_open(cards), Watch(cards, every=0.0) as watching:
    for thread in [each for each in threading.enumerate() if each.name == "gpu watch"]:  # none where it has ended
        thread.join(60)
print(json.dumps(watching.resources({})))
"""


def test_a_card_that_the_driver_loses_in_mid_launch_is_survived_and_said(stand_ins: Path) -> None:
    assert said(Machine(stand_ins, [T4], {"STAND_IN_NVML_LOST_AFTER": "20"}), WATCHES) == ['{"gpu_lost": 1.0}']
