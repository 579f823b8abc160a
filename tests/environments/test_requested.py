import contextlib
import re
from datetime import date
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.environments.requested import (
    Files,
    FromSource,
    Named,
    OnPython,
    Override,
    Pinned,
    ReleaseLine,
    get_environment_name,
    parse_requested,
)
from harness.model.errors import UsageError
from tests.errors import catch_text

BASE = Named("tf2.21")
NAME = r"[a-z0-9][a-z0-9.-]*"


def test_a_text_is_parsed_to_what_it_requests():
    table = {
        **{name: Named(name) for name in ("tf2.7", "tf1*", "tf2.[0-5]", "tensorflow", "tensorflow-2.7.1", "")},
        "latest": ReleaseLine("latest"),
        "latest+keras-nightly": ReleaseLine("keras-nightly"),
        "tf-nightly @ 2026-08-01": ReleaseLine("tf-nightly", date(2026, 8, 1)),
        "tf2.21+keras-nightly@2026-08-01": ReleaseLine("tf2.21+keras-nightly", date(2026, 8, 1)),
        " TensorFlow == 2.7.01 ": Pinned("tensorflow", "2.7.1", []),
        "tensorflow_cpu==2.7.1": Pinned("tensorflow-cpu", "2.7.1", []),
        "tensorflow==2.15.0+cu12,keras==2": Pinned("tensorflow", "2.15.0+cu12", ["keras==2"]),
        "tensorflow==2.0, numpy==1.16.4, keras==2.3": Pinned("tensorflow", "2.0", ["keras==2.3", "numpy==1.16.4"]),
        "tensorflow==2.0,numpy>=1.16,<1.18": Pinned("tensorflow", "2.0", ["numpy<1.18,>=1.16"]),
        "tensorflow==2.0,a[x,y]==1,b": Pinned("tensorflow", "2.0", ["a[x,y]==1", "b"]),
        "tf2.15@py3.9": OnPython(Named("tf2.15"), "3.9"),
        "tensorflow==2.15.0@py3.10": OnPython(Pinned("tensorflow", "2.15.0", []), "3.10"),
        " tf2.0 + SciPy==1.4 + NumPy == 1.21.06": Override(Named("tf2.0"), ["numpy==1.21.6", "scipy==1.4"]),
        "tf2.0+numpy==1.21.6+local": Override(Named("tf2.0"), ["numpy==1.21.6+local"]),
        "tf2.15+psutil+numpy==1.26.4+pandas>1": Override(Named("tf2.15"), ["psutil", "numpy==1.26.4", "pandas>1"]),
        "tf2.15@py3.9+numpy>=1.18,<1.20": Override(OnPython(Named("tf2.15"), "3.9"), ["numpy<1.20,>=1.18"]),
        "tensorflow==2.0+cu10,keras==2+a==1": Override(Pinned("tensorflow", "2.0+cu10", ["keras==2"]), ["a==1"]),
        "tf2.21+keras@/a/b": FromSource(BASE, "keras", "/a/b"),
        "tf2.21+numpy==2.1+Keras@.": FromSource(Override(BASE, ["numpy==2.1"]), "keras", "."),
        "tf2.21+tf_keras@pr/12": FromSource(BASE, "tf-keras", "pr/12"),
        "tf2.21+keras@git+https://host/a/b@v3": FromSource(BASE, "keras", "git+https://host/a/b@v3"),
        "tf2.21+keras@py3.9": FromSource(BASE, "keras", "py3.9"),
        "tensorflow@tf.whl": FromSource(None, "tensorflow", "tf.whl"),
        "tf2.21+keras-nightly@whl-0123456789ab": FromSource(BASE, "keras-nightly", "whl-0123456789ab"),
        "tf2.21+keras@release-day": FromSource(BASE, "keras", "release-day"),
        "tf2.21+keras-nightly@2026-08-01+numpy@/x": FromSource(
            ReleaseLine("tf2.21+keras-nightly", date(2026, 8, 1)), "numpy", "/x"
        ),
        "env/requirements.txt": Files(Path("env/requirements.txt")),
        "environment.yml": Files(Path("environment.yml")),
    }
    for text, requested in table.items():
        assert parse_requested(text) == requested, text
        assert parse_requested(str(requested)) == requested, text


def test_environments_have_the_names_of_their_packages():
    names = {
        "tensorflow==2.7.1": "tensorflow-2.7.1",
        "tensorflow==2.0.0,numpy==1.16.4,keras==2.3.1": "tensorflow-2.0.0-keras-2.3.1-numpy-1.16.4",
        "tf2.0+numpy==1.21.6": "tf2.0-numpy-1.21.6",
        "tensorflow==2.0.0,keras==2.3.1+numpy==1.17": "tensorflow-2.0.0-keras-2.3.1--numpy-1.17",
        "tf2.15@py3.9": "tf2.15-py3.9",
        "tf-nightly": "tf-nightly",
        "tf2.15": "tf2.15",
    }
    assert {text: get_environment_name(text) for text in names} == names
    for text in ("tensorflow==2.0.0,numpy<2", "tf2.0+SciPy==1.4+a>1", "tensorflow==2.0,a[x,y]==1,b"):
        assert re.fullmatch(NAME, get_environment_name(text))


def test_what_cannot_be_created_is_told_with_examples_such_as_a_day_in_the_future(snapshot):
    texts = [
        *("tensorflow>=2.7", "tensorflow==2.*", "tensorflow[and-cuda]==2.15.0", "tf-nightly>2", "tensorflow=="),
        *("numpy==1.16.4", "tensorflow==2.0.0,,numpy", "tensorflow==2.0.0,a @ https://example.org/a.whl"),
        *("tf2.0+num py", "tf2.0+", "+numpy==1", "tf2.0+numpy==1+NumPy==2", "tf2.0+numpy==1,scipy"),
        *("numpy==1+scipy==1", "tf-nightly@today", "tf-nightly@2026-02-30", "tf2.21@2026-01-01", "tf2.15@py4"),
    ]
    assert {text: catch_text(UsageError, parse_requested, text) for text in texts} == snapshot
    assert parse_requested("tf-nightly@2026-01-02", lambda: date(2026, 1, 2))
    assert "2026-01-02" in catch_text(UsageError, parse_requested, "tf-nightly@2026-01-02", lambda: date(2026, 1, 1))


_VERSION = st.from_regex(r"[0-9]\.[0-9]", fullmatch=True)
_PIN = st.builds("{}=={}".format, st.sampled_from(["a", "a-b", "b"]), st.sampled_from(["1", "1.1"]))
_REQUIREMENT = st.builds(
    "".join,
    st.tuples(st.sampled_from(["a", "b", "a-b", "b-1", "keras"]), st.sampled_from(["==1", "==1.1", ">=1", "<2", ""])),
)
_ASKED = st.builds(Pinned, st.just("tensorflow"), _VERSION, st.lists(_REQUIREMENT))


_MOVE = st.builds(
    Override,
    st.sampled_from(["tf2.0", "tf2.1", "tensorflow==2.0", "tensorflow==2.0,a==1"]).map(parse_requested),
    st.lists(_PIN, min_size=1),
)


@given(st.one_of(_MOVE, _ASKED), st.one_of(_MOVE, _ASKED))
def test_environments_are_named_alike_where_the_same_is_asked_only(one, other):
    assert (one.name == other.name) == (str(one) == str(other))


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused(text):
    with contextlib.suppress(UsageError):
        assert parse_requested(str(parse_requested(text))) == parse_requested(text)
