from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.bisect.candidates import (
    Candidate,
    MovingPackage,
    find_moved_package,
    find_moving,
    find_versions_between,
    list_commits,
    list_package_versions,
    list_releases,
)
from harness.environments import index
from harness.environments.index import IndexedVersion
from harness.model.environment import Environment
from tests.errors import read_refusal
from tests.sources import SourceRepository

AS_OF = "2024-01-01T00:00:00Z"
KNOWN = {
    value.name: value
    for value in [
        Environment("tf2.9", "2.9.3", "3.8", AS_OF, released="2022-11-16"),
        Environment("tf2.13", "2.13.1", "3.8", AS_OF, released="2023-09-26"),
        Environment("tf2.13-py3.11", "2.13.1", "3.11", AS_OF, released="2023-09-26"),
        Environment("tf2.14-ngc", "2.14.0", "3.11", AS_OF, gpu_image="image"),
        Environment("tf2.14", "2.14.1", "3.11", AS_OF, released="2023-11-14"),
        Environment("tf2.16", "2.16.2", "3.11", AS_OF, released="2024-06-28"),
        Environment("tensorflow-2.15.0", "2.15.0", "3.11", AS_OF, asked="tensorflow==2.15.0"),
    ]
}


def test_releases_lie_between_the_ends_by_version_one_of_each():
    releases = {
        ("tf2.9", "tf2.16"): ["tf2.9", "tf2.13", "tf2.14", "tf2.16"],
        ("tf2.16", "tf2.9"): ["tf2.9", "tf2.13", "tf2.14", "tf2.16"],
        ("tf2.13-py3.11", "tf2.14"): ["tf2.13-py3.11", "tf2.14"],
        ("tf2.13", "tensorflow-2.15.0"): ["tf2.13", "tf2.14", "tensorflow==2.15.0"],
        ("tf2.13", "tf2.14", "tf2.16"): ["tf2.13", "tf2.14", "tf2.16"],
    }
    assert {ends: [release.text for release in list_releases(KNOWN, *ends)] for ends in releases} == releases
    assert list_releases(KNOWN, "tf2.14", "tf2.16")[0] == Candidate("tf2.14", "2023-11-14", "2.14.1")


def test_the_package_that_two_ends_differ_in():
    packages = {
        ("tf-nightly-cpu==2.21.0.dev20250901", "tf-nightly-cpu==2.21.0.dev20250911"): "tf-nightly-cpu",
        ("tf2.16+keras-nightly==3.3.0.dev1", "tf2.16+keras-nightly==3.4.0.dev2"): "keras-nightly",
        ("tf2.0+numpy==1.17.4", "tf2.0+numpy==1.21.6"): "numpy",
        ("tf2.0+numpy==1.17.4", "tf2.1+numpy==1.21.6"): "",
        ("tf2.15", "tf2.16"): "",
        ("tensorflow==2.0.0,keras==2.3.1", "tensorflow==2.1.0,keras==2.4.0"): "",
        ("tensorflow==2.0.0,keras==2.3.1", "tensorflow==2.1.0,keras==2.3.1"): "tensorflow",
    }
    assert {ends: find_moved_package(*ends) for ends in packages} == packages


def test_one_package_moves_and_the_others_are_held():
    nightly = {"tf-nightly-cpu": "2.21.0.dev1", "keras-nightly": "3.8.dev1"}
    for text, package, pins, held, result in (
        ("tf2.16", "keras", {"keras": "3.4.1"}, "", "tf2.16+keras==9"),
        ("tf2.16+keras==3.0.5", "keras", {"keras": "3.0.5"}, "", "tf2.16+keras==9"),
        (
            "tf-nightly-cpu==2.21.0.dev1,keras-nightly==3.9.dev1",
            "keras-nightly",
            {"keras-nightly": "3.9.dev1"},
            "",
            "tf-nightly-cpu==2.21.0.dev1+keras-nightly==9",
        ),
        ("tf2.16", "tensorflow", {"tensorflow-cpu": "2.16.2"}, "", "tensorflow==9"),
        (
            "tf-nightly-cpu==2.21.0.dev1",
            "tf-nightly-cpu",
            nightly,
            "3.9.dev1",
            "tf-nightly-cpu==9,keras-nightly==3.9.dev1",
        ),
    ):
        assert find_moving(text, package, pins, held).text("9") == result


def list_wheels(*versions, yanked=(), python="py3"):
    return [
        IndexedVersion(
            version,
            datetime(2024, 5, day, tzinfo=UTC),
            "broken" if version in yanked else "",
            [f"numpy-{version}-{python}-none-any.whl"],
        )
        for day, version in enumerate(versions, 1)
    ]


def ends(low, high):
    return MovingPackage("numpy", "tf2.0", low), MovingPackage("numpy", "tf2.0", high)


def test_versions_lie_between_the_ends_and_say_why_some_cannot_be_had(monkeypatch):
    wheels = list_wheels("1.17.0", "1.18.0", "1.18.1", "1.19.0", "1.20.0", yanked=["1.18.1"])
    monkeypatch.setattr(index, "list_versions", lambda _: wheels)
    candidates = list_package_versions(*ends("1.20.0", "1.18.0"), "3.11")
    assert [(candidate.text, candidate.unknown) for candidate in candidates] == [
        ("tf2.0+numpy==1.18.0", ""),
        ("tf2.0+numpy==1.18.1", "it was yanked: broken"),
        ("tf2.0+numpy==1.19.0", ""),
        ("tf2.0+numpy==1.20.0", ""),
    ]
    assert candidates[0].date == "2024-05-02"
    # one without a wheel for the Python is unknown, unless it is an end
    monkeypatch.setattr(index, "list_versions", lambda _: list_wheels("1.17.0", "1.18.0", "1.19.0", python="cp38"))
    candidates = list_package_versions(*ends("1.17.0", "1.19.0"), "3.11")
    assert [candidate.unknown for candidate in candidates] == ["", "no wheel for Python 3.11", ""]


def test_an_environment_that_has_the_version_already_is_a_candidate_itself(monkeypatch):
    monkeypatch.setattr(index, "list_versions", lambda _: list_wheels("1.17.0", "1.18.0", "1.19"))
    pins = {"tf2.0": {"numpy": "1.19.0"}, "tf2.0+numpy==1.17.0": {"numpy": "1.17.0"}}
    for both in (["tf2.0+numpy==1.17.0", "tf2.0"], ["tf2.0", "tf2.0+numpy==1.17.0"]):
        candidates = find_versions_between(*both, "numpy", pins, "3.11")
        assert [candidate.text for candidate in candidates] == ["tf2.0+numpy==1.17.0", "tf2.0+numpy==1.18.0", "tf2.0"]


def test_ends_without_versions_between_them_are_refused(snapshot):
    one_version = read_refusal(lambda: list_package_versions(*ends("1.17.0", "1.17.0"), "3.11"))
    no_package = read_refusal(lambda: find_moving("tf2.16", "keras-nightly", {"keras": "3.4.1"}))
    assert [one_version, no_package] == snapshot


@given(st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True))
def test_versions_are_ordered_as_versions_not_as_texts(minors):
    low, high = f"1.{min(minors)}", f"1.{max(minors)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "list_versions", lambda _: list_wheels(*(f"1.{minor}" for minor in minors)))
        candidates = list_package_versions(*ends(low, high), "3.11")
    assert [candidate.version for candidate in candidates] == [f"1.{minor}" for minor in sorted(minors)]


@pytest.fixture
def repository(tmp_path):
    """Return a repository with the commits one, two, a merge of a branch with two commits, and three."""
    result = SourceRepository(tmp_path / "repository")
    result.commit("CALLS = 1\n", "one")
    result.git("checkout", "-q", "-b", "branch")
    for name in ("inner one", "inner two"):
        result.commit(f"CALLS = 1  # {name}\n", name)
    result.git("checkout", "-q", "main")
    (result.folder / "other.py").write_text("")
    result.commit("CALLS = 1\n", "two")
    result.git("merge", "-q", "--no-ff", "-m", "merged", "branch")
    result.commit("CALLS = 3\n", "three")
    return result


def test_commits_are_those_of_first_parents_and_a_merge_is_one(repository, snapshot):
    def find(good, bad):
        return list_commits(repository.folder, "tf2.21", "mine", good, bad)

    commits, is_fix = find("main~3", "main")
    assert [commit.title for commit in commits] == ["one", "two", "merged", "three"]
    assert not is_fix
    assert commits[-1].text == f"tf2.21+mine@{repository.git('rev-parse', 'main')[:12]}"
    # the commits of a merge start at the merge base
    commits, is_fix = find("main~1^1", "main~1^2")
    assert ([commit.title for commit in commits], is_fix) == (["one", "inner one", "inner two"], False)
    # if the bad commit is the older one, the fix is searched
    commits, is_fix = find("main", "main~1")
    assert ([commit.title for commit in commits], is_fix) == (["merged", "three"], True)
    commit = repository.git("rev-parse", "main")
    errors = [read_refusal(lambda bad=bad: find("main", bad), repository.folder) for bad in ("main", "mains")]
    assert [error.replace(commit, "COMMIT").replace(commit[:12], "COMMIT") for error in errors] == snapshot
