"""`harness profile`, used as a user uses it: real processes in real local environments."""

import pstats

import pytest

OPTIONS = ("-s", "ways", "--backend", "local", "--seed", "1", "--calls", "5")


@pytest.mark.slow
def test_one_command_profiles_and_reports(harness):
    process = harness("profile", *OPTIONS, "-a", "way=fine")
    assert process.returncode == 0, process.stderr
    assert [launch["role"] for launch in harness.launches] == ["profile", "profile"]
    assert not any(launch["samples"] for launch in harness.launches)
    assert f"{harness.run.relative_to(harness.root)}/profile.md" in process.stderr
    report = (harness.run / "profile.md").read_text()
    assert "**new vs old**" in report
    assert "old" in process.stdout
    assert "<h3>new vs old</h3>" in (harness.run / "profile.html").read_text()
    # the raw profile opens with the standard library at the path that the report names
    path = next(harness.run.glob("artifacts/*old*/steady.pstats"), None) or next(harness.run.rglob("steady.pstats"))
    assert f"python -m pstats {path.relative_to(harness.root)}" in report
    assert any(name == "scenario" or "lambda" in name for _, _, name in pstats.Stats(str(path)).stats)  # type: ignore[attr-defined]
    # the report can be made again, and in no other format; it is no run to continue
    (harness.run / "profile.md").unlink()
    assert harness.call("report", str(harness.run)).returncode == 0
    assert (harness.run / "profile.md").read_text() == report
    for command in (("report", str(harness.run), "--format", "json"), ("matrix", "--resume", str(harness.run))):
        refused = harness.call(*command)
        assert (refused.returncode, "has profiles" in refused.stderr) == (2, True)


def test_a_cell_that_fails_is_told_and_the_others_are_profiled(harness):
    process = harness.call("profile", *OPTIONS, "-a", "way=fine,raises", "-e", "old")
    assert process.returncode == 1
    report = (harness.run / "profile.md").read_text()
    assert "a \\| pipe" in report
    assert "\033" not in report + process.stdout
