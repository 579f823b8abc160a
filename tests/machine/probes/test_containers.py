import pytest

from harness.machine.probes.containers import SPARE_BYTES, buildx, disk_room, docker


@pytest.mark.parametrize(
    ("version", "level"),
    [("26.1.5+dfsg1", "good"), ("20.10.0", "good"), ("19.03.15", "warn"), ("20.9.1", "warn"), ("", "good")],
)
def test_a_docker_that_answers_is_good_unless_it_is_old(version: str, level: str) -> None:
    assert docker(version, api="1.45", where="this machine", wanted=True).level == level


@pytest.mark.parametrize(("wanted", "level"), [(True, "bad"), (False, "warn")])
def test_without_an_engine_launches_can_run_on_the_cpu_only(wanted: bool, level: str) -> None:
    assert docker("", error="No Docker Engine answers", wanted=wanted).level == level


@pytest.mark.parametrize(
    ("said", "version", "level"),
    [
        ("github.com/docker/buildx 0.13.1+ds1-3 1.13.1+ds1-3\n", "0.13.1", "good"),
        ("github.com/docker/buildx v0.29.1 a32761aeb3debd39be1eca514af3693af0db334b\n", "0.29.1", "good"),
        ("github.com/docker/buildx v0.10.5 86bdced\n", "0.10.5", "warn"),
        ("a version of mine\n", "", "unknown"),
        (None, "", "warn"),
    ],
)
def test_the_builder_is_told_by_its_own_words(said: str | None, version: str, level: str) -> None:
    found = buildx(said)
    assert (found.facts["version"], found.level) == (version, level)


@pytest.mark.parametrize(
    ("free", "level"),
    [(None, "unknown"), (0, "bad"), (7, "bad"), (8, "warn"), (7 + SPARE_BYTES, "warn"), (8 + SPARE_BYTES, "good")],
)
def test_there_is_room_where_the_images_and_some_more_fit(free: int | None, level: str) -> None:
    assert disk_room(free, 8, 1, "/var/lib/docker").level == level
