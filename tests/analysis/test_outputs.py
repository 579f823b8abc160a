"""What plain scripts printed, environment against environment."""

import hashlib

from harness.analysis.cell_index import lookup
from harness.analysis.printed import OutputMatch, compare_outputs
from harness.model.environment import Device
from harness.model.scenario import Cell, Comparison
from tests.factories import launch, run, scenario

OLD, NEW = (Cell("mine", name, Device.CPU, {}) for name in ("tf1.14", "tf2.0"))


def printed(*lines, more=""):
    text = "\n".join([*lines, more])
    return {"lines": list(lines), "count": len(lines) + bool(more), "sha256": hashlib.sha256(text.encode()).hexdigest()}


def compared(old, new):
    """What the outputs of two environments' launches show, or None."""
    script = scenario("mine", axes={}, default={}, compare=[Comparison("whole", along="environment")], script="mine.py")
    planned = run([OLD, NEW], scenarios=[script], reference="tf1.14")
    launches = [
        launch(cell, (0.1,), round=number, observations={"output": output})
        for cell, outputs in ((OLD, old), (NEW, new))
        for number, output in enumerate(outputs, 1)
    ]
    comparison = compare_outputs(lookup(planned, launches), "tf1.14", ["mine"])
    return comparison[0] if comparison else None


def test_outputs_are_the_same_or_differ_at_a_line():
    for old, new, likeness, line, texts in [
        ([printed("a", "b")] * 2, [printed("a", "b")] * 2, OutputMatch.SAME, 0, (None, None)),
        ([printed("a", "b")] * 2, [printed("a", "c")] * 2, OutputMatch.DIFFERS, 2, ("c", "b")),
        ([printed("a")] * 2, [printed("a", "b")] * 2, OutputMatch.DIFFERS, 2, ("b", None)),
        ([printed("took 1"), printed("took 2")], [printed("took 3"), printed("took 4")], OutputMatch.VARIES, 1, None),
        ([printed("1", "x"), printed("2", "x")], [printed("3", "y")] * 2, OutputMatch.DIFFERS, 2, ("y", "x")),
        ([printed("a", more="1")] * 2, [printed("a", more="2")] * 2, OutputMatch.LATER, 2, (None, None)),
        ([printed()] * 2, [printed()] * 2, OutputMatch.SAME, 0, (None, None)),
    ]:
        comparison = compared(old, new)
        assert (comparison.cell, comparison.other) == (NEW, OLD), old
        assert (comparison.likeness, comparison.line) == (likeness, line), old
        if texts is None:
            assert len(set(comparison.texts)) == 2, old
        else:
            assert comparison.texts == texts, old


def test_what_a_launch_wrote_in_place_of_its_output_is_none():
    for output in [None, 7, {}, {"lines": 3, "count": 1, "sha256": "x"}, {"lines": [1], "count": 1}]:
        assert compared([output] * 2, [printed("a")] * 2) is None
