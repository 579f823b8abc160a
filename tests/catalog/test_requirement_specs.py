import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.catalog.requirement_specs import (
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


@pytest.mark.parametrize(
    ("text", "asked", "name"),
    [
        ("tensorflow==2.7.1", RequirementSpec("tensorflow", "2.7.1", []), "tensorflow-2.7.1"),
        (" TensorFlow == 2.7.01 ", RequirementSpec("tensorflow", "2.7.1", []), "tensorflow-2.7.1"),
        ("tensorflow_cpu==2.7.1", RequirementSpec("tensorflow-cpu", "2.7.1", []), "tensorflow-cpu-2.7.1"),
        (
            "tensorflow==2.0.0,keras==2",
            RequirementSpec("tensorflow", "2.0.0", ["keras==2"]),
            "tensorflow-2.0.0-keras-2",
        ),
        (
            "tensorflow==2.0.0, numpy==1.16.4, keras==2.3.1",
            RequirementSpec("tensorflow", "2.0.0", ["keras==2.3.1", "numpy==1.16.4"]),
            "tensorflow-2.0.0-keras-2.3.1-numpy-1.16.4",
        ),
        ("tensorflow==2.0.0,numpy>=1.16,<1.18", RequirementSpec("tensorflow", "2.0.0", ["numpy<1.18,>=1.16"]), None),
        ("tensorflow==2.0.0,keras<2.4", RequirementSpec("tensorflow", "2.0.0", ["keras<2.4"]), None),
        ("tensorflow==2.0.0,a[x,y]==1,b", RequirementSpec("tensorflow", "2.0.0", ["a[x,y]==1", "b"]), None),
    ],
)
def test_what_is_asked_is_read_and_named(text: str, asked: RequirementSpec, name: str | None) -> None:
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
        ("tensorflow==", "'tensorflow==' is not a valid requirement"),
        ("numpy==1.16.4", "the first package is numpy"),
        ("tensorflow==2.0.0,,numpy", "'' is not a valid requirement"),
        ("tensorflow==2.0.0,a @ https://example.org/a.whl", "is not a package with a version"),
    ],
)
def test_what_cannot_be_made_gets_a_sentence_and_examples(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert problem in caught.value.message
    assert "-e tensorflow==2.7.1" in caught.value.advice


def test_names_and_globs_are_not_requirements() -> None:
    assert not any(map(has_requirements, ("tf2.7", "tf1*", "tf2.[0-5]", "tensorflow", "tensorflow-2.7.1", "")))
    assert all(map(has_requirements, ("tensorflow==2.7.1", "tensorflow>=2", "tf2.0+numpy==1")))


@pytest.mark.parametrize(
    ("text", "base", "packages", "name"),
    [
        ("tf2.0+numpy==1.21.6", "tf2.0", ["numpy==1.21.6"], "tf2.0-numpy-1.21.6"),
        (" tf2.0 + SciPy==1.4 + NumPy == 1.21.06", "tf2.0", ["numpy==1.21.6", "scipy==1.4"], None),
        ("tf2.0+numpy>=1.18,<1.20", "tf2.0", ["numpy<1.20,>=1.18"], None),
        ("tf2.0+numpy==1.21.6+local", "tf2.0", ["numpy==1.21.6+local"], None),
        (
            "tensorflow==2.0.0+cu10,keras==2.3.1+numpy==1.17",
            "tensorflow==2.0.0+cu10,keras==2.3.1",
            ["numpy==1.17"],
            None,
        ),
        (
            "tensorflow==2.0.0,keras==2.3.1+numpy==1.17",
            "tensorflow==2.0.0,keras==2.3.1",
            ["numpy==1.17"],
            "tensorflow-2.0.0-keras-2.3.1--numpy-1.17",
        ),
    ],
)
def test_what_is_to_move_is_read_and_named(text: str, base: str, packages: list[str], name: str | None) -> None:
    move = parse_override(text)
    assert has_override(text)
    assert (move.base, move.packages) == (base, packages)
    assert parse_override(str(move)) == move
    assert name is None or move.name == name
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", move.name)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tf2.0+numpy", "the package to replace needs a version"),
        ("tf2.0+", "the package to replace needs a version"),
        ("+numpy==1", "the package to replace needs a version"),
        ("tf2.0+numpy==1+NumPy==2", "numpy is listed twice"),
        ("tf2.0+numpy==1,scipy", "'numpy==1,scipy' is not a valid requirement"),
        ("numpy==1+scipy==1", "the first package is numpy"),
    ],
)
def test_what_cannot_move_gets_a_sentence_and_an_example(text: str, problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_override(text)
    assert problem in caught.value.message
    assert "-e t" in caught.value.advice


def test_a_local_version_alone_moves_nothing() -> None:
    assert not has_override("tensorflow==2.15.0+cu12,keras==2.15.0")


_VERSION = st.from_regex(r"[0-9]\.[0-9]", fullmatch=True)
_PIN = st.builds("{}=={}".format, st.sampled_from(["a", "a-b", "b"]), st.sampled_from(["1", "1.1"]))
_REQUIREMENT = st.builds(
    "".join,
    st.tuples(st.sampled_from(["a", "b", "a-b", "b-1", "keras"]), st.sampled_from(["==1", "==1.1", ">=1", "<2", ""])),
)
_ASKED = st.builds(RequirementSpec, st.just("tensorflow"), _VERSION, st.lists(_REQUIREMENT))


@given(_ASKED, _ASKED)
def test_environments_are_named_alike_where_the_same_is_asked_only(
    one: RequirementSpec, other: RequirementSpec
) -> None:
    assert (one.name == other.name) == (str(one) == str(other))


_MOVE = st.builds(
    LockOverride,
    st.sampled_from(["tf2.0", "tf2.1", "tensorflow==2.0", "tensorflow==2.0,a==1"]),
    st.lists(_PIN, min_size=1),
)


@given(_MOVE, st.one_of(_MOVE, _ASKED))
def test_environments_in_which_packages_move_have_names_of_their_own(
    one: LockOverride, other: LockOverride | RequirementSpec
) -> None:
    assert (one.name == other.name) == (str(one) == str(other))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert parse(str(parse(text))) == parse(text)


@pytest.mark.parametrize(
    ("text", "parts", "name"),
    [
        ("tf2.15@py3.9", ("tf2.15", "3.9"), "tf2.15-py3.9"),
        ("tensorflow==2.15.0@py3.10", ("tensorflow==2.15.0", "3.10"), "tensorflow-2.15.0-py3.10"),
        ("tf2.15", ("tf2.15", ""), "tf2.15"),
        ("tf2.21+keras@py3.9", ("tf2.21+keras@py3.9", ""), None),
        ("keras-nightly@2026-08-01", ("keras-nightly@2026-08-01", ""), "keras-nightly@2026-08-01"),
    ],
)
def test_an_environment_on_another_python_is_named_for_it(text: str, parts: tuple[str, str], name: str | None) -> None:
    assert split_python(text) == parts
    assert name is None or get_environment_name(text) == name
