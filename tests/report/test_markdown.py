"""report.md and details.md, from blocks."""

import re
import shutil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report import templates
from harness.report.blocks import (
    FILES,
    REPORT,
    REST,
    Bold,
    Code,
    Entry,
    Folded,
    Head,
    Heading,
    Items,
    Line,
    Link,
    Section,
    Table,
    Text,
)
from harness.report.markdown import LIMIT, NAMED, format_table, split_report

HOSTILE = "a|b <script> \x1b[2J`x`\n# y @you"
HARMLESS = "a\\|b &lt;script&gt; \\`x\\` # y @\u200byou"


def make_table(lines, caption="All", where=FILES, width=1):
    rows = [Line([Entry(f"{number}" * width)]) for number in range(lines)]
    return Table(caption, [Head("number", is_number=True)], rows, "row", where=where)


def make_sections(*blocks):
    return [
        Section("Title", "answer", [Text("The answer.", where=REPORT)]),
        Section("Middle", "middle", blocks),
        Section("Again", "again", [Code("harness matrix", where=FILES)]),
    ]


def split(*blocks):
    return split_report(make_sections(*blocks), "results/RUN")


def test_each_block_is_markdown_in_which_text_is_text():
    address = Link("source", "https://example.org")
    for block, text in (
        (Text(HOSTILE, where=FILES), HARMLESS),
        (Text([Bold("Run:"), " a ", address], where=FILES), "**Run:** a [source](http"),
        (Items(["one", [Bold("two")]], where=FILES), "- one\n- **two**"),
        (Heading("part", where=FILES), "**part**\n\nwords"),
        (
            Folded("what <b>", [Text("inside")], where=FILES),
            "<summary>what &lt;b&gt;</summary>\n\ninside\n\n</details>",
        ),
        (Table("t", [Head("a")], [Line([Entry(HOSTILE, stands_out=True)])], where=FILES), f"| **{HARMLESS}**"),
        (Table("t", [Head("a")], [Line([Entry("·│·`|", is_code=True)])], where=FILES), "| `·│· ¦` |"),
        (Code("a\n```\nb", "text", where=FILES), "````text\na\n```\nb\n````"),
    ):
        assert text in split(block, Text("words", where=FILES))["report.md"], block


def test_long_tables_are_folded_and_what_is_not_pasted_is_in_the_details():
    assert "<summary>All: 41 rows</summary>" in split(make_table(41))["report.md"]
    assert "<summary>All" not in split(make_table(40))["report.md"]
    files = split(Text("Pasted.", where=REPORT), Text("The rest.", where=REST))
    assert "The rest." not in files["report.md"]
    assert "results/RUN/details.md and report.html have more of these sections." in files["report.md"]
    assert files["report.md"].index("## Not in this file") < files["report.md"].index("## Again")
    assert "The rest." in files["details.md"]
    assert "Pasted." not in files["details.md"]
    assert files["details.md"].startswith("# Title: details\n")
    assert "details.md" not in split(Text("Pasted.", where=REPORT))


def test_what_has_no_room_is_counted_and_named_as_far_as_twenty():
    files = split(make_table(9000, "Times"), make_table(3, "Short", width=3))
    assert len(files["report.md"]) < LIMIT
    assert ": Times (9,000 rows)." in files["report.md"]
    assert "| 8999 |" in re.sub(" +", " ", files["details.md"])
    assert "<summary>Times" not in files["report.md"]
    assert "| 222 |" in re.sub(" +", " ", files["report.md"])
    assert files["details.md"].count("|\n") == 9002
    files = split(*(make_table(400, f"T{number}", width=4) for number in range(30)))
    assert len(re.findall(r"T\d+ \(400 rows\)", files["report.md"])) == NAMED
    assert re.search(r"T\d+ \(400 rows\) and \d+ more\.", files["report.md"])


@pytest.mark.slow
@given(
    st.lists(
        st.one_of(
            st.builds(make_table, st.integers(0, 300), st.text(max_size=900), st.sampled_from([FILES, REPORT, REST])),
            st.builds(Text, st.text(max_size=2000), where=st.sampled_from([FILES, REST])),
            st.builds(Items, st.lists(st.text(max_size=600), max_size=60), where=st.just(FILES)),
            st.builds(Code, st.text(max_size=9000), where=st.just(FILES)),
        ),
        max_size=40,
    )
)
def test_a_report_is_always_short_enough_to_paste_and_keeps_its_first_and_last_section(blocks):
    files = split(*blocks)
    assert len(files["report.md"]) < LIMIT
    assert files["report.md"].startswith("# Title\n\nThe answer.\n")
    assert files["report.md"].endswith("## Again\n\n```sh\nharness matrix\n```\n\n</details>\n")


def test_templates_lay_the_report_out(tmp_path, monkeypatch):
    folder = shutil.copytree(templates.FOLDER, tmp_path / "templates")
    (folder / "markdown/blocks.j2").write_text(
        (folder / "markdown/blocks.j2").read_text().replace("**{{ part.title }}**", "### {{ part.title }}")
    )
    (folder / "report.md.j2").write_text("Of mine.\n" + (folder / "report.md.j2").read_text())
    monkeypatch.setattr(templates, "FOLDER", folder)
    report = split(Heading("a_b*", where=FILES), Text("words", where=FILES))["report.md"]
    assert report.startswith("Of mine.\n# Title\n\nThe answer.\n")
    assert "\n### a_b\\*\n\nwords\n" in report


def test_columns_align():
    assert format_table(["a", "number"], [["x", "1"], ["本", "22"]], right=[1]).splitlines() == [
        "| a   | number |",
        "| --- | -----: |",
        "| x   |      1 |",
        "| 本  |     22 |",
    ]
