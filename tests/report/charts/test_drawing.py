"""What draws charts, in a process of its own."""

import os
import resource

import pytest

from harness.analysis.results import Results
from harness.report import files, sections
from harness.report.charts.drawing import Drawer, DrawingError
from tests.factories import cells, rounds, run

POINT = {"data": {"values": [{}]}, "mark": "point"}


def render_without_charts() -> dict[str, bytes]:
    results = Results(run(cells()), rounds(dict.fromkeys(cells(), 0.01)))
    texts = files.render_files(results, sections.build(results))
    assert texts.keys() <= {"report.md", "details.md", "report.html"}
    assert b"charts/" not in texts["report.md"]
    return texts


@pytest.mark.slow
def test_a_process_draws_one_chart_after_the_other_until_it_ends():
    drawer = Drawer()
    # Ctrl-C is not for it
    assert os.getpgid(drawer._process.pid) == drawer._process.pid
    assert drawer.svg(POINT).startswith("<svg")
    assert "vegaEmbed" in drawer.scripts()
    assert drawer.svg(POINT).startswith("<svg")
    drawer._process.kill()
    with pytest.raises(DrawingError):
        drawer.svg(POINT)
    drawer.close()


def test_where_memory_is_short_a_report_has_no_charts_and_says_why(monkeypatch):
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (7 * 10**9, before[1]))  # as `ulimit -v 7000000`: V8 reserves more
    try:
        short = Drawer()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
    for module in ("charts.vega", "charts.drawing", "html.assets"):
        monkeypatch.setattr(f"harness.report.{module}.drawer", lambda: short)
    texts = render_without_charts()
    for name in ("report.md", "report.html"):
        assert b"ulimit -v unlimited" in texts[name]
