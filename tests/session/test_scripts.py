"""Requests to measure a plain script."""

from pathlib import Path

import pytest

from harness.model.errors import UsageError
from harness.session.request import Request
from harness.session.scripts import make_request


def test_packages_of_a_file_are_added_to_each_release_if_they_apply_in_its_python(tmp_path: Path):
    script, packages = tmp_path / "mine.py", tmp_path / "requirements.txt"
    script.write_text("x = 1\n")
    packages.write_text('numpy==1.16.4\ntyping-extensions==4.0.0 ; python_version < "3.8"\n')
    asked, _ = make_request(script, Request(environments=["tf1.14", "tf2.15", str(packages)]))
    assert asked.environments == ["tf1.14+numpy==1.16.4+typing-extensions==4.0.0", "tf2.15+numpy==1.16.4"]
    packages.write_text("numpy<2\n")  # which both have
    asked, _ = make_request(script, Request(environments=["tf1.14", "tf2.15", str(packages)]))
    assert asked.environments == ["tf1.14", "tf2.15"]
    with pytest.raises(UsageError, match="doesn't contain TensorFlow"):
        make_request(script, Request(environments=[str(packages)]))
