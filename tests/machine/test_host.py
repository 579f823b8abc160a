from harness.machine.host import differing, facts


def test_the_facts_a_reader_needs_are_there() -> None:
    found = facts()
    assert {"cpu", "cores", "memory_bytes", "kernel", "system", "harness_python"} <= set(found)
    assert found["cores"] >= 1
    assert found["memory_bytes"] > 2**20


def test_a_machine_is_the_same_as_itself_and_another_differs_by_its_facts() -> None:
    found = facts()
    assert differing(found, found) == []
    assert differing(found, {**found, "cores": 999, "python": "4"}) == [("cores", found["cores"], 999)]


def test_a_gpu_that_is_set_otherwise_is_another_machine_with_both_values() -> None:
    card = {"index": 0, "name": "NVIDIA A100", "power_limit_watts": 400.0, "pci": "0000:01:00.0"}
    found = facts()
    assert differing({**found, "gpus": [card]}, {**found, "gpus": [{**card, "power_limit_watts": 250.0}]}) == [
        ("GPU 0 power_limit_watts", 400.0, 250.0)
    ]
