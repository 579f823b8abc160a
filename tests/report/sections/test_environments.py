"""What differs between environments."""

from dataclasses import replace

from harness.analysis.results import Results
from harness.model.environment import Environment
from harness.model.launch import Limits
from harness.report.sections import environments
from harness.report.sections.environments import PACKAGES, SIDE_BY_SIDE
from tests.factories import ENVIRONMENTS, cell, run
from tests.report.sections.reading import make, render, tables


def run_with(*packages, tensorflow=None):
    """Environments that have these packages, `a`, `b` and so on, all of one TensorFlow unless it is given."""
    releases = tensorflow or ["2.0.0"] * len(packages)
    listed = [
        Environment(name, release, "3.7", "2020-01-01T00:00:00Z")
        for name, release in zip("abcdefghij", releases, strict=False)
    ]
    pins = {
        environment.name: {"tensorflow": environment.tensorflow, **names}
        for environment, names in zip(listed, packages, strict=True)
    }
    return run([], environments=listed, pins=pins, images={})


MANY = [{"numpy": str(at // 2), "six": str(at)} for at in range(SIDE_BY_SIDE + 1)]
RELEASES = [f"2.{at}.0" for at in range(SIDE_BY_SIDE + 1)]


def test_what_differs_is_in_the_report_and_all_else_in_the_details(snapshot):
    old = run().pins["tf1.14"]
    moved = replace(ENVIRONMENTS[0], name="moved", base="tf1.14", asked="tf1.14+keras-nightly==3.5")
    new = {name: version for name, version in old.items() if name != "keras"} | {"keras-nightly": "3.5"}
    unrecorded = {"tf1.14": {"tensorflow": "1.14.0", "keras": "2.2.5", "numpy": "1.13.0"}}
    cpu_package = {"tf1.14": {"tensorflow": "2.1.0"}, "tf2.0": {"tensorflow-cpu": "2.1.0"}}
    three = [{"six": "1", "wrapt": "1"}, {"six": "1", "wrapt": "2"}, {"six": "3", "wrapt": "2"}]
    added = [{"absl-py": "1", "six": "1"}, {"absl-py": "2", "six": "1"}, *[{"absl-py": "2"}] * (SIDE_BY_SIDE - 1)]
    names = [f"p{at}" for at in range(PACKAGES + 2)]
    two_releases = [replace(ENVIRONMENTS[0], name=f"tf9.{at}", tensorflow=f"9.{at // 2}.0") for at in range(7)]
    pins = {environment.name: {"tensorflow": environment.tensorflow, "six": "1"} for environment in two_releases}
    with_cuda = [
        replace(environment, cuda=cuda, cudnn="7.4")
        for environment, cuda in zip(ENVIRONMENTS, ["10.0", "10.1"], strict=False)
    ]
    runs = {
        "two releases": run(),
        "one environment": run([cell()]),
        "a package that moved": run(environments=[ENVIRONMENTS[0], moved], pins={"tf1.14": old, "moved": new}),
        "other packages": run_with({"numpy": "1", "six": "1"}, {"numpy": "2", "six": "2"}, tensorflow=["1.15", "2.0"]),
        "one release": run_with({"six": "1", "wrapt": "1"}, {"six": "2", "wrapt": "1"}),
        "one release among others": run_with(*three, tensorflow=["1.15.0", "2.0.0", "2.0.0"]),
        "many packages of one release": run_with(dict.fromkeys(names, "1"), dict.fromkeys(names, "2")),
        "an empty place": run_with({"six": "1"}, {}, tensorflow=["1.15.0", "2.0.0"]),
        "nothing differs": run_with({}, {}),
        "not recorded": run(pins=unrecorded),
        "TensorFlow's package": run(pins=cpu_package),
        "environments side by side": run_with(*MANY[:-1], tensorflow=RELEASES[:-1]),
        "environments one after the other": run_with(*MANY, tensorflow=RELEASES),
        "many environments of one release": run_with(*MANY),
        "many environments with other packages": run_with(*added, tensorflow=RELEASES),
        "two environments of each release": run([], environments=two_releases, pins=pins),
        "CUDA on GPUs": run(environments=with_cuda, asked={"limits": Limits(gpus=("0",))}),
        "CUDA on a CPU": run(environments=with_cuda),
    }
    assert not list(environments.make_sections(Results(run([], images={}, pins={}), [])))
    sections = {name: make(environments.make_sections, planned, []) for name, planned in runs.items()}
    assert {name: render(section) for name, section in sections.items()} == snapshot
    # every line has an entry under every heading
    for table in (table for section in sections.values() for table in tables(section)):
        assert {len(line.entries) for line in table.lines} == {len(table.heads)}
