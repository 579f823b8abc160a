from hypothesis import given
from hypothesis import strategies as st

from harness.machine.slots import Slot, divide_machine
from harness.machine.topology import Cpu, Topology
from harness.model.errors import UsageError
from harness.model.gpu import Gpu
from tests.errors import catch_text


def machine(cores: int, *, threads: int = 2, cache: int = 0, node: int = 0) -> Topology:
    """So many cores, whose second threads have the higher numbers; `cache` and `node` are cores in each."""
    cpus = {}
    for core in range(cores):
        siblings = frozenset(core + thread * cores for thread in range(threads))
        for number in siblings:
            cpus[number] = Cpu(number, siblings, node=core // node if node else None)
    if cache:
        for number, cpu in cpus.items():
            place = (number % cores) // cache
            shared = frozenset(entry for entry in cpus if (entry % cores) // cache == place)
            cpus[number] = Cpu(number, cpu.siblings, node=cpu.node, cache=shared)
    return Topology(cpus)


def test_a_slot_is_a_cache_else_a_node_with_the_siblings_together():
    caches = machine(8, cache=4, node=8)
    assert divide_machine(None, caches.cpus, known=caches) == [
        Slot((4, 5, 6, 7, 12, 13, 14, 15)),
        Slot((0, 1, 2, 3, 8, 9, 10, 11)),
    ]
    nodes = machine(4, node=2)
    assert divide_machine(None, nodes.cpus, known=nodes) == [Slot((2, 3, 6, 7)), Slot((0, 1, 4, 5))]
    assert divide_machine(1, nodes.cpus, known=nodes) == [Slot((2, 3, 6, 7))]
    assert str(Slot((2, 3, 6), "1")) == "GPU 1 with CPUs 2-3, 6"
    assert Slot((3,), "1").names == ["cpu3", "gpu1"]


def test_more_slots_than_cores_or_gpus_are_refused(snapshot):
    shape, single = machine(4), machine(4, threads=1)
    assert {
        "cores": catch_text(UsageError, divide_machine, 3, [0, 1, 4, 5], known=shape),
        "GPUs": catch_text(UsageError, divide_machine, 3, single.cpus, cards(2), known=single),
        "cores of GPUs": catch_text(UsageError, divide_machine, None, single.cpus, cards(5), known=single),
    } == snapshot
    # CPUs that are not ours are in none
    assert divide_machine(2, [0, 1, 4, 5], known=shape) == [Slot((0, 4)), Slot((1, 5))]


def cards(count: int) -> list[Gpu]:
    return [Gpu(index, f"GPU-{index}", "NVIDIA T4", (7, 5), 16 * 2**30) for index in range(count)]


def test_with_gpus_a_slot_is_a_gpu_with_its_share_of_the_cores_near_it(monkeypatch):
    shape = machine(4, threads=1)
    assert divide_machine(None, shape.cpus, cards(2), known=shape) == [Slot((0, 2), "0"), Slot((1, 3), "1")]
    near = {0: frozenset({2, 3}), 1: frozenset({0, 1}), 2: frozenset({0, 1})}
    monkeypatch.setattr("harness.machine.slots._find_near_cpus", lambda card: near[card.index])
    slots = divide_machine(None, shape.cpus, cards(3), known=shape)
    assert slots == [Slot((2, 3), "0"), Slot((0,), "1"), Slot((1,), "2")]


@given(st.integers(1, 24), st.integers(1, 2), st.integers(0, 6), st.integers(0, 4), st.data())
def test_slots_are_whole_cores_and_share_none(cores, threads, cache, gpus, data):
    shape = machine(cores, threads=threads, cache=cache)
    count = data.draw(st.integers(1, min(cores, gpus or cores)))
    slots = divide_machine(count, shape.cpus, cards(gpus), known=shape)
    assert len(slots) == count
    used = [cpu for slot in slots for cpu in slot.cpus]
    assert len(used) == len(set(used))
    for slot in slots:
        assert slot.cpus
        assert {sibling for cpu in slot.cpus for sibling in shape.cpu(cpu).siblings} == set(slot.cpus)
