"""A launch in a real container, watched from outside through a library that answers at once."""

import os

import pytest

from harness.backends.docker.specification import RUN_LABEL
from harness.machine.gpu.monitor import GpuMonitor, container_of
from harness.model.gpu import Gpu
from tests.backends.workers import job
from tests.lacking import lacking
from tests.machine.gpu.library import H100, NEW, Library, process

pytestmark = pytest.mark.docker

CARD = Gpu(0, "GPU-90", "H100", (9, 0), 80 * 2**30)

#: Steps that take a quarter of a second, and what the kit says of when that was.
STEPS = """
started = time.time()
while time.time() < started + 0.25:
    pass
say('resources', steady_started=started, steady_ended=time.time())
say('end', status='ok')
"""


@pytest.fixture
def watched(engine, docker, requirement):
    """A function that watches one launch; `others` are processes that appear on its GPU beside its own.

    It returns what was seen, and the launch's containers with what the control group of their process names.
    """
    if not engine.is_here or container_of(os.getppid()) is None:
        lacking("whose process is whose is told on the engine's machine only, and there outside containers")

    def launch(*others):
        readings, homes = [], set()

        def processes():
            readings.append(None)
            if len(readings) == 1:  # before the launch
                return []
            containers = engine.api.containers(filters={"label": f"{RUN_LABEL}={docker._run}"})
            pids = {entry["Id"]: engine.api.inspect_container(entry["Id"])["State"]["Pid"] for entry in containers}
            homes.update((identity, container_of(pid)) for identity, pid in pids.items() if pid)
            return [process(pid) for pid in [*pids.values(), *others] if pid]

        library = Library([{**H100, "nvmlDeviceGetComputeRunningProcesses": processes}], **NEW)
        with GpuMonitor([CARD], library, every=0.01) as watching:
            outcome = docker.launch(requirement, job(STEPS))
        return watching.resources(outcome.resources), homes

    return launch


def test_a_launchs_processes_are_its_own_and_one_in_no_container_is_another(watched):
    resources, homes = watched()
    assert (resources["gpu_steady"], resources["gpu_foreign_processes"]) == (1, 0)
    # one that ends while it is looked at is in no group any more
    assert any(identity == home for identity, home in homes)
    assert all(home in (identity, None) for identity, home in homes)
    resources, _ = watched(os.getppid())
    assert resources["gpu_foreign_processes"] == 1
