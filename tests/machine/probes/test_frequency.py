import pytest

from harness.machine.probes import frequency
from tests.machine.conftest import Tree

CPUS = "sys/devices/system/cpu"


@pytest.mark.parametrize(
    ("governors", "level", "shown"),
    [
        (["performance", "performance"], "good", "performance"),
        (["performance", "powersave"], "warn", "performance, powersave"),
        (["schedutil", "schedutil"], "warn", "schedutil"),
        (["performance"], "unknown", None),
        ([], "unknown", None),
    ],
)
def test_only_the_governor_performance_is_good(tree: Tree, governors: list[str], level: str, shown: str | None) -> None:
    files = {f"{CPUS}/cpu{n}/cpufreq/scaling_governor": f"{name}\n" for n, name in enumerate(governors)}
    files |= {f"{CPUS}/cpu{n}/cpufreq/scaling_driver": "intel_pstate\n" for n in range(len(governors))}
    (found,) = frequency.governor(tree(files), [0, 1])
    assert (found.level, found.facts["governor"]) == (level, shown)


@pytest.mark.parametrize(
    ("files", "on", "level"),
    [
        ({"intel_pstate/no_turbo": "0"}, True, "warn"),
        ({"intel_pstate/no_turbo": "1"}, False, "good"),
        ({"cpufreq/boost": "1"}, True, "warn"),
        ({"cpufreq/boost": "0"}, False, "good"),
        ({"cpufreq/boost": "?"}, None, "unknown"),
        ({}, None, "unknown"),
    ],
)
def test_turbo_has_a_switch_of_two_kinds(tree: Tree, files: dict[str, str], on: bool | None, level: str) -> None:
    (found,) = frequency.turbo(tree({f"{CPUS}/{name}": text for name, text in files.items()}))
    assert (found.facts["on"], found.level) == (on, level)
    assert found.facts["switch"] == ("" if on is None else next(iter(files)))


def test_throttling_is_what_was_counted_meanwhile(tree: Tree) -> None:
    folder = f"{CPUS}/cpu1/thermal_throttle"
    before = frequency.throttles(
        tree({f"{folder}/core_throttle_count": "2", f"{folder}/package_throttle_count": "3"}), [1]
    )
    after = frequency.throttles(tree({f"{folder}/core_throttle_count": "4"}), [1])
    assert frequency.throttling(before, before, [1])[0].level == "good"
    (found,) = frequency.throttling(before, after, [1])
    assert (found.level, found.facts) == ("bad", {"times": 2, "since_start": 7})


def test_throttling_that_is_not_counted_is_unknown(tree: Tree) -> None:
    none = frequency.throttles(tree({}), [0])
    assert frequency.throttling(none, none, [0])[0].level == "unknown"
    assert frequency.throttling({}, {}, [])[0].level == "unknown"
