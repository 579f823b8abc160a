"""pyperf's JSON, read by pyperf."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyperf
import pytest

from harness.analysis.results import Results
from harness.report.formats.pyperf import render
from tests.factories import RESOURCES, cell, cells, launch, rounds, run
from tests.report.formats.examples import example, hostile, one_launch

NAME = "step tf1.14 cpu call=fit dtype=float32 mode=graph"


def shown(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "pyperf", *arguments], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., str]:
    def write(name: str, made: Any) -> str:
        path = tmp_path / name
        path.write_text(render(Results(*made)), encoding="utf-8")
        return str(path)

    return write


def test_a_value_a_launch() -> None:
    suite = pyperf.BenchmarkSuite.loads(render(Results(*example())))
    assert len(suite) == 7
    benchmark = suite.get_benchmark(NAME)
    assert benchmark.get_nrun() == benchmark.get_nvalue() == 10
    assert benchmark.get_unit() == "second"
    assert benchmark.mean() == pytest.approx(0.01, rel=0.01)
    metadata = benchmark.get_metadata()
    assert metadata["loops"] == 10
    assert (metadata["python_version"], metadata["cpu_model_name"], metadata["cpu_count"]) == ("3.7", "Some CPU", 2)
    assert (metadata["environment"], metadata["axis_mode"], metadata["mem_max_rss"]) == ("tf1.14", "graph", 412 * 2**20)


def test_what_others_took_of_the_cpu_is_off_the_value_and_told() -> None:
    shared = launch(cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    (benchmark,) = pyperf.BenchmarkSuite.loads(render(Results(run([cell()]), [shared])))
    assert benchmark.get_values() == (pytest.approx(0.008),)
    assert benchmark.get_metadata()["harness_taken"] == pytest.approx(0.2)
    (alone,) = pyperf.BenchmarkSuite.loads(render(Results(*one_launch())))
    assert "harness_taken" not in alone.get_metadata()


def test_runs_can_be_added_to_those_of_another_file() -> None:
    one, other = (pyperf.BenchmarkSuite.loads(render(Results(*example()))) for _ in range(2))
    one.add_runs(other)
    assert one.get_benchmark(NAME).get_nrun() == 20


@pytest.mark.parametrize("made", [example, hostile, one_launch])
@pytest.mark.parametrize("command", ["stats", "hist"])
def test_pyperf_shows_it(command: str, made: Any, written: Callable[..., str]) -> None:
    assert shown(command, written("run.json", made()))


def test_pyperf_compares_two_runs(written: Callable[..., str]) -> None:
    times = dict(zip(cells(), [0.010, 0.020, 0.011, 0.027], strict=True))
    slower = {of: seconds * 1.5 for of, seconds in times.items()}
    before = written("before.json", (run(times), rounds(times, spread=0.001)))
    after = written("after.json", (run(times), rounds(slower, spread=0.001, seed=2)))
    text = shown("compare_to", before, after, "--table", "--table-format", "md")
    assert NAME in text
    assert text.count("1.50x slower") == 5


def test_one_launch_on_both_sides_can_be_compared(written: Callable[..., str]) -> None:
    before = written("before.json", one_launch())
    after = written("after.json", (run([cell()]), [launch(cell(), 0.02)]))
    assert "2.00x slower" in shown("compare_to", before, after)
