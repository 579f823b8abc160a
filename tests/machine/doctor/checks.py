"""The findings of checks by level."""

from collections.abc import Mapping, Sequence

from harness.machine.doctor.check import CheckResult


def read_checks(checks: Mapping[str, Sequence[CheckResult]]) -> dict[str, list[str]]:
    """Return what each check says, with its advice and command. Each check must have its level."""
    texts = {}
    for level, results in checks.items():
        assert {result.value: result.level for result in results if result.level != level} == {}, level
        lines = [[f"{result.name}: {result.value}", result.advice, result.command] for result in results]
        texts[level] = ["\n".join(filter(None, words)) for words in lines]
    return texts
