"""What differs from release to release, on stand-ins for them."""

from types import SimpleNamespace

import pytest
from kit import catch_error, eager_switch, version


def test_versions_compare_as_numbers():
    assert version("2.15.1") > version("2.2.4-tf")
    assert version("2.5.0.dev2021032900") == (2, 5)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["experimental_run_functions_eagerly"], "experimental_run_functions_eagerly"),
        (["experimental_run_functions_eagerly", "run_functions_eagerly"], "run_functions_eagerly"),
    ],
)
def test_the_switch_to_eager_has_the_name_of_the_release(names, expected):
    tf = SimpleNamespace(config=SimpleNamespace(**{name: name for name in names}))
    assert eager_switch(tf) == expected


def fail(message):
    raise TypeError(message)


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: 1, ("no error", "")),
        (lambda: fail(""), ("TypeError", "")),
        (lambda: fail("\n Graph execution error:\n\nDetected at node"), ("TypeError", "Graph execution error:")),
        (lambda: fail("x" * 1000), ("TypeError", "x" * 200)),
    ],
)
def test_what_a_call_raises_is_the_class_and_the_message_s_first_line(call, expected):
    assert catch_error(call) == expected
