import dataclasses
import json
import subprocess
import sys

import pytest

from harness.backends.verification import SCRIPT, Verification, verify_output
from harness.model.environment import Environment
from harness.model.errors import CannotRunHereError


def verify(pins, installed):
    return verify_output(pins, json.dumps({"packages": installed}))


def test_an_environment_is_verified_line_by_line():
    same = verify({"numpy": "1.16.4", "pytz": "2019.2"}, {"NumPy": "1.16.4", "pytz": "2019.02"})
    assert same == Verification(2)
    assert same.is_right
    assert same.lines() == ["all 2 packages are as in the lock file"]
    differing = verify({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "3"})
    assert (differing.missing, differing.extra, differing.changed) == ({"a": "1"}, {"d": "3"}, {"b": ("1", "2")})
    assert not differing.is_right
    read = Environment("tf2.22", "2.22.0", "3.13", "", gpu_code="sm_90 compute_120")
    assert dataclasses.replace(differing, read=read).lines() == [
        "missing: a 1",
        "not in the lock: d 3",
        "changed: b 2 instead of 1",
        "GPU code: sm_90 compute_120",
    ]


def test_the_script_lists_this_environment_and_another_print_is_an_error():
    output = subprocess.run([sys.executable, "-I", "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    extra = verify_output({}, output).extra
    assert extra["pytest"] == pytest.__version__
    assert "typing-extensions" in extra
    with pytest.raises(CannotRunHereError, match="Traceback"):
        verify_output({}, "Traceback")
