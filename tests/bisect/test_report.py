from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.bisect.candidates import Candidate
from harness.bisect.exchange import Exchange
from harness.bisect.report import build_sections
from harness.bisect.request import BisectRequest
from harness.bisect.search import EqualEndpointsError, ReversedEndpointsError, SearchEnd, narrow, scan
from harness.model.scenario import OWN
from harness.report import markdown, terminal
from tests.bisect.machine import Machine

REQUEST = BisectRequest(issue="T#7", scenario="step", axes={"call": "fit"}, command=["harness", "bisect", "T#7"])


class Runs:
    """The runs of a search, without a folder."""

    folder = Path("results/bisect-1")
    runs = ("2026-1", "2026-2")
    launched = 12
    spent = 90.0

    def __init__(self, packages=None, **builds):
        self._packages = packages or {}
        self._builds = builds

    def pins(self, text):
        return self._packages.get(text, {})

    def commits(self):
        return self._builds


def searched(seconds, *, budget=1e9, first=scan, dated=True, **changes):
    machine = Machine(seconds)
    search = machine.search(**changes)
    if dated:
        search.candidates = [
            Candidate(each.text, f"2024-05-{at + 1:02}", f"2.{at}.0") for at, each in enumerate(search.candidates)
        ]
    if first:
        first(search, machine)
    narrow(search, budget, machine)
    return search


def told(search, package="", runs=None, request=REQUEST, exchanges=()):
    return Shown(build_sections(request, search, runs or Runs(), package, exchanges))


class Shown:
    """A report as Markdown, and its lines in a wide terminal."""

    def __init__(self, sections):
        console = Console(width=400, file=StringIO())
        terminal.show(sections, console)
        self.lines = [line.strip().removeprefix("- ") for line in console.file.getvalue().splitlines() if line.strip()]
        self.markdown = markdown.render_full(sections)


def test_the_answer_stands_first_with_dates_numbers_and_what_was_spent():
    found = told(searched([1.0, 1.0, 1.0, 3.0, 3.0]))
    shown = "c3 takes ×3 (2.97 to 3.03, 3 rounds: slower)"
    assert found.lines[0] == "Bisect: T#7"
    assert found.lines[1] == f"T#7: the time per step rose between c2 and c3 (2024-05-03 to 2024-05-04): {shown}."
    assert found.lines[2].startswith("c2 .. c3 has")
    assert any(line.startswith("Spent: ") and "12 launches, 90 s of launches" in line for line in found.lines)
    assert found.lines[-1].endswith("harness bisect --good c2 --bad c3 --package tensorflow 'T#7' -s step -a call=fit")


def test_the_next_search_measures_the_same_script_with_its_files_and_arguments():
    script = ["train.py", "--with", "data", "--", "--epochs", "3"]
    request = replace(REQUEST, issue="", scenario=".harness/train.py", axes={"xla": "on"}, of=OWN, script=script)
    found = told(searched([1.0, 1.0, 3.0]), request=request)
    words = "-a xla=on train.py --with data -- --epochs 3"
    assert found.lines[-1] == f"harness bisect --good c1 --bad c2 --package tensorflow {words}"
    assert found.markdown.startswith("# Bisect: train.py\n")
    assert "time of train.py, xla=on, in " in found.markdown.replace("own work", "time")
    assert ".harness/" not in found.markdown


def test_a_fix_is_narrowed_with_the_ends_turned():
    found = told(searched([3.0, 3.0, 1.0], is_fix=True))
    assert "--good c2 --bad c1 --package tensorflow" in found.lines[-1]


def test_the_builds_and_the_commits_between_them():
    runs = Runs(c0="v2.15.0-11-g63f5a65c7cd", c1="v2.16.1-19-g810f233968c")
    lines = told(searched([1.0, 2.0], first=None), runs=runs).lines
    assert "GIT_VERSION: v2.15.0-11-g63f5a65c7cd and v2.16.1-19-g810f233968c" in lines
    compare = "https://github.com/tensorflow/tensorflow/compare/"
    assert f"Changes in tensorflow between the two versions ({compare}63f5a65c7cd...810f233968c)" in lines
    # without these, the tags
    assert (
        f"Changes in tensorflow between the two versions ({compare}v2.0.0...v2.1.0)"
        in told(searched([1.0, 2.0], first=None)).lines
    )


@pytest.mark.parametrize(
    ("package", "link"),
    [
        ("keras", "keras-team/keras/compare/v2.0.0...v2.1.0"),
        ("numpy", "numpy/numpy/compare/v2.0.0...v2.1.0"),
        ("keras-nightly", "keras-team/keras/commits/master?since=2024-05-01&until=2024-05-02"),
    ],
)
def test_the_commits_of_a_package_that_moved(package, link):
    lines = told(searched([1.0, 2.0], first=None), package).lines
    assert f"Changes in {package} between the two versions (https://github.com/{link})" in lines
    assert lines[-1].startswith("The two versions are adjacent in the index")


def test_of_a_package_whose_repository_is_not_known_there_is_no_link():
    assert not any("versions (http" in line for line in told(searched([1.0, 2.0], first=None), "h5py").lines)


def test_another_change_and_what_was_skipped_are_told():
    search = searched([1.0, 1.0, 9.0, 9.0])
    search.unknown[1] = "it was yanked: broken"
    search.changes = [replace(search.changes[0], pair=(2, 3), step=-2.0)]
    lines = told(search).lines
    assert "The scan, with one round of each version, shows other changes too: ×0.135 from c2 to c3." in lines
    assert "Skipped: c1 (it was yanked: broken)." in lines


def test_a_search_that_the_budget_ended_says_how_to_go_on():
    search = searched([1.0] * 50 + [2.0] * 50, budget=130.0, first=None)
    assert search.ended is SearchEnd.BUDGET
    lines = told(search, request=replace(REQUEST, budget=900.0)).lines
    assert lines[1].endswith("The budget ended the search.")
    assert lines[-1] == "harness bisect --resume results/bisect-1 --budget 30m"


@pytest.mark.parametrize(
    ("seconds", "error", "words"),
    [
        ([1.0, 1.0], EqualEndpointsError, "--good and --bad do not differ"),
        ([2.0, 1.0], ReversedEndpointsError, "swapped"),
    ],
)
def test_ends_without_a_search_between_are_told_in_the_report_too(seconds, error, words):
    machine = Machine(seconds)
    search = machine.search()
    with pytest.raises(error):
        narrow(search, 1e9, machine)
    assert words in told(search).lines[1]
    assert not any("--resume" in line for line in told(search).lines)


def test_ends_that_are_not_shown_to_differ_are_told_with_how_to_go_on():
    machine = Machine([1.0, 1.05], off=0.06)
    search = machine.search()
    with pytest.raises(EqualEndpointsError):
        narrow(search, 200.0, machine)
    found = told(search)
    lines = found.lines
    assert "100 %" not in found.markdown
    assert (
        lines[1] == "T#7: --good and --bad are not shown to differ: c1 takes ×1.05 (0.989 to 1.11, 3 rounds: unclear)."
    )
    assert lines[-1] == "harness bisect --resume results/bisect-1 --budget 30m"


def test_a_likely_pair_is_told_as_likely_until_it_is_confirmed():
    search = searched([1.0, 1.0, 3.0, 3.0])
    search.ended = SearchEnd.FOUND
    _, first, second, *_ = told(search).lines
    assert "rose most likely between c1 and c2" in first
    assert "But a direct comparison of the two versions did not confirm the change: c2 takes ×3" in first
    assert second.startswith("There may be several changes")


def test_a_search_without_verified_ends_says_so():
    assert (
        told(Machine([1.0, 2.0]).search()).lines[1] == "T#7: the search ended before it had compared --good and --bad."
    )


def test_the_report_has_a_row_for_each_candidate_that_matters():
    markdown = told(searched([1.0, 1.0, 1.0, 3.0, 3.0])).markdown
    assert markdown.startswith("# Bisect: T#7\n")
    rows = [" ".join(line.split()) for line in markdown.splitlines()]
    assert "| c0 | 2024-05-01 | first end | ×1.00 | |" in rows
    assert "| c4 | 2024-05-05 | ×3.00 (4 rounds) | ×3.00 | 0 % |" in rows
    assert "- 2026-1/report.md" in markdown
    assert "harness bisect 'T#7'" in markdown


def test_a_reason_from_outside_breaks_no_table():
    search = searched([1.0, 1.0, 2.0])
    search.unknown[1] = "a | b\nc"
    (row,) = [line for line in told(search).markdown.splitlines() if line.startswith("| c1 ")]
    assert row.replace("\\|", "").count("|") == 6


def of_commits(merged=0, issue=""):
    request = replace(REQUEST, issue=issue, package="mine", repository=".", environment="tf2.21")
    search = searched([1.0, 1.0, 1.5, 1.5], first=None)
    search.candidates = [
        replace(each, version=f"{at}" * 12, title=f"change {at}", merged=merged)
        for at, each in enumerate(search.candidates)
    ]
    return told(search, "mine", request=request)


def test_the_answer_of_a_search_over_commits_is_a_commit_with_its_probability():
    lines = " ".join(of_commits().lines)
    assert "the time per step rose with commit 222222222222 of 2024-05-03, “change 2”: " in lines
    assert "Commit 222222222222 has a posterior probability of 100.0 %. A direct comparison" in lines
    assert "commits of mine, all other packages unchanged" in of_commits().markdown
    assert "| change 2 |" in of_commits().markdown.replace("  ", "")


def test_of_a_merge_the_command_is_told_that_searches_its_commits():
    found = of_commits(merged=3).markdown
    assert "This commit is a merge of 3 commits." in found
    assert "--good '222222222222^1' --bad '222222222222^2' --repository . -e tf2.21 -s step -a call=fit" in found
    # the claim of an issue can be about another quantity than the time per step
    assert "-e tf2.21 'T#7' -s step -a call=fit" in of_commits(merged=3, issue="T#7").markdown


KERAS_2 = {"keras": "2.15.0", "numpy": "1.26.4", "tensorflow": "2.15.1"}
KERAS_3 = {"keras": "3.0.5", "namex": "0.0.7", "numpy": "1.26.4", "tensorflow": "2.16.1"}


def test_every_package_that_differs_is_named_and_both_repositories_are_linked():
    runs = Runs({"c0": KERAS_2, "c1": KERAS_3}, c0="v2.15.0-11-g63f5a65c7cd", c1="v2.16.1-19-g810f233968c")
    lines = told(searched([1.0, 2.0], first=None), runs=runs).lines
    assert (
        "3 packages of c1 differ from c0: keras 3.0.5 instead of 2.15.0, namex 0.0.7 added and tensorflow 2.16.1 "
        "instead of 2.15.1."
    ) in lines
    github = "https://github.com"
    assert (
        "Changes in tensorflow between the two versions "
        f"({github}/tensorflow/tensorflow/compare/63f5a65c7cd...810f233968c)" in lines
    )
    assert f"Changes in keras between these versions ({github}/keras-team/keras/compare/v2.15.0...v3.0.5)" in lines


@pytest.mark.parametrize(
    ("is_fix", "ends"), [(False, "--good c0 --bad c0+keras==3.0.5"), (True, "--good c0+keras==3.0.5 --bad c0")]
)
def test_the_package_that_makes_the_difference_is_said_with_the_command_that_searches_it(is_fix, ends):
    search = searched([3.0, 1.0] if is_fix else [1.0, 3.0], first=None, is_fix=is_fix)
    entry = Exchange(
        "keras", "c0", "c0+keras==3.0.5", replace(search.pair, what="c0+keras==3.0.5 takes ×3.00"), (0.9, 0.8, 1.0)
    )
    lines = told(search, exchanges=[entry]).lines
    assert lines[3].startswith("keras makes the difference: c0+keras==3.0.5 takes ×3.00 (")
    assert lines[-2:] == [
        "To search the versions of keras between them:",
        f"harness bisect {ends} --package keras 'T#7' -s step -a call=fit",
    ]


def test_an_exchange_that_was_not_possible_has_its_reason():
    entry = Exchange("keras", "c0", "c0+keras==3.0.5", why_not="the budget is spent")
    lines = told(searched([1.0, 3.0], first=None), exchanges=[entry]).lines
    assert "Exchange of keras: c0+keras==3.0.5 was not measured, because the budget is spent." in lines
    assert "--package tensorflow" in lines[-1]
