"""Tests of the verdict on a patch."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness.analysis.results import Results
from harness.analysis.verdicts import Verdict
from harness.model.launch import Status
from harness.model.scenario import PEAK, STEP, Comparison
from harness.report import judged
from harness.report.comparisons import list_all_lines
from tests.analysis.test_work_counts import NEW, OLD, counts
from tests.factories import broken, rounds, run, scenario


def judge(seconds: float, old: Mapping[str, Any] | None = None, new: Mapping[str, Any] | None = None) -> Any:
    """Judge a new version of a step of 10 ms. `old` and `new` are changes of the launches."""
    changes = {OLD: old or {}, NEW: new or {}}
    launches = [replace(one, **changes[one.cell]) for one in rounds({OLD: 0.01, NEW: seconds}, spread=0.001)]
    text = judged.render(judged.judge(Results(run([OLD, NEW]), launches)))
    assert text.count("\n") == 1
    return json.loads(text)


def work(first: int, later: int) -> dict[str, Any]:
    """Return the counts of a step that makes `first` calls at first, and `later` calls in later steps."""
    return {"observations": {"work": {**counts(later), "c": 0, "first": [first, 0]}}}


@pytest.mark.parametrize(("seconds", "verdict"), [(0.008, "faster"), (0.012, "slower"), (0.01, "same")])
def test_the_interval_decides(seconds, verdict):
    document = judge(seconds)
    assert document["verdict"] == document["comparisons"][0]["verdict"] == verdict
    low, high = document["interval"]
    assert low <= document["ratio"] <= high
    assert "the results weren't compared" in document["reasons"][-1]


def test_a_faster_side_is_invalid_if_it_did_other_work_or_stores_it_or_leaves_it_out():
    prints = [{"fingerprint": {"output": value}} for value in (1, 2)]
    document = judge(0.005, *prints)
    assert (document["verdict"], "the results differ: output" in document["reasons"][0]) == ("invalid", True)
    for seconds, old, new, part in (
        (0.001, work(1000, 1000), work(1000, 1), "the first step makes 1,000 calls, and later 1 of 1,000"),
        # what only the first step does on both sides, such as tracing, is no cache
        (0.005, work(9000, 1000), work(8500, 500), ""),
        # the calls moved into another function
        (0.005, work(1000, 1000), work(1, 1), ""),
        (0.0005, work(1000, 1000), work(1, 1), "so it may leave out the work"),
        # slower, or hardly faster: nothing to doubt
        (0.012, work(1000, 1000), work(1000, 1), ""),
    ):
        document = judge(seconds, old, new)
        assert (document["verdict"] == "invalid", part in " ".join(document["reasons"])) == (bool(part), True)


def test_a_side_that_fails_is_invalid_and_many_comparisons_stay_below_the_limit():
    document = json.loads(
        judged.render(judged.judge(Results(run([OLD, NEW]), [broken(NEW, Status.FAILED, error="x" * 5000)])))
    )
    assert (document["verdict"], document["ratio"], document["interval"]) == ("invalid", None, None)
    line = judged.JudgedLine("ä" * 150, judged.PatchVerdict.SAME, 1.0, [0.99, 1.01])
    for reason, reasons in (("ö" * 150, 5), ("語" * 150, 4)):
        many = judged.JudgedPatch(line.verdict, 1.0, [0.99, 1.01], "good", [reason] * 5, [line] * 5, 3, "results/r")
        text = judged.render(many)
        assert len(text.encode()) < 2000
        document = json.loads(text)
        assert (document["more"] > 3, len(document["reasons"])) == (True, reasons)


def test_more_memory_decides_nothing():
    comparisons = [
        Comparison(name, "environment", of=of) for name, of in (("time", STEP), ("memory", PEAK), ("build", "build"))
    ]
    measured = [
        replace(launch, resources={"max_rss_bytes": 9e9 if launch.cell == NEW else 1e9}, phases={"build": 0.1})
        for launch in rounds({OLD: 0.01, NEW: 0.008}, spread=0.001)
    ]
    results = Results(run([OLD, NEW], scenarios=[scenario(compare=comparisons)]), measured)
    assert Verdict.MORE in [line.compared.verdict for line in list_all_lines(results)]
    patch = judged.judge(results)
    memory_only = Results(run([OLD, NEW], scenarios=[scenario(compare=comparisons[1:2])]), measured)
    judged_memory = judged.judge(memory_only)
    assert (judged_memory.verdict, judged_memory.reasons) == ("unclear", ["no time was compared"])
    assert (patch.verdict, [line.what for line in patch.comparisons]) == (
        "faster",
        ["tf2.0 vs tf1.14", "tf2.0 vs tf1.14, build"],
    )
