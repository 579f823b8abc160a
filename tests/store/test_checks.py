"""A run's files are validated whole: types, ranges, and what their parts say of one another."""

import json
import re
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
    made = factories.run([cell(size="1"), cell("tf2.0", size="1")], scenarios=[factories.scenario(**sweep)])
    document: dict[str, Any] = json.loads(dump(made))
    return document


def launch_json() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(dump(launch(cell(size="1"), phases={"build": 1.0}, observations={"n": 1})))
    document["group"] = run_json()["plan"]["groups"][0]["name"]
    return document


def stored(folder: Path, run: dict[str, Any], launch: dict[str, Any]) -> RunFolder:
    (folder / "run.json").write_text(json.dumps(run))
    (folder / "launches.jsonl").write_text(json.dumps(launch) + "\n")
    return RunFolder.open(folder)


def test_what_is_whole_is_read(tmp_path: Path) -> None:
    folder = stored(tmp_path, run_json(), launch_json())
    assert len(folder.read_launches(folder.read_run())) == 1


def put(*path: Any, value: Any) -> Change:
    def change(document: dict[str, Any]) -> None:
        for part in path[:-1]:
            document = document[part]
        document[path[-1]] = value

    return change


GROUP, SCENARIO = ("plan", "groups", 0), ("scenarios", 0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda run: run["backend"].pop("name"), "backend.name: Field required"),
        (put("plan", "margin", value=-1), "plan.margin: Input should be greater"),
        (put("plan", "margin", value="3%"), "plan.margin: Input should be a valid number"),
        (put("plan", "rounds", value=10**60), "plan.rounds: Input should be less"),
        (put("plan", "limits", "memory_bytes", value=10**60), "memory_bytes: Input should be less"),
        (put("plan", "limits", "seconds", value="nan"), "seconds: Input should be a valid number"),
        (put("host", "cores", value="two"), "cores is 'two', which isn't a valid number"),
        (put("host", "memory_bytes", value=10**60), "memory_bytes is .*, which isn't a valid number"),
        (put("host", "gpus", value=[{"pcie_width": "x"}]), "pcie_width is 'x', which isn't a valid number"),
        (put("host", "gpus", value=[{"pcie_width": []}]), r"pcie_width is '\[\]', which isn't a valid number"),
        (put("host", "gpus", value=[{}, 3]), "gpus has an entry that isn't an object"),
        (put("host", "odd", value=1e300), "a number is not within"),
        (put("backend", "odd", value=10**400), "a number is not within"),
        (lambda run: run["plan"]["groups"][0]["cells"][0]["axes"].pop("mode"), "doesn't have one value for each axis"),
        (put(*GROUP, "cells", 0, "axes", "mode", value="other"), "doesn't have one value for each axis"),
        (put(*GROUP, "cells", 0, "environment", value="tf9"), "an environment that is not part of the run"),
        (put(*GROUP, "cells", 0, "scenario", value="other"), "has a different scenario or device"),
        (put(*GROUP, "cells", value=[]), "is empty"),
        (
            put(*GROUP, "control", value=run_json()["plan"]["groups"][0]["cells"][0] | {"environment": "tf2.1"}),
            "control",
        ),
        (lambda run: run["plan"]["groups"].append(run["plan"]["groups"][0]), "plan.groups has .* twice"),
        (lambda run: run["scenarios"].append(run["scenarios"][0]), "scenarios has step twice"),
        (
            lambda run: run["scenarios"][0]["axes"].pop("mode"),
            "isn't a value of an axis of the scenario step|isn't an axis",
        ),
        (put(*SCENARIO, "compare", 1, "along", value="moon"), "along 'moon', which isn't an axis"),
        (put(*SCENARIO, "compare", 1, "along", value="size"), "along 'size', which is a sweep"),
        (put(*SCENARIO, "compare", 1, "plus", value="slow"), "names 'slow', which is not part of the run"),
        (
            put(*SCENARIO, "compare", 2, "pick", 0, "requires", value=["?!"]),
            r"has '\?!', which isn't a valid requirement",
        ),
        (put(*SCENARIO, "needs", value=[{"requires": ["=="]}]), "which isn't a valid requirement"),
        (put(*SCENARIO, "axes", "size", value=["1", "big"]), "has a value that isn't a number"),
        (put(*SCENARIO, "axes", "size", value=["1", "nan"]), "don't increase"),
        (put(*SCENARIO, "path", value="../.."), "which isn't a valid name"),
        (put(*SCENARIO, "name", value="../../x"), "which isn't a valid name"),
        (put(*SCENARIO, "files", value=["../x"]), "which isn't a valid name"),
        (put(*SCENARIO, "files", value=["/x"]), "which isn't a valid name"),
        (put(*SCENARIO, "files", value=["base/../../x"]), "which isn't a valid name"),
        (put("environments", 0, "tensorflow", value="new"), "which isn't a valid version"),
        (put("environments", 0, "python", value="x"), "which isn't a valid version"),
        (put("environments", 0, "name", value="a/b"), "which isn't a valid name"),
        (put("images", "other", value="sha256:0"), "images names 'other', which is not part of the run"),
        (put("scripts", value={"../../x": "print()"}), "scripts names"),
        (put("sources", value={"other": "0"}), "sources names 'other'"),
        (put("stops", value={"other": {"reason": "rounds", "rounds": 1}}), "stops names 'other'"),
        (put("reference", value="tf9"), "reference names 'tf9'"),
        (put("id", value="../../x"), "which isn't a valid name"),
        (put("started", value="yesterday"), "started is 'yesterday', which isn't a valid time"),
        (put("plan", value=[]), "plan: Input should be"),
        (lambda run: run.clear(), "Field required"),
    ],
)
def test_a_run_that_cannot_be_is_refused_by_its_place(tmp_path: Path, change: Change, told: str) -> None:
    document = run_json()
    change(document)
    with pytest.raises(DamagedError, match=rf"run\.json is damaged: .*({told})"):
        stored(tmp_path, document, launch_json()).read_run()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (put("samples", 0, "steps", value=10**60), "samples.0.steps: Input should be less"),
        (put("samples", 0, "seconds", value="nan"), "samples.0.seconds: Input should be a valid number"),
        *[(put("samples", 0, "seconds", value=value), "samples.0.seconds: Input") for value in (1e200, 1e-300, 5e-324)],
        (put("samples", 0, "cpu_seconds", value=5e-324), "the CPU time of a sample is out of range"),
        (put("phases", "build", value=5e-324), "build is out of range"),
        (put("phases", "build", value=-1.0), "phases.build: Input should be greater"),
        (put("resources", value={"steady_seconds": 1e300}), "resources.steady_seconds: Input should be less"),
        (put("observations", "n", value=10**400), "a number is not within"),
        (put("fingerprint", value={"n": [1e300]}), "a number is not within"),
        (put("round", value=10**18), "round: Input should be less"),
        (put("round", value=True), "round: Input should be a valid integer"),
        (put("places", value=[1, 2, 3]), "the numbers of places and samples differ"),
        (put("artifacts", value=["../../etc/passwd"]), "is not below artifacts/"),
        (put("artifacts", value=["artifacts/../../x"]), "is not below artifacts/"),
        (put("artifacts", value=["/etc/passwd"]), "is not below artifacts/"),
        (put("group", value="other"), "the plan doesn't include the cell .* in a group other"),
        (put("cell", "environment", value="tf9"), "the plan doesn't include the cell"),
        (put("started", value=""), "which isn't a valid time"),
        (put("status", value="splendid"), "status: Input should be"),
    ],
)
def test_a_launch_that_cannot_be_is_refused_by_its_line(tmp_path: Path, change: Change, told: str) -> None:
    document = launch_json()
    change(document)
    folder = stored(tmp_path, run_json(), document)
    with pytest.raises(DamagedError, match=rf"launches\.jsonl, line 1 is damaged: .*({told})"):
        folder.read_launches(folder.read_run())


def test_a_value_that_is_nested_without_end_is_refused(tmp_path: Path) -> None:
    line = json.dumps(launch_json())
    for depth, told in ((40, "nested deeper than 32"), (100_000, "recursion limit")):
        text = line.replace('"n": 1', '"n": ' + "[" * depth + "]" * depth)
        folder = stored(tmp_path, run_json(), launch_json())
        (tmp_path / "launches.jsonl").write_text(text + "\n")
        with pytest.raises(DamagedError, match=told):
            folder.read_launches()


def test_every_sample_of_a_real_clock_is_in_the_range(tmp_path: Path) -> None:
    made = launch(cell(size="1"), samples=[Sample(1e-9, 1, 0.0), Sample(86400.0, 1, 1e-9)])
    folder = stored(tmp_path, run_json(), json.loads(dump(made)) | {"group": launch_json()["group"]})
    assert folder.read_launches(folder.read_run())[0].samples == made.samples


def test_what_is_told_has_no_more_than_the_beginning_of_what_was_written(tmp_path: Path) -> None:
    document = run_json()
    document["reference"] = "x" * 10**6
    with pytest.raises(DamagedError) as raised:
        stored(tmp_path, document, launch_json()).read_run()
    assert re.search("reference names 'x{200}'", str(raised.value))
    assert len(str(raised.value)) < 1000
