"""pyperf's JSON, read by pyperf."""

import pyperf
import pytest

from harness.analysis.results import Results
from harness.report.formats.pyperf import render
from tests.factories import RESOURCES, cell, launch, run
from tests.report.formats.examples import example, one_launch

NAME = "step tf1.14 cpu call=fit dtype=float32 mode=graph"


def load(planned, launches) -> pyperf.BenchmarkSuite:
    return pyperf.BenchmarkSuite.loads(render(Results(planned, launches)))


def test_a_value_a_launch():
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


def test_what_others_took_of_the_cpu_is_off_the_value_and_told():
    shared = launch(cell(), 0.01, resources={**RESOURCES, "steady_cpu_seconds": 0.8})
    (benchmark,) = load(run([cell()]), [shared])
    assert benchmark.get_values() == (pytest.approx(0.008),)
    assert benchmark.get_metadata()["harness_taken"] == pytest.approx(0.2)
    (undisturbed,) = load(*one_launch())
    assert "harness_taken" not in undisturbed.get_metadata()
