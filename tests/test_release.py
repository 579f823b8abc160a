"""The script that checks a tag before a release, and the notes that it writes."""

from pathlib import Path

import harness
from tests.conftest import ROOT
from tests.workflow import run_script


def test_a_tag_that_is_not_the_version_is_refused_and_the_notes_are_the_section_of_the_changelog(tmp_path: Path):
    script, notes = ROOT / ".github" / "release" / "check", tmp_path / "notes.md"
    assert run_script(script, "v9.9.9", notes).returncode == 1
    process = run_script(
        script, f"v{harness.__version__}", notes, GITHUB_SERVER_URL="https://a", GITHUB_REPOSITORY="b/c"
    )
    assert process.returncode == 0, process.stdout
    text = notes.read_text()
    assert f"](https://a/b/c/blob/v{harness.__version__}/docs/" in text
    assert "\n## " not in text
