"""The file of the nightly workflow: valid contents, and errors."""

from datetime import date
from pathlib import Path

import pytest

from harness.history.nightly_file import NightlyFile, read_nightly_file
from harness.model.errors import UsageError
from harness.model.history import Key

FILE = """
[[night]]
name = "cpu"
arguments = "-s step"
machines = [{ name = "hosted", runs-on = "ubuntu-24.04" }]
"""
MUTE = '[[mute]]\nseries = "step *"\nreason = "bug 5"\nuntil = 2026-12-31\n'
ACCEPT = MUTE.replace("mute", "accept") + "since = 2026-11-20\n"
KEY = Key("m-1", "step", "cpu", (("mode", "eager"),), "tf-nightly", "tf2.15")


def read(tmp_path: Path, text: str) -> NightlyFile:
    path = tmp_path / "nightly.toml"
    path.write_text(text)
    return read_nightly_file(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = = 1", "isn't valid TOML"),
        ("x = " + "[" * 5000, "it is nested too deep"),
        ("x = 1" + "0" * 5000, "isn't valid TOML"),
        ("", "The file doesn't contain any runs."),
        ("night = 3", "'night' in the file isn't a list of tables. Write [[night]]"),
        ("[[night]]", "Night 1 has no 'name'."),
        (FILE + FILE, "Two nightly runs have the same name: 'cpu'."),
        (FILE.replace('"cpu"', '"a b"'), "Invalid name 'a b' in night 1."),
        (FILE.replace('"hosted"', '"../x"'), "Invalid name '../x' in machines 1 of nightly run cpu."),
        (
            FILE.replace("machines = [", "machines = [{ name = 'hosted', runs-on = 'x' }, "),
            "lists a machine twice: 'hosted'",
        ),
        (
            "".join(FILE.replace('"cpu"', f'"{name}"') for name in "abc"),
            "The machine 'hosted' is in 3 nightly runs, but GitHub would cancel all but 2.",
        ),
        (
            FILE.replace("runs-on", "runs_on"),
            "Unknown key 'runs_on' in machines 1 of nightly run cpu. Did you mean 'runs-on'?",
        ),
        (FILE.replace('"ubuntu-24.04"', "[]"), "Invalid runs-on [] in machines 1 of nightly run cpu."),
        (FILE.replace('"ubuntu-24.04"', '{ labels_ = "x" }'), "Invalid runs-on {'labels_': 'x'}"),
        (FILE.replace('"ubuntu-24.04"', '"x", id = "a b"'), "Invalid id 'a b'"),
        (FILE.replace('"ubuntu-24.04"', '"x", minutes = "1h"'), "Invalid minutes '1h'"),
        (
            "wait-minutes = 340" + FILE,
            "Invalid wait-minutes 340: GitHub ends the job that waits. Use at most 330 minutes.",
        ),
        ("registry_ = 1" + FILE, "Unknown key 'registry_' in the file. Did you mean 'registry'?"),
        ('registry = "ghcr.io/me"' + FILE, "Invalid registry 'ghcr.io/me'. End it with a slash."),
        (FILE + MUTE.replace("until", "until_"), "Unknown key 'until_' in mute 1. Did you mean 'until'?"),
        (FILE + MUTE.replace('"bug 5"', '" "'), "The reason in mute 1 is empty."),
        (FILE + MUTE.replace("2026-12-31", '"soon"'), "Invalid until 'soon' in mute 1. Use a date"),
        (FILE + MUTE.replace("2026-12-31", "2026-12-31T00:00:00"), "Invalid until"),
        (FILE + MUTE.replace("mute", "accept"), "Accept 1 has no 'since'."),
        (FILE + MUTE + "since = 2026-11-20", "Unknown key 'since' in mute 1."),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text)
    assert message in " ".join(str(caught.value).split())


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"Can't read .*nightly.toml: No such file"):
        read_nightly_file(tmp_path / "nightly.toml")


def test_a_rule_is_about_its_series_until_its_day(tmp_path: Path) -> None:
    accept, mute = read(tmp_path, FILE + ACCEPT + MUTE).rules
    day, started = date(2026, 12, 31), "2026-11-20T02:17:00+00:00"
    assert accept.applies(KEY, started, "rack", day)
    assert mute.applies(KEY, started, "rack", day)
    # another change of the series is another matter, unless the series is muted
    assert not accept.applies(KEY, "2026-12-01T02:17:00+00:00", "rack", day)
    assert mute.applies(KEY, "2026-12-01T02:17:00+00:00", "rack", day)
    assert not mute.applies(KEY, started, "rack", date(2027, 1, 1))


def test_a_rule_can_name_a_machine(tmp_path: Path) -> None:
    (mute,) = read(tmp_path, FILE + MUTE + 'machine = "rack*"\n').rules
    assert mute.selects(KEY, "rack-2")
    assert not mute.selects(KEY, "office")
