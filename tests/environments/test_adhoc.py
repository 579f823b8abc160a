from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from harness.backends.verification import Verification
from harness.environments import adhoc
from harness.environments.locks import Builds, list_inputs, load_lock, write_lock
from harness.environments.requested import parse_requested
from harness.model.environment import Device, Environment
from harness.model.errors import CannotRunHereError, UsageError
from harness.model.gpu import Gpu, GpuHost
from harness.plan.gpus import Support, fit
from harness.project import Project
from harness.session.images import keep_gpu_code
from tests.errors import catch_text

GPU = {"cuda": "11.2", "cudnn": "8.1", "gpu_code": "sm_70 compute_80"}
OLD = Environment("tf2.5", "2.5.3", "3.8", "2022-02-15T00:00:00Z", **GPU, cuda_as_of="2022-12-01T00:00:00Z")
NEW = Environment("tf2.15", "2.15.1", "3.11", "2024-03-20T00:00:00Z", **{**GPU, "cuda": "12.2"})
KNOWN = {"tf2.5": OLD, "tf2.15": NEW}


def wheel(package: str, version: str, python: str = "311") -> str:
    abi = f"cp{python}m" if python == "37" else f"cp{python}"
    return f"{package}-{version}-cp{python}-{abi}-manylinux2014_x86_64"


def request(text: str, catalogue: Mapping[str, Environment] = KNOWN) -> Environment:
    environments, (name,) = adhoc.add_requested(catalogue, [parse_requested(text)])
    return environments[name]


def test_python_and_cuda_are_those_of_the_minor_release_or_the_one_before(package_index):
    for version, python in (("2.5.0", "38"), ("2.9.0", "38"), ("1.13.1", "38"), ("2.5.1", "37"), ("2.5.1", "310")):
        package_index.add(wheel("tensorflow", version, python), "2021-05-13T17:32:27Z")
    assert request("tensorflow==2.5.0") == replace(
        OLD,
        name="tensorflow-2.5.0",
        tensorflow="2.5.0",
        released="2021-05-13",
        as_of="2021-05-15T00:00:00Z",
        asked="tensorflow==2.5.0",
    )
    between = request("tensorflow==2.9.0")
    assert (between.python, between.cuda, between.cuda_as_of) == ("3.8", "11.2", "2022-12-01T00:00:00Z")
    # without a wheel for that Python, the nearest one
    assert request("tensorflow==2.5.1").python == "3.7"
    # a package for the CPU, and a release older than all, have no GPU
    assert request("tensorflow==1.13.1").devices == (Device.CPU,)
    package_index.add(wheel("tensorflow_cpu", "2.15.0"))
    environment = request("tensorflow-cpu==2.15.0")
    assert environment.devices == (Device.CPU,)
    assert list_inputs(environment, Device.CPU)[0] == "tensorflow-cpu==2.15.0"


def test_packages_are_of_the_day_of_the_youngest_that_was_typed_and_never_of_a_day_to_come(package_index):
    package_index.add(wheel("tensorflow", "2.5.0", "38"), "2021-05-13T17:32:27Z")
    package_index.add("keras-2.4.3-py3-none-any", "2021-06-01T23:59:59Z")
    environment = request("tensorflow==2.5.0,keras==2.4.3")
    assert (environment.as_of, environment.released) == ("2021-06-03T00:00:00Z", "2021-05-13")
    assert environment.keras == "2.4.3"
    package_index.add(wheel("tensorflow", "2.15.0"), datetime.now(UTC).isoformat())
    environment = request("tensorflow==2.15.0")
    assert datetime.now(UTC) - datetime.fromisoformat(environment.as_of) < timedelta(hours=1)
    # a release of the catalogue has its own GPU code
    assert not environment.is_unread


def test_a_nightly_is_named_for_the_day_that_was_found(package_index):
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261025"))
    package_index.add(wheel("tf_nightly_cpu", "2.23.0.dev20261025"))
    first = request("tf-nightly")
    assert (first.name, first.python) == ("tf-nightly-2.23.0.dev20261025", "3.11")
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261026"))
    later = request("tf-nightly")
    assert later.asked == "tf-nightly==2.23.0.dev20261026"
    # the package for the CPU does not exist for every day
    assert list_inputs(first, Device.CPU)[0] == "tf-nightly-cpu==2.23.0.dev20261025"
    assert list_inputs(later, Device.CPU)[0] == "tf-nightly==2.23.0.dev20261026"
    assert list_inputs(first, Device.GPU)[0] == "tf-nightly[and-cuda]==2.23.0.dev20261025"


def test_the_gpu_code_of_a_nightly_is_assumed_until_it_was_read(package_index):
    package_index.add(wheel("tf_nightly", "2.23.0.dev20261025"))
    nightly = request("tf-nightly")
    assert (nightly.gpu_code, nightly.gpu_code_of) == ("sm_70 compute_80", "2.15.1")
    card = Gpu(0, "GPU-120", "NVIDIA GeForce RTX 5090", (12, 0), 0)
    host = GpuHost([card], "580.65.06", (13, 0))
    assert fit(nightly, [card], host).support is Support.UNREAD
    after = replace(nightly, gpu_code="sm_70 compute_120", gpu_code_of="")
    assert keep_gpu_code(Verification(1, read=after))
    for text in ("tf-nightly", nightly.name, "tf-nightly==2.23.0.dev20261025"):
        assert fit(request(text), [card], host).support is Support.NATIVE
    assert keep_gpu_code(Verification(1)) == []


@pytest.mark.slow
def test_a_version_that_does_not_exist_or_has_no_date_is_refused(package_index, snapshot):
    for version, python in (("2.7.4", "38"), ("2.8.0", "38"), ("2.15.1", "311")):
        package_index.add(wheel("tensorflow", version, python))
    package_index.add(wheel("tensorflow", "2.14.0"), uploaded="")
    assert {
        "tensorflow": catch_text(UsageError, request, "tensorflow==2.7.9"),
        "keras": catch_text(UsageError, request, "tensorflow==2.7.4,keras==9"),
        "no date": catch_text(CannotRunHereError, request, "tensorflow==2.14.0"),
    } == snapshot


def test_what_was_made_is_kept_with_its_lock_and_asks_nothing_of_the_index(package_index, project):
    day = "2023-11-14T17:00:00Z"
    package_index.add(wheel("tensorflow_cpu", "2.15.0"), day, requires=["numpy"])
    package_index.add(wheel("tensorflow", "2.15.0"), day)
    for name in ("numpy-1.26.2", "setuptools-68.0.0", "wheel-0.41.0"):
        package_index.add(f"{name}-py3-none-any", day)
    package_index.add("numpy-2.0.0-py3-none-any", "2024-06-16T00:00:00Z")
    environment = request("tensorflow==2.15.0,numpy>=1")
    lock = load_lock(project, environment, Device.CPU).lock
    assert lock.pins == {"numpy": "1.26.2", "setuptools": "68.0.0", "tensorflow-cpu": "2.15.0", "wheel": "0.41.0"}
    assert "harness images lock 'tensorflow==2.15.0,numpy>=1'" in lock.path.read_text()

    questions = package_index.asked
    assert request("tensorflow==2.15.0, numpy >= 1") == environment
    assert request(environment.name) == environment
    assert load_lock(project, environment, Device.CPU).lock == lock
    assert package_index.asked == questions
    assert not write_lock(project, environment, Device.CPU)


@pytest.mark.slow
def test_only_known_or_trusted_source_packages_are_built_and_none_in_a_dry_run(package_index, project, tmp_path):
    trace, build = tmp_path / "built", "requires = []\nbuild-backend = 'builds'\nbackend-path = ['.']"
    dynamic = "name = 'old'\ndynamic = ['version', 'dependencies']"
    for package in ("tensorflow", "tensorflow_cpu"):
        package_index.add(wheel(package, "2.15.0"))
    for name in ("old-1.0", "setuptools-68.0.0", "wheel-0.41.0"):
        package_index.add(f"{name}-py3-none-any")
    environment = request("tensorflow==2.15.0,old>=1")
    planned = load_lock(project, environment, Device.CPU, builds=Builds.NONE).lock
    package_index.add_source(
        "old-1.1",
        others={
            "PKG-INFO": "Metadata-Version: 1.0\nName: old\nVersion: 1.1\n",
            "pyproject.toml": f"[build-system]\n{build}\n[project]\n{dynamic}\n",
            "builds.py": f"open({str(trace)!r}, 'w').close()\n",
        },
    )
    assert load_lock(project, environment, Device.CPU, builds=Builds.NONE).lock == planned
    assert (planned.pins["old"], trace.exists()) == ("1.0", False)
    with pytest.raises(UsageError):
        load_lock(project, environment, Device.CPU, builds=Builds.ALL)
    assert trace.exists()
    # without --trust, only packages of the catalog's locks are built
    trace.unlink()
    exact = request("tensorflow==2.15.0,old==1.1")
    assert "--trust" in catch_text(UsageError, load_lock, project, exact, Device.CPU)
    assert not trace.exists()
    other_project = Project(tmp_path)
    other_project.locks.mkdir(parents=True)
    (other_project.locks / "tf2.15-cpu.txt").write_text("old==1.0\n")
    with pytest.raises(UsageError):
        load_lock(other_project, exact, Device.CPU)
    assert trace.exists()


def test_a_package_without_a_version_can_be_added_to_a_saved_environment_of_the_same_architecture(
    package_index, project
):
    package_index.add(wheel("tensorflow", "2.15.0"))
    for name in ("psutil-5.9.0", "numpy-1.26.2"):
        package_index.add(f"{name}-py3-none-any")
    saved = request("tensorflow==2.15.0")
    environment = request(f"{saved.name}+psutil")
    assert adhoc.find_base(environment, KNOWN) == saved
    assert request(environment.asked) == request(f"{saved.name}+psutil") == environment
    assert request(f"{environment.name}+numpy").asked == "tensorflow==2.15.0+numpy>=0+psutil>=0"
    other = {name: replace(known, architecture="arm64") for name, known in KNOWN.items()}
    assert "Unknown environment" in catch_text(UsageError, request, f"{saved.name}+psutil", other)


def test_what_does_not_resolve_is_told_and_names_globs_and_files_are_left_alone(package_index, project):
    package_index.add(wheel("tensorflow_cpu", "2.15.0"), requires=["numpy>=1.23"])
    package_index.add(wheel("tensorflow", "2.15.0"))
    package_index.add("numpy-1.19.5-py3-none-any")
    environment = request("tensorflow==2.15.0,numpy==1.19.5")
    assert "numpy>=1.23" in catch_text(UsageError, load_lock, project, environment, Device.CPU)
    names, asked_before = ["tf2.5", "tf*", "../tensorflow", "tensorflow-9", ""], package_index.asked
    assert adhoc.add_requested(KNOWN, map(parse_requested, names)) == (KNOWN, names)
    assert package_index.asked == asked_before


def test_another_python_changes_the_wheels_and_nothing_else(package_index):
    package_index.add(wheel("tensorflow", "2.15.1", "39"))
    environment = request("tf2.15@py3.9")
    assert environment == replace(NEW, name="tf2.15-py3.9", python="3.9", asked="tf2.15@py3.9")
    assert list_inputs(environment, Device.CPU) == list_inputs(NEW, Device.CPU)
    # later it is found by its name, and without the index
    questions = package_index.asked
    assert request("tf2.15-py3.9") == request("tf2.15@py3.9") == environment
    assert package_index.asked == questions
    # a package can be replaced in it
    package_index.add("numpy-1.26.0-py3-none-any", "2023-09-16T00:00:00Z")
    override = request("tf2.15@py3.9+numpy==1.26.0")
    assert (override.base, override.python) == ("tf2.15-py3.9", "3.9")
    assert adhoc.find_base(override, KNOWN).name == "tf2.15-py3.9"
    # an environment of the catalogue that has the Python is taken
    other = replace(OLD, name="tf2.5-py3.9", python="3.9")
    assert request("tf2.15@py3.11") == NEW
    assert request("tf2.5@py3.9", {**KNOWN, "tf2.5-py3.9": other}) == other


def test_a_python_for_which_there_is_no_wheel_is_refused(package_index, snapshot):
    package_index.add(wheel("tensorflow", "2.15.1", "310"))
    package_index.add(wheel("tensorflow", "2.16.0.dev20240101", "310"))
    package_index.add(wheel("tf_nightly", "2.16.0.dev20240101", "39"))
    texts = ("tf2.15@py3.8", "tf2.16@py3.9", "tf-nightly==2.16.0.dev20240101@py3.10")
    assert {text: catch_text(UsageError, request, text) for text in texts} == snapshot
