"""The file of the nightly workflow: valid contents, and errors."""

from datetime import date
from pathlib import Path

import typer

from harness.cli import app
from harness.history import nightly_file
from harness.history.nightly_file import NightlyFile, read_nightly_file
from harness.model.history import Key
from harness.session.request import Request, options
from tests.errors import read_refusal

FILE = """
[[night]]
name = "cpu"
arguments = "-s step"
machines = [{ name = "hosted", runs-on = "ubuntu-24.04" }]
"""
MUTE = '[[mute]]\nseries = "step *"\nreason = "bug 5"\nuntil = 2026-12-31\n'
ACCEPT = MUTE.replace("mute", "accept") + "since = 2026-11-20\n"
KEY = Key("m-1", "step", "cpu", (("mode", "eager"),), "tf-nightly", "tf2.15")

INVALID = {
    "nesting": "x = " + "[" * 5000,
    "empty": "",
    "no table": "night = 3",
    "no name": "[[night]]",
    "two nights of one name": FILE + FILE,
    "a night's name": FILE.replace('"cpu"', '"a b"'),
    "a machine's name": FILE.replace('"hosted"', '"../x"'),
    "a machine twice": FILE.replace("machines = [", "machines = [{ name = 'hosted', runs-on = 'x' }, "),
    "a machine in three nights": "".join(FILE.replace('"cpu"', f'"{name}"') for name in "abc"),
    "a machine's key": FILE.replace("runs-on", "runs_on"),
    "runs-on empty": FILE.replace('"ubuntu-24.04"', "[]"),
    "runs-on key": FILE.replace('"ubuntu-24.04"', '{ labels_ = "x" }'),
    "id": FILE.replace('"ubuntu-24.04"', '"x", id = "a b"'),
    "minutes": FILE.replace('"ubuntu-24.04"', '"x", minutes = "1h"'),
    "wait-minutes": "wait-minutes = 340" + FILE,
    "a key": "registry_ = 1" + FILE,
    "registry": 'registry = "ghcr.io/me"' + FILE,
    "an unknown option": FILE.replace("-s step", "-s step --round 8"),
    "an option's value": FILE.replace("-s step", "-s step --rounds=many"),
    "an option without a value": FILE.replace("-s step", "-s step --budget"),
    "an argument": FILE.replace("-s step", "step"),
    "an open quote": FILE.replace("-s step", "-s 'step"),
    "a rule's key": FILE + MUTE.replace("until", "until_"),
    "no reason": FILE + MUTE.replace('"bug 5"', '" "'),
    "until a word": FILE + MUTE.replace("2026-12-31", '"soon"'),
    "until a time": FILE + MUTE.replace("2026-12-31", "2026-12-31T00:00:00"),
    "accept without since": FILE + MUTE.replace("mute", "accept"),
    "mute with since": FILE + MUTE + "since = 2026-11-20",
}


def read(tmp_path: Path, text: str) -> NightlyFile:
    path = tmp_path / "nightly.toml"
    path.write_text(text)
    return read_nightly_file(path)


def test_what_is_wrong_is_named_with_its_place(tmp_path, snapshot):
    refusals = {"no file": read_refusal(lambda: read_nightly_file(tmp_path / "none.toml"), tmp_path)}
    for name, text in INVALID.items():
        refusals[name] = read_refusal(lambda text=text: read(tmp_path, text), tmp_path)  # type: ignore[misc]
    assert refusals == snapshot
    assert read(tmp_path, "wait-minutes = 330" + FILE)
    for text in ("x = = 1", "x = 1" + "0" * 5000):
        assert "isn't valid TOML" in read_refusal(lambda text=text: read(tmp_path, text))  # type: ignore[misc]


def test_all_options_of_matrix_are_accepted(tmp_path):
    command = typer.main.get_group(app).get_command(None, "matrix")
    params = [param for param in command.params if param.param_type_name == "option"]
    own = {param.opts[-1]: bool if param.is_flag else str for param in params if param.name not in options(Request)}
    assert own == nightly_file.OWN_OPTIONS
    arguments = "-e tf2.15,latest -s 'a*' -a mode=eager --cpus=2 --gpu --rounds 8 --fail-on slower --wait --shard 1/2"
    (night,) = read(tmp_path, FILE.replace("-s step", arguments)).nights
    assert night.arguments == arguments


def test_a_rule_is_about_its_series_until_its_day(tmp_path):
    accept, mute = read(tmp_path, FILE + ACCEPT + MUTE).rules
    day, started, later = date(2026, 12, 31), "2026-11-20T02:17:00+00:00", "2026-12-01T02:17:00+00:00"
    # another change of the series is another matter, unless the series is muted
    for rule, others in ((accept, False), (mute, True)):
        assert rule.applies(KEY, started, "rack", day)
        assert rule.applies(KEY, later, "rack", day) is others
        assert not rule.applies(KEY, started, "rack", date(2027, 1, 1))
    (mute,) = read(tmp_path, FILE + MUTE + 'machine = "rack*"\n').rules
    assert mute.selects(KEY, "rack-2")
    assert not mute.selects(KEY, "office")
