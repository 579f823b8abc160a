from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.buildlog import LENGTH, LINES, BuildLog

#: What buildx 0.13 printed, with the registry's name and address replaced.
RECORDED = {path.stem: path.read_text() for path in (Path(__file__).parent / "buildlogs").iterdir()}


def fed(text):
    log = BuildLog()
    return log, [words for line in text.splitlines() if (words := log.feed(line))]


@pytest.mark.parametrize("name", ["built", "cached"])
def test_what_takes_no_time_is_not_told(name):
    log, told = fed(RECORDED[name])
    assert told == []
    assert log.idle() == ""


def test_a_step_that_says_nothing_is_told_when_the_builder_is_idle():
    begun = RECORDED["built"].split("#13 DONE")[0]
    log, told = fed(begun)
    assert told == []
    assert log.idle().startswith("environment 4/4: sh /tmp/install.sh /usr/local/bin/python3")
    assert log.idle() == ""


def test_a_step_that_says_something_is_told_once():
    log, told = fed("#7 [uv 3/3] RUN --mount=type=bind,from=a,target=/b   pip install\n#7 0.5 one\n#7 0.6 two\n")
    assert told == ["uv 3/3: pip install"]
    assert log.idle() == ""


def test_exporting_is_told():
    log, _ = fed("#14 exporting to image\n#14 exporting layers\n")
    assert log.idle() == "exporting to image"


def test_steps_overlap():
    first = "#7 [a 1/2] RUN one\n\n#8 [b 1/2] RUN two\n#8 0.1 hello\n#8 ...\n\n"
    log, told = fed(first + "#7 [a 1/2] RUN one\n#7 DONE 0.1s\n#8 ERROR: x\n")
    assert told == ["b 1/2: two"]
    assert log.failure() == "b 1/2: two:\nhello"


def test_a_failed_step_is_named_with_its_last_lines_and_the_verdict():
    log, _ = fed(RECORDED["failed"])
    first, *lines, verdict = log.failure().splitlines()
    assert first.startswith("environment 4/4: sh /tmp/install.sh")
    assert lines[:2] == [
        "error: Failed to download `setuptools==82.0.1`",
        "  cause: Hash mismatch for `setuptools==82.0.1`",
    ]
    assert verdict.startswith("ERROR: failed to solve: process ")
    assert verdict.endswith("exit code: 1")


def test_a_base_that_cannot_be_had_is_named():
    log, _ = fed(RECORDED["no-base"])
    assert "python:3.0-slim-bookworm: failed to resolve source metadata" in log.failure()


def test_a_failure_without_a_step_shows_the_last_lines():
    log, _ = fed("".join(f"line {number}\n" for number in range(100)) + "ERROR: no builder\n")
    lines = log.failure().splitlines()
    assert lines[-1] == "ERROR: no builder"
    assert len(lines) == LINES


def test_what_it_shows_is_bounded_and_has_no_control_characters():
    log, _ = fed(
        "#1 [a 1/1] RUN x\n" + "".join(f"#1 0.{n} \x1b[31m{'x' * 5000}\n" for n in range(100)) + "#1 ERROR: y\n"
    )
    shown = log.failure()
    assert "\x1b" not in shown
    assert r"\x1b[31mxxx" in shown
    assert len(shown) < (LINES + 1) * (LENGTH + 100)


pieces = st.sampled_from(
    ["#1 ", "#22 ", "#0 ", "[a 1/2] RUN ", "0.5 ", "DONE 1s", "CACHED", "ERROR: ", "...", "exporting to image"]
)


@given(st.lists(st.lists(pieces | st.text(max_size=20), max_size=4).map("".join), max_size=60))
def test_any_lines_are_read(lines):
    log = BuildLog()
    told = [words for line in lines for words in (log.feed(line), log.idle()) if words]
    for words in [*told, *log.failure().splitlines()]:
        assert words.replace("\t", "").isprintable()
    assert len(log.failure().splitlines()) <= LINES + 2
