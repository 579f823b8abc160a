import contextlib
import re

from hypothesis import given
from hypothesis import strategies as st

from harness.environments.requirement_specs import (
    LockOverride,
    RequirementSpec,
    get_environment_name,
    has_override,
    has_requirements,
    parse,
    parse_override,
    split_python,
)
from harness.model.errors import UsageError
from tests.errors import catch_text

NAME = r"[a-z0-9][a-z0-9.-]*"


def test_requirements_are_read_and_named():
    table: list[tuple[str, tuple[str, str, list[str]], str | None]] = [
        ("tensorflow==2.7.1", ("tensorflow", "2.7.1", []), "tensorflow-2.7.1"),
        (" TensorFlow == 2.7.01 ", ("tensorflow", "2.7.1", []), "tensorflow-2.7.1"),
        ("tensorflow_cpu==2.7.1", ("tensorflow-cpu", "2.7.1", []), "tensorflow-cpu-2.7.1"),
        ("tensorflow==2.0.0,keras==2", ("tensorflow", "2.0.0", ["keras==2"]), "tensorflow-2.0.0-keras-2"),
        (
            "tensorflow==2.0.0, numpy==1.16.4, keras==2.3.1",
            ("tensorflow", "2.0.0", ["keras==2.3.1", "numpy==1.16.4"]),
            "tensorflow-2.0.0-keras-2.3.1-numpy-1.16.4",
        ),
        ("tensorflow==2.0.0,numpy>=1.16,<1.18", ("tensorflow", "2.0.0", ["numpy<1.18,>=1.16"]), None),
        ("tensorflow==2.0.0,keras<2.4", ("tensorflow", "2.0.0", ["keras<2.4"]), None),
        ("tensorflow==2.0.0,a[x,y]==1,b", ("tensorflow", "2.0.0", ["a[x,y]==1", "b"]), None),
    ]
    for text, parts, name in table:
        spec = parse(text)
        assert spec == RequirementSpec(*parts)
        assert parse(str(spec)) == spec
        assert spec.name == (name or spec.name)
        assert re.fullmatch(NAME, spec.name)


def test_what_cannot_be_created_is_told_with_examples(snapshot):
    texts = [
        *("tensorflow>=2.7", "tensorflow==2.*", "tensorflow[and-cuda]==2.15.0", "tf-nightly>2", "tensorflow=="),
        *("numpy==1.16.4", "tensorflow==2.0.0,,numpy", "tensorflow==2.0.0,a @ https://example.org/a.whl"),
    ]
    overrides = ["tf2.0+numpy", "tf2.0+", "+numpy==1", "tf2.0+numpy==1+NumPy==2", "tf2.0+numpy==1,scipy"]
    errors = {text: catch_text(UsageError, parse, text) for text in texts}
    errors |= {text: catch_text(UsageError, parse_override, text) for text in (*overrides, "numpy==1+scipy==1")}
    assert errors == snapshot


def test_names_and_globs_are_not_requirements():
    assert not any(map(has_requirements, ("tf2.7", "tf1*", "tf2.[0-5]", "tensorflow", "tensorflow-2.7.1", "")))
    assert all(map(has_requirements, ("tensorflow==2.7.1", "tensorflow>=2", "tf2.0+numpy==1")))


def test_packages_to_replace_are_read_and_named():
    requirements = "tensorflow==2.0.0,keras==2.3.1"
    local = "tensorflow==2.0.0+cu10,keras==2.3.1"
    table: list[tuple[str, str, list[str], str | None]] = [
        ("tf2.0+numpy==1.21.6", "tf2.0", ["numpy==1.21.6"], "tf2.0-numpy-1.21.6"),
        (" tf2.0 + SciPy==1.4 + NumPy == 1.21.06", "tf2.0", ["numpy==1.21.6", "scipy==1.4"], None),
        ("tf2.0+numpy>=1.18,<1.20", "tf2.0", ["numpy<1.20,>=1.18"], None),
        ("tf2.0+numpy==1.21.6+local", "tf2.0", ["numpy==1.21.6+local"], None),
        (f"{local}+numpy==1.17", local, ["numpy==1.17"], None),
        (f"{requirements}+numpy==1.17", requirements, ["numpy==1.17"], "tensorflow-2.0.0-keras-2.3.1--numpy-1.17"),
    ]
    for text, base, packages, name in table:
        override = parse_override(text)
        assert has_override(text)
        assert (override.base, override.packages) == (base, packages)
        assert parse_override(str(override)) == override
        assert override.name == (name or override.name)
        assert re.fullmatch(NAME, override.name)
    assert not has_override("tensorflow==2.15.0+cu12,keras==2.15.0"), "a local version alone"


_VERSION = st.from_regex(r"[0-9]\.[0-9]", fullmatch=True)
_PIN = st.builds("{}=={}".format, st.sampled_from(["a", "a-b", "b"]), st.sampled_from(["1", "1.1"]))
_REQUIREMENT = st.builds(
    "".join,
    st.tuples(st.sampled_from(["a", "b", "a-b", "b-1", "keras"]), st.sampled_from(["==1", "==1.1", ">=1", "<2", ""])),
)
_ASKED = st.builds(RequirementSpec, st.just("tensorflow"), _VERSION, st.lists(_REQUIREMENT))


_MOVE = st.builds(
    LockOverride,
    st.sampled_from(["tf2.0", "tf2.1", "tensorflow==2.0", "tensorflow==2.0,a==1"]),
    st.lists(_PIN, min_size=1),
)


@given(st.one_of(_MOVE, _ASKED), st.one_of(_MOVE, _ASKED))
def test_environments_are_named_alike_where_the_same_is_asked_only(one, other):
    assert (one.name == other.name) == (str(one) == str(other))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse(str(parse(text))) == parse(text)


def test_an_environment_on_another_python_is_named_for_it():
    table = {
        "tf2.15@py3.9": ("tf2.15", "3.9", "tf2.15-py3.9"),
        "tensorflow==2.15.0@py3.10": ("tensorflow==2.15.0", "3.10", "tensorflow-2.15.0-py3.10"),
        "tf2.15": ("tf2.15", "", "tf2.15"),
        "keras-nightly@2026-08-01": ("keras-nightly@2026-08-01", "", "keras-nightly@2026-08-01"),
    }
    assert {text: (*split_python(text), get_environment_name(text)) for text in table} == table
    assert split_python("tf2.21+keras@py3.9") == ("tf2.21+keras@py3.9", "")
