"""Settings in a selection: which cells get them, and in which they cannot be."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.environments.catalog import load_environments
from harness.model.environment import Device
from harness.model.errors import UsageError
from harness.model.scenario import Cell, Scenario, Suite, SuitePart
from harness.plan.selection import Catalog, Selection, select
from harness.plan.settings import add_setting_axes, explain_refusal
from harness.project import Project
from tests.cards import A100, T4
from tests.conftest import ROOT

STEP = Scenario("step", Path("step.py"), "", "", [], {"call": ["fit", "batch"]}, "", (), uses_keras=True)
OWN = Scenario("own", Path("own.py"), "", "", [], {"xla": ["fast", "on"]}, "", ())
SUITES = {
    "both": [SuitePart("step", {"call": ["fit"], "xla": ["on", "off"]}), SuitePart("step", {"call": ["batch"]})],
    "plain": [SuitePart("step", {"call": ["fit"]}), SuitePart("own", {})],
}
CATALOG = Catalog(
    ["tf2.0"], {"step": STEP, "own": OWN}, {name: Suite(name, name, ["*"], parts) for name, parts in SUITES.items()}
)


def chosen(catalog: Catalog = CATALOG, **selection: object) -> list[str]:
    request = Selection(**selection)  # type: ignore[arg-type]
    cells, _ = select(request, add_setting_axes(request, catalog), Device.CPU)
    return [" ".join([cell.scenario, *cell.axes.values()]) for cell in cells]


def test_what_is_typed_is_an_axis_of_every_scenario_and_of_each_part_of_a_suite():
    for axes, cells in [
        ({}, ["step fit"]),
        ({"xla": ["off", "on"]}, ["step fit on", "step fit off"]),
        ({"xla": ["*"]}, ["step fit on", "step fit off", "step fit default"]),
        ({"cpus": ["2", "1"]}, ["step fit 1", "step fit 2"]),
    ]:
        assert chosen(scenarios=["step"], axes={**axes, "call": ["fit"]}) == cells
    assert chosen(suite="plain", axes={"cpus": ["2"]}) == ["step fit 2", "own fast 2", "own on 2"]
    # an axis of a scenario's own is selected as before
    assert chosen(scenarios=["own"], axes={"OMP_NUM_THREADS": ["1"], "xla": ["on"]}) == ["own on 1"]
    assert chosen(scenarios=["own"], axes={"xla": ["fast"]}) == ["own fast"]
    assert chosen(scenarios=["*"], axes={"xla": ["on"]}) == ["step fit on", "step batch on", "own on"]
    assert chosen(suite="both") == ["step fit on", "step fit off", "step batch default"]
    assert chosen(suite="plain", axes={"tf32": ["off"]}) == ["step fit off", "own fast off", "own on off"]
    assert chosen(suite="both", axes={"xla": ["off"]}) == ["step fit off", "step batch off"]


def test_what_is_typed_wins_over_a_suite_and_over_a_default_of_the_header():
    suite = Suite("kept", "kept", ["*"], [SuitePart("step", {"call": ["fit"], "malloc": ["keep"]})])
    catalog = replace(CATALOG, suites={"kept": suite})
    assert chosen(catalog, suite="kept") == ["step fit keep"]
    assert chosen(catalog, suite="kept", axes={"malloc": ["default"]}) == ["step fit default"]
    assert chosen(catalog, suite="kept", axes={"malloc": ["*"]}) == ["step fit keep", "step fit default"]
    scenario = replace(STEP, axes={"call": ["fit"], "xla": ["on", "off", "default"]}, default={"xla": "off"})
    catalog = replace(CATALOG, scenarios={"step": replace(scenario, settings=["xla"])}, suites={})
    assert chosen(catalog, scenarios=["step"]) == ["step fit off"]
    assert chosen(catalog, scenarios=["step"], axes={"xla": ["on"]}) == ["step fit on"]


def test_what_does_not_exist_is_said_with_what_does(snapshot):
    problems = {}
    for axis, value in {"xla": "fast", "precision": "float16", "tf23": "on", "cpus": "two"}.items():
        with pytest.raises(UsageError) as raised:
            chosen(scenarios=["step"], axes={axis: [value]})
        problems[f"{axis}={value}"] = str(raised.value)
    assert problems == snapshot


ENVIRONMENTS = load_environments(Project(ROOT))


T4_CARD, CPU, NO_KERAS = {"card": T4}, {"device": Device.CPU}, {"uses_keras": False}
#: An environment, settings, and where the cell is. A GPU is an A100 unless it is said.
CELLS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    ("tf2.15", {"tf32": "on"}, {}),
    ("tf2.15", {"tf32": "on"}, T4_CARD),
    ("tf2.15", {"tf32": "off"}, T4_CARD),
    ("tf2.3", {"tf32": "on"}, T4_CARD),
    ("tf2.3", {"tf32": "off"}, T4_CARD),
    ("tf2.4", {"tf32": "on"}, {}),
    ("tf1.15-ngc", {"tf32": "on"}, {}),
    ("tf2.15", {"tf32": "off"}, CPU),
    ("tf2.15", {"tf32": "default"}, CPU),
    ("tf1.14", {"xla": "on"}, CPU),
    ("tf2.1", {"precision": "mixed_float16"}, {}),
    ("tf2.0", {"precision": "mixed_float16"}, {}),
    ("tf2.0", {"precision": "float32"}, {}),
    ("tf2.15", {"precision": "float32"}, NO_KERAS),
    ("tf2.15", {"precision": "default"}, NO_KERAS),
    ("tf2.5", {"cuda_loading": "lazy"}, {}),  # its packages are of CUDA 11.8
    ("tf2.4", {"cuda_loading": "lazy"}, {}),
    ("tf2.4", {"cuda_loading": "eager"}, {}),
    ("tf2.15", {"cuda_loading": "lazy"}, CPU),
    ("tf2.15", {"cudnn_autotune": "off"}, CPU),
    ("tf1.14", {"deterministic": "on"}, {}),
    ("tf2.8", {"deterministic": "on"}, CPU),
    ("tf2.7", {"deterministic": "on"}, CPU),
    ("tf2.7", {"deterministic": "off"}, CPU),
]


def test_what_a_setting_needs_is_known_before_anything_is_built(snapshot):
    """Each value of None is a cell that can be."""
    reasons = {}
    for environment, axes, where in CELLS:
        step = replace(
            STEP,
            axes={name: [value] for name, value in axes.items()},
            settings=list(axes),
            uses_keras=where.get("uses_keras", True),
        )
        device = where.get("device", Device.GPU)
        cards = [where.get("card", A100)] if device is Device.GPU else []
        reason = explain_refusal(Cell("step", environment, device, axes), step, ENVIRONMENTS[environment], cards)
        reasons[f"{environment} {axes} {' '.join(where)}"] = reason
    assert reasons == snapshot
