from harness.machine.host import facts, same_machine


def test_the_facts_a_reader_needs_are_there() -> None:
    found = facts()
    assert {"cpu", "cores", "memory_bytes", "kernel", "system", "harness_python"} <= set(found)
    assert found["cores"] >= 1
    assert found["memory_bytes"] > 2**20


def test_a_machine_is_the_same_as_itself_and_another_differs_by_its_facts() -> None:
    found = facts()
    assert same_machine(found, found) == []
    assert same_machine(found, {**found, "cores": 999, "python": "4"}) == ["cores"]
