import pytest

from harness.machine.host import MEMORY_FILES, find_differing, read_facts, read_free_memory


@pytest.mark.parametrize(("version", "line", "mount"), [(0, "0::/a/b", ""), (1, "4:memory:/a/b", "memory")])
def test_a_control_group_s_limit_is_what_processes_can_get(tmp_path, version, line, mount):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(f"{line}\n3:cpuset:/\n")
    assert read_free_memory(tmp_path) > 2**20
    above = tmp_path / "sys/fs/cgroup" / mount / "a"
    (above / "b").mkdir(parents=True)
    limit, usage, unused = MEMORY_FILES[version]
    (above / "b" / limit).write_text("max")
    (above / limit).write_text("2000000")
    (above / usage).write_text("1500000")
    (above / "memory.stat").write_text(f"anon 7\n{unused} 300000")
    assert read_free_memory(tmp_path) == 800000


def test_a_machine_differs_by_its_facts():
    facts = read_facts()
    assert facts["cores"] >= 1
    assert facts["memory_bytes"] > 2**20
    assert find_differing(facts, facts) == []
    assert find_differing(facts, {**facts, "cores": 999, "python": "4"}) == [("cores", facts["cores"], 999)]
    cards = [{"gpus": [{"index": 0, "power_limit_watts": watts}]} for watts in (400.0, 250.0)]
    assert find_differing(*(facts | card for card in cards)) == [("GPU 0 power_limit_watts", 400.0, 250.0)]
