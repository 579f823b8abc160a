"""Plugin of pytest: chooses the tests of a tier, counts the others, and checks that quick tests are quick.

    pytest                            the quick tests, and the README's main command in containers
    pytest tests/cli/test_matrix.py   all tests of a file, without the campaign
    pytest --tier all                 all tests, without the campaign
    pytest --tier rest                all tests that `make test` leaves out
    pytest --tier campaign            tests that take hours: faults by the thousand, each scenario in each release

A test that takes more than LIMIT seconds of CPU time is marked `slow`. In CI, an unmarked one fails.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

TIERS = ("quick", "rest", "all", "campaign")

#: CPU seconds of a quick test and its child processes, on a machine that counts to COUNT in COUNT_SECONDS. A slower
#: machine has proportionally more, and SLACK times as much: counting doesn't show slow caches and busy siblings.
LIMIT = 1.0
COUNT, COUNT_SECONDS = 1_000_000, 0.04
SLACK = 2.0

#: Markers that leave a test out of `make test`, with the words for such tests.
SLOW = {"campaign": "of the campaign", "docker": "with Docker Engine", "browser": "with a browser", "slow": "slow"}

_LEFT_OUT = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --tier."""
    parser.addoption("--tier", choices=TIERS, help="which tests run (tests/tiers.py); files and names: all of them")


def choose_tier(config: pytest.Config) -> str:
    """Return the tier: as the option says, otherwise `quick`, or all of a file or a name on the command line."""
    if config.getoption("tier"):
        return str(config.getoption("tier"))
    named = [argument for argument in config.args if Path(argument.partition("::")[0]).suffix == ".py"]
    if not named:
        return "quick"
    return "named" if any("::" in argument for argument in named) else "all"


def find_reason(names: set[str], tier: str) -> str:
    """Return the marker because of which a tier leaves out a test with these markers, or an empty string.

    `rest` also leaves out quick tests: their reason is `quick`.
    """
    reason = next((name for name in SLOW if name in names), "")
    if "main_path" in names and reason != "campaign":
        reason = ""
    if tier == "named":
        return ""
    if tier == "campaign":
        return "" if reason == "campaign" else "quick"
    if reason == "campaign":
        return reason
    if tier == "rest":
        return "" if reason else "quick"
    return reason if tier == "quick" else ""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other tiers, and count them by reason.

    It comes last, so that the golden files of a test that is left out count as used.
    """
    tier = choose_tier(config)
    reasons = {item: find_reason({marker.name for marker in item.iter_markers()}, tier) for item in items}
    left_out = Counter(reason for reason in reasons.values() if reason not in ("", "quick"))
    config.stash[_LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = dict(left_out)
    if any(reasons.values()):
        config.hook.pytest_deselected(items=[item for item in items if reasons[item]])
        items[:] = [item for item in items if not reasons[item]]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: object) -> None:
    """Take over the counts of a worker of pytest-xdist: each worker collects all tests."""
    config, output = node.config, getattr(node, "workeroutput", {})  # type: ignore[attr-defined]
    config.stash[_LEFT_OUT] = Counter(output.get("left_out", {}))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """Say last what was left out, and which command runs it."""
    yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    left_out = session.config.stash.get(_LEFT_OUT, Counter())
    if reporter and left_out:
        reporter.write_line(format_left_out(left_out))


def format_left_out(left_out: Counter[str]) -> str:
    """Return the line that says how many tests were left out, and which commands run them."""
    campaign = left_out["campaign"]
    counts = [f"{count} {SLOW[name]}" for name, count in sorted(left_out.items()) if name != "campaign"]
    parts = [f"{', '.join(counts)} (make test-all)"] if counts else []
    parts += [f"{campaign} {SLOW['campaign']} (make campaign)"] if campaign else []
    return f"Left out: {', '.join(parts)}"


def cpu_seconds() -> float:
    """Return the CPU time of this process, of its children that have ended, and of the running ones and theirs."""
    times = os.times()
    seconds = times.user + times.system + times.children_user + times.children_system
    pids: list[str] = []
    for thread in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            pids += thread.read_text().split()
    for pid in pids:
        with suppress(OSError):  # the process has ended
            fields = Path("/proc", pid, "stat").read_text().rpartition(") ")[2].split()
            seconds += sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")  # proc_pid_stat(5): 14 to 17
    return seconds


def find_limit() -> float:
    """Return the CPU seconds that a quick test may take on this machine as it is now."""
    seconds = []
    for _ in range(5):
        before = time.process_time()
        for _ in range(COUNT):
            pass
        seconds.append(time.process_time() - before)
    return SLACK * LIMIT * max(1.0, min(seconds) / COUNT_SECONDS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In CI, fail a quick test that takes more than LIMIT.

    Such a test runs again first: imports and the fixtures of its module aren't its own cost.
    """
    if os.environ.get("HARNESS_REQUIRE_ALL") != "1" or any(item.get_closest_marker(name) for name in SLOW):
        return None
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports, seconds = _run(item, nextitem)
    if seconds > LIMIT and all(report.passed for report in reports):
        item._initrequest()  # type: ignore[attr-defined]
        reports, again_seconds = _run(item, nextitem)
        seconds, limit = min(seconds, again_seconds), find_limit()
        if seconds > limit and all(report.passed for report in reports):
            call = next(report for report in reports if report.when == "call")
            call.outcome = "failed"
            call.longrepr = (
                f"This test took {seconds:.1f} s of CPU time, more than {limit:.1f} s. Make it cheaper, or mark it: "
                "@pytest.mark.slow"
            )
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _run(item: pytest.Item, nextitem: pytest.Item | None) -> tuple[Sequence[pytest.TestReport], float]:
    before = cpu_seconds()
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    return reports, cpu_seconds() - before
