"""What a request's fields make of what is typed, and the other way round."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.backend import GpuWay
from harness.model.errors import UsageError
from harness.model.launch import Protocol
from harness.model.run import Shard
from harness.session import ProfileRequest, Request
from harness.session.request import (
    options,
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
        (["tf2.0,tf2.0+numpy>=1.18,<1.20,tf2.1"], ["tf2.0", "tf2.0+numpy>=1.18,<1.20", "tf2.1"]),
        (["tensorflow==2.0.0,keras==2.3.1+numpy==1.17,tf2.1"], ["tensorflow==2.0.0,keras==2.3.1+numpy==1.17", "tf2.1"]),
        (["tf-nightly,tf2.0+numpy==1.21.6"], ["tf-nightly", "tf2.0+numpy==1.21.6"]),
        (["tf2.15@py3.9,py3.11,tf2.16"], ["tf2.15@py3.9", "tf2.15@py3.11", "tf2.16"]),
    ],
)
def test_several_names_stand_in_one_text_and_requirements_keep_their_commas(typed: list[str], meant: list[str]) -> None:
    assert split_names(typed, "-e") == meant


def test_a_file_may_have_a_comma_in_its_name(tmp_path: Path) -> None:
    path = tmp_path / "one,two.py"
    path.touch()
    assert split_names([str(path)], "-s") == [str(path)]


def test_requirements_can_be_longer_than_a_file_name() -> None:
    requirements = ",".join(["tensorflow==2.0.0", *(f"package{number}==1.{number}" for number in range(30))])
    assert split_names([requirements], "-e") == [requirements]


ASKED = Request(
    environments=["old", "new"],
    scenarios=["ways"],
    axes={"way": ["fine", "prints"], "speed": ["slow"]},
    gpu=True,
    gpu_via=GpuWay.RUNTIME,
    timeout=90.0,
    memory=2**30,
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
    on="ray://head:10001",
    slots="4",
    try_anyway=True,
    spread=True,
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
    words = "-e old -e new -s ways -a way=fine,prints -a speed=slow --gpu --gpu-via runtime --timeout 90s "
    words += "--memory 1073741824b --results elsewhere --precision 2.5% --budget 600s --budget-is-wish --margin 5% "
    words += "--sampling document --lock-clocks 1410 --warmup 0s --measure 0.25s --shard 2/5 --balance results/earlier "
    words += "--on ray://head:10001 --slots 4 --try-anyway --spread"
    assert ASKED.command() == ["harness", "matrix", *words.split()]


def test_what_is_written_as_text_is_read_as_the_same_value() -> None:
    for name, each in options(Request).items():
        value = getattr(ASKED, name)
        if each.option.read and value not in (None, (), ""):
            texts = [text for text in each.words(value) if text not in each.flags]
            many = not isinstance(value, float | int | str | Shard)
            assert each.option.read(texts if many else texts[0], each.flags[-1]) == value, name


@pytest.mark.parametrize(
    ("text", "value"), [("90s", 90), ("10m", 600), ("1.5h", 5400), ("250ms", 0.25), (" 2 M ", 120)]
)
def test_lengths_of_time(text: str, value: float) -> None:
    assert read_seconds(text, "--timeout") == value


@pytest.mark.parametrize(
    ("text", "value"),
    [("8388608b", 2**23), ("512m", 2**29), ("8g", 2**33), ("8GiB", 2**33), ("8GB", 2**33), ("7.5m", 7864320)],
)
def test_sizes(text: str, value: int) -> None:
    assert read_size(text, "--memory") == value


@pytest.mark.parametrize("text", ["0", "1k", "5.9m"])
def test_a_size_below_what_docker_accepts_is_refused_with_the_smallest_one(text: str) -> None:
    with pytest.raises(UsageError, match=rf"Invalid --memory '{text}': expected at least 6m\."):
        read_size(text, "--memory")


@given(st.text())
def test_whatever_is_typed_is_a_quantity_above_none_or_a_sentence(text: str) -> None:
    for read, option in ((read_seconds, "--timeout"), (read_size, "--memory"), (read_share, "--margin")):
        with contextlib.suppress(UsageError):
            assert read(text, option) > 0


@pytest.mark.parametrize("text", ["-1s", "soon", "", "10 parsecs", "1e400", f"{'9' * 400}h", "nan"])
def test_what_is_no_length_of_time_gets_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match=r"Invalid --timeout .*: expected a length of time such as 90s, 10m or 1h"):
        read_seconds(text, "--timeout")


@pytest.mark.parametrize("text", ["0", "0s", "0.0m"])
def test_no_time_is_a_length_only_where_that_is_said(text: str) -> None:
    assert read_seconds(text, "--warmup", or_none=True) == 0.0
    with pytest.raises(UsageError, match=r"Invalid --measure .*: expected more than 0"):
        read_seconds(text, "--measure")


def test_a_number_without_a_unit_is_refused_with_what_to_type() -> None:
    with pytest.raises(UsageError, match=r"Invalid --budget '10': the unit is missing\.\nExample: 10s or 10m\."):
        read_seconds("10", "--budget")
    with pytest.raises(UsageError, match=r"Invalid --memory '100': the unit is missing\.\nExample: 100m or 100g\."):
        read_size("100", "--memory")
    with pytest.raises(
        UsageError,
        match=r"Invalid --precision '2': expected more than 0% and less than 100%, such as 3% or 0.03\.\nUse 2%\.",
    ):
        read_share("2", "--precision")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [("base", "base"), ("1410", "1410"), ("1410MHz", "1410"), (" 1410 mhz ", "1410"), ("0900", "900")],
)
def test_a_clock_is_read(typed: str, meant: str) -> None:
    assert read_clock(typed, "--lock-clocks") == meant


@pytest.mark.parametrize("typed", ["", "max", "1.4GHz", "0", "000", "-1410", "1410,1410", "base 1410"])
def test_what_is_no_clock_is_refused(typed: str) -> None:
    with pytest.raises(UsageError, match=r"Invalid --lock-clocks .*: expected a clock speed") as refused:
        read_clock(typed, "--lock-clocks")
    assert "`base`" in str(refused.value)


def test_a_shard_is_one_of_so_many() -> None:
    assert read_shard(" 5/5", "--shard") == Shard(5, 5)
    for text in ("0/5", "6/5", "5", "2/", "2/5/6", "-1/5", "a/b", "1/00000"):
        with pytest.raises(UsageError, match=r"^Invalid --shard .*INDEX/COUNT"):
            read_shard(text, "--shard")


@pytest.mark.parametrize(
    ("typed", "devices"), [(["cpu,gpu"], ["cpu", "gpu"]), (["GPU", "cpu"], ["gpu", "cpu"]), (["gpu"], ["gpu"])]
)
def test_devices_are_one_or_both_the_baseline_first(typed: list[str], devices: list[str]) -> None:
    assert read_devices(typed, "--device") == devices
    assert Request(device=read_devices(typed, "--device")).command()[2:] == [
        word for device in devices for word in ("--device", device)
    ]


@pytest.mark.parametrize(
    ("typed", "words"),
    [("cpu,tpu", "expected cpu, gpu or both"), ("", "expected cpu, gpu or both"), ("gpu,gpu", "has a device twice")],
)
def test_invalid_devices_are_refused(typed: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as refused:
        read_devices([typed], "--device")
    assert "--device cpu,gpu" in refused.value.advice


def test_slots_are_a_number_or_auto() -> None:
    assert [read_slots(text, "--slots") for text in ("auto", "12")] == ["auto", "12"]
    for text in ("0", "-1", "many", "2.5", "1025", ""):
        with pytest.raises(UsageError, match=r"^Invalid --slots .* 1024\."):
            read_slots(text, "--slots")


def test_runs_are_on_ray() -> None:
    assert [read_on(text, "--on") for text in ("ray", "ray://head:10001")] == ["ray", "ray://head:10001"]
    for text in ("", "here", "ray://", "ray://a/b", "http://head"):
        with pytest.raises(UsageError, match=r"^Invalid --on .*ssh://"):
            read_on(text, "--on")
