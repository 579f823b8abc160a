import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.adhoc import Asked, is_asked, parse
from harness.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "asked", "name"),
    [
        ("tensorflow==2.7.1", Asked("tensorflow", "2.7.1", []), "tensorflow-2.7.1"),
        (" TensorFlow == 2.7.01 ", Asked("tensorflow", "2.7.1", []), "tensorflow-2.7.1"),
        ("tensorflow_cpu==2.7.1", Asked("tensorflow-cpu", "2.7.1", []), "tensorflow-cpu-2.7.1"),
        ("tf-nightly", Asked("tf-nightly", "", []), None),
        (
            "tensorflow==2.0.0,keras==2.3.1",
            Asked("tensorflow", "2.0.0", ["keras==2.3.1"]),
            "tensorflow-2.0.0-keras-2.3.1",
        ),
        (
            "tensorflow==2.0.0, numpy==1.16.4, keras==2.3.1",
            Asked("tensorflow", "2.0.0", ["keras==2.3.1", "numpy==1.16.4"]),
            "tensorflow-2.0.0-keras-2.3.1-numpy-1.16.4",
        ),
        ("tensorflow==2.0.0,numpy>=1.16,<1.18", Asked("tensorflow", "2.0.0", ["numpy<1.18,>=1.16"]), None),
        ("tensorflow==2.0.0,keras<2.4", Asked("tensorflow", "2.0.0", ["keras<2.4"]), None),
        ("tensorflow==2.0.0,a[x,y]==1,b", Asked("tensorflow", "2.0.0", ["a[x,y]==1", "b"]), None),
    ],
)
def test_what_is_asked_is_read_and_named(text: str, asked: Asked, name: str | None) -> None:
    assert parse(text) == asked
    assert parse(str(asked)) == asked
    assert name is None or asked.name == name
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", asked.name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tensorflow>=2.7", "tensorflow>=2.7 is not an exact version"),
        ("tensorflow==2.*", "is not an exact version"),
        ("tensorflow[and-cuda]==2.15.0", "is not an exact version"),
        ("tf-nightly>2", "is not an exact version"),
        ("tensorflow==", "'tensorflow==' is no requirement"),
        ("numpy==1.16.4", "the first package is numpy"),
        ("tensorflow==2.0.0,,numpy", "'' is no requirement"),
        ("tensorflow==2.0.0,a @ https://example.org/a.whl", "is not a package with versions"),
    ],
)
def test_what_cannot_be_made_gets_a_sentence_and_examples(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert problem in caught.value.message
    assert "-e tensorflow==2.7.1" in caught.value.advice


def test_names_and_globs_are_not_requirements() -> None:
    assert not any(map(is_asked, ("tf2.7", "tf1*", "tf2.[0-5]", "tensorflow", "tensorflow-2.7.1", "")))
    assert all(map(is_asked, ("tensorflow==2.7.1", "tf-nightly", "tensorflow>=2")))


_VERSION = st.from_regex(r"[0-9]\.[0-9]", fullmatch=True)
_REQUIREMENT = st.builds(
    "".join,
    st.tuples(st.sampled_from(["a", "b", "a-b", "b-1", "keras"]), st.sampled_from(["==1", "==1.1", ">=1", "<2", ""])),
)
_ASKED = st.builds(Asked, st.just("tensorflow"), _VERSION, st.lists(_REQUIREMENT))


@given(_ASKED, _ASKED)
def test_environments_are_named_alike_where_the_same_is_asked_only(one: Asked, other: Asked) -> None:
    assert (one.name == other.name) == (str(one) == str(other))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse(str(parse(text))) == parse(text)
