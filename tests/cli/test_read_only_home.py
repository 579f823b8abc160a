"""A user whose home folder can't be written."""

import os
import subprocess

import pytest

from tests.cli.conftest import SHORT

#: Runs a command as a user who may read the interpreter of this process, also below /root, but write nothing.
OTHER_USER = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--"),
)
MEASURE = ("matrix", "-s", "ways", "-a", "way=fine", "-e", "old", *SHORT, "--rounds", "1")


@pytest.mark.slow
def test_two_variables_are_enough_and_without_them_a_sentence_names_them(harness, tmp_path):
    home, own = tmp_path / "home", tmp_path / "own"
    home.mkdir(mode=0o555)
    own.mkdir()
    is_root = os.geteuid() == 0
    if is_root:
        os.chown(own, 65534, 65534)
    names = ("UV_", "XDG_", "HARNESS_DATA", "HARNESS_CACHE", "HARNESS_MACHINE")
    environ = {name: value for name, value in harness.environ.items() if not name.startswith(names)}

    def call(*arguments, **variables):
        return subprocess.run(
            [*(OTHER_USER if is_root else ()), *harness.command(*arguments)],
            cwd=own, env={**environ, "HOME": str(home), **variables}, capture_output=True, text=True, check=False,
        )  # fmt: skip

    # also relative to the current folder, which launches don't have
    data, cache = {"HARNESS_DATA_DIR": "data"}, {"HARNESS_CACHE_DIR": "cache"}
    for arguments, variables, missing in (
        (MEASURE, {}, "HARNESS_DATA_DIR"),
        (("clean",), cache, "HARNESS_DATA_DIR"),
        (MEASURE, data, "HARNESS_CACHE_DIR"),
    ):
        process = call(*arguments, **variables)
        assert (process.returncode, missing in process.stderr) == (4, True), process.stderr
    process = call(*MEASURE, **data, **cache)
    assert process.returncode == 0, process.stderr
    (run,) = (own / "results").iterdir()
    process = call("matrix", "--resume", f"results/{run.name}", "--rounds", "2", **data, **cache)
    assert process.returncode == 0, process.stderr
    assert call("clean", **data, **cache).returncode == 0
    assert not list(home.iterdir())


def test_a_home_that_may_not_be_entered_is_a_sentence(harness, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied", os.environ["HARNESS_DATA_DIR"] + "/history")

    monkeypatch.setattr("harness.history.folder.History.open", refuse)
    process = harness.call("history", "show")
    assert (process.returncode, "HARNESS_DATA_DIR" in process.stderr) == (4, True)
