"""What a request's fields make of what is typed, and the other way round."""

import contextlib
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.model.backend import GpuWay
from harness.model.errors import UsageError
from harness.model.launch import Protocol
from harness.model.run import Shard
from harness.session import ProfileRequest, Request
from harness.session.options import (
    read_clock,
    read_devices,
    read_on,
    read_seconds,
    read_shard,
    read_share,
    read_size,
    read_slots,
    split_names,
)
from harness.session.request import options
from tests.errors import catch_text


def test_several_names_stand_in_one_text_and_requirements_keep_their_commas():
    for texts, names in (
        (["tf1.14", "tf2.0"], ["tf1.14", "tf2.0"]),
        (["tf2.12,tf2.13", "tf2.*"], ["tf2.12", "tf2.13", "tf2.*"]),
        (["tf2.12, tf2.13"], ["tf2.12", "tf2.13"]),
        (["tensorflow==2.0.0,keras==2.3.1"], ["tensorflow==2.0.0,keras==2.3.1"]),
        (["tf2.0,tensorflow[and-cuda,x]==2.1.0,keras==2.3.1"], ["tf2.0", "tensorflow[and-cuda,x]==2.1.0,keras==2.3.1"]),
        (["tf2.21,tf-nightly"], ["tf2.21", "tf-nightly"]),
        (["tf-nightly,keras==3.0.0"], ["tf-nightly,keras==3.0.0"]),
        (["tensorflow==2.0.0,keras>2,<3"], ["tensorflow==2.0.0,keras>2,<3"]),
        (["tf2.0,"], ["tf2.0,"]),
        (["tf2.0,tf2.0+numpy>=1.18,<1.20,tf2.1"], ["tf2.0", "tf2.0+numpy>=1.18,<1.20", "tf2.1"]),
        (["tensorflow==2.0.0,keras==2.3.1+numpy==1.17,tf2.1"], ["tensorflow==2.0.0,keras==2.3.1+numpy==1.17", "tf2.1"]),
        (["tf-nightly,tf2.0+numpy==1.21.6"], ["tf-nightly", "tf2.0+numpy==1.21.6"]),
        (["tf2.15@py3.9,py3.11,tf2.16"], ["tf2.15@py3.9", "tf2.15@py3.11", "tf2.16"]),
    ):
        assert split_names(texts, "-e") == names


def test_commas_of_a_file_and_long_requirements_are_kept(tmp_path):
    path = tmp_path / "one,two.py"
    path.touch()
    assert split_names([str(path)], "-s") == [str(path)]
    requirements = ",".join(["tensorflow==2.0.0", *(f"package{number}==1.{number}" for number in range(30))])
    assert split_names([requirements], "-e") == [requirements]


REQUEST = Request(
    environments=["old", "new"],
    scenarios=["ways"],
    axes={"way": ["fine", "prints"], "speed": ["slow"]},
    gpu=True,
    gpu_via=GpuWay.RUNTIME,
    timeout=90.0,
    memory=2**30,
    share=True,
    precision=0.025,
    budget=600.0,
    budget_is_wish=True,
    margin=0.05,
    sampling=Protocol.DOCUMENT,
    lock_clocks="1410",
    warmup=0.0,
    measure=0.25,
    results=Path("elsewhere"),
    shard=Shard(2, 5),
    balance=Path("results/earlier"),
    on="http://head:8265",
    slots="4",
    try_anyway=True,
)


def test_a_request_knows_the_command_that_asks_for_the_same():
    assert Request().command() == ["harness", "matrix"]
    assert ProfileRequest(calls=7, suite="quick").command() == [
        "harness",
        "profile",
        "--suite",
        "quick",
        "--calls",
        "7",
    ]
    words = "-e old -e new -s ways -a way=fine,prints -a speed=slow --gpu --gpu-via runtime --share --timeout 90s "
    words += "--memory 1073741824b --results elsewhere --precision 2.5% --budget 600s --budget-is-wish --margin 5% "
    words += "--sampling document --lock-clocks 1410 --warmup 0s --measure 0.25s --shard 2/5 --balance results/earlier "
    words += "--on http://head:8265 --slots 4 --try-anyway"
    assert REQUEST.command() == ["harness", "matrix", *words.split()]


def test_what_is_written_as_text_is_read_as_the_same_value():
    for name, field in options(Request).items():
        value = getattr(REQUEST, name)
        if field.option.read and value not in (None, (), ""):
            texts = [text for text in field.words(value) if text not in field.flags]
            many = not isinstance(value, float | int | str | Shard)
            assert field.option.read(texts if many else texts[0], field.flags[-1]) == value, name


def test_quantities_are_read():
    seconds = {"90s": 90, "10m": 600, "1.5h": 5400, "250ms": 0.25, " 2 M ": 120}
    assert {text: read_seconds(text, "--timeout") for text in seconds} == seconds
    sizes = {
        "8388608b": 2**23,
        "512m": 2**29,
        "8g": 2**33,
        "8GiB": 2**33,
        "8GB": 2**33,
        "7.5m": 7864320,
        "6m": 6 * 2**20,
    }
    assert {text: read_size(text, "--memory") for text in sizes} == sizes
    clocks = {"base": "base", "1410": "1410", "1410MHz": "1410", " 1410 mhz ": "1410", "0900": "900"}
    assert {text: read_clock(text, "--lock-clocks") for text in clocks} == clocks
    assert [read_seconds(text, "--warmup", or_none=True) for text in ("0", "0s", "0.0m")] == [0.0] * 3
    assert read_shard(" 5/5", "--shard") == Shard(5, 5)
    assert [read_slots(text, "--slots") for text in ("auto", "12", "1024")] == ["auto", "12", "1024"]
    for text in ("ray", "http://head:8265", "ssh://one,me@two:22"):
        assert read_on(text, "--on") == text
    for texts, devices in ((["cpu,gpu"], ["cpu", "gpu"]), (["GPU", "cpu"], ["gpu", "cpu"]), (["gpu"], ["gpu"])):
        assert read_devices(texts, "--device") == devices
        words = [word for device in devices for word in ("--device", device)]
        assert Request(device=read_devices(texts, "--device")).command()[2:] == words


@given(st.text())
def test_whatever_is_typed_is_a_quantity_above_none_or_a_sentence(text):
    for read, option in ((read_seconds, "--timeout"), (read_size, "--memory"), (read_share, "--margin")):
        with contextlib.suppress(UsageError):
            assert read(text, option) > 0


def test_what_is_no_quantity_gets_a_sentence(snapshot):
    times = ("-1s", "soon", "", "10 parsecs", "1e400", f"{'9' * 400}h", "nan", "0", "0s", "0.0m", "10")
    sentences: dict[str, str] = {}
    for read, option, texts in (
        (read_seconds, "--timeout", times),
        (read_size, "--memory", ("0", "1k", "5.9m", "100")),
        (read_share, "--precision", ("2",)),
        (read_clock, "--lock-clocks", ("", "max", "1.4GHz", "0", "000", "-1410", "1410,1410", "base 1410")),
        (read_shard, "--shard", ("0/5", "6/5", "5", "2/", "2/5/6", "-1/5", "a/b", "1/00000")),
        (read_slots, "--slots", ("0", "-1", "many", "2.5", "1025", "")),
        (read_on, "--on", ("", "here", "http://", "http://a/b", "ray://")),
        (lambda text, option: read_devices([text], option), "--device", ("cpu,tpu", "", "gpu,gpu")),
    ):
        for text in texts:
            sentences[f"{option} {text[:20]}"] = catch_text(UsageError, read, text, option).replace("9" * 400, "9…")
    assert sentences == snapshot
