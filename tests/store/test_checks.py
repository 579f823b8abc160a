"""A run's files are validated whole: types, ranges, and what their parts say of one another."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.model.errors import DamagedError
from harness.model.launch import Sample
from harness.model.scenario import Sweep
from harness.store.codec import dump
from harness.store.folder import RunFolder
from tests import factories
from tests.factories import cell, launch

Change = Callable[[dict[str, Any]], object]


def run_json() -> dict[str, Any]:
    sweep = {"axes": {"size": ["1", "32"], **factories.scenario().axes}, "sweeps": {"size": Sweep()}}
    run = factories.run([cell(size="1"), cell("tf2.0", size="1")], scenarios=[factories.scenario(**sweep)])
    document: dict[str, Any] = json.loads(dump(run))
    return document


def launch_json() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dump(launch(cell(size="1"), phases={"build": 1.0}, observations={"n": 1})))
    document["group"] = run_json()["plan"]["groups"][0]["name"]
    return document


def write_folder(folder: Path, run: dict[str, Any], launch: dict[str, Any]) -> RunFolder:
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "launches.jsonl").write_text(json.dumps(launch) + "\n")
    return RunFolder.open(folder)


def put(*path: Any, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        for part in path[:-1]:
            document = document[part]
        document[path[-1]] = value

    return change


GROUP, SCENARIO = ("plan", "groups", 0), ("scenarios", 0)
CELL = run_json()["plan"]["groups"][0]["cells"][0]

RUN_CHANGES: dict[str, Change] = {
    "no name of a backend": lambda run: run["backend"].pop("name"),
    "margin below 0": put("plan", "margin", value=-1),
    "margin as text": put("plan", "margin", value="3%"),
    "too many rounds": put("plan", "rounds", value=10**60),
    "too much memory": put("plan", "limits", "memory_bytes", value=10**60),
    "NaN seconds": put("plan", "limits", "seconds", value="nan"),
    "cores as text": put("host", "cores", value="two"),
    "cores as a truth": put("host", "cores", value=True),
    "too much memory of a host": put("host", "memory_bytes", value=10**60),
    "negative memory of a host": put("host", "memory_bytes", value=-1),
    "PCIe width as text": put("host", "gpus", value=[{"pcie_width": "x"}]),
    "PCIe width as a list": put("host", "gpus", value=[{"pcie_width": []}]),
    "GPU that is no object": put("host", "gpus", value=[{}, 3]),
    "huge fact": put("host", "odd", value=1e300),
    "huge fact of a backend": put("backend", "odd", value=10**400),
    "cell without an axis": lambda run: run["plan"]["groups"][0]["cells"][0]["axes"].pop("mode"),
    "cell with another value": put(*GROUP, "cells", 0, "axes", "mode", value="other"),
    "cell in another environment": put(*GROUP, "cells", 0, "environment", value="tf9"),
    "cell of another scenario": put(*GROUP, "cells", 0, "scenario", value="other"),
    "cell on another device": put(*GROUP, "cells", 0, "device", value="gpu"),
    "group without cells": put(*GROUP, "cells", value=[]),
    "group with a cell twice": put(*GROUP, "cells", value=[CELL, CELL]),
    "group on an unknown device": put(*GROUP, "device", value="cpu,abacus"),
    "group with another axis": put(*GROUP, "axes", value={"moon": "full"}),
    "control that is no cell": put(*GROUP, "control", value=CELL | {"environment": "tf2.1"}),
    "group twice": lambda run: run["plan"]["groups"].append(run["plan"]["groups"][0]),
    "unavailable cell of another scenario": put(
        "plan", "unavailable", value=[{"cell": CELL | {"scenario": "other"}, "reason": "", "advice": ""}]
    ),
    "scenario twice": lambda run: run["scenarios"].append(run["scenarios"][0]),
    "scenario without an axis": lambda run: run["scenarios"][0]["axes"].pop("mode"),
    "axis without values": put(*SCENARIO, "axes", "call", value=[]),
    "default that is no value": put(*SCENARIO, "default", value={"dtype": "float128"}),
    "excluded that is no value": put(*SCENARIO, "exclude", value=[{"dtype": "float128"}]),
    "environ that is no axis": put(*SCENARIO, "environ", value=["HOME"]),
    "setting that is no axis": put(*SCENARIO, "settings", value=["xla"]),
    "comparison along no axis": put(*SCENARIO, "compare", 1, "along", value="moon"),
    "comparison along a sweep": put(*SCENARIO, "compare", 1, "along", value="size"),
    "comparison of no value": put(*SCENARIO, "compare", 1, "plus", value="slow"),
    "comparison against no value": put(*SCENARIO, "compare", 1, "against", value="slow"),
    "pick of no value": put(*SCENARIO, "compare", 2, "pick", 0, "axes", value={"mode": "slow"}),
    "pick with a broken requirement": put(*SCENARIO, "compare", 2, "pick", 0, "requires", value=["?!"]),
    "need with a broken requirement": put(*SCENARIO, "needs", value=[{"requires": ["=="]}]),
    "need of no value": put(*SCENARIO, "needs", value=[{"when": {"mode": "slow"}}]),
    "sweep with a word": put(*SCENARIO, "axes", "size", value=["1", "big"]),
    "sweep with NaN": put(*SCENARIO, "axes", "size", value=["1", "nan"]),
    "sweep with a number twice": put(*SCENARIO, "axes", "size", value=["1", "1.0"]),
    "path to nowhere": put(*SCENARIO, "path", value="../.."),
    "name of a scenario that is a path": put(*SCENARIO, "name", value="../../x"),
    "file above": put(*SCENARIO, "files", value=["../x"]),
    "file at the root": put(*SCENARIO, "files", value=["/x"]),
    "file through a folder": put(*SCENARIO, "files", value=["base/../../x"]),
    "release that is no version": put("environments", 0, "tensorflow", value="new"),
    "Keras that is no version": put("environments", 0, "keras", value="new"),
    "Python that is no version": put("environments", 0, "python", value="x"),
    "name of an environment that is a path": put("environments", 0, "name", value="a/b"),
    "name that is too long": put("environments", 0, "name", value="x" * 201),
    "image of another": put("images", "other", value="sha256:0"),
    "pins of another": put("pins", "other", value={}),
    "script of another": put("scripts", value={"../../x": "print()"}),
    "source of another": put("sources", value={"other": "0"}),
    "stop of another": put("stops", value={"other": {"reason": "rounds", "rounds": 1}}),
    "look at another": put("looks", value=[{"other": 1}]),
    "reference that is none": put("reference", value="tf9"),
    "long reference": put("reference", value="x" * 10**6),
    "id that is a path": put("id", value="../../x"),
    "id that is a folder": put("id", value=".."),
    "start that is no time": put("started", value="yesterday"),
    "plan that is no object": put("plan", value=[]),
    "empty document": lambda run: run.clear(),
}

LAUNCH_CHANGES: dict[str, Change] = {
    "too many steps": put("samples", 0, "steps", value=10**60),
    "sample of NaN": put("samples", 0, "seconds", value="nan"),
    "too long sample": put("samples", 0, "seconds", value=1e200),
    "too short sample": put("samples", 0, "seconds", value=1e-300),
    "denormal sample": put("samples", 0, "seconds", value=5e-324),
    "denormal CPU time": put("samples", 0, "cpu_seconds", value=5e-324),
    "denormal CPU time alone": put("alone", value=[{"seconds": 1.0, "steps": 1, "cpu_seconds": 5e-324}]),
    "a sample that follows none": put("follows", value=[0]),
    "denormal phase": put("phases", "build", value=5e-324),
    "denormal CPU time of a phase": put("phases_cpu", value={"build": 5e-324}),
    "negative phase": put("phases", "build", value=-1.0),
    "huge resource": put("resources", value={"steady_seconds": 1e300}),
    "huge observation": put("observations", "n", value=10**400),
    "huge fingerprint": put("fingerprint", value={"n": [1e300]}),
    "nested observation": put("observations", "n", value=json.loads("[" * 40 + "]" * 40)),
    "too many rounds": put("round", value=10**18),
    "round that is a truth": put("round", value=True),
    "more places than samples": put("places", value=[1, 2, 3]),
    "artifact above": put("artifacts", value=["../../etc/passwd"]),
    "artifact through a folder": put("artifacts", value=["artifacts/../../x"]),
    "artifact at the root": put("artifacts", value=["/etc/passwd"]),
    "artifact with a null": put("artifacts", value=["artifacts/\0"]),
    "another group": put("group", value="other"),
    "cell in another environment": put("cell", "environment", value="tf9"),
    "no start": put("started", value=""),
    "unknown status": put("status", value="splendid"),
}


def read_problem(folder: RunFolder) -> str:
    with pytest.raises(DamagedError) as raised:
        folder.read_launches(folder.read_run())
    return raised.value.message.replace(str(folder.path), "FOLDER")


def test_a_run_that_cannot_be_is_refused_by_its_place(tmp_path, snapshot):
    problems = {}
    for case, change in RUN_CHANGES.items():
        document = run_json()
        change(document)
        problems[case] = read_problem(write_folder(tmp_path, document, launch_json()))
        assert len(problems[case]) < 1000, case
    assert problems == snapshot


def test_a_launch_that_cannot_be_is_refused_by_its_line(tmp_path, snapshot):
    problems = {}
    for case, change in LAUNCH_CHANGES.items():
        document = launch_json()
        change(document)
        problems[case] = read_problem(write_folder(tmp_path, run_json(), document))
    assert problems == snapshot


def test_a_value_that_is_nested_without_end_is_refused(tmp_path):
    text = json.dumps(launch_json()).replace('"n": 1', '"n": ' + "[" * 100_000 + "]" * 100_000)
    folder = write_folder(tmp_path, run_json(), launch_json())
    (tmp_path / "launches.jsonl").write_text(text + "\n")
    with pytest.raises(DamagedError, match="recursion limit"):
        folder.read_launches()


def test_numbers_at_the_end_of_their_range_are_read(tmp_path):
    document = run_json()
    document["id"] = "x" * 200
    document["host"] |= {"cores": 0, "memory_bytes": 2**63 - 1, "locked_sm_clock_mhz": "no", "power_watts": None}
    (tmp_path / "run.json").write_text(json.dumps(document))
    (tmp_path / "launches.jsonl").touch()
    assert RunFolder.open(tmp_path).read_run().id == "x" * 200
    clocked = launch(cell(size="1"), samples=[Sample(1e-9, 1, 0.0), Sample(86400.0, 1, 1e-9)])
    folder = write_folder(tmp_path, run_json(), json.loads(dump(clocked)) | {"group": launch_json()["group"]})
    assert folder.read_launches(folder.read_run())[0].samples == clocked.samples
