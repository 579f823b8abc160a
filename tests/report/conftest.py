"""Fixtures for golden files in HTML and JSON."""

import json
from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from harness.report.charts.vega import Picture
from tests.report.charts.examples import round_numbers


class Json(SingleFileSnapshotExtension):
    """A chart's specification, as Vega-Lite's own tools read it."""

    file_extension = "json"
    _write_mode = WriteMode.TEXT


class Html(SingleFileSnapshotExtension):
    """A page's body."""

    file_extension = "html"
    _write_mode = WriteMode.TEXT


@pytest.fixture
def golden_html(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Return what equals the golden HTML file of the test."""
    return snapshot.use_extension(Html)


@pytest.fixture
def is_golden_chart(snapshot: SnapshotAssertion) -> Callable[[Picture], bool]:
    """Return whether a chart's specification equals the golden file of the test."""
    golden = snapshot.use_extension(Json)
    return lambda chart: json.dumps(round_numbers(chart.specification), indent=1, ensure_ascii=False) + "\n" == golden
