import subprocess
import sys

import pytest

from harness.backends.installed import SCRIPT, Differences, compare, listed
from harness.model.errors import CannotRunHereError


def test_an_environment_like_its_lock_has_no_differences():
    assert not compare({"numpy": "1.16.4", "pytz": "2019.2"}, {"numpy": "1.16.4", "pytz": "2019.02"})


def test_each_kind_of_difference():
    found = compare({"a": "1", "b": "1", "c": "1"}, {"b": "2", "c": "1", "d": "3"})
    assert found == Differences(missing={"a": "1"}, extra={"d": "3"}, changed={"b": ("1", "2")})


def test_the_script_lists_this_environment():
    printed = subprocess.run([sys.executable, "-I", "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    found = listed(printed)
    assert found["pytest"] == pytest.__version__
    assert "typing-extensions" in found


def test_another_print_is_an_error():
    with pytest.raises(CannotRunHereError, match="listed its packages as"):
        listed("Traceback")
