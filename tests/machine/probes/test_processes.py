import os

from harness.machine.probes.processes import Process, busiest, read
from tests.machine.conftest import Tree


def stat(pid: int, name: str, user: int, system: int, begun: int) -> str:
    return f"{pid} ({name}) R 1 1 1 0 -1 4194304 100 0 0 0 {user} {system} 0 0 20 0 1 0 {begun} 1000 10\n"


def test_processes_are_read_whatever_they_call_themselves(tree: Tree) -> None:
    names = {1: "init", 22: "a) R 9 (b", 33: "\x1b[31mred\n"}
    files = {f"proc/{pid}/stat": stat(pid, name, 5, 7, pid * 10) for pid, name in names.items()}
    found = read(tree({**files, "proc/44/stat": "", "proc/55/comm": "gone", "proc/uptime": "1"}))
    shown = {1: "init", 22: "a) R 9 (b", 33: "?[31mred?"}
    assert found == {(pid, pid * 10): Process(name, 12) for pid, name in shown.items()}


def test_the_busiest_are_those_that_used_most_meanwhile() -> None:
    me = (os.getpid(), 1)
    before = {(1, 1): Process("old", 9000), (2, 1): Process("idle", 5), (3, 1): Process("mid", 0), me: Process("us", 0)}
    after = {
        (1, 1): Process("old", 9100),
        (2, 1): Process("idle", 5),
        (2, 7): Process("again", 400),
        (3, 1): Process("mid", 300),
        (4, 1): Process("fourth", 50),
        me: Process("us", 1000),
    }
    assert busiest(before, after, seconds=10.0, hertz=100) == [
        {"pid": 2, "name": "again", "percent": 40.0},
        {"pid": 3, "name": "mid", "percent": 30.0},
        {"pid": 1, "name": "old", "percent": 10.0},
    ]
