"""Launches that report what a container has of GPUs, in an image without TensorFlow."""

import dataclasses
from pathlib import Path

from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.launch import Job
from tests.backends.workers import job
from tests.docker.nvidia_engine import IMAGE

REQUIREMENT = Requirement(
    Environment(IMAGE, "2.0.0", "3.11", "2020-01-01T00:00:00Z", cuda="10.0", gpu_code="sm_70 compute_70"),
    Device.GPU,
    Lock(Path("none"), "0", {}),
)

#: What a launch has of GPUs: their nodes, the driver's library, and NVIDIA's variables; and its rights.
SEES = """
import glob
def status(name):
    return next(line.split()[1] for line in open('/proc/self/status') if line.startswith(name))
say('observation', name='nodes', value=sorted(glob.glob('/dev/nvidia*')))
say('observation', name='cuda', value=bool(ctypes.CDLL('libcuda.so.1')))
say('observation', name='variables', value={k: v for k, v in os.environ.items() if k.startswith('NVIDIA_')})
say('observation', name='rights', value=[os.getuid(), int(status('CapEff'), 16), status('NoNewPrivs')])
"""


def on_gpus(*names: str, source: str = SEES, **limits: float) -> Job:
    launch = job(f"{source}\nsay('end', status='ok')")
    return dataclasses.replace(launch, limits=dataclasses.replace(launch.limits, gpus=names, **limits))
