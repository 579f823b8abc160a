"""What a report is made of."""

from harness.report.blocks import REST, Column, Entry, Heading, Section, Text, Where, tabulate
from tests.factories import cell


def test_a_table_is_a_value_for_each_column_and_row_with_the_legends_of_its_columns():
    columns = [
        Column("name", lambda row: row, is_label=True),
        Column("length", lambda row: str(len(row)), legend="Length is in letters.", is_number=True),
    ]
    table = tabulate("Words", columns, ["one", "three"], cell=lambda row: cell(mode=row))
    assert [head.text for head in table.heads] == ["name", "length"]
    assert [[entry.text for entry in line.entries] for line in table.lines] == [["one", "3"], ["three", "5"]]
    assert [line.cell for line in table.lines] == [cell(mode="one"), cell(mode="three")]
    assert table.legend == "Length is in letters."


def test_an_optional_column_that_says_nothing_is_left_out_with_its_legend():
    columns = [
        Column("name", str),
        Column("remarks", lambda row: row and "odd", legend="Odd is odd.", is_optional=True),
    ]
    assert [head.text for head in tabulate("", columns, ["", ""]).heads] == ["name"]
    assert tabulate("", columns, ["", ""]).legend == ""
    assert [head.text for head in tabulate("", columns, ["", "a"]).heads] == ["name", "remarks"]


def test_a_column_is_shown_where_it_belongs():
    table = tabulate("", [Column("a", str), Column("b", lambda _: Entry("x"), where=Where.TERMINAL)], ["1"])
    assert [head.text for head in table.shown(Where.PAGE).heads] == ["a"]
    assert [entry.text for entry in table.shown(Where.PAGE).lines[0].entries] == ["1"]
    assert table.shown(Where.TERMINAL) is table


def test_a_section_is_shown_without_headings_that_nothing_follows():
    first, second, empty = Heading("first"), Heading("second"), Heading("empty")
    pasted, other = Text("pasted", where=Where.PASTE), Text("kept", where=REST)
    section = Section("Title", "anchor", [first, pasted, second, other, empty])
    assert section.shown(Where.PAGE).blocks == [second, other]
    assert Section("Title", "anchor", [pasted]).shown(Where.PAGE) is None
    assert Section("Title", "anchor", [first]).shown(Where.PAGE) is None
