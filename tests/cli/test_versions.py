"""`harness matrix --base`: two versions of a scenario of one's own, from git."""

import subprocess

import pytest

SHORT = (
    "--backend",
    "local",
    "--trust",
    "-e",
    "new",
    "-a",
    "way=fine",
    "--rounds",
    "4",
    "--warmup",
    "1ms",
    "--measure",
    "60ms",
)


@pytest.fixture
def git(harness):
    """Git, in the project's folder."""

    def run(*arguments: str) -> str:
        who = ("-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(["git", *who, *arguments], cwd=harness.root, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    run("init", "-q", "-b", "main")
    return run


@pytest.fixture
def mine(harness, git):
    """A scenario of one's own in two commits: in the second, the step does three times the work."""
    path = harness.root / "mine.py"
    text = (harness.root / "scenarios" / "ways.py").read_text()
    path.write_text(text)
    git("add", ".")
    git("commit", "-qm", "one")
    path.write_text(text.replace("range(1000 if", "range(3000 if"))
    git("commit", "-qam", "two")
    return path


def test_the_newer_version_is_measured_against_the_older_one_and_fails_the_gate_where_it_is_slower(harness, mine):
    # whatever else runs on the machine
    by_cpu = (*SHORT, "--clock", "cpu", "--fail-on", "slower")
    done = harness("matrix", "--base", "HEAD~", "--head", "HEAD", "-s", "mine.py", *by_cpu)
    assert done.returncode == 5, done.stderr + done.stdout
    assert "head takes" in done.stdout
    assert {launch["cell"]["axes"]["side"] for launch in harness.launches} == {"base", "head"}
    # the run is read again, with the files of both versions
    assert harness("report", str(harness.run)).returncode == 0
    # what was changed back is no regression
    turned = harness("matrix", "--base", "HEAD", "--head", "HEAD~", "-s", "mine.py", *by_cpu)
    assert turned.returncode == 0, turned.stderr + turned.stdout


def test_without_head_it_is_the_file_as_it_lies_there(harness, mine):
    mine.write_text(mine.read_text().replace("3000 if", "4000 if"))
    done = harness("matrix", "--base", "HEAD", "-s", "mine.py", "-a", "way=fine", "-e", "new", "--dry-run")
    assert (done.returncode, "mine_side_by_side new fine fast head" in done.stdout) == (0, True), done.stderr


def test_what_did_not_change_or_is_new_is_left_out(harness, mine, git):
    (harness.root / "added.py").write_text(mine.read_text())
    git("add", "added.py")
    git("commit", "-qm", "three")
    asked = ("matrix", "--base", "HEAD~", "--head", "HEAD", "-s", "added.py", "-s", "mine.py", "-s", "ways")
    done = harness(*asked, "--dry-run")
    assert done.returncode == 3
    assert "added.py is only in HEAD, so it is not measured." in done.stderr
    assert "mine.py is the same in HEAD~ and HEAD, so it is not measured." in done.stderr
    assert "ways.py is the same in HEAD~ and HEAD, so it is not measured." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--base", "HEAD~"), "--base compares two versions of scenarios, but no scenario is specified."),
        (("--head", "HEAD", "-s", "mine.py"), "--head needs --base."),
        (("--base", "nowhere", "-s", "mine.py"), "git can't find the commit 'nowhere'"),
        (("--base", "--upload-pack=x", "-s", "mine.py"), "git can't find the commit '--upload-pack=x'"),
        (("--base", "HEAD~", "-s", "absent.py"), "absent.py exists neither in HEAD~ nor in the working tree."),
        (("--base", "HEAD~", "-s", "abs*nt"), "Unknown scenario: 'abs*nt'."),
        (("--base", "HEAD~", "-s", "mine.py", "-a", "side=base"), "-a side would select only one of the two versions."),
    ],
)
def test_what_is_wrong_is_told_before_anything_runs(harness, mine, arguments, told):
    done = harness("matrix", *arguments, "--dry-run")
    assert (done.returncode, told in done.stderr) == (2, True), done.stderr


def test_outside_a_repository_it_says_so(harness, tmp_path):
    (tmp_path / "mine.py").write_text((harness.root / "scenarios" / "ways.py").read_text())
    done = harness("matrix", "--base", "main", "-s", str(tmp_path / "mine.py"), GIT_CEILING_DIRECTORIES="/")
    assert (done.returncode, "is not in a git repository" in done.stderr) == (2, True), done.stderr
