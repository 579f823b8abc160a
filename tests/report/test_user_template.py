"""A report in a user's own layout."""

import pytest

from harness.analysis.results import Results
from harness.model.errors import UsageError
from harness.package_data import FOLDER
from harness.report.blocks import FILES, Bold, Entry, Figure, Folded, Head, Line, Section, Table, Text
from harness.report.charts.vega import Picture, Words
from harness.report.formats import render_template
from harness.report.user_template import render
from tests.documents import find_blocks
from tests.report.test_golden import on_a_gpu

HOSTILE = "*a* <b> @you"
CHART = Figure(Picture("ratios", Words("Ratios", [], "ratio", "A <chart>"), {}), where=FILES)
TABLE = Table("All", [Head(HOSTILE)], [Line([Entry("<1>")])], where=FILES)
SECTIONS = [
    Section(HOSTILE, "answer", [Text(["It is ", Bold("slower"), "."], where=FILES)]),
    Section("More", "more", [Folded("Charts", [CHART], where=FILES), TABLE]),
]


@pytest.fixture
def lay_out(tmp_path):
    def write(text, name="own.md.j2"):
        path = tmp_path / "templates" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return render(SECTIONS, path, "Measurement: good.")

    return write


def test_the_example_of_the_documentation(tmp_path, golden):
    (example,) = find_blocks((FOLDER / "docs/reference/report.md").read_text(), "jinja")
    (tmp_path / "layout.md.j2").write_text(example)
    assert render_template(Results(*on_a_gpu()), tmp_path / "layout.md.j2") == golden


def test_values_are_escaped_and_blocks_are_printed_as_in_the_report(lay_out):
    text = (
        "{{ title }}|{{ answer }}|{{ measurement }}|{{ tables[0].lines[0].entries[0].text }}|"
        "{% for block in sections[1].blocks if block is table %}{{ block }}{% endfor %}"
    )
    assert lay_out(text).split("|", 4) == [
        "\\*a\\* &lt;b&gt; @\u200byou",
        "It is slower.",
        "Measurement: good.",
        "&lt;1&gt;",
        "| \\*a\\* &lt;b&gt; @\u200byou |\n| --------------------- |\n| &lt;1&gt;             |",
    ]
    page = lay_out(text, "own.html.j2")
    assert page.startswith("*a* &lt;b&gt; @you|It is slower.|Measurement: good.|&lt;1&gt;|<div")
    assert ">&lt;1&gt;</th>" in page
    for name in ("own.md.j2", "own.html.j2"):
        chart = lay_out("{{ figures[0] }}", name)
        assert 'src="charts/ratios.svg"' in chart
        assert 'alt="A &lt;chart&gt;"' in chart


def test_a_template_includes_others_of_its_folder(lay_out, tmp_path):
    lay_out("{% macro say(words) %}- {{ words }}\n{% endmacro %}", "macros.j2")
    assert lay_out('{% import "macros.j2" as put %}{{ put.say(answer) }}') == "- It is slower.\n"


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("{{ tables[0].lines[0].cell }}", "unsafe"),
        ("{{ tables[0].shown(1) }}", "unsafe"),
        ("{{ figures[0].picture.svg() }}", "unsafe"),
        ("{{ tables[0] | attr('where') }}", "unsafe"),
        ("{{ title.__class__.__mro__ }}", "unsafe"),
        ("{{ tables.append(1) }}", "unsafe"),
        ("{{ '{0.where}'.format(tables[0]) }}", "unsafe"),
        ("{{ titel }}", "'titel' is undefined"),
        ("{{ tables[7].caption }}", "no element 7"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ title | loud }}", "No filter named 'loud'"),
        ("{% if %}", "Expected an expression"),
        ("{% include '../outside.j2' %}", "outside.j2' isn't a file"),
        ("{% include '/etc/passwd' %}", "passwd' isn't a file"),
        ("{% include 'link.j2' %}", "link.j2' isn't a file"),
        ("{% include 'notes.txt' %}", "notes.txt' isn't a file"),
        ("{% include 'broken.j2' %}", "templates/broken.j2:2: unexpected '}'"),
    ],
)
def test_what_a_template_cannot_do_is_an_error_with_its_line(lay_out, tmp_path, expression, reason):
    (tmp_path / "outside.j2").write_text("outside")
    lay_out("inside")
    (tmp_path / "templates/notes.txt").write_text("notes")
    (tmp_path / "templates/broken.j2").write_text("one\n{{ } }}")
    (tmp_path / "templates/link.j2").symlink_to(tmp_path / "outside.j2")
    with pytest.raises(UsageError) as raised:
        lay_out(f"one\n\n{expression}\n")
    assert reason in str(raised.value)
    place = "broken.j2:2: " if "broken" in expression else "own.md.j2:3: "
    assert str(raised.value).startswith(f"{tmp_path}/templates/{place}")


def test_a_mistake_is_in_the_template_although_its_folder_also_contains_harness(tmp_path):
    module: dict[str, type] = {}
    exec(compile("class Text:\n def __str__(self):\n  return [][1]", tmp_path / "module.py", "exec"), module)
    (tmp_path / "own.md.j2").write_text("one\n{{ measurement }}")
    with pytest.raises(UsageError, match=r"/own\.md\.j2:2: list index out of range"):
        render(SECTIONS, tmp_path / "own.md.j2", module["Text"]())


def test_a_template_has_the_name_of_one(tmp_path):
    with pytest.raises(UsageError, match=r"ends in \.j2"):
        render(SECTIONS, tmp_path / "missing.j2", "")
