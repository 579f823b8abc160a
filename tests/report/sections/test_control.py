"""What the A/A control shows, in words."""

import pytest

from harness.analysis.results import Results
from harness.report.sections.answer import control
from tests.factories import cell, rounds, run

TIMES = {cell(): 0.01, cell("tf2.0"): 0.02}


def told(second, count=5, **asked):
    launches = rounds(TIMES, count, spread=0.001, controls={cell(): second})
    return control(Results(run(TIMES, controlled=True, asked=asked), launches))


@pytest.mark.parametrize(
    ("second", "asked", "beginning", "end"),
    [
        (0.01, {}, "A/A control: two identical cells differed by 0.", ": this run can detect differences of 0."),
        (0.0101, {"margin": 0.01}, "", "are within this machine's noise, and get no verdict."),
        (
            0.011,
            {},
            "A/A control: two identical cells differed by 1",
            "That is more than the margin of 3 %, so no verd",
        ),
        (0.009, {}, "A/A control: two identical cells differed by 1", "so no verdicts are given. Measure on a quieter"),
    ],
)
def test_a_control_says_what_the_run_can_tell(second, asked, beginning, end):
    sentence = told(second, **asked)
    assert sentence.startswith(beginning)
    assert ", over 1 group" in sentence
    assert end in sentence


def test_one_round_of_a_control_has_no_interval():
    assert told(0.01, count=1).endswith(", over 1 group, with too few rounds for an interval.")


def test_without_a_control_the_noise_is_not_known():
    assert control(Results(run(TIMES), rounds(TIMES))).startswith("No A/A control: no cell was launched twice")
