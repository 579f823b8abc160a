from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from harness.backends.verification import Verification
from harness.catalog import adhoc
from harness.catalog.locks import list_inputs, load_lock, write_lock
from harness.catalog.project import Project
from harness.model.environment import Device, Environment, installed
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.plan.gpus import Support, fit
from harness.session.images import keep_gpu_code
from tests.packageindex import PackageIndex

GPU = {"cuda": "11.2", "cudnn": "8.1", "gpu_code": "sm_70 compute_80"}
OLD = Environment("tf2.5", "2.5.3", "3.8", "2022-02-15T00:00:00Z", **GPU, cuda_as_of="2022-12-01T00:00:00Z")
NEW = Environment("tf2.15", "2.15.1", "3.11", "2024-03-20T00:00:00Z", **{**GPU, "cuda": "12.2"})
KNOWN = {"tf2.5": OLD, "tf2.15": NEW}


def wheel(package: str, version: str, python: str = "311") -> str:
    abi = f"cp{python}m" if python == "37" else f"cp{python}"
    return f"{package}-{version}-cp{python}-{abi}-manylinux2014_x86_64"


def asked(text: str, known: Mapping[str, Environment] = KNOWN) -> Environment:
    environments, (name,) = adhoc.add_requested(known, [text])
    return environments[name]


def test_python_and_cuda_are_those_of_the_same_minor_release(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.5.0", "38"), "2021-05-13T17:32:27Z")
    environment = asked("tensorflow==2.5.0")
    assert environment == replace(
        OLD,
        name="tensorflow-2.5.0",
        tensorflow="2.5.0",
        released="2021-05-13",
        as_of="2021-05-15T00:00:00Z",
        asked="tensorflow==2.5.0",
    )


def test_a_release_between_two_of_the_catalogue_takes_after_the_older_one(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.9.0", "38"), "2022-05-16T20:29:58Z")
    environment = asked("tensorflow==2.9.0")
    assert (environment.python, environment.cuda, environment.cuda_as_of) == ("3.8", "11.2", "2022-12-01T00:00:00Z")


def test_of_a_release_that_is_older_than_all_nothing_is_known_of_its_gpu(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "1.13.1", "38"))
    assert asked("tensorflow==1.13.1").devices == (Device.CPU,)


def test_a_package_for_the_cpu_has_no_gpu(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow_cpu", "2.15.0"))
    environment = asked("tensorflow-cpu==2.15.0")
    assert environment.devices == (Device.CPU,)
    assert list_inputs(environment, Device.CPU)[0] == "tensorflow-cpu==2.15.0"


def test_where_the_wheel_is_not_for_that_python_the_nearest_one_is_taken(package_index: PackageIndex) -> None:
    for python in ("37", "310"):
        package_index.add(wheel("tensorflow", "2.5.0", python))
    assert asked("tensorflow==2.5.0").python == "3.7"


def test_packages_are_of_the_day_of_the_youngest_that_was_typed(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.5.0", "38"), "2021-05-13T17:32:27Z")
    package_index.add("keras-2.4.3-py3-none-any", "2021-06-01T23:59:59Z")
    environment = asked("tensorflow==2.5.0,keras==2.4.3")
    assert (environment.as_of, environment.released) == ("2021-06-03T00:00:00Z", "2021-05-13")
    assert environment.keras == "2.4.3"


def test_nothing_is_taken_of_a_day_to_come(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.15.0"), datetime.now(UTC).isoformat())
    as_of = datetime.fromisoformat(asked("tensorflow==2.15.0").as_of)
    assert datetime.now(UTC) - as_of < timedelta(hours=1)


def test_a_nightly_is_named_for_the_day_that_was_found(package_index: PackageIndex) -> None:
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261025"))
    package_index.add(wheel("tf_nightly_cpu", "2.23.0.dev20261025"))
    first = asked("tf-nightly")
    assert (first.name, first.python) == ("tf-nightly-2.23.0.dev20261025", "3.11")
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261026"))
    later = asked("tf-nightly")
    assert later.asked == "tf-nightly==2.23.0.dev20261026"
    # the package for the CPU does not exist for every day
    assert list_inputs(first, Device.CPU)[0] == "tf-nightly-cpu==2.23.0.dev20261025"
    assert list_inputs(later, Device.CPU)[0] == "tf-nightly==2.23.0.dev20261026"
    assert list_inputs(first, Device.GPU)[0] == "tf-nightly[and-cuda]==2.23.0.dev20261025"


def test_the_gpu_code_of_a_nightly_is_assumed_until_it_was_read(package_index: PackageIndex) -> None:
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261025"))
    nightly = asked("tf-nightly")
    assert (nightly.gpu_code, nightly.gpu_code_of) == ("sm_70 compute_80", "2.15.1")
    card = Gpu(0, "GPU-120", "NVIDIA GeForce RTX 5090", (12, 0), 0)
    host = GpuHost([card], "580.65.06", (13, 0))
    assert fit(nightly, [card], host).support is Support.UNREAD
    read = replace(nightly, gpu_code="sm_70 compute_120", gpu_code_of="")
    (line,) = keep_gpu_code(Verification(1, read=read))
    assert line == "saved this GPU code: later runs are planned with it"
    for text in ("tf-nightly", nightly.name, "tf-nightly==2.23.0.dev20261025"):
        assert fit(asked(text), [card], host).support is Support.NATIVE
    assert keep_gpu_code(Verification(1)) == []


def test_a_release_of_the_catalog_has_its_own_gpu_code(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.15.0"))
    assert not asked("tensorflow==2.15.0").is_unread


def test_a_nightly_of_today_that_is_typed_again_is_the_same(
    package_index: PackageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261025"), datetime.now(UTC).isoformat())
    first = asked("tf-nightly")
    monkeypatch.setattr(adhoc, "_find_lock_time", lambda _: datetime(2100, 1, 1, tzinfo=UTC))
    assert asked("tf-nightly") == first


def test_a_nightly_counts_as_tensorflow() -> None:
    assert installed("tensorflow", {"tf-nightly-cpu": "2.23.0"}) == "2.23.0"


def test_an_unknown_version_gets_the_nearest_ones(package_index: PackageIndex) -> None:
    for version, python in (("2.7.4", "38"), ("2.8.0", "38"), ("2.15.1", "311")):
        package_index.add(wheel("tensorflow", version, python))
    with pytest.raises(UsageError) as caught:
        asked("tensorflow==2.7.9")
    assert "tensorflow 2.7.9 isn't available" in caught.value.message
    assert "tensorflow==2.7.4 and tensorflow==2.8.0" in caught.value.advice
    with pytest.raises(UsageError) as caught:
        asked("tensorflow==2.7.4,keras==9")
    assert "keras 9 isn't available" in caught.value.message


def test_an_index_without_dates_is_told(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.15.0"), uploaded="")
    with pytest.raises(CannotRunHereError, match=r"doesn't report the upload time of tensorflow 2\.15\.0"):
        asked("tensorflow==2.15.0")


def test_what_was_made_is_kept_with_its_lock_and_asks_nothing_of_the_index(
    package_index: PackageIndex, project: Project
) -> None:
    day = "2023-11-14T17:00:00Z"
    package_index.add(wheel("tensorflow_cpu", "2.15.0"), day, requires=["numpy"])
    package_index.add(wheel("tensorflow", "2.15.0"), day)
    for name in ("numpy-1.26.2", "setuptools-68.0.0", "wheel-0.41.0"):
        package_index.add(f"{name}-py3-none-any", day)
    package_index.add("numpy-2.0.0-py3-none-any", "2024-06-16T00:00:00Z")
    environment = asked("tensorflow==2.15.0,numpy>=1")
    lock = load_lock(project, environment, Device.CPU).lock
    assert lock.pins == {"numpy": "1.26.2", "setuptools": "68.0.0", "tensorflow-cpu": "2.15.0", "wheel": "0.41.0"}
    assert "harness images lock 'tensorflow==2.15.0,numpy>=1'" in lock.path.read_text()

    before = package_index.asked
    assert asked("tensorflow==2.15.0, numpy >= 1") == environment
    assert asked(environment.name) == environment
    assert load_lock(project, environment, Device.CPU).lock == lock
    assert package_index.asked == before
    assert not write_lock(project, environment, Device.CPU)


def test_what_does_not_resolve_gets_the_resolvers_own_words(package_index: PackageIndex, project: Project) -> None:
    package_index.add(wheel("tensorflow_cpu", "2.15.0"), requires=["numpy>=1.23"])
    package_index.add(wheel("tensorflow", "2.15.0"))
    package_index.add("numpy-1.19.5-py3-none-any")
    environment = asked("tensorflow==2.15.0,numpy==1.19.5")
    with pytest.raises(UsageError, match=r"can't be resolved:(.|\n)*numpy>=1\.23"):
        load_lock(project, environment, Device.CPU)


def test_names_globs_and_files_of_others_are_left_alone(package_index: PackageIndex) -> None:
    typed = ["tf2.5", "tf*", "../tensorflow", "tensorflow-9", ""]
    assert adhoc.add_requested(KNOWN, typed) == (KNOWN, typed)
    assert package_index.asked == 0


def test_another_python_changes_the_wheels_and_nothing_else(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.15.1", "39"))
    environment = asked("tf2.15@py3.9")
    assert environment == replace(NEW, name="tf2.15-py3.9", python="3.9", asked="tf2.15@py3.9")
    assert list_inputs(environment, Device.CPU) == list_inputs(NEW, Device.CPU)
    # later it is found by its name, and without the index
    before = package_index.asked
    assert asked("tf2.15-py3.9") == asked("tf2.15@py3.9") == environment
    assert package_index.asked == before


def test_the_python_of_requirements_can_be_another_one_too(package_index: PackageIndex) -> None:
    for python in ("311", "39"):
        package_index.add(wheel("tensorflow", "2.15.0", python))
    environment = asked("tensorflow==2.15.0@py3.9")
    assert (environment.name, environment.python) == ("tensorflow-2.15.0-py3.9", "3.9")
    assert list_inputs(environment, Device.CPU)[0] == "tensorflow-cpu==2.15.0"


def test_on_another_python_the_wheel_is_of_the_package_that_was_typed(package_index: PackageIndex) -> None:
    for python in ("311", "39"):
        package_index.add(wheel("tf_nightly", "2.16.0.dev20240101", python))
    environment = asked("tf-nightly==2.16.0.dev20240101@py3.9")
    assert (environment.name, environment.python) == ("tf-nightly-2.16.0.dev20240101-py3.9", "3.9")
    assert list_inputs(environment, Device.CPU)[0] == "tf-nightly==2.16.0.dev20240101"
    package_index.add(wheel("tensorflow", "2.16.0.dev20240101", "310"))
    with pytest.raises(UsageError, match=r"tf-nightly 2\.16\.0\.dev20240101 isn't available for Python 3\.10"):
        asked(f"{environment.name}@py3.10")


def test_an_environment_of_the_catalogue_that_has_the_python_is_taken() -> None:
    other = replace(OLD, name="tf2.5-py3.9", python="3.9")
    assert asked("tf2.15@py3.11") == NEW
    assert asked("tf2.5@py3.9", {**KNOWN, "tf2.5-py3.9": other}) == other


def test_a_python_for_which_there_is_no_wheel_gets_those_that_have_one(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.15.1", "310"))
    with pytest.raises(UsageError, match=r"tensorflow==2\.15\.1|2\.15\.1"):
        asked("tf2.15@py3.8")
    with pytest.raises(UsageError, match=r"Unknown environment 'tf2\.16' in tf2\.16@py3\.9. Did you mean tf2\.15"):
        asked("tf2.16@py3.9")


def test_a_package_can_be_replaced_on_another_python(package_index: PackageIndex) -> None:
    package_index.add(wheel("tensorflow", "2.15.1", "39"))
    package_index.add("numpy-1.26.0-py3-none-any", "2023-09-16T00:00:00Z")
    environment = asked("tf2.15@py3.9+numpy==1.26.0")
    assert (environment.base, environment.python) == ("tf2.15-py3.9", "3.9")
    assert adhoc.find_base(environment, KNOWN).name == "tf2.15-py3.9"
