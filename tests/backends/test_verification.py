import subprocess
import sys

import pytest

from harness.backends.verification import SCRIPT, LockDifferences, Verification, compare, listed
from harness.model.errors import CannotRunHereError


def test_an_environment_like_its_lock_has_no_differences():
    assert not compare({"numpy": "1.16.4", "pytz": "2019.2"}, {"numpy": "1.16.4", "pytz": "2019.02"})


def test_each_kind_of_difference():
    found = compare({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "3"})
    assert found == LockDifferences(missing={"a": "1"}, extra={"d": "3"}, changed={"b": ("1", "2")})


def test_the_script_lists_this_environment():
    printed = subprocess.run([sys.executable, "-I", "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    found = listed(printed)
    assert found["pytest"] == pytest.__version__
    assert "typing-extensions" in found


def test_another_print_is_an_error():
    with pytest.raises(CannotRunHereError, match="listed its packages as"):
        listed("Traceback")


def test_what_is_right_takes_one_line_and_what_is_not_names_its_packages():
    assert Verification(LockDifferences(), 3).lines() == ["all 3 packages are as locked"]
    found = Verification(compare({"a": "1", "b": "1"}, {"b": "2", "c": "3"}), 2, ["a library is missing"], False)
    assert found.lines() == [
        "missing: a 1",
        "not in the lock: c 3",
        "changed: b 2 in place of 1",
        "a library is missing",
    ]
    assert not found.is_right


def test_what_else_was_looked_at_counts():
    assert not Verification(LockDifferences(), 1, ["a library is missing"], is_complete=False).is_right
    assert Verification(LockDifferences(), 1, ["a note"]).is_right
