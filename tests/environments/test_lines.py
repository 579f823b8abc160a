from datetime import date

import pytest

from harness.environments import adhoc
from harness.environments.requested import parse_requested
from harness.model.environment import LINES, Environment, describe_stale_lines, describe_stale_wheels
from harness.model.errors import CannotRunHereError, HarnessError, UsageError
from harness.model.scenario import ENVIRONMENT
from harness.plan.selection import resolve
from tests.errors import catch, catch_text

OLD = Environment("tf2.20", "2.20.0", "3.11", "2025-09-01T00:00:00Z")
NEW = Environment("tf2.21", "2.21.0", "3.11", "2026-04-15T00:00:00Z")
KNOWN = {"tf2.20": OLD, "tf2.21": NEW}


@pytest.fixture
def wheels(package_index):
    """Two releases, a release candidate, and daily wheels of two days."""
    for version, uploaded in (("2.20.0", "2025-08-13"), ("2.21.0", "2026-03-06"), ("2.22.0rc0", "2026-09-22")):
        package_index.add(f"tensorflow-{version}-cp311-cp311-manylinux_2_27_x86_64", f"{uploaded}T17:00:00Z")
    for day in ("20261025", "20261026"):
        uploaded = f"{day[:4]}-{day[4:6]}-{day[6:]}T20:30:00Z"
        package_index.add(f"tf_nightly-2.23.0.dev{day}-cp311-cp311-manylinux_2_27_x86_64", uploaded)
        package_index.add(f"keras_nightly-3.16.0.dev{day}04-py3-none-any", uploaded)
    package_index.add("tf_nightly-2.23.0.dev20261027-cp311-cp311-win_amd64", "2026-10-27T20:30:00Z")
    return package_index


def request(*texts: str, impossible: dict[str, HarnessError] | None = None) -> list[Environment]:
    environments, names = adhoc.add_requested(KNOWN, map(parse_requested, texts), impossible)
    return [environments[name] for name in names]


@pytest.mark.usefixtures("wheels")
def test_a_line_is_its_newest_wheel_of_the_day():
    lines = {
        "latest": ("tf2.21", "latest"),
        "latest@2026-03-05": ("tf2.20", "latest"),
        "tf-nightly@2026-10-25": ("tf-nightly==2.23.0.dev20261025", "tf-nightly"),
        "keras-nightly": ("tf2.21+keras-nightly==3.16.0.dev2026102604", "keras-nightly"),
        "latest+keras-nightly": ("tf2.21+keras-nightly==3.16.0.dev2026102604", "keras-nightly"),
        "tf2.20+keras-nightly@2026-10-25": ("tf2.20+keras-nightly==3.16.0.dev2026102504", "tf2.20+keras-nightly"),
    }
    assert {text: (entry.exact, entry.line) for text in lines for entry in request(text)} == lines
    (moving,) = request("tf-nightly")
    assert (moving.exact, moving.line) == ("tf-nightly==2.23.0.dev20261026", "tf-nightly")
    # the exact environment is of no line
    (exact,) = request(moving.exact)
    assert (exact.name, exact.line) == (moving.name, "")
    assert {environment.line for environment in request("latest", "tf2.21")} == {""}


@pytest.mark.usefixtures("wheels")
def test_a_text_that_is_wrong_gets_the_nearest(snapshot):
    texts = [
        *("tf-nightly@2026-10-24", "tf-nightl@2026-10-25", "tf2.21@2026-10-25", "tf-nightly@yesterday"),
        *("tf2.21+keras-nightl", "tf2.99+keras-nightly"),
    ]
    assert {text: catch_text(UsageError, request, text, impossible={}) for text in texts} == snapshot
    for line in LINES:
        assert f"{line}?" in catch_text(UsageError, resolve, [line[:-1]], ["tf2.21"], ENVIRONMENT)


def test_a_wheel_that_is_yanked_or_not_for_the_base_is_a_reason_and_no_other_one_is_taken(wheels, snapshot):
    wheels.yanked["tf_nightly-2.23.0.dev20261026-cp311-cp311-manylinux_2_27_x86_64.whl"] = "wrong build"
    wheels.add("keras_nightly-3.16.0.dev2026102804-cp312-cp312-manylinux_2_27_x86_64", "2026-10-28T04:00:00Z")
    catch(UsageError, request, "tf-nightly")
    impossible: dict[str, HarnessError] = {}
    (environment,) = request("tf-nightly", impossible=impossible)
    assert (environment.exact, environment.line) == ("tf-nightly==2.23.0.dev20261026", "tf-nightly")
    assert len(describe_stale_lines([environment], ["tf-nightly"])) == 1
    assert describe_stale_lines([environment], ["tf-nightly@2026-10-26"]) == []
    (environment,) = request("tf2.21+keras-nightly", impossible=impossible)
    assert environment.tensorflow == NEW.tensorflow
    assert {name: str(error) for name, error in impossible.items()} == snapshot


@pytest.mark.usefixtures("wheels")
def test_without_an_index_nothing_that_was_made_earlier_is_taken(monkeypatch):
    request("tf-nightly")
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    catch(CannotRunHereError, request, "tf-nightly", impossible={})


def test_daily_wheels_that_are_old_are_reported_with_the_line_that_goes_on():
    today = date(2026, 11, 29)
    stale = "tf-nightly-cpu==2.23.0.dev20260905+keras-nightly==3.16.0.dev2026112004"
    assert describe_stale_wheels(stale, today) == [
        "tf-nightly-cpu has had no new wheel since 2026-09-05, for 85 days. Measure tf-nightly instead: -e tf-nightly"
    ]
    assert describe_stale_wheels(stale, date(2026, 9, 19)) == []
    (sentence,) = describe_stale_wheels("tf2.21+keras-nightly==3.16.0.dev2026110104", today)
    assert "instead" not in sentence
    for exact in ("tf2.21", "", "tf-nightly==2.23.0.dev20269999"):
        assert describe_stale_wheels(exact, today) == []
