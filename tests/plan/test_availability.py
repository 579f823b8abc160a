from pathlib import Path

from harness.model.cell import Cell
from harness.model.environment import Device, Environment, Lock, Requirement
from harness.model.scenario import Need, Scenario
from harness.plan.availability import split


def requirement(python: str = "3.7", **pins: str) -> Requirement:
    environment = Environment("e", "2.1.4", python, "2021-06-20T00:00:00Z")
    return Requirement(environment, Device.CPU, Lock(Path("l"), "0", {k.replace("_", "-"): v for k, v in pins.items()}))


def scenario(*needs: Need, dependencies: tuple[str, ...] = ("tensorflow",)) -> Scenario:
    return Scenario("s", Path("s.py"), "s", "", [], {"api": ["keras", "tf.keras"]}, ">=3.6", dependencies, needs=needs)


def reasons(described: Scenario, required: Requirement) -> dict[str, str]:
    cells = [Cell("s", "e", Device.CPU, {"api": api}) for api in ("keras", "tf.keras")]
    _, unavailable = split(cells, {"s": described}, {"e": required})
    return {entry.cell.axes["api"]: entry.reason for entry in unavailable}


def test_tensorflow_cpu_counts_as_tensorflow() -> None:
    assert reasons(scenario(), requirement(tensorflow_cpu="2.1.4")) == {}


def test_a_need_speaks_for_the_cells_it_names_with_its_reason() -> None:
    need = Need(requires=["keras<2.4"], when={"api": "keras"}, reason="from 2.4 on it is tf.keras")
    assert reasons(scenario(need), requirement(tensorflow="2.5", keras="2.5")) == {
        "keras": "from 2.4 on it is tf.keras"
    }


def test_a_need_without_a_reason_names_what_is_missing() -> None:
    need = Need(requires=["keras<2.4", "tensorflow>=1"], when={"api": "keras"})
    assert reasons(scenario(need), requirement(tensorflow="2.5")) == {"keras": "needs keras<2.4"}


def test_the_python_and_the_dependencies_of_the_header_count_for_every_cell() -> None:
    assert "needs Python >=3.6, e has 3.5" in reasons(scenario(), requirement("3.5", tensorflow="1.0"))["keras"]
    assert reasons(scenario(), requirement(numpy="1")) == {"keras": "needs tensorflow", "tf.keras": "needs tensorflow"}


def test_a_need_may_say_what_to_take_instead() -> None:
    need = Need(requires=["keras>=2.4"], when={"api": "keras"}, advice="Take api=tf.keras.")
    cells = [Cell("s", "e", Device.CPU, {"api": "keras"})]
    _, (entry,) = split(cells, {"s": scenario(need)}, {"e": requirement(tensorflow="2.1", keras="2.3.1")})
    assert (entry.reason, entry.advice) == ("needs keras>=2.4", "Take api=tf.keras.")
