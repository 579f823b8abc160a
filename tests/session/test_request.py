"""What a request's fields make of what is typed, and the other way round."""

from pathlib import Path

import pytest

from harness.model.launch import Protocol
from harness.session import ProfileRequest, Request
from harness.session.request import names, options


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        (["tf1.14", "tf2.0"], ["tf1.14", "tf2.0"]),
        (["tf2.12,tf2.13", "tf2.*"], ["tf2.12", "tf2.13", "tf2.*"]),
        (["tf2.12, tf2.13"], ["tf2.12", "tf2.13"]),
        (["tensorflow==2.0.0,keras==2.3.1"], ["tensorflow==2.0.0,keras==2.3.1"]),
        (["tf2.0,tensorflow[and-cuda,x]==2.1.0,keras==2.3.1"], ["tf2.0", "tensorflow[and-cuda,x]==2.1.0,keras==2.3.1"]),
        (["tf2.21,tf-nightly"], ["tf2.21", "tf-nightly"]),
        (["tf-nightly,keras==3.0.0"], ["tf-nightly,keras==3.0.0"]),
        (["tensorflow==2.0.0,keras>2,<3"], ["tensorflow==2.0.0,keras>2,<3"]),
        (["tf2.0,"], ["tf2.0,"]),
    ],
)
def test_several_names_stand_in_one_text_and_requirements_keep_their_commas(typed: list[str], meant: list[str]) -> None:
    assert names(typed, "-e") == meant


def test_a_file_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "one,two.py"
    path.touch()
    assert names([str(path)], "-s") == [str(path)]


ASKED = Request(
    environments=["old", "new"],
    scenarios=["ways"],
    axes={"way": ["fine", "prints"], "speed": ["slow"]},
    gpu=True,
    timeout=90.0,
    memory=2**30,
    precision=0.025,
    budget=600.0,
    margin=0.05,
    sampling=Protocol.DOCUMENT,
    warmup=0.0,
    measure=0.25,
    results=Path("elsewhere"),
)


def test_a_request_knows_the_command_that_asks_for_the_same() -> None:
    assert Request().command() == ["harness", "matrix"]
    assert ProfileRequest(calls=7, suite="quick").command() == [
        "harness",
        "profile",
        "--suite",
        "quick",
        "--calls",
        "7",
    ]
    words = "-e old -e new -s ways -a way=fine,prints -a speed=slow --gpu --timeout 90s --memory 1073741824b "
    words += "--results elsewhere --precision 2.5% --budget 600s --margin 5% --sampling document --warmup 0s "
    assert ASKED.command() == ["harness", "matrix", *words.split(), "--measure", "0.25s"]


def test_what_is_written_as_text_is_read_as_the_same_value() -> None:
    for name, each in options(Request).items():
        value = getattr(ASKED, name)
        if each.option.read and value not in (None, ()):
            texts = [text for text in each.words(value) if text not in each.flags]
            many = not isinstance(value, float | int)
            assert each.option.read(texts if many else texts[0], each.flags[-1]) == value, name
