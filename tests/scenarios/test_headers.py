"""Every scenario's header fits its function, whatever the scenario does. TensorFlow is not needed for this."""

import ast
import importlib
import inspect
import subprocess
import sys

from kit.byhand import parser

from harness.environments.catalog import load_environments
from harness.project import Project
from harness.scenarios.header import parse
from tests.scenarios.conftest import SCENARIOS

UPSTREAM = SCENARIOS / "upstream"
sys.path.append(str(UPSTREAM))
PATHS = [*sorted(SCENARIOS.glob("*.py")), *sorted(UPSTREAM.glob("*.py"))]
#: Parsed, so every value that a condition, a comparison or an expectation names exists.
HEADERS = {path: parse(path.read_text(encoding="utf-8"), path) for path in PATHS}


def get_scenario(path):
    return importlib.import_module(path.stem).scenario


def get_axes(header):
    return {axis: values for axis, values in header.axes.items() if axis not in header.environ}


def test_headers_say_what_a_scenario_is_and_its_function_takes_the_axes():
    for path, header in HEADERS.items():
        _, *parameters = inspect.signature(get_scenario(path)).parameters.values()
        axes = get_axes(header)
        assert [parameter.name for parameter in parameters] == list(axes), path
        assert all(parameter.default in axes[parameter.name] for parameter in parameters), path
    for path, header in HEADERS.items():
        assert header.title != header.name, path
        assert header.source.startswith("https://") or not header.source, path
        assert header.tags, path
        assert ("upstream" in header.tags) == (path.parent == UPSTREAM), path
        assert not [value for values in header.axes.values() for value in values if " " in value], path
    for path, header in HEADERS.items():
        options = parser(get_scenario(path))
        assert options.description == header.title, path
        choices = {action.dest: action.choices for action in options._actions}
        assert {axis: choices[axis] for axis in get_axes(header)} == get_axes(header), path


def test_it_runs_by_hand():
    for path in (PATHS[0], PATHS[-1]):  # one beside the kit, and one a folder below
        completed = subprocess.run(
            [sys.executable, path, "--help"], capture_output=True, text=True, timeout=60, check=False
        )
        assert (completed.returncode, completed.stderr) == (0, "")


#: What a call of these gives has arrived on the host: Keras itself fetches what a step of `first` returns.
WAITING = {"fetch", "numpy", "asarray", "first"}


def test_a_first_call_waits_for_the_device():
    """A GPU's work goes on after the call: its time would be in no phase, or in the next one."""
    for path in SCENARIOS.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        blocks = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.With)]
        parts = [block for block in blocks if "'first call'" in ast.unparse(block.items[0])]
        called = {
            getattr(call.func, "attr", getattr(call.func, "id", ""))
            for part in parts
            for call in ast.walk(part)
            if isinstance(call, ast.Call)
        }
        assert len(parts) == ("bench.measure(" in text), path
        assert not parts or called & WAITING, path


def test_experiments_have_functions_and_upstream_scenarios_the_issue_of_a_claim():
    for name in ("function_behaviour", "numpy_behaviour"):
        axes = HEADERS[SCENARIOS / f"{name}.py"].axes
        assert list(importlib.import_module(name).EXPERIMENTS) == axes["experiment"]
    environments = load_environments(Project(SCENARIOS.parent))
    for path, scenario in HEADERS.items():
        if path.parent == UPSTREAM:
            assert scenario.tags[0] == "upstream", path
            assert scenario.source in {claim.issue.url for claim in scenario.claims}, path
            sides = [side for claim in scenario.claims for side in (claim.worse, claim.better) if side]
            assert {side.environment.partition("+")[0] for side in sides} <= set(environments), path
