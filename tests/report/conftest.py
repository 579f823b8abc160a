"""Fixtures for golden files in HTML and JSON."""

import json
from collections.abc import Callable

import pytest
from syrupy.assertion import SnapshotAssertion

from harness.report.charts.vega import Picture
from tests.golden import use_files
from tests.report.charts.examples import round_numbers


@pytest.fixture
def golden_html(snapshot: SnapshotAssertion) -> SnapshotAssertion:
    """Return what equals the golden HTML file of the test."""
    return use_files(snapshot, "html")


@pytest.fixture
def is_golden_chart(snapshot: SnapshotAssertion) -> Callable[[Picture], bool]:
    """Return whether a chart's specification equals the golden file of the test."""
    golden = use_files(snapshot, "json")
    return lambda chart: json.dumps(round_numbers(chart.specification), indent=1, ensure_ascii=False) + "\n" == golden
