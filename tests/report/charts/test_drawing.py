"""What draws charts, in a process of its own."""

import os
import resource

import pytest

from harness.analysis.results import Results
from harness.report import files, sections
from harness.report.charts import drawing
from harness.report.charts.drawing import Drawer, DrawingError
from tests.factories import cells, rounds, run

POINT = {"data": {"values": [{}]}, "mark": "point"}


def test_a_process_draws_one_chart_after_the_other_and_makes_the_scripts_of_a_page() -> None:
    drawer = Drawer()
    assert drawer.svg(POINT).startswith("<svg")
    assert "vegaEmbed" in drawer.scripts()
    assert drawer.svg(POINT).startswith("<svg")
    drawer.close()


def test_one_that_has_ended_says_so() -> None:
    drawer = Drawer()
    drawer._process.kill()
    with pytest.raises(DrawingError):
        drawer.svg(POINT)
    drawer.close()


def test_where_memory_is_short_a_report_has_no_charts_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def limited() -> Drawer:
        before = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (7 * 10**9, before[1]))  # as `ulimit -v 7000000`: V8 reserves more
        try:
            return Drawer()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, before)

    short = limited()
    for module in ("vega", "drawing"):
        monkeypatch.setattr(f"harness.report.charts.{module}.drawer", lambda: short)
    monkeypatch.setattr("harness.report.html.assets.drawer", lambda: short)
    members = cells()
    results = Results(run(members), rounds(dict.fromkeys(members, 0.01)))
    made = files.render_files(results, sections.build(results))
    assert {"report.md", "report.html"} <= made.keys()
    assert not [name for name in made if name.startswith("charts/")]
    assert b"charts/" not in made["report.md"]
    for name in ("report.md", "report.html"):
        assert b"This report has no charts" in made[name]


def test_without_the_package_that_draws_a_report_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.report.charts.drawing.find_spec", lambda name: None)
    for module in ("charts.vega", "html.assets"):
        monkeypatch.setattr(f"harness.report.{module}.drawer", drawing._start)
    members = cells()
    results = Results(run(members), rounds(dict.fromkeys(members, 0.01)))
    written = files.render_files(results, sections.build(results))
    assert not [name for name in written if name.startswith("charts/")]
    for name in ("report.md", "report.html"):
        assert b"python -m pip install vl-convert-python" in written[name]


def test_ctrl_c_is_not_for_what_draws() -> None:
    drawer = Drawer()
    assert os.getpgid(drawer._process.pid) == drawer._process.pid
    drawer.close()
