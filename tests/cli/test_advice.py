"""What to type in place of what is no command and no option."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from harness.cli import app
from harness.model.errors import UsageError
from tests.cli.conftest import Harness


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["measure"], "Unknown command: 'measure'. Use: harness matrix\nTo list all commands: harness --help"),
        (["resume"], "Use: harness matrix --resume RUN"),
        (["matrx"], "Unknown command: 'matrx'. Did you mean matrix?"),
        (["scenarios", "lst"], "Did you mean list?\nTo list all commands: harness scenarios --help"),
        (["scenarios", "run"], "Unknown command: 'run'."),
        (["xyzzy"], "Unknown command: 'xyzzy'.\nTo list all commands: harness --help"),
        (["matrix", "keras_step"], "keras_step is a scenario: use -s keras_step"),
        (["profile", "-e", "tf1.14", "tf2.0"], "tf2.0 is an environment: use -e tf2.0"),
        (["matrix", "quick"], "quick is a suite: use --suite quick"),
        (["matrix", "something"], "Use -s for scenarios, -e for environments"),
        (["help", "matrx"], "Did you mean matrix?"),
        (["report", "one", "two"], "To list the options: harness report --help"),
    ],
)
def test_what_is_not_there_gets_what_is_meant(typed: list[str], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(app, typed, prog_name="harness", catch_exceptions=False)
    assert told in str(refused.value)


@pytest.mark.parametrize("command", ["matrix", "profile"])
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("# /// script\n# [tool.harness]\n# ///\n", "mine.py is a scenario: use -s mine.py"),
        ("x = 1\n", "mine.py is a plain script. To measure it: harness run mine.py -e ENVIRONMENT"),
        (None, "There is no file mine.py."),
    ],
    ids=["scenario", "script", "absent"],
)
def test_a_file_without_an_option_gets_the_command_for_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, text: str | None, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    if text is not None:
        (tmp_path / "mine.py").write_text(text)
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(app, [command, "mine.py"], prog_name="harness", catch_exceptions=False)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "usual"),
    [
        (["-h"], ["--help"]),
        (["help"], ["--help"]),
        (["matrix", "-h"], ["matrix", "--help"]),
        (["help", "matrix"], ["matrix", "--help"]),
        (["scenarios", "help"], ["scenarios", "--help"]),
        (["help", "scenarios", "new"], ["scenarios", "new", "--help"]),
    ],
)
def test_help_is_found_however_it_is_asked_for(typed: list[str], usual: list[str]) -> None:
    asked, known = (CliRunner().invoke(app, words, prog_name="harness") for words in (typed, usual))
    assert asked.exit_code == 0
    assert asked.output == known.output
    assert asked.output.startswith("Usage: harness")


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (
            ["matrix", "--rounds", "0"],
            "Invalid --rounds '0': expected a whole number of at least 1.\nExample: --rounds 5",
        ),
        (["matrix", "--rounds", "x"], "Invalid --rounds 'x': expected a whole number of at least 1."),
        (["matrix", "--memory", "8"], "Invalid --memory '8': the unit is missing.\nExample: 8m or 8g."),
        (["matrix", "--memory", "300x"], "Invalid --memory '300x': expected a size such as 512m or 8g."),
        (["matrix", "--seed=-1"], "Invalid --seed '-1': expected a whole number of at least 0."),
        (["profile", "--calls", "1.5"], "Invalid --calls '1.5': expected a whole number of at least 1."),
        (["images", "build", "--jobs", "0"], "Invalid --jobs '0': expected a whole number of at least 1."),
        (
            ["matrix", "--rounds", "9" * 19],
            "Invalid --rounds '9999999999999999999': expected a whole number of at most 999999999999999999.",
        ),
        (["history", "digest", "--days", "0"], "Invalid --days '0': expected a whole number of at least 1."),
        (
            ["history", "digest", "--days", "9999999"],
            "Invalid --days '9999999': expected a whole number of at most 36500.",
        ),
        (["history", "digest", "--days", "abc"], "Invalid --days 'abc': expected a whole number of at least 1."),
        (["history", "confirm", "--rounds", "1"], "Invalid --rounds '1': expected a whole number of at least 2."),
    ],
)
def test_a_number_that_is_none_or_too_small_is_told_with_an_example(typed: list[str], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(app, typed, prog_name="harness", catch_exceptions=False)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["matrix", "--backend", "podman"], "'--backend': 'podman' is not one of 'auto', 'docker', 'local'."),
        (["completion", "ksh"], "'shell': 'ksh' is not one of 'bash', 'zsh', 'fish'."),
        (["images", "build", "--device", "tpu"], "'--device': 'tpu' is not one of 'cpu', 'gpu'."),
    ],
)
def test_a_value_that_is_not_in_a_list_gets_the_list(typed: list[str], told: str) -> None:
    ended = CliRunner().invoke(app, typed, prog_name="harness")
    assert ended.exit_code == 2
    assert f"Invalid value for {told}" in ended.output


@pytest.mark.parametrize(
    "typed",
    [
        ["matrix", "--dry-run", "-s", "a" * 300],
        *(
            ["matrix", "--dry-run", "--backend", "local", "-s", "ways", option, "a" * 300]
            for option in ("-e", "--reference", "--results")
        ),
        *([command, "a" * 300] for command in ("report", "bundle", "merge", "repro")),
        *(["scenarios", command, "a" * 300] for command in ("new", "show", "check")),
    ],
)
def test_a_name_longer_than_a_file_name_gets_a_sentence(harness: Harness, typed: list[str]) -> None:
    done = harness(*typed)
    assert done.returncode == 2
    assert "aaa" in done.stderr
    assert "defect" not in done.stderr
