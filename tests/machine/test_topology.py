from harness.machine import topology
from harness.machine.topology import Cpu, Topology

CPUS = "sys/devices/system/cpu"


def test_cores_packages_nodes_caches_and_isolated_cpus_are_read(tree):
    files = {f"{CPUS}/isolated": "3\n", f"{CPUS}/online": "0-3\n", "proc/cpuinfo": "flags\t\t: fpu sse2\n"}
    for cpu, siblings in enumerate(["0,2", "1,3", "0,2", "1,3"]):
        files[f"{CPUS}/cpu{cpu}/topology/thread_siblings_list"] = f"{siblings}\n"
        files[f"{CPUS}/cpu{cpu}/topology/physical_package_id"] = f"{cpu % 2}\n"
    for cpu in (1, 3):
        # the last level counts
        files |= {f"{CPUS}/cpu{cpu}/cache/index2/level": "2", f"{CPUS}/cpu{cpu}/cache/index3/level": "3"}
        files[f"{CPUS}/cpu{cpu}/cache/index3/shared_cpu_list"] = "1,3"
    files["sys/devices/system/node/node1/cpulist"] = "1,3\n"
    machine = topology.read(tree(files))
    both = frozenset({1, 3})
    assert machine.cpu(3) == Cpu(3, both, package=1, node=1, speed=0, isolated=True, cache=both)
    assert machine.cpu(0) == Cpu(0, frozenset({0, 2}))
    assert (machine.known, machine.virtual) == (True, False)
    assert machine.others([0, 1, 3]) == {2}


def test_cpus_without_files_are_cores_and_flags_show_a_hypervisor(tree):
    machine = topology.read(tree({}))
    assert machine.cpu(7) == Cpu(7, frozenset({7}))
    assert (machine.known, machine.virtual) == (False, None)
    # a CPU that is off is none
    files = {f"{CPUS}/cpu0/topology/core_cpus_list": "0", f"{CPUS}/cpu1/uevent": "", f"{CPUS}/online": "0"}
    machine = topology.read(tree(files))
    assert (machine.known, set(machine.cpus)) == (True, {0})
    texts = {"processor: 0\nflags\t: fpu hypervisor sse2\n": True, "flags\t: fpu\n": False, "Features\t: fp\n": None}
    assert {text: topology.is_virtual(tree({"proc/cpuinfo": text})) for text in texts} == texts


def test_speed_is_capacity_or_frequency_and_the_best_cores_are_no_kind_of_their_own(tree):
    files = {f"{CPUS}/cpu{cpu}/cpu_capacity": "1024" for cpu in range(2)}
    assert topology.read(tree(files)).cpu(0).speed == 0
    files |= {f"{CPUS}/cpu{cpu}/cpufreq/cpuinfo_max_freq": f"{5000000 - 1000000 * cpu}" for cpu in range(2)}
    assert topology.read(tree(files)).cpu(1).speed == 4000000
    files[f"{CPUS}/cpu1/cpu_capacity"] = "600"
    assert topology.read(tree(files)).cpu(1).speed == 600
    speeds = [5800, 6000, 5700, 4400, 4400]
    cpus = {number: Cpu(number, frozenset({number}), speed=speed) for number, speed in enumerate(speeds)}
    assert Topology(cpus).kinds(cpus) == [{0, 1, 2}, {3, 4}]
    assert Topology({}).kinds([1, 2]) == [{1, 2}]
