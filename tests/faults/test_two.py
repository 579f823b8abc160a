"""Two of everything at once: each is whole, or one is told who holds what it needs."""

import json
import subprocess
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from harness.machine.identity import load_machine
from harness.model.run import Stop, StopReason
from harness.store.folder import RunFolder
from harness.store.signature import is_from_here, sign
from tests.runs import launch, run


def wait(*processes: "subprocess.Popen[str]") -> list[str]:
    """Exit codes and messages of commands that were begun together, those that went well first."""
    messages = [(process, process.communicate(timeout=120)[1]) for process in processes]
    return [f"{process.returncode} {text}" for process, text in sorted(messages, key=lambda pair: pair[0].returncode)]


@pytest.mark.slow
def test_two_that_go_on_with_one_run(harness):
    assert harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2").returncode == 0
    path = harness.run / "launches.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:3]))
    goes_on = ("matrix", "--resume", str(harness.run))
    first, second = wait(harness.start(*goes_on), harness.start(*goes_on))
    assert first.startswith("0 ")
    assert second.startswith("0 ") or "Another run is measuring" in second
    assert path.read_bytes().startswith(b"".join(lines[:3]))
    # nothing is there twice
    launches = [json.loads(line) for line in path.read_bytes().splitlines()]
    places = [tuple(entry[name] for name in ("group", "round", "attempt", "order", "role")) for entry in launches]
    assert len(places) == len(set(places)) >= len(lines)


def together(what: Callable[[int], object], count: int = 4) -> list[object]:
    """What threads give that begin at the same moment."""
    gate = threading.Barrier(count)

    def call(number: int) -> object:
        gate.wait()
        return what(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(call, range(count)))


def stored(folder: Path, name: str = "run") -> RunFolder:
    stored_run = RunFolder.create(folder, name)
    (group,) = run().plan.groups
    stored_run.write_run(replace(run(), stops={group.name: Stop(StopReason.ROUNDS, 2)}))
    for cell in group.cells:
        for number in range(3):
            stored_run.append(replace(launch(), cell=cell, round=number, group=group.name))
    return stored_run


def test_reports_of_one_folder(tmp_path):
    folder = stored(tmp_path)
    texts = [
        {"report.md": str(number) * 50_000, "charts/a.svg": str(number) * 50_000, f"charts/{number}.svg": "<svg/>"}
        for number in range(4)
    ]
    for _ in range(10):
        together(lambda number: folder.write_reports(texts[number]))
        names = {path.name for path in folder.path.rglob("*") if path.is_file()}
        assert not [name for name in names if name.endswith(".part")]
        for name in ("report.md", "charts/a.svg"):
            assert len(set((folder.path / name).read_text())) == 1
            assert len((folder.path / name).read_text()) == 50_000


def test_a_machine_and_its_secret_are_made_by_several_at_once(tmp_path, monkeypatch):
    monkeypatch.setenv("HARNESS_DATA_DIR", str(tmp_path / "data"))
    assert len({machine.id for machine in together(lambda _: load_machine())}) == 1  # type: ignore[attr-defined]
    signed = together(lambda _: sign(b'{\n  "a": 1\n}\n'))
    assert len(set(signed)) == 1
    assert is_from_here(signed[0])  # type: ignore[arg-type]
