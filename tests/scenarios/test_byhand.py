"""A scenario run by hand prints what a person can read."""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.byhand import choices, parser, show
from kit.worker import load

from harness.toml import format_number_text

SCENARIO = """
# /// script
# requires-python = ">=3.6"
#
# [tool.harness]
# title = "A wait"
# [tool.harness.axes]
# length = ["short", "long"]
# ///
import time
from kit import NotAvailable, main

def scenario(bench, length="short", colour="red"):
    if colour == "none":
        raise NotAvailable("there is no such colour")
    with bench.phase("build"):
        time.sleep(0.002)
    bench.measure(lambda: time.sleep(0.002), document=5)
    bench.observe("colour", colour)
    bench.fingerprint(length=length, steps=1, outputs=[0.5, 0.25, 0.125, 0.75])

if __name__ == "__main__":
    main(scenario)
"""


WRONG = {
    "--size big": "unrecognized arguments: --size big",
    "--length middling": "invalid choice: 'middling'",
    "--seconds 0": "invalid positive value",
    "--sampling guess": "invalid choice: 'guess'",
    "--xla fast": "invalid choice: 'fast' (choose from",
}


@pytest.fixture
def by_hand(tmp_path, scenarios):
    def run(*options, python=sys.executable):
        (tmp_path / "given.py").write_text(SCENARIO)
        return subprocess.run(
            [python, str(tmp_path / "given.py"), *options],
            env={"PYTHONPATH": str(scenarios)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


def test_it_runs_with_no_options(by_hand):
    completed = by_hand("--seconds", "0.1")
    assert completed.returncode == 0, completed.stderr
    labels = [line.split("  ")[0] for line in completed.stdout.splitlines()]
    assert labels == ["build", "warm up", "steady state", "step", "work", "colour", "fingerprint"]
    assert re.search(r"^step +mean [\d.]+ ms, median", completed.stdout, re.MULTILINE)
    assert "length short, steps 1, outputs [0.5, 0.25, 0.125, ... 4 in total]" in completed.stdout
    assert "cpu" not in completed.stdout


def test_events_are_lines_by_hand(capsys):
    show("samples", name="step", samples=[{"seconds": 5.25, "steps": 1, "cpu_seconds": 5.0}])
    show("memory", points=[(0, 100 << 20), (500, 150 << 20), (1000, 200 << 20)])
    show("end", status="failed", reason="it waited", traceback=None)
    show("gpus", gpus=[{"name": "Tesla T4", "capability": "7.5"}, {"name": "H100", "capability": "9.0", "pci": "x"}])
    show("resources", cpu_seconds=1.0)
    assert [line.split(maxsplit=1)[1] for line in capsys.readouterr().out.splitlines()] == [
        "5250.000 ms, once",
        "100.0 MiB before and 200.0 MiB after 1,000 calls: +104,858 bytes per call",
        "it waited",
        "Tesla T4 (7.5), H100 (9.0)",
    ]


def test_not_available_is_one_sentence(by_hand):
    completed = by_hand("--colour", "none")
    assert (completed.returncode, completed.stdout, completed.stderr) == (
        0,
        "not available: there is no such colour\n",
        "",
    )


def test_a_wrong_option_is_refused_and_help_names_the_axes_and_settings(tmp_path, capsys):
    sweep = SCENARIO.replace('["short", "long"]', "{ sweep = [1, 2.0, 2.5, 1e3] }").replace('"short"', '"2.5"')
    (tmp_path / "given.py").write_text(SCENARIO)
    (tmp_path / "swept.py").write_text(sweep)
    options = parser(load(str(tmp_path / "given.py")))
    assert "A wait" in options.format_help()
    for arguments, complaint in WRONG.items():
        with pytest.raises(SystemExit) as raised:
            options.parse_args(arguments.split())
        assert raised.value.code == 2
        assert complaint in capsys.readouterr().err, arguments
    assert "{1,2,2.5,1000}" in parser(load(str(tmp_path / "swept.py"))).format_help()


@given(st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_the_same_text_by_hand_as_in_cells(number):
    assert choices({"sweep": [number]}) == [format_number_text(number)]


def test_an_interpreter_without_toml_takes_any_value_and_the_document_is_a_choice(by_hand, interpreter):
    options = "--sampling document --length middling --colour blue --xla off --precision default"
    completed = by_hand(*options.split(), python=interpreter("3.6"))
    assert (completed.returncode, completed.stderr) == (0, "")
    assert [
        text for text in ("(5 samples of 1 steps)", "length middling", "blue") if text not in completed.stdout
    ] == []
