"""`harness profile`, used as a user uses it: real processes in real local environments."""

import pstats

from tests.cli.conftest import Harness


def profile(harness: Harness, *arguments: str):
    return harness("profile", "--backend", "local", "--seed", "1", "--calls", "5", *arguments)


def test_one_command_profiles_and_reports(harness: Harness) -> None:
    done = profile(harness, "-s", "ways", "-a", "way=fine")
    assert done.returncode == 0, done.stderr
    assert [launch["role"] for launch in harness.launches] == ["profile", "profile"]
    assert not any(launch["samples"] for launch in harness.launches)
    assert "profile: old: ok" in done.stderr
    assert f"{harness.run.relative_to(harness.root)}/profile.md" in done.stderr
    report = (harness.run / "profile.md").read_text()
    assert "# Time by function: Ways to end" in report
    assert "**new vs old**" in report
    assert "\n old " in done.stdout
    assert "<h3>new vs old</h3>" in (harness.run / "profile.html").read_text()


def test_the_raw_profile_opens_with_the_standard_library_at_the_path_that_the_report_names(harness: Harness) -> None:
    profile(harness, "-s", "ways", "-a", "way=fine", "-e", "old")
    (path,) = harness.run.glob("artifacts/*/steady.pstats")
    assert f"python -m pstats {path.relative_to(harness.root)}" in (harness.run / "profile.md").read_text()
    assert any(name == "scenario" or "lambda" in name for _, _, name in pstats.Stats(str(path)).stats)  # type: ignore[attr-defined]


def test_a_cell_that_fails_is_told_and_the_others_are_profiled(harness: Harness) -> None:
    done = profile(harness, "-s", "ways", "-a", "way=fine,raises", "-e", "old")
    assert done.returncode == 1
    report = (harness.run / "profile.md").read_text()
    assert "## No profile" in report
    assert "a \\| pipe" in report
    assert "\033" not in report + done.stdout


def test_the_report_can_be_made_again_and_in_no_other_format(harness: Harness) -> None:
    profile(harness, "-s", "ways", "-a", "way=fine", "-e", "old")
    before = (harness.run / "profile.md").read_text()
    (harness.run / "profile.md").unlink()
    assert harness("report", str(harness.run)).returncode == 0
    assert (harness.run / "profile.md").read_text() == before
    done = harness("report", str(harness.run), "--format", "json")
    assert done.returncode == 2
    assert "has profiles" in done.stderr


def test_a_dry_run_names_the_cells_and_launches_nothing(harness: Harness) -> None:
    done = profile(harness, "-s", "ways", "-a", "way=fine", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["ways old fine fast", "ways new fine fast"]
    assert not (harness.root / "results").exists()
