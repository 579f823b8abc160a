"""The report of profiles, from its content to its two pages."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from harness.model.launch import Role, Status
from harness.model.profile import Part
from harness.report.flames import draw
from harness.report.profile_pages import render
from harness.report.profiles import build
from tests.factories import broken, cell, launch, run, scenario
from tests.profiles import first, function, profile

SCENARIO = scenario(data_handling=["*.standardize"])
GRAPH, EAGER = cell("tf1.14"), cell("tf2.0", mode="eager")

RUN = run(
    [GRAPH, EAGER],
    scenarios=[SCENARIO],
    asked={"rounds": 0, "profile_calls": 10},
    command=["harness", "profile", "-s", "step"],
)


def parts(name="TF_Run", **changes):
    build_ = first(function("create_op", calls=348, own=0.2), function("fit", calls=1, own=0.1), seconds=0.3)
    steady = profile(
        function("fit", own=0.1, cumulative=1.0),
        function("standardize", own=0.1, callers={0: 0.1}),
        function(f"<built-in method _pywrap_tfe.{name}>", "~", own=0.8, callers={0: 0.8}),
        seconds=1.1,
        plain_seconds=1.0,
        stacks=[(0.9, [0]), (0.1, [0, 1])],
        **changes,
    )
    return {Part.FIRST_CALL: build_, Part.STEADY: steady}


def profiled(of, found=None):
    kept = [f"artifacts/{of.environment}/{part.file}.{ending}" for part in Part for ending in ("pstats", "json")]
    return launch(of, (), 0, role=Role.PROFILE, artifacts=kept), parts() if found is None else found


@pytest.fixture(scope="module")
def pages():
    return render(RUN, [profiled(GRAPH), profiled(EAGER, parts("TFE_Py_FastPathExecute"))])


def test_each_cell_s_calls_and_its_share_of_data_handling():
    document = build(RUN, [profiled(GRAPH)])
    ((label,), values) = document.summary.rows[0]
    assert label == "tf1.14 graph"
    assert values == ["300", "110", "9.1", "10.0"]


def test_top_functions_are_told_per_call_by_own_and_by_cumulative_time():
    (view,) = build(RUN, [profiled(GRAPH)]).cells
    steady = view.parts[1]
    assert steady.own.rows[0] == (["TF_Run"], ["1", "80.0", "80.0", "80.0", "80.0"])
    assert steady.cumulative.rows[0][0] == ["nn.fit"]
    assert steady.command == f"python -m pstats results/{RUN.id}/artifacts/tf1.14/steady.pstats"


def test_the_document_s_split_stands_beside_with_what_it_misfiles(pages):
    text = pages.files["md"]
    assert "The document's own split" in text
    assert "1 function that no later call reaches, such as nn.create_op, is filed as train: building, of 200.0 ms." in (
        text.replace("\\", "")
    )


def test_two_environments_that_the_header_compares_stand_side_by_side(pages):
    assert "### tf2.0 eager against tf1.14 graph" in pages.files["md"]
    moved = pages.files["md"].partition("## Cell by cell")[0]
    assert re.search(r"TFE_Py_FastPathExecute +\| +80\.0 \| +0\.0 \| +\+80\.0 ", moved.replace("\\", ""))


def test_what_gave_no_profile_is_told(pages):
    lost = broken(EAGER, Status.FAILED, error="it | raised", role=Role.PROFILE)
    document = build(RUN, [profiled(GRAPH), (lost, {})])
    (absence,) = document.absences
    assert (absence.cell, absence.status, absence.why) == ("tf2.0 eager", "failed", "it | raised")
    assert "## No profile" in render(RUN, [(lost, {})]).files["md"]
    assert "## No profile" not in pages.files["md"]


def test_a_launch_that_went_well_and_left_no_profile_is_told_too():
    (absence,) = build(RUN, [profiled(GRAPH, {})]).absences
    assert absence.why == "it left no profile"


class Page(HTMLParser):
    """Checks that tags close, and keeps what would load something."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.loads = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [value for name, value in attrs if name in {"src", "href"} and not (value or "").startswith("#")]
        if tag not in {"meta", "rect", "br"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag


def test_the_page_is_whole_and_asks_for_nothing(pages):
    page = Page(pages.files["html"])
    assert not page.open
    assert not page.loads
    assert "script" not in page.tags
    assert page.tags.count("svg") == 2, "the first call of these has no samples"
    assert "default-src 'none'" in pages.files["html"]


def test_a_picture_says_what_it_shows_and_each_box_what_it_is(pages):
    text = pages.files["html"]
    assert 'role="img"' in text
    assert "<title>tf1.14 graph, steady: which function called which" in text
    assert "<title>nn.fit: 100.0 %, 90.0 % in itself</title>" in text
    assert 'class="data"' in text


def test_hostile_names_come_out_harmless():
    hostile = "</title><script>alert(1)</script>|\x1b[31m"
    found = parts(hostile)
    functions = [*found[Part.STEADY].functions, function(hostile, f"/x/{hostile}.py", own=0.5)]
    found[Part.STEADY] = replace(found[Part.STEADY], functions=functions, stacks=[(1.0, [3])])
    files = render(RUN, [profiled(GRAPH, found)]).files
    for text in files.values():
        assert "<script" not in text
        assert "\x1b" not in text
    rows = [line for line in files["md"].splitlines() if "alert" in line]
    assert rows
    assert all(re.sub(r"\\\|", "", row).count("|") == 7 for row in rows if row.startswith("|"))


def test_tables_for_a_terminal_are_plain(pages):
    assert "tf1.14 graph" in pages.summary
    assert "\\" not in pages.summary


def test_names_that_do_not_fit_their_box_are_cut():
    from harness.analysis.flames import Frame

    def shown(width):
        drawn = draw([Frame("module.a_function", 0, 0.0, width, width)], "t", lambda _: False, str)
        return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)

    assert [shown(width) for width in (0.2, 0.08, 0.05, 0.01)] == [
        ["module.a_function"],
        ["a_function"],
        ["a_func…"],
        [],
    ]
