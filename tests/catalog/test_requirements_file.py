"""Files of requirements as environments."""

import pytest

from harness.catalog.requirement_specs import is_requirements_file, parse, read_requirements
from harness.model.errors import UsageError

FILE = """# my env
absl-py==2.1.0
pandas>=2.0  # for tables
tensorflow==2.15.0
scikit-learn==1.4.0 ; sys_platform != "win32"
colorama==0.4.6 ; sys_platform == "win32"
--extra-index-url https://example.org/simple
"""


def test_a_file_is_its_tensorflow_and_its_other_packages():
    tensorflow, others = read_requirements(FILE, "requirements.txt")
    assert (tensorflow, others) == ("tensorflow==2.15.0", ["absl-py==2.1.0", "pandas>=2.0", "scikit-learn==1.4.0"])
    assert parse(",".join([tensorflow, *others])).version == "2.15.0"
    assert read_requirements("numpy==1.26.4", "requirements.txt") == ("", ["numpy==1.26.4"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("tensorflow>=2.15", "line 1: 'tensorflow>=2.15' has no exact version"),
        ("./wheel.whl", "line 1: './wheel.whl' isn't a package from an index"),
        ("x @ https://example.org/x.whl", "isn't a package from an index"),
        ("-r other.txt", "'-r other.txt' isn't a package from an index"),
        ("--constraint=other.txt", "isn't a package from an index"),
        ("-e .", "isn't a package from an index"),
        ("x==1 ; python_version < '3.9'", "only for some versions of Python"),
    ],
)
def test_other_lines_are_refused(line: str, message: str):
    with pytest.raises(UsageError, match=message):
        read_requirements(line, "requirements.txt")


def test_a_file_is_known_by_its_name():
    assert is_requirements_file("env/requirements.txt")
    assert not is_requirements_file("tf2.15")
    assert not is_requirements_file("tensorflow==2.15.0")
