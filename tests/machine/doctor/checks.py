"""What checks say, by their level."""

from collections.abc import Mapping, Sequence

from harness.machine.doctor.check import CheckResult


def read_checks(checks: Mapping[str, Sequence[CheckResult]]) -> dict[str, list[str]]:
    """Return the name, the value, the advice and the command of each check, which has to have the level it stands under."""
    for level, results in checks.items():
        assert {result.value: result.level for result in results} == dict.fromkeys(
            [result.value for result in results], level
        )
    return {
        level: [
            "\n".join(filter(None, (f"{result.name}: {result.value}", result.advice, result.command)))
            for result in results
        ]
        for level, results in checks.items()
    }
