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
from harness.catalog import index
from harness.catalog.index import IndexedVersion
from harness.model.environment import Environment
from harness.model.errors import CannotRunHereError, UsageError
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


@pytest.mark.parametrize(
    ("ends", "texts"),
    [
        (("tf2.9", "tf2.16"), ["tf2.9", "tf2.13", "tf2.14", "tf2.16"]),
        (("tf2.16", "tf2.9"), ["tf2.9", "tf2.13", "tf2.14", "tf2.16"]),
        (("tf2.13-py3.11", "tf2.14"), ["tf2.13-py3.11", "tf2.14"]),
        (("tf2.13", "tensorflow-2.15.0"), ["tf2.13", "tf2.14", "tensorflow==2.15.0"]),
        (("tf2.13", "tf2.14", "tf2.16"), ["tf2.13", "tf2.14", "tf2.16"]),
    ],
)
def test_releases_lie_between_the_ends_by_version_one_of_each(ends, texts):
    assert [release.text for release in list_releases(KNOWN, *ends)] == texts


def test_a_release_has_its_date():
    assert list_releases(KNOWN, "tf2.14", "tf2.16")[0] == Candidate("tf2.14", "2023-11-14", "2.14.1")


@pytest.mark.parametrize(
    ("good", "bad", "package"),
    [
        ("tf-nightly-cpu==2.21.0.dev20250901", "tf-nightly-cpu==2.21.0.dev20250911", "tf-nightly-cpu"),
        ("tf2.16+keras-nightly==3.3.0.dev1", "tf2.16+keras-nightly==3.4.0.dev2", "keras-nightly"),
        ("tf2.0+numpy==1.17.4", "tf2.0+numpy==1.21.6", "numpy"),
        ("tf2.0+numpy==1.17.4", "tf2.1+numpy==1.21.6", ""),
        ("tf2.15", "tf2.16", ""),
        ("tensorflow==2.0.0,keras==2.3.1", "tensorflow==2.1.0,keras==2.4.0", ""),
        ("tensorflow==2.0.0,keras==2.3.1", "tensorflow==2.1.0,keras==2.3.1", "tensorflow"),
    ],
)
def test_the_package_that_two_ends_differ_in(good, bad, package):
    assert find_moved_package(good, bad) == package


@pytest.mark.parametrize(
    ("text", "package", "pins", "held", "made"),
    [
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
            {"tf-nightly-cpu": "2.21.0.dev1", "keras-nightly": "3.8.dev1"},
            "3.9.dev1",
            "tf-nightly-cpu==9,keras-nightly==3.9.dev1",
        ),
    ],
)
def test_one_package_moves_and_the_others_are_held(text, package, pins, held, made):
    assert find_moving(text, package, pins, held).text("9") == made


def test_an_end_without_the_package_is_told_what_it_has():
    with pytest.raises(UsageError, match=r"tf2.16 doesn't contain the package keras-nightly. It contains keras 3.4.1"):
        find_moving("tf2.16", "keras-nightly", {"keras": "3.4.1"})


def listed(*versions, yanked=(), python="py3"):
    return [
        IndexedVersion(
            each,
            datetime(2024, 5, at + 1, tzinfo=UTC),
            "broken" if each in yanked else "",
            [f"numpy-{each}-{python}-none-any.whl"],
        )
        for at, each in enumerate(versions)
    ]


def ends(low, high):
    return MovingPackage("numpy", "tf2.0", low), MovingPackage("numpy", "tf2.0", high)


def test_versions_lie_between_the_ends_and_say_why_some_cannot_be_had(monkeypatch):
    found = listed("1.17.0", "1.18.0", "1.18.1", "1.19.0", "1.20.0", yanked=["1.18.1"])
    monkeypatch.setattr(index, "list_versions", lambda _: found)
    candidates, told = list_package_versions(*ends("1.20.0", "1.18.0"), "3.11")
    assert [(candidate.text, candidate.unknown) for candidate in candidates] == [
        ("tf2.0+numpy==1.18.0", ""),
        ("tf2.0+numpy==1.18.1", "it was yanked: broken"),
        ("tf2.0+numpy==1.19.0", ""),
        ("tf2.0+numpy==1.20.0", ""),
    ]
    assert candidates[0].date == "2024-05-02"
    assert told == ""


@pytest.mark.parametrize(("good", "bad"), [("tf2.0+numpy==1.17.0", "tf2.0"), ("tf2.0", "tf2.0+numpy==1.17.0")])
def test_an_environment_that_has_the_version_already_is_a_candidate_itself(monkeypatch, good, bad):
    monkeypatch.setattr(index, "list_versions", lambda _: listed("1.17.0", "1.18.0", "1.19"))
    pins = {"tf2.0": {"numpy": "1.19.0"}, "tf2.0+numpy==1.17.0": {"numpy": "1.17.0"}}
    candidates, _ = find_versions_between(good, bad, "numpy", pins, "3.11")
    assert [candidate.text for candidate in candidates] == ["tf2.0+numpy==1.17.0", "tf2.0+numpy==1.18.0", "tf2.0"]


def test_a_version_without_a_wheel_for_the_python_is_unknown_unless_it_is_an_end(monkeypatch):
    monkeypatch.setattr(index, "list_versions", lambda _: listed("1.17.0", "1.18.0", "1.19.0", python="cp38"))
    candidates, _ = list_package_versions(*ends("1.17.0", "1.19.0"), "3.11")
    assert [candidate.unknown for candidate in candidates] == ["", "no wheel for Python 3.11", ""]


def test_without_an_index_what_was_listed_before_is_searched(monkeypatch, tmp_path):
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))

    def silent(_):
        raise CannotRunHereError("The package index does not answer.")

    monkeypatch.setattr(index, "list_versions", silent)
    with pytest.raises(CannotRunHereError, match=r"does not answer.*\n.*numpy isn't saved on this machine"):
        list_package_versions(*ends("1.17.0", "1.19.0"), "3.11")
    monkeypatch.setattr(index, "list_versions", lambda _: listed("1.17.0", "1.18.0", "1.19.0"))
    before, _ = list_package_versions(*ends("1.17.0", "1.19.0"), "3.11")
    monkeypatch.setattr(index, "list_versions", silent)
    after, told = list_package_versions(*ends("1.17.0", "1.19.0"), "3.11")
    assert after == before
    assert "The search uses the versions of numpy that were listed earlier." in told


def test_two_ends_with_one_version_are_refused():
    with pytest.raises(UsageError, match=r"--good and --bad both have numpy 1\.17\.0"):
        list_package_versions(*ends("1.17.0", "1.17.0"), "3.11")


@given(st.lists(st.integers(0, 30), min_size=2, max_size=8, unique=True))
def test_versions_are_ordered_as_versions_not_as_texts(minors):
    low, high = f"1.{min(minors)}", f"1.{max(minors)}"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(index, "list_versions", lambda _: listed(*(f"1.{minor}" for minor in minors)))
        patch.setattr("harness.bisect.candidates.write_atomically", lambda *_: None)
        candidates, _ = list_package_versions(*ends(low, high), "3.11")
    assert [candidate.version for candidate in candidates] == [f"1.{minor}" for minor in sorted(minors)]


@pytest.fixture
def repository(tmp_path):
    """Return a repository with the commits one, two, a merge of a branch with two commits, and three."""
    made = SourceRepository(tmp_path / "repository")
    made.commit("CALLS = 1\n", "one")
    made.git("checkout", "-q", "-b", "branch")
    for name in ("inner one", "inner two"):
        made.commit(f"CALLS = 1  # {name}\n", name)
    made.git("checkout", "-q", "main")
    (made.folder / "other.py").write_text("")
    made.commit("CALLS = 1\n", "two")
    made.git("merge", "-q", "--no-ff", "-m", "merged", "branch")
    made.commit("CALLS = 3\n", "three")
    return made


def titles(found):
    return [entry.title for entry in found[0]], found[1]


def test_commits_are_those_of_first_parents_and_a_merge_is_one(repository):
    found, is_fix = list_commits(repository.folder, "tf2.21", "mine", "main~3", "main")
    assert titles((found, is_fix)) == (["one", "two", "merged", "three"], False)
    assert [entry.merged for entry in found] == [0, 0, 2, 0]
    assert found[-1].text == f"tf2.21+mine@{repository.git('rev-parse', 'main')[:12]}"


def test_the_commits_of_a_merge_start_at_the_merge_base(repository):
    found = list_commits(repository.folder, "tf2.21", "mine", "main~1^1", "main~1^2")
    assert titles(found) == (["one", "inner one", "inner two"], False)


def test_if_the_bad_commit_is_the_older_one_the_fix_is_searched(repository):
    assert titles(list_commits(repository.folder, "tf2.21", "mine", "main", "main~1")) == (["merged", "three"], True)


@pytest.mark.parametrize(
    ("good", "bad", "message"), [("main", "main", "are the same commit"), ("main", "mains", "Did you mean main?")]
)
def test_ends_that_are_no_two_commits_are_refused(repository, good, bad, message):
    with pytest.raises(UsageError, match=message):
        list_commits(repository.folder, "tf2.21", "mine", good, bad)
