"""Every scenario's header fits its function, whatever the scenario does. TensorFlow is not needed for this."""

import ast
import importlib
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

from harness.catalog.header import parse

SCENARIOS = Path(__file__).resolve().parents[2] / "scenarios"
UPSTREAM = SCENARIOS / "upstream"
sys.path.append(str(UPSTREAM))
PATHS = [*sorted(SCENARIOS.glob("*.py")), *sorted(UPSTREAM.glob("*.py"))]


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def header(path):
    """Parsed, so every value that a condition, a comparison or an expectation names exists."""
    return parse(path.read_text(encoding="utf-8"), path)


@pytest.fixture
def parameters(path):
    function = importlib.import_module(path.stem).scenario
    return list(inspect.signature(function).parameters.values())[1:]


def test_the_function_takes_the_axes_in_their_order_and_its_defaults_are_values(header, parameters):
    axes = {axis: values for axis, values in header.axes.items() if axis not in header.environ}
    assert [parameter.name for parameter in parameters] == list(axes)
    assert all(parameter.default in axes[parameter.name] for parameter in parameters)


def test_it_says_what_it_is_and_where_it_was_claimed(header):
    assert header.title != header.name
    assert header.source.startswith("https://") or not header.source
    assert header.tags
    assert ("upstream" in header.tags) == (header.path.parent == UPSTREAM)


def test_no_header_value_has_a_space(header):
    assert not [value for values in header.axes.values() for value in values if " " in value]


def test_it_runs_by_hand_on_any_of_its_values(path, header):
    done = subprocess.run([sys.executable, path, "--help"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert header.title in " ".join(done.stdout.split())
    for values in (values for axis, values in header.axes.items() if axis not in header.environ):
        assert "{" + ",".join(values) + "}" in "".join(done.stdout.split())


#: What a call of these gives has arrived on the host: Keras itself fetches what a step of `first` returns.
WAITING = {"fetch", "numpy", "asarray", "first"}


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.py")), ids=lambda path: path.stem)
def test_a_first_call_waits_for_the_device(path):
    """A GPU's work goes on after the call: its time would be in no phase, or in the next one."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With)]
    parts = [block for block in blocks if "'first call'" in ast.unparse(block.items[0])]
    called = {
        getattr(call.func, "attr", getattr(call.func, "id", ""))
        for part in parts
        for call in ast.walk(part)
        if isinstance(call, ast.Call)
    }
    assert len(parts) == ("bench.measure(" in path.read_text(encoding="utf-8"))
    assert not parts or called & WAITING


@pytest.mark.parametrize("name", ["function_behaviour", "numpy_behaviour"])
def test_every_experiment_has_its_function(name):
    path = SCENARIOS / f"{name}.py"
    header = parse(path.read_text(encoding="utf-8"), path)
    assert list(importlib.import_module(name).EXPERIMENTS) == header.axes["experiment"]
