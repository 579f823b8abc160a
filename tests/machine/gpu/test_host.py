"""What a machine's GPUs and driver are, as NVML tells."""

import pynvml
import pytest

from harness.machine.gpu.host import keep_driver_loaded, read
from harness.model.gpu import Gpu, GpuHost, GpuProcess, Instance, Settings
from tests.machine.gpu.library import DIVIDED, H100, K80, NEW, OLD, Library, process


def test_an_old_card_that_does_not_answer_everything():
    library = Library([K80], **OLD)
    assert read(library) == GpuHost(
        cards=[
            Gpu(
                index=0,
                uuid="GPU-00000000-0000-0000-0000-000000000037",
                name="Tesla K80",
                capability=(3, 7),
                memory_bytes=12 * 2**30,
                processes=[GpuProcess(41, "python", 2**20)],
            )
        ],
        driver="470.256.02",
        cuda=(11, 4),
    )
    assert library.open == 0


def test_new_cards_with_their_places_and_their_instances():
    host = read(Library([H100, DIVIDED], **NEW))
    assert (host.driver, host.cuda, host.absent) == ("550.54.15", (12, 4), "")
    undivided, divided = host.cards
    assert (undivided.index, undivided.capability, undivided.pci) == (0, (9, 0), "0000:65:00.0")
    assert (undivided.is_partitioned, undivided.instances) == (False, ())
    assert divided.is_partitioned
    name = "NVIDIA A100-SXM4-40GB MIG 1g.5gb"
    assert divided.instances == [Instance("1:2", "MIG-00000000-0000-0000-0000-000000000001", name, 5 * 2**30)]
    assert divided.instances[0].profile == "1g.5gb"


def test_how_a_card_is_set():
    (card,) = read(Library([H100], **NEW)).cards
    assert card.settings == Settings(
        persistence=True,
        power_limit_watts=350.0,
        power_limit_default_watts=700.0,
        power_limit_least_watts=200.0,
        power_limit_most_watts=700.0,
        sm_clock_most_mhz=1980,
        memory_clock_most_mhz=2619,
        ecc=True,
        ecc_pending=False,
        compute_mode="exclusive process",
        pcie_generation=4,
        pcie_generation_most=5,
        pcie_width=8,
        pcie_width_most=16,
        virtualization="passthrough",
        display=False,
    )
    # what the driver does not tell is not told, and not guessed
    assert "application_sm_clock_mhz" not in card.settings.to_dict()


def test_of_a_process_no_more_is_told_than_its_programs_name():
    names = {"nvmlSystemGetProcessName": "/opt/a/\x1b[31mtrain --token secret"}
    card = {**H100, "nvmlDeviceGetComputeRunningProcesses": [process(7)]}
    (user,) = read(Library([card], **{**NEW, **names})).cards[0].processes
    assert user == GpuProcess(7, "?[31mtrain", None)


def test_a_machine_without_a_gpu_that_works_has_the_reason_and_nothing_else(snapshot):
    codes = ("LIBRARY_NOT_FOUND", "DRIVER_NOT_LOADED", "LIB_RM_VERSION_MISMATCH", "NO_PERMISSION", "UNKNOWN")
    machines = {code: Library([H100], starts=pynvml.NVMLError(getattr(pynvml, f"NVML_ERROR_{code}"))) for code in codes}
    lost = {"nvmlDeviceGetCudaComputeCapability": pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)}
    hosts = {name: read(library) for name, library in machines.items()}
    hosts |= {"no card": read(Library([], **NEW)), "a lost card": read(Library([lost], **NEW))}
    assert {name: host.absent for name, host in hosts.items()} == snapshot
    assert {(host.cards, host.driver, host.cuda) for host in hosts.values()} == {((), "", None)}
    # a lost card is left out, and the others keep their numbers
    assert [card.index for card in read(Library([{}, H100], **NEW)).cards] == [1]


def test_a_run_keeps_the_driver_of_its_cards_up_also_where_it_ends_with_an_error():
    library = Library([H100], **NEW)
    cards = read(library).cards
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


def test_this_machine_is_read_without_an_error():
    host = read()
    assert bool(host.cards) != bool(host.absent)
