from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from harness.bisect.candidates import Candidate
from harness.bisect.posterior import Round
from harness.bisect.report import build_sections
from harness.bisect.request import BisectRequest
from harness.bisect.search import EqualEndpointsError, ReversedEndpointsError, SearchEnd, narrow, scan
from harness.model.scenario import OWN
from harness.report import markdown, terminal
from tests.bisect.machine import SearchedMachine

REQUEST = BisectRequest(issue="T#7", scenario="step", axes={"call": "fit"}, command=["harness", "bisect", "T#7"])
KERAS_2 = {"keras": "2.15.0", "numpy": "1.26.4", "tensorflow": "2.15.1"}
KERAS_3 = {"keras": "3.0.5", "namex": "0.0.7", "numpy": "1.26.4", "tensorflow": "2.16.1"}


class Runs:
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


def search_on(seconds, *, budget=1e9, first=None, dated=True, **changes):
    machine = SearchedMachine(seconds)
    search = machine.search(**changes)
    if dated:
        search.candidates = [
            Candidate(candidate.text, f"2024-05-{place + 1:02}", f"2.{place}.0")
            for place, candidate in enumerate(search.candidates)
        ]
    if first:
        first(search, machine)
    narrow(search, budget, machine)
    return search


def fail_on(machine, error, budget=1e9):
    search = machine.search()
    with pytest.raises(error):
        narrow(search, budget, machine)
    return search


def search_commits():
    search = search_on([1.0, 1.0, 1.5, 1.5])
    search.candidates = [
        replace(candidate, version=f"{place}" * 12, title=f"change {place}")
        for place, candidate in enumerate(search.candidates)
    ]
    return search


def render(search, package="", runs=None, request=REQUEST):
    return markdown.render_full(build_sections(request, search, runs or Runs(), package))


def read_lines(search, package="", runs=None, request=REQUEST):
    """Return the lines of a report in a wide terminal, without tables."""
    console = Console(width=400, file=StringIO())
    terminal.show(build_sections(request, search, runs or Runs(), package), console)
    lines = [line.strip().removeprefix("- ") for line in console.file.getvalue().splitlines()]
    return [line for line in lines if line and "   " not in line and "──" not in line]


def test_a_report_over_releases(golden):
    search = search_on([1.0, 1.0, 1.0, 3.0, 3.0], first=scan)
    search.unknown[1] = "it was yanked: a | b\nc"
    search.changes = [replace(search.changes[0], pair=(3, 4), step=-2.0)]
    assert render(search) == golden


def test_a_search_that_ends_after_its_scan_lists_every_change():
    machine = SearchedMachine([1.0, 3.0, 3.0, 9.0])
    search = machine.search()
    scan(search, machine)
    search.rounds = [Round(0, 3, 2.2)]  # the first look at the ends was interrupted
    text = markdown.render_full(build_sections(REQUEST, search, Runs(), ""))
    assert "shows other changes too: ×3.00 from c0 to c1; ×3.00 from c2 to c3." in text


def test_a_report_over_commits(golden):
    request = replace(REQUEST, issue="", package="mine", repository=".", environment="tf2.21")
    assert render(search_commits(), "mine", request=request) == golden


def test_a_report_of_the_users_script_names_the_script(golden):
    script = ["train.py", "--with", "data", "--", "--epochs", "3"]
    request = replace(REQUEST, issue="", scenario=".harness/train.py", axes={"xla": "on"}, of=OWN, script=script)
    text = render(search_on([1.0, 1.0, 3.0]), request=request)
    assert text == golden
    assert ".harness/" not in text


def test_what_reports_say_of_ends_and_of_how_to_go_on(snapshot):
    likely = search_on([1.0, 1.0, 3.0, 3.0], first=scan)
    likely.ended = SearchEnd.FOUND
    spent = search_on([1.0] * 50 + [2.0] * 50, budget=130.0)
    assert spent.ended is SearchEnd.BUDGET
    reports = {
        "a fix": read_lines(search_on([3.0, 3.0, 1.0], is_fix=True)),
        "equal ends": read_lines(fail_on(SearchedMachine([1.0, 1.0]), EqualEndpointsError)),
        "likely": read_lines(likely),
        "of a commit": read_lines(search_commits(), "mine", request=replace(REQUEST, issue="", repository=".")),
        "reversed ends": read_lines(fail_on(SearchedMachine([2.0, 1.0]), ReversedEndpointsError)),
        "the budget ended": read_lines(spent, request=replace(REQUEST, budget=900.0)),
        "unclear ends": read_lines(fail_on(SearchedMachine([1.0, 1.05], off=0.06), EqualEndpointsError, 200.0)),
        "without ends": read_lines(SearchedMachine([1.0, 2.0]).search()),
    }
    assert reports == snapshot


def test_what_reports_say_of_packages_and_their_repositories(snapshot):
    search = search_on([1.0, 3.0])
    pins = {"c0": KERAS_2, "c1": KERAS_3}
    builds = {"c0": "v2.15.0-11-g63f5a65c7cd", "c1": "v2.16.1-19-g810f233968c"}
    reports = {
        "builds and packages": read_lines(search, runs=Runs(pins, **builds)),
        "only versions": read_lines(search),
        "packages, for a fix": read_lines(search_on([3.0, 1.0], is_fix=True), runs=Runs(pins)),
        **{package: read_lines(search, package) for package in ("keras", "numpy", "keras-nightly", "h5py")},
    }
    # the first lines and those about spending are the same
    first = reports["only versions"]
    reports = {
        name: [line for line in lines if name == "only versions" or line not in first]
        for name, lines in reports.items()
    }
    assert reports == snapshot
