"""What differs between two runs beside their times."""

from dataclasses import replace

from harness.analysis.run_differences import Aspect, RunDifference, compare_machines, find_differences, same_software
from harness.model.backend import REMOTE, BackendFacts
from harness.model.launch import Interleave, Limits, Protocol, Sampling
from tests.factories import ENVIRONMENTS, cell, cells, run, scenario

CARD = {"index": 0, "name": "NVIDIA H100", "capability": "9.0", "memory_bytes": 80 * 2**30, "driver": "550.54"}
HOST = run().host
GPU = {"limits": Limits(gpus=("0",))}
KNOWN = {"sources": {"step": "ab12"}}


def list_differences(first, second, shared_cells=None):
    """Part, subject, name and both values of every difference."""
    differences = find_differences(first, second, cells() if shared_cells is None else shared_cells)
    return [(entry.part.value, entry.subject, entry.name, entry.first, entry.second) for entry in differences]


def test_another_cpu_or_much_less_memory_is_another_machine():
    assert list_differences(run(), run()) == []
    for name in ("cpu", "cores"):
        (difference,) = compare_machines(run(), run(host={**HOST, name: 64}))
        assert difference == RunDifference(Aspect.MACHINE, "", name, HOST[name], 64)
    for host, names in (
        (HOST, []),
        # a kernel may keep some memory for itself
        ({**HOST, "memory_bytes": int(HOST["memory_bytes"] * 1.04)}, []),
        ({**HOST, "memory_bytes": int(HOST["memory_bytes"] * 0.5)}, ["memory_bytes"]),
        # what one run does not say is not known to be the same
        ({}, ["cpu", "cores", "memory_bytes"]),
        # the kernel changes on one machine
        ({**HOST, "kernel": "Linux 6.2"}, []),
    ):
        assert [machine.name for machine in compare_machines(run(), run(host=host))] == names, host
    ((_, _, name, _, _),) = list_differences(run(), run(host={**HOST, "kernel": "Linux 6.2"}))
    assert name == "kernel"


def with_card(**changes):
    return {**HOST, "gpus": [{**CARD, **changes}]}


def test_another_gpu_or_engine_is_another_machine_if_it_is_used():
    t4 = with_card(name="NVIDIA T4")
    one, other = run(asked=GPU, host=with_card()), run(asked=GPU, host=t4)
    name, *values = "GPU 0 name", CARD["name"], "NVIDIA T4"
    assert compare_machines(one, other) == [RunDifference(Aspect.MACHINE, "", name, *values)]
    assert list_differences(one, other) == [("machine", "", name, *values)]
    # on the CPU it is none
    assert compare_machines(one, run(host=t4)) == []
    # nor is another place of it, and an older run tells less
    moved = run(asked=GPU, host=with_card(index=1, pci="0000:41:00.0", power_limit_watts=350.0))
    assert compare_machines(one, moved) == []
    unknown = run(asked=GPU, host={**HOST, "gpus": "not known: no driver"})
    assert [machine.name for machine in compare_machines(one, unknown)] == ["gpus"]
    remote = BackendFacts("docker", where=REMOTE, architecture="x86_64", cpus=8, memory_bytes=2**34)
    one, other = run(backend=remote), run(backend=remote, host={"cpu": "a laptop", "cores": 4})
    assert compare_machines(one, other) == []
    assert [machine.name for machine in compare_machines(one, run(backend=replace(remote, cpus=16)))] == ["cpus"]


def test_what_differs_beside_the_machine_is_listed(snapshot):
    base = run()
    sampled = {"sampling": Sampling(protocol=Protocol.DOCUMENT), "limits": Limits(cpus=None, seconds=5.0)}
    pins = {**base.pins, "tf2.0": {"tensorflow": "2.0.0", "numpy": "1.18.0", "gast": "0.2.2", "six": "1.13.0"}}
    environments = [ENVIRONMENTS[0], replace(ENVIRONMENTS[1], python="3.8")]
    other = {
        "turns": run(asked={"interleave": Interleave.TURNS}),
        "measured differently": run(asked=sampled, backend=replace(base.backend, name="local")),
        "engine, harness, and scenario": run(
            backend=replace(base.backend, engine="27.0", why="asked for"),
            harness="0.2.0",
            commit="",
            scenarios=[scenario(axes={**scenario().axes, "inputs": ["numpy"]})],
            sources={"step": "cd34"},
        ),
        "packages": run(pins=pins, images={**base.images, "tf2.0": "sha256:cd"}, environments=environments),
    }
    listed = {
        case: [" | ".join(map(str, difference)) for difference in list_differences(run(**KNOWN), changed)]
        for case, changed in other.items()
    }
    assert listed == snapshot
    # environments of which no cell is in both are not listed
    assert list_differences(base, run(pins={**base.pins, "tf2.0": {}}), shared_cells=[cell("tf1.14")]) == []


def test_software_that_changed_or_is_not_known_is_not_the_same():
    assert same_software(cell(), run(**KNOWN), run(**KNOWN))
    for changes in (
        {"sources": {"step": "cd34"}},
        {"sources": {}},
        {"images": {"tf1.14": "sha256:cd"}},
        {"images": {}},
        {"pins": {"tf1.14": {"tensorflow": "1.14.0", "numpy": "1.18.0"}}},
        {"environments": [replace(ENVIRONMENTS[0], python="3.8")]},
        {"backend": BackendFacts("local")},
    ):
        assert not same_software(cell(), run(**KNOWN), run(**{**KNOWN, **changes})), changes
    assert not same_software(cell(), run(images={}, sources={}), run(images={}, sources={}))
