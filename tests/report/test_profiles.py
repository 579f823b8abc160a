"""The report of profiles."""

import json
import re
from dataclasses import replace

from harness.analysis.profiles import Frame
from harness.model.launch import Role, Status
from harness.model.profile import Part
from harness.report import markdown
from harness.report.blocks import Drawing, Items
from harness.report.files import make_speedscope
from harness.report.flamegraphs import draw
from harness.report.profiles import ProfileReport
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


def make_parts(name="TF_Run"):
    first_call = first(function("create_op", calls=348, own=0.2), function("fit", calls=1, own=0.1), seconds=0.3)
    steady = profile(
        function("fit", own=0.1, cumulative=1.0),
        function("standardize", calls=104, own=0.1, callers={0: 0.1}),
        function(f"<built-in method _pywrap_tfe.{name}>", "~", own=0.8, callers={0: 0.8}),
        seconds=1.1,
        plain_seconds=1.0,
        stacks=[(0.9, [0]), (0.1, [0, 1])],
    )
    return {Part.FIRST_CALL: first_call, Part.STEADY: steady}


def profile_launch(launches, parts=None):
    paths = [f"artifacts/{launches.environment}/{part.file}.{ending}" for part in Part for ending in ("pstats", "json")]
    return launch(launches, (), 0, role=Role.PROFILE, artifacts=paths), make_parts() if parts is None else parts


BOTH = [profile_launch(GRAPH), profile_launch(EAGER, make_parts("TFE_Py_FastPathExecute"))]


def render(*launches, of_run=RUN):
    return markdown.render_full(ProfileReport(of_run, launches).sections())


def find_blocks(kind, *measured):
    sections = ProfileReport(RUN, measured).sections()
    return [block for section in sections for block in section.blocks if isinstance(block, kind)]


def test_a_report_reads_as_its_golden_file(golden):
    assert render(*BOTH) == golden


def test_first_calls_are_compared_and_what_gave_no_profile_is_told():
    once = [(launched, {Part.FIRST_CALL: parts[Part.FIRST_CALL]}) for launched, parts in BOTH]
    compare = [replace(comparison, of="import") for comparison in SCENARIO.compare]
    text = render(*once, of_run=replace(RUN, scenarios=[replace(SCENARIO, compare=compare)]))
    assert "Shares of the first call in tf2.0 eager" in text
    lost = broken(EAGER, Status.FAILED, error="it | raised", role=Role.PROFILE), {}
    (items,) = find_blocks(Items, profile_launch(GRAPH), lost)
    assert list(items.items) == ["tf2.0 eager: failed: it | raised"]
    (items,) = find_blocks(Items, profile_launch(GRAPH, {}))
    assert list(items.items) == ["tf1.14 graph: ok: the launch left no profile"]
    assert "## No profile" in render(lost)


def test_profiles_without_functions_are_compared():
    empty = {Part.STEADY: replace(make_parts()[Part.STEADY], functions=[], stacks=[])}
    text = render(*(profile_launch(launched.cell, empty) for launched, _ in BOTH))
    assert "A step takes 0 ms in tf2.0 eager and 0 ms in tf1.14 graph." in text


def test_flame_graphs_are_their_golden_file(golden_html):
    # the first calls of these have no samples
    parts = [part for drawing in find_blocks(Drawing, *BOTH) for part in (drawing.svg, drawing.caption)]
    assert "\n".join([*parts, ""]) == golden_html


def test_hostile_names_come_out_harmless():
    name = "</title><script>alert(1)</script>|\x1b[31m"
    parts = make_parts(name)
    functions = [*parts[Part.STEADY].functions, function(name, f"/x/{name}.py", own=0.5)]
    parts[Part.STEADY] = replace(parts[Part.STEADY], functions=functions, stacks=[(1.0, [3])])
    hostile = profile_launch(GRAPH, parts)
    texts = render(hostile), find_blocks(Drawing, hostile)[0].svg, make_speedscope(ProfileReport(RUN, [hostile]))
    assert not any("<script" in text or "\x1b" in text for text in texts)
    lines = [line for line in texts[0].splitlines() if "alert" in line and line.startswith("|")]
    assert lines
    assert all(re.sub(r"\\\|", "", line).count("|") == 7 for line in lines)


def test_speedscope_has_the_sampled_stacks_of_every_cell():
    document = json.loads(make_speedscope(ProfileReport(RUN, BOTH)))
    assert document["$schema"] == "https://www.speedscope.app/file-format-schema.json"
    first, second = document["profiles"]
    assert (first["name"], first["type"], first["unit"]) == ("tf1.14 graph, steady", "sampled", "seconds")
    assert (first["weights"], first["endValue"]) == ([0.9, 0.1], 1.0)
    frames = document["shared"]["frames"]
    stacks = [[frames[place]["name"] for place in stack] for stack in first["samples"]]
    assert stacks == [["nn.fit"], ["nn.fit", "nn.standardize"]]
    assert len({json.dumps(frame) for frame in frames}) == len(frames)
    assert second["name"] == "tf2.0 eager, steady"


def test_names_that_do_not_fit_their_box_are_cut():
    def list_names(width):
        svg = draw([Frame("module.a_function", 0, 0.0, width, width)], "t", lambda _: False, seconds=1.0)
        return re.findall(r"<text[^>]*>([^<]*)</text>", svg)

    names = [list_names(width) for width in (0.2, 0.08, 0.05, 0.01)]
    assert names == [["module.a_function"], ["a_function"], ["a_func…"], []]
