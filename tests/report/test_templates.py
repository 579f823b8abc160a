"""Templates escape what they print."""

import pytest
from jinja2 import UndefinedError

from harness.report.escape import html
from harness.report.templates import make_environment


def test_values_are_escaped_once_and_a_misspelt_name_raises(tmp_path):
    (tmp_path / "t").write_text("{% macro m(x) %}<i>{{ x }}</i>{% endmacro %}{{ m('<') }}{{ [1, '>'] | join(', ') }}")
    assert make_environment(html, tmp_path).get_template("t").render() == "<i>&lt;</i>1, &gt;"
    (tmp_path / "t").write_text("{{ nothing }}")
    with pytest.raises(UndefinedError):
        make_environment(html, tmp_path).get_template("t").render()
