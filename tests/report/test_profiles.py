"""The report of profiles."""

import json
import re
from dataclasses import replace
from xml.etree import ElementTree

from harness.analysis.profiles import Frame
from harness.model.launch import Role, Status
from harness.model.profile import Part
from harness.report import markdown
from harness.report.blocks import Drawing, Items, Table, Where
from harness.report.flamegraphs import draw, draw_changes
from harness.report.profiles import ProfileReport, make_speedscope
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


BOTH = [profiled(GRAPH), profiled(EAGER, parts("TFE_Py_FastPathExecute"))]


def text(*of, **changes):
    return markdown.render_full(ProfileReport(RUN, of, **changes).sections())


def blocks(kind, *of):
    return [
        block for section in ProfileReport(RUN, of).sections() for block in section.blocks if isinstance(block, kind)
    ]


def rows(table):
    return [[entry.text for entry in line.entries] for line in table.lines]


def test_each_cell_s_calls_and_its_share_of_data_handling():
    summary = blocks(Table, profiled(GRAPH))[0]
    assert rows(summary) == [["tf1.14 graph", "300", "110", "9.1", "10.0"]]
    assert Where.TERMINAL in summary.where


def test_top_functions_are_told_per_call_by_own_and_by_cumulative_time():
    own = [table for table in blocks(Table, profiled(GRAPH)) if table.caption == "Functions by own time"][1]
    assert rows(own)[0] == ["TF_Run", "1", "80.0", "80.0", "80.0", "80.0"]
    told = text(profiled(GRAPH))
    assert re.search(r"<summary>Functions by cumulative time</summary>\s+\| function.*\n.*\n\| nn\.fit ", told)
    assert f"python -m pstats results/{RUN.id}/artifacts/tf1.14/steady.pstats" in told


def test_the_source_s_split_stands_beside_with_what_it_misfiles():
    told = text(*BOTH).replace("\\", "")
    assert "The source's own split" in told
    assert (
        "1 function that no later call reaches, such as nn.create_op, is counted as train, although it belongs to the "
        "build"
    ) in told


def test_two_environments_that_the_header_compares_stand_side_by_side():
    told = text(*BOTH).replace("\\", "")
    assert "**tf2.0 eager vs tf1.14 graph**" in told
    moved = told.partition("## Configurations")[0]
    assert re.search(r"TFE_Py_FastPathExecute +\| +80\.0 \| +0\.0 \| +\+80\.0 ", moved)


def test_what_a_scenario_does_once_is_compared_by_its_first_calls():
    once = [(launched, {Part.FIRST_CALL: found[Part.FIRST_CALL]}) for launched, found in BOTH]
    entries = [replace(entry, of="import") for entry in SCENARIO.compare]
    asked = replace(RUN, scenarios=[replace(SCENARIO, compare=entries)])
    told = markdown.render_full(ProfileReport(asked, once).sections())
    assert "Shares of the first call in tf2.0 eager minus those in tf1.14 graph" in told


def test_what_gave_no_profile_is_told():
    lost = broken(EAGER, Status.FAILED, error="it | raised", role=Role.PROFILE), {}
    (items,) = blocks(Items, profiled(GRAPH), lost)
    assert list(items.items) == ["tf2.0 eager: failed: it | raised"]
    assert "## No profile" in text(lost)
    assert "## No profile" not in text(*BOTH)


def test_a_launch_that_went_well_and_left_no_profile_is_told_too():
    (items,) = blocks(Items, profiled(GRAPH, {}))
    assert list(items.items) == ["tf1.14 graph: ok: the launch left no profile"]


def test_the_flame_graphs_come_before_what_explains_them() -> None:
    shown = [section.title for section in ProfileReport(RUN, BOTH).sections() if section.shown(Where.PAGE)]
    assert shown[1] == "Flame graphs"
    assert shown.index("Method") > shown.index("Configurations")


def test_a_picture_says_what_it_shows_and_each_box_what_it_is():
    drawn = blocks(Drawing, *BOTH)
    assert len(drawn) == 2, "the first call of these has no samples"
    assert 'role="img"' in drawn[0].svg
    assert "<title>tf1.14 graph, steady: which function called which" in drawn[0].svg
    assert "<title>nn.fit: 100.0 %, 90.0 % in itself</title>" in drawn[0].svg
    assert 'class="data"' in drawn[0].svg
    assert "data handling" in drawn[0].caption


def test_a_flame_graph_of_changes_is_a_file_whose_colors_show_them():
    frames = [
        Frame("a<b", 0, 0.0, 1.0, 0.0, 0.0),
        Frame("slow", 1, 0.0, 0.6, 0.6, 0.2),
        Frame("x", 1, 0.6, 0.3, 0.3, -0.1),
    ]
    drawn = draw_changes(frames, "Share of the time")
    ElementTree.fromstring(drawn)
    assert '<title>slow: 60.0 %, +20.0 points</title><rect fill="#ff4040"' in drawn
    assert '<title>x: 30.0 %, -10.0 points</title><rect fill="#9f9fff"' in drawn
    assert draw_changes([], "") == ""


def hostile():
    name = "</title><script>alert(1)</script>|\x1b[31m"
    found = parts(name)
    functions = [*found[Part.STEADY].functions, function(name, f"/x/{name}.py", own=0.5)]
    found[Part.STEADY] = replace(found[Part.STEADY], functions=functions, stacks=[(1.0, [3])])
    return profiled(GRAPH, found)


def test_hostile_names_come_out_harmless():
    told = text(hostile())
    for made in (told, blocks(Drawing, hostile())[0].svg, make_speedscope(ProfileReport(RUN, [hostile()]))):
        assert "<script" not in made
        assert "\x1b" not in made
    lines = [line for line in told.splitlines() if "alert" in line and line.startswith("|")]
    assert lines
    assert all(re.sub(r"\\\|", "", line).count("|") == 7 for line in lines)


def test_speedscope_has_the_sampled_stacks_of_every_cell():
    document = json.loads(make_speedscope(ProfileReport(RUN, BOTH)))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    first, second = document["profiles"]
    assert (first["name"], first["type"], first["unit"]) == ("tf1.14 graph, steady", "sampled", "seconds")
    assert (first["weights"], first["endValue"]) == ([0.9, 0.1], 1.0)
    frames = document["shared"]["frames"]
    assert [[frames[place]["name"] for place in stack] for stack in first["samples"]] == [
        ["nn.fit"],
        ["nn.fit", "nn.standardize"],
    ]
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    assert second["name"] == "tf2.0 eager, steady"


def test_names_that_do_not_fit_their_box_are_cut():
    def shown(width):
        drawn = draw([Frame("module.a_function", 0, 0.0, width, width)], "t", lambda _: False)
        return re.findall(r"<text[^>]*>([^<]*)</text>", drawn)

    assert [shown(width) for width in (0.2, 0.08, 0.05, 0.01)] == [
        ["module.a_function"],
        ["a_function"],
        ["a_func…"],
        [],
    ]
