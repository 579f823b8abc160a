"""pyperf's JSON, read by pyperf."""

import subprocess
import sys
from pathlib import Path

import pyperf
import pytest

from harness.analysis.results import Results
from harness.report.formats.pyperf import render
from tests.factories import RESOURCES, cell, cells, launch, rounds, run
from tests.report.formats.examples import example, hostile, one_launch

NAME = "step tf1.14 cpu call=fit dtype=float32 mode=graph"


def load(planned, launches) -> pyperf.BenchmarkSuite:
    return pyperf.BenchmarkSuite.loads(render(Results(planned, launches)))


def run_pyperf(*arguments: str) -> str:
    completed = subprocess.run(
        [sys.executable, "-m", "pyperf", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def test_a_value_a_launch() -> None:
    suite = load(*example())
    assert len(suite) == 7
    benchmark = suite.get_benchmark(NAME)
    assert benchmark.get_nrun() == benchmark.get_nvalue() == 10
    assert benchmark.get_unit() == "second"
    assert benchmark.mean() == pytest.approx(0.01, rel=0.01)
    metadata = benchmark.get_metadata()
    assert metadata["loops"] == 10
    assert (metadata["python_version"], metadata["cpu_model_name"], metadata["cpu_count"]) == ("3.7", "Some CPU", 2)
    assert (metadata["environment"], metadata["axis_mode"], metadata["mem_max_rss"]) == ("tf1.14", "graph", 412 * 2**20)
    # runs can be added to those of another file
    suite.add_runs(load(*example()))
    assert suite.get_benchmark(NAME).get_nrun() == 20


def test_what_others_took_of_the_cpu_is_off_the_value_and_told() -> None:
    shared = launch(cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    (benchmark,) = load(run([cell()]), [shared])
    assert benchmark.get_values() == (pytest.approx(0.008),)
    assert benchmark.get_metadata()["harness_taken"] == pytest.approx(0.2)
    (undisturbed,) = load(*one_launch())
    assert "harness_taken" not in undisturbed.get_metadata()


def test_pyperf_shows_and_compares_it(tmp_path: Path) -> None:
    def write(name: str, planned, launches) -> str:
        path = tmp_path / name
        path.write_text(render(Results(planned, launches)), encoding="utf-8")
        return str(path)

    for stored in (example, hostile):
        assert run_pyperf("stats", write(f"{stored.__name__}.json", *stored()))
    times = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
    slower = {member: seconds * 1.5 for member, seconds in times.items()}
    before = write("before.json", run(times), rounds(times, spread=0.001))
    after = write("after.json", run(times), rounds(slower, spread=0.001, seed=2))
    text = run_pyperf("compare_to", before, after, "--table", "--table-format", "md")
    assert NAME in text
    assert text.count("1.50x slower") == 5
    # one launch on both sides is enough
    one = write("one.json", *one_launch()), write("other.json", run([cell()]), [launch(cell(), 0.02)])
    assert "2.00x slower" in run_pyperf("compare_to", *one)
