"""Cores in a table."""

import re

from harness.report.blocks import Where
from harness.report.sections import scaling
from tests.report.sections import reading
from tests.scaled import scaled_run


def test_each_number_of_cores_is_a_line_with_speed_up_and_efficiency() -> None:
    section = reading.made(scaling.make_sections, *scaled_run({"1": 0.08, "2": 0.05, "4": 0.04}))
    for where in (Where.PASTE, Where.DETAILS, Where.PAGE, Where.TERMINAL):
        (table,) = reading.tables(section, where)
        assert reading.column(table, "cores") == ["1", "2", "4"]
    first, second, _ = reading.rows(table)
    assert first[0] == "tf1.14 graph"
    assert first[-2:] == ["", ""]
    assert re.fullmatch(r"1\.\d+× \(1\.\d+ to 1\.\d+\)", second[-2])
    assert re.fullmatch(r"\d\d\.\d % \(\d\d\.\d to \d\d\.\d %\)", second[-1])
    assert "the time on 1 core divided by" in table.legend
