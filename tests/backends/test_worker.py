import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.backends.worker import files, safe_name
from harness.model.errors import UsageError
from tests.backends.workers import job


@given(st.text())
def test_a_safe_name_stays_inside(name):
    path = PurePosixPath(safe_name(name))
    assert not path.is_absolute()
    assert ".." not in path.parts
    assert len(path.parts) <= 8


def test_names_keep_what_is_harmless():
    assert safe_name("profile/plugins/run_1.trace.json") == "profile/plugins/run_1.trace.json"
    assert safe_name("/etc/../x y") == "etc/x_y"


def test_the_job_goes_in_beside_the_files():
    contents = files(job("pass"), die_with_parent=True)
    assert set(contents) == {"job.json", "kit/__main__.py", "fake.py"}
    assert json.loads(contents["job.json"])["limits"] == {"die_with_parent": True}


def test_a_file_outside_is_refused():
    bad = job("pass")
    bad.files["../x"] = b""  # type: ignore[index]
    with pytest.raises(UsageError):
        files(bad, die_with_parent=True)
