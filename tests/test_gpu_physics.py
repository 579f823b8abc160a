"""The checks of `make gpu-check` on stored launches: a substitute for a GPU can't imitate these numbers."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.gpu_check import checks
from bench.gpu_check.checks import FLOATS, TF32S, Finding, Product
from harness.model.environment import Device
from harness.model.gpu import UsedGpu
from harness.model.launch import Launch, Role, Status
from harness.model.scenario import Cell
from tests import factories, runs

SIDE = 8192
H100 = Product(1, SIDE, False, 1.0, (9, 0), 132, 1755.0)


def verdicts(findings: list[Finding]) -> list[bool | None]:
    return [finding.passed for finding in findings]


@st.composite
def gpus(draw: st.DrawFn) -> list[Product]:
    """Return the products that a GPU with TF32 could have measured: 1, 10 and 100 calls, in float32 and in TF32."""
    capability = draw(st.sampled_from(sorted(TF32S)))
    number, clock = draw(st.integers(10, 200)), draw(st.floats(500.0, 3000.0))
    watts, overhead = draw(st.floats(20.0, 1000.0)), draw(st.floats(0.0, 1e-5))
    efficiencies = {False: draw(st.floats(0.5, 0.98)), True: draw(st.floats(0.5, 0.98))}
    products = []
    for tf32, efficiency in efficiencies.items():
        rate = number * (TF32S if tf32 else FLOATS)[capability] * clock * 1e6 * efficiency
        for calls in (1, 10, 100):
            seconds = calls * 2 * SIDE**3 / rate + overhead
            timed = max(2.0, 3 * seconds)
            joules = watts * timed * draw(st.floats(0.9, 1.1))
            products.append(Product(calls, SIDE, tf32, seconds, capability, number, clock, timed, watts, joules))
    return products


@given(gpus(), st.sampled_from([0.5, 0.7, 1.4, 10.0]))
def test_a_gpu_passes_unless_its_time_is_constant_or_its_energy_is_not_power_times_time(products, factor):
    for check in (checks.check_linear, checks.check_rate, checks.check_energy):
        findings = check(products)
        assert findings
        assert all(verdicts(findings)), findings
    constant = [dataclasses.replace(product, seconds=1.0) for product in products]
    assert verdicts(checks.check_linear(constant)) == [False] * 4  # 10 and 100 calls, in float32 and in TF32
    wrong = [dataclasses.replace(product, joules=(product.joules or 0) * factor) for product in products]
    assert verdicts(checks.check_energy(wrong)) == [False]


def test_an_unknown_peak_and_energy_that_the_gpu_does_not_report_are_no_verdict(snapshot):
    changes: list[dict[str, Any]] = [{"capability": (99, 0)}, {"multiprocessors": None}, {"capability": None}]
    findings = [finding for change in changes for finding in checks.check_rate([dataclasses.replace(H100, **change)])]
    assert verdicts(findings) == [None] * 3
    assert [finding.sentence for finding in findings] == snapshot
    assert checks.check_energy([H100]) == [Finding(None, "The GPU reported no power.")]
    pascal = dataclasses.replace(H100, capability=(6, 1), watts=100.0, timed_seconds=2.0)
    (finding,) = checks.check_energy([pascal])
    assert finding.passed is None
    assert "100.0 W × 2.00 s" in finding.sentence


def test_tf32_is_faster_on_gpus_that_have_more_of_it():
    expected = {
        ((8, 0), 6.0): True,
        ((9, 0), 1.2): False,
        # a GeForce GPU: TF32 has the peak of float32
        ((8, 6), 1.1): True,
        ((12, 0), 0.5): False,
        ((7, 5), 1.0): None,
    }
    passed = {}
    for capability, ratio in expected:
        off = dataclasses.replace(H100, capability=capability)
        on = dataclasses.replace(off, tf32=True, seconds=off.seconds / ratio)
        (passed[capability, ratio],) = verdicts(checks.check_tf32([off, on]))
        assert verdicts(checks.check_tf32([off])) == [None]
    assert passed == expected


CPU = {"product": [1.0, -2.0], "convolution": [0.5, 0.25], "softmax": [0.125, 0.875]}


def make_products(calls: int = 1, tf32: str = "off", error: float = 1e-7, **changes: Any) -> Launch:
    """Return a launch of the products, whose results on the GPU have this relative error."""
    cell = Cell(checks.PRODUCTS, "tf2.21", Device.GPU, {"side": "64", "calls": str(calls), "tf32": tf32})
    outputs = {"cpu": CPU, "gpu": {name: [value * (1 + error) for value in values] for name, values in CPU.items()}}
    fields: dict[str, Any] = {
        "observations": {
            "settings": {"tf32": tf32},
            "outputs": outputs,
            "device": {"multiprocessors": 132, "clock_khz": 1980000},
        },
        "fingerprint": {"corner": 1.0},
        "gpus": [UsedGpu("NVIDIA H100", (9, 0))],
        "resources": {
            **{"steady_seconds": 2.0, "gpu_steady": 1.0, "gpu_power_watts": 300.0, "gpu_energy_joules": 590.0},
            "gpu_sm_clock_mhz": 1700.0,
        },
    }
    return factories.launch(cell, 0.001 * calls, **{**fields, **changes})


def test_a_product_is_read_from_its_launch():
    assert checks.read_product(make_products(calls=10, tf32="on")) == Product(
        10, 64, True, 0.01, (9, 0), 132, 1700.0, 2.0, 300.0, 590.0
    )
    # without readings of the timed part, the highest clock counts
    empty = checks.read_product(make_products(resources={}))
    assert (empty.clock_mhz, empty.watts, empty.joules) == (1980.0, None, None)


def test_results_of_a_gpu_are_those_of_the_cpu():
    expected = {("off", 1e-7): True, ("off", 1e-3): False, ("on", 1e-3): True, ("on", 1e-7): False}
    findings = {
        (tf32, error): checks.check_right([make_products(tf32=tf32, error=error)])[0] for tf32, error in expected
    }
    assert {case: finding.passed for case, finding in findings.items()} == expected
    # exact results with TF32 mean that it wasn't used
    assert "it may not have been used" in findings["on", 1e-7].sentence
    # the large product is wrong
    assert verdicts(checks.check_right([make_products(fingerprint={"corner": 0.5})])) == [False, True]
    assert verdicts(checks.check_right([make_products(observations={})])) == [None]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(-0.5, 0.5))
def test_the_error_of_scaled_results_is_the_scale(values, error):
    if max(map(abs, values)) > 1e-6:
        scaled = [value * (1 + error) for value in values]
        assert checks.relative_error(scaled, values) == pytest.approx(abs(error), abs=1e-9)
    assert checks.relative_error(values, values) == 0
    assert checks.relative_error([*values, 1.0], values) == float("inf")


def start(number: int, before: float, filled: float, seconds: float) -> Launch:
    """Return the launch of a round, which found and saved these bytes of compiled code."""
    resources = {"ptx_cache_bytes": before, "ptx_cache_filled_bytes": filled}
    phases = {"import": 2.0, "first call": seconds - 2.0, "warm up": 1.0, "steady state": 2.0}
    return make_products(resources=resources, phases=phases, number=number, started=f"2026-11-26T10:00:0{number}+00:00")


def test_the_second_start_finds_the_compiled_code_of_the_first():
    cold, warm = start(1, 0, 50e6, 60.0), start(2, 50e6, 0, 5.0)
    assert checks.check_starts([warm, cold]) == [
        Finding(
            True,
            "tf2.21: the first launch of products started in 60.0 s and saved 50.0 MB of compiled code, and the next "
            "one started in 5.0 s.",
        )
    ]
    (finding,) = checks.check_starts([cold, start(2, 50e6, 50e6, 60.0)])
    assert finding.passed is False
    assert finding.sentence.endswith(", but compiled 50.0 MB again.")
    # code of an earlier run
    assert verdicts(checks.check_starts([warm, start(3, 50e6, 0, 5.0)])) == [None]


def test_launches_of_other_work_or_without_a_result_are_not_checked():
    failed = make_products(status=Status.FAILED, samples=())
    others = [runs.launch(), failed, make_products(role=Role.PILOT)]
    for check in checks.CHECKS.values():
        findings = check(others)
        assert verdicts(findings) == [None]
        assert checks.report(findings) == 4


def test_stored_runs_are_checked_also_in_a_bundle(folder, capsys):
    folder.write_run(runs.run())
    for launch in (make_products(calls=calls, tf32=tf32) for calls in (1, 10) for tf32 in ("off", "on")):
        folder.append(launch)
    (folder.path.parent / "half").mkdir()
    (folder.path.parent / "half" / "launches.jsonl").write_text("{")
    launches = checks.read_launches(Path(folder.path.parent))
    assert len(launches) == 4
    # 64 rows in 1 ms
    assert checks.report(checks.check_physics(launches)) == 1
    output = capsys.readouterr().out
    assert "10 products (float32) take 10.00 times as long as 1 (10 ms, 1 ms)." in output
    assert "too slow for a GPU" in output
