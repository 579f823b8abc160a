"""Tests of the search for steps in nightly wheels, and of old functions in a newer wheel."""

import zipfile
from contextlib import nullcontext
from pathlib import Path

import pytest

from bench.observatory import confirm, scan, wheels
from bench.observatory.records import read_steps
from harness.model.errors import UsageError
from tests.conftest import ROOT

FILE = '''"""A module."""


class Model:
    @property
    def names(self):
        # a comment of {2}
        return [{0}]

    def call(self):
        return self.names


def free(x):
    return x + {1}
'''
OLD = FILE.format(1, 1, "old") + "\n\ndef helper():\n    pass\n"


def write(folder: Path, version: str, **files: str) -> Path:
    """Write a wheel."""
    path, info = folder / f"small-{version}-py3-none-any.whl", f"small-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in files.items():
            archive.writestr(f"small/{name}.py", text)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: small\nVersion: {version}\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def make_counts(**within: int) -> dict:
    functions = {f"small/a.py:{name}": [1, calls, 0] for name, calls in within.items()}
    return {"steps": 1, "counts": {"python": within["call"], "c": 0}, "functions": functions}


def test_the_functions_of_a_diff_that_a_step_calls_are_the_cause_and_are_put_back(tmp_path):
    before = write(tmp_path, "1.dev20260101", a=OLD, b="x = 1\n")
    after = write(tmp_path, "1.dev20260102", a=FILE.format(2, 2, "new"), b="x = 1  # the same\n", c="y = 1\n")
    files = [wheels.read_files(path) for path in (before, after)]
    assert wheels.compare_files(*files) == {"small/a.py": ["Model.names", "free", "helper"], "small/c.py": []}
    cause = confirm.find_cause(
        before, after, [make_counts(names=2, call=3, helper=1), make_counts(names=102, call=103)]
    )
    assert cause.functions == {"small/a.py": ["Model.names", "helper"]}
    assert [entry["name"] for entry in cause.calls] == ["names", "call", "helper"]
    back = confirm.write_put_back(before, after, cause.functions, tmp_path)
    assert wheels.read_files(back)["small/a.py"] == FILE.format(1, 2, "old") + "\ndef helper():\n    pass\n"
    with zipfile.ZipFile(back) as archive:
        metadata = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        version = archive.read(metadata).decode().split("Version: ")[-1].strip()
    assert back.name == f"small-{version}-py3-none-any.whl"
    assert metadata == f"small-{version}.dist-info/METADATA"


def test_a_scan_goes_on_where_counts_differ_until_two_successive_wheels(tmp_path, monkeypatch):
    versions = [f"1.dev202601{day:02}" for day in range(1, 31)]
    counted = {}

    def count(_scan: scan.WheelScan, version: str) -> None:
        calls = 100 if version < "1.dev20260118" else 110
        series = {"counts": {"python": calls, "c": 0, "traces": 0}, "steps": 1, "agree": True}
        counted[version] = dict.fromkeys(scan.SERIES, series)

    monkeypatch.setattr(scan.WheelScan, "count", count)
    monkeypatch.setattr(scan.WheelScan, "read", lambda _scan: counted)
    wheel_scan = scan.WheelScan("small", versions, Path("python"), tmp_path)
    scan.scan(wheel_scan, 10)
    changes = [(before, after) for before, after, _ in wheel_scan.find_changes(counted)]
    assert changes == [("1.dev20260117", "1.dev20260118")]
    assert len(counted) < 10


def test_each_report_for_upstream_names_the_wheels_of_its_step_and_has_a_script():
    steps = [step for step in read_steps() if step.report]
    assert len(steps) >= 5
    for step in steps:
        text = (ROOT / step.report).read_text()
        assert step.is_slow
        assert step.before in text
        assert step.after in text
        compile(text.split("```python\n")[1].split("```")[0], step.report, "exec")


def test_counts_of_another_base_environment_are_refused(tmp_path):
    for packages, is_refused in (("a==1", False), ("a==1", False), ("a==2", True)):
        python = tmp_path / f"python-{packages}"
        python.write_text(f"#!/bin/sh\necho {packages}\n")
        python.chmod(0o755)
        with pytest.raises(UsageError, match="other packages") if is_refused else nullcontext():
            scan.check_packages(python, tmp_path / "scan")
