from dataclasses import asdict

import pynvml
import pytest

from harness.machine.gpu.host import keep_driver_loaded, read
from harness.model.gpu import GpuProcess
from tests.machine.gpu.library import DIVIDED, H100, K80, NEW, OLD, Library, process


def test_an_old_card_a_new_one_and_a_divided_one_have_what_the_driver_tells_of_them(snapshot):
    libraries = Library([K80], **OLD), Library([H100, DIVIDED], **NEW)
    hosts = [asdict(read(library)) for library in libraries]
    assert hosts == snapshot
    assert [library.open for library in libraries] == [0, 0]
    # of a process no more is told than its program's name
    names = {"nvmlSystemGetProcessName": "/opt/a/\x1b[31mtrain --token secret"}
    card = {**H100, "nvmlDeviceGetComputeRunningProcesses": [process(7)]}
    (user,) = read(Library([card], **{**NEW, **names})).gpus[0].processes
    assert user == GpuProcess(7, "?[31mtrain", None)


def test_a_machine_without_a_gpu_that_works_has_the_reason_and_nothing_else(snapshot):
    codes = ("LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH", "NO_PERMISSION", "UNKNOWN")
    machines = {code: Library([H100], starts=pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{code}"))) for code in codes}
    lost = {"nvmlDeviceGetCudaComputeCapability": pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)}
    hosts = {name: read(library) for name, library in machines.items()}
    hosts |= {"no card": read(Library([], **NEW)), "a lost card": read(Library([lost], **NEW))}
    assert {name: host.absent for name, host in hosts.items()} == snapshot
    assert {(host.gpus, host.driver, host.cuda) for host in hosts.values()} == {((), "", None)}
    # a lost card is left out, and the others keep their numbers
    assert [card.index for card in read(Library([{}, H100], **NEW)).gpus] == [1]


def test_a_run_keeps_the_driver_of_its_cards_up_also_where_it_ends_with_an_error():
    library = Library([H100], **NEW)
    cards = read(library).gpus
    indices: list[int] = []
    library.nvmlDeviceGetHandleByIndex = indices.append

    def run():
        with keep_driver_loaded(cards, library):
            assert (library.open, indices) == (1, [0])
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run()
    assert library.open == 0
    broken = Library([H100], starts=pynvml.NVMLError(pynvml.NVML_ERROR_DRIVER_NOT_LOADED))
    with keep_driver_loaded([], library), keep_driver_loaded(cards, broken):
        assert library.open == 0
