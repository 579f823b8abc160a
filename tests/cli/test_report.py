from tests.cli.conftest import Harness


def test_a_report_is_made_again_from_the_launches(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "2")
    path = harness.run / "report.md"
    first = path.read_text()
    path.unlink()
    done = harness("report", str(harness.run))
    assert done.returncode == 0, done.stderr
    assert path.read_text() == first
    assert "TensorFlow 2.0.0 takes" in done.stdout


def test_a_damaged_run_gets_a_sentence(harness: Harness) -> None:
    harness.matrix("-s", "ways", "-a", "way=fine", "--rounds", "1")
    (harness.run / "run.json").write_text("{")
    done = harness("report", str(harness.run))
    assert done.returncode == 2
    assert "run.json is damaged" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_run_gets_a_sentence(harness: Harness) -> None:
    done = harness("report", "results/none")
    assert done.returncode == 2
    assert "is not a run's folder" in done.stderr
