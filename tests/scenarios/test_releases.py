"""What differs from release to release, on stand-ins for them."""

from types import SimpleNamespace

from kit import catch_error, eager_switch, version


def test_versions_compare_as_numbers_and_decide_the_switch_to_eager():
    assert version("2.15.1") > version("2.2.4-tf")
    assert version("2.5.0.dev2021032900") == (2, 5)
    old, new = "experimental_run_functions_eagerly", "run_functions_eagerly"
    for names, expected in [([old], old), ([old, new], new)]:
        tf = SimpleNamespace(config=SimpleNamespace(**{name: name for name in names}))
        assert eager_switch(tf) == expected


def fail(message):
    raise TypeError(message)


def test_what_a_call_raises_is_the_class_and_the_message_s_first_line():
    assert catch_error(lambda: 1) == ("no error", "")
    first = "Graph execution error:"
    for message, line in {"": "", f"\n {first}\n\nDetected at node": first, "x" * 1000: "x" * 200}.items():
        assert catch_error(lambda message=message: fail(message)) == ("TypeError", line)
